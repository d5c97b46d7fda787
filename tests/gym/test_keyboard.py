"""A person at the keyboard: injected keys, a terminal, a window."""

import os
import sys

import gymnasium as gym
import pytest

import align_rudder as ar
from align_rudder.gym.keyboard import key_name

KEYS = {"left": 0, "down": 1, "right": 2, "Up": 3}
WAY = ["down", "down", "right", "right", "down", "right"]


def test_keys_are_played_and_escape_keeps_what_was_finished(lake, tmp_path):
    pressed = iter([*WAY, "q", "down", *WAY[1:], "UP", "escape", "down"])
    person = ar.Keyboard(KEYS, read=pressed.__next__)
    path = tmp_path / "demos.npz"
    recording = ar.record(lake, person, 5, path=path)
    assert [e.actions.tolist() for e in recording.successes] == [[1, 1, 2, 2, 1, 2]] * 2
    assert not recording.failures
    assert list(pressed) == ["down"]
    assert len(ar.load_episodes(path)) == 2


def test_names_of_keys_from_what_a_terminal_sends():
    sent = "aZ \x1b[A\x1bOD\r\x1b\x04"
    characters = iter(sent)
    rest = lambda: iter(characters).__length_hint__() > 2  # noqa: E731
    names = [key_name(lambda: next(characters), rest) for _ in range(8)]
    assert names == ["a", "Z", "space", "up", "left", "return", "escape", "escape"]
    assert key_name(lambda: "", lambda: False) == "escape"


class Typed(gym.Wrapper):
    """Whoever sees the lake types the next keys."""

    def render(self):
        os.write(self.to, next(self.keys))
        return super().render()


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_keys_typed_in_a_terminal(monkeypatch, capsys):
    import pty
    import termios

    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        env = Typed(gym.make("FrozenLake-v1", is_slippery=False, render_mode="ansi"))
        env.keys, env.to = iter([b"s", b"x\x1b[B", b"d", b"d", b"\x1b[B", b"\x1b[C"]), ours
        person = ar.Keyboard({**KEYS, "s": 1, "d": 2})
        (demo,) = ar.record(env, person, 1).successes
        assert termios.tcgetattr(theirs) == before
    os.close(ours)
    assert demo.actions.tolist() == [1, 1, 2, 2, 1, 2]
    assert capsys.readouterr().out.count("\x1b[41m") == 6  # the lake was shown before each key


def window_keys(monkeypatch, *names):
    """Let a window receive these keys, one after the other, each let go before the next."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    pygame = pytest.importorskip("pygame")
    from align_rudder.gym import keyboard

    show = keyboard._Window.show
    waiting = list(names)

    def show_and_press(self, picture):
        show(self, picture)
        assert self.screen.get_size() == (picture.shape[1], picture.shape[0])
        if waiting:
            name = waiting.pop(0)
            if name == "close":
                pygame.event.post(pygame.event.Event(pygame.QUIT))
            elif name:
                code = pygame.key.key_code(name)
                pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=code))
                pygame.event.post(pygame.event.Event(pygame.KEYUP, key=code))

    monkeypatch.setattr(keyboard._Window, "show", show_and_press)


def test_keys_pressed_in_a_window(monkeypatch):
    env = gym.make("FrozenLake-v1", is_slippery=False, render_mode="rgb_array")
    window_keys(monkeypatch, *WAY, "down", "close")
    recording = ar.record(env, ar.Keyboard(KEYS), 9)
    assert [e.actions.tolist() for e in recording.successes] == [[1, 1, 2, 2, 1, 2]]


def test_a_game_that_runs_by_itself(monkeypatch):
    env = gym.make("FrozenLake-v1", is_slippery=False, render_mode="rgb_array")
    window_keys(monkeypatch, "down", None, "down", None, "right", "right", "down", "right")
    (demo,) = ar.record(env, ar.Keyboard(KEYS, noop=0, fps=1000), 1).successes
    assert demo.actions.tolist() == [1, 0, 1, 0, 2, 2, 1, 2]


def test_bad_use(lake, monkeypatch):
    for keys in ({}, {"escape": 0}, {3: 0}):
        with pytest.raises(ValueError, match="names of keys with their actions"):
            ar.Keyboard(keys)
    with pytest.raises(ValueError, match="fps=0"):
        ar.Keyboard(KEYS, fps=0)
    with pytest.raises(ValueError, match=r"needs a window, .* render_mode=None"):
        ar.record(lake, ar.Keyboard(KEYS, noop=0), 1)
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(ValueError, match="there is none; run it in one"):
            ar.record(lake, ar.Keyboard(KEYS), 1)
