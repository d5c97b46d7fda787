"""A person at the keyboard as a policy: keys in a window or in the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np

__all__ = ["Keyboard", "QuitError"]

_STOP = "escape"
_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_NAMED = {" ": "space", "\r": "return", "\n": "return", "\t": "tab", "\x7f": "backspace"}
_LEAVING = ("\x03", "\x04", "")  # Ctrl-C, Ctrl-D, the end of what is read


class QuitError(Exception):
    """The person at the keyboard has left."""


class Keyboard:
    """A person at the keyboard, as a policy for `record`.

    An environment with `render_mode="rgb_array"` is shown in a window (needs pygame), which takes
    the keys. Others take them from the terminal: "ansi" is printed there, "human" shows itself.
    Escape or closing the window ends the recording; the episode under way is not kept.

    Args:
        keys: Action for each key, by the name of the key: a letter or digit, "left", "right", "up",
            "down", "space", "return". Other keys do nothing.
        noop: The action while no key is held. With it the game runs on by itself, which needs the
            window; without, every step waits for a key.
        fps: Steps a second of a game that runs by itself; None for what the environment says.
        read: Where keys come from instead: a function that waits for a key and returns its name,
            "escape" to end.

    Example:
        >>> import align_rudder as ar
        >>> pressed = iter(["down", "down", "x", "right", "right", "down", "right"])
        >>> person = Keyboard({"left": 0, "down": 1, "right": 2, "up": 3}, read=pressed.__next__)
        >>> ar.record(gym.make("FrozenLake-v1", is_slippery=False), person, 1)
        Recording(1 successes, 0 failures)
    """

    def __init__(
        self,
        keys: Mapping[str, Any],
        *,
        noop: Any = None,
        fps: float | None = None,
        read: Callable[[], str] | None = None,
    ) -> None:
        wrong = [key for key in keys if not isinstance(key, str) or not key or key == _STOP]
        if wrong or not keys:
            raise ValueError(
                f"keys={dict(keys)!r}; names of keys with their actions are needed, such as "
                '{"left": 0, "a": 1}; "escape" ends the recording'
            )
        if fps is not None and not fps > 0:
            raise ValueError(f"fps={fps}; steps a second, above 0, are needed")
        self.keys = {key.lower(): action for key, action in keys.items()}
        self.noop, self.fps, self.read = noop, fps, read

    @contextmanager
    def at(self, env: gym.Env[Any, Any]) -> Iterator[Callable[[], Any]]:
        """Give a function that returns the next action in this environment."""
        if self.read is not None:
            yield lambda: self._waited(self.read)  # pyright: ignore[reportArgumentType]
        elif env.render_mode == "rgb_array":
            with _window() as window:
                yield lambda: self._shown(env, window)
        elif self.noop is not None:
            raise ValueError(
                f"a game that runs by itself (noop={self.noop!r}) needs a window, and the "
                f'environment has render_mode={env.render_mode!r}; make it with "rgb_array"'
            )
        else:
            with _terminal() as read:

                def act() -> Any:
                    if env.render_mode == "ansi":
                        print(env.render(), flush=True)
                    return self._waited(read)

                yield act

    def _waited(self, read: Callable[[], str]) -> Any:
        while True:
            key = read().lower()
            if key == _STOP:
                raise QuitError
            if key in self.keys:
                return self.keys[key]

    def _shown(self, env: gym.Env[Any, Any], window: _Window) -> Any:
        window.show(np.asarray(env.render()))
        if self.noop is None:
            return self._waited(window.wait)
        held = window.held(self.fps or env.metadata.get("render_fps") or 30)
        if _STOP in held:
            raise QuitError
        return next((self.keys[key] for key in held if key in self.keys), self.noop)


class _Window:
    """A window of pygame: shows pictures, and knows which keys are held, the last one first."""

    def __init__(self, pygame: Any) -> None:
        self.pygame, self.screen, self.down = pygame, None, []
        self.clock = pygame.time.Clock()

    def show(self, picture: np.ndarray) -> None:
        pygame, size = self.pygame, (picture.shape[1], picture.shape[0])
        if self.screen is None or self.screen.get_size() != size:
            self.screen = pygame.display.set_mode(size)
        self.screen.blit(pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        pygame.display.flip()

    def wait(self) -> str:
        """Return the next key that is pressed."""
        while True:
            if pressed := self._take(self.pygame.event.wait()):
                return pressed

    def held(self, fps: float) -> list[str]:
        """Wait for the next frame; return the keys held, or pressed since the last one."""
        self.clock.tick(fps)
        pressed = [key for event in self.pygame.event.get() if (key := self._take(event))]
        return list(dict.fromkeys([*reversed(pressed), *self.down]))

    def _take(self, event: Any) -> str | None:
        pygame = self.pygame
        if event.type == pygame.QUIT:
            return _STOP
        if event.type not in (pygame.KEYDOWN, pygame.KEYUP):
            return None
        key = pygame.key.name(event.key)
        self.down = [other for other in self.down if other != key]
        if event.type == pygame.KEYUP:
            return None
        self.down.insert(0, key)
        return key


@contextmanager
def _window() -> Iterator[_Window]:
    try:
        import pygame
    except ImportError as error:
        raise ImportError(
            'a window for the keyboard needs pygame; in a clone: pip install ".[render]"'
        ) from error
    pygame.init()
    try:
        yield _Window(pygame)
    finally:
        pygame.quit()


def key_name(take: Callable[[], str], more: Callable[[], bool]) -> str:
    """Return the name of the next key, from the characters that a terminal sends for it.

    Args:
        take: Returns the next character, "" at the end.
        more: Whether another one is there already: Escape alone, or the first of several?
    """
    first = take()
    if first in _LEAVING:
        return _STOP
    if first != "\x1b":
        return _NAMED.get(first, first)
    if not more():
        return _STOP
    second = take()
    return _ARROWS.get(take(), "?") if second in "[O" else second


@contextmanager
def _terminal() -> Iterator[Callable[[], str]]:
    """Give a function that waits for a key in the terminal."""
    if not sys.stdin.isatty():
        raise ValueError(
            "keys come from the terminal here, and there is none; run it in one, or make the "
            'environment with render_mode="rgb_array" to play in a window'
        )
    if os.name == "nt":
        import msvcrt

        yield lambda: key_name(msvcrt.getwch, msvcrt.kbhit)  # type: ignore[attr-defined]
        return
    import select
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    tty.setcbreak(file, termios.TCSADRAIN)  # keys at once, and Ctrl-C still interrupts
    try:
        yield lambda: key_name(
            lambda: os.read(file, 1).decode(errors="replace"),
            lambda: bool(select.select([file], [], [], 0.05)[0]),
        )
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
