"""A crash of the game is a pause: `CrashRecovery` by itself, with games that die as planned."""

import logging
import os
import signal
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from small_world import act, play, same

from align_rudder.minerl.crashes import CrashCounts, CrashRecovery, GameLostError, Restarts
from align_rudder.minerl.environment import MineRLEnv
from align_rudder.minerl.place import Games
from align_rudder.minerl.process import MineRLServerError
from align_rudder.runs.rows import read_rows


class Planned(gym.Env):
    """Counts; dies at the calls that are planned, and does not come back by itself.

    Args:
        dies: Numbers of the calls that fail, counted from 0 through all resets and steps.
        drift: What is added to the count with each new game, so that none is like the one before.
    """

    observation_space = gym.spaces.Dict({"count": gym.spaces.Box(0, 1e9, (), np.int64)})
    action_space = gym.spaces.Discrete(9)

    def __init__(self, dies=(), drift=0):
        self.dies, self.drift, self.calls, self.games, self.alive = set(dies), drift, 0, 1, True
        self.done = []

    def _call(self):
        self.calls += 1
        self.alive = self.calls - 1 not in self.dies
        if not self.alive:
            raise MineRLServerError("it died\nmore on that")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.games += not self.alive
        self._call()
        self.count = 100 * seed + self.drift * self.games
        return self._seen(), {"seed": seed}

    def step(self, action):
        assert self.alive, "a dead game was asked"
        self._call()
        self.count += int(action)
        return self._seen(), float(action), False, self.count % 100 > 50, {}

    def _seen(self):
        return {"count": np.array(self.count), "pov": np.random.default_rng().random(3)}


def recovered(dies=(), drift=0, **restarts):
    pauses = []
    env = CrashRecovery(Planned(dies, drift), Restarts(**restarts), pauses.append)
    return env, pauses


def counts(env, seed, n):
    """Return what an episode of n steps shows."""
    seen = [env.reset(seed=seed)[0]]
    seen += [env.step(i % 3)[0] for i in range(n)]
    return [int(obs["count"]) for obs in seen]


@pytest.mark.parametrize("dies", [[0], [3], [3, 4], [3, 5], [6, 7, 9], [0, 1, 2]])
def test_an_episode_goes_on_as_though_nothing_had_been(dies):
    (env, pauses), (plain, _) = recovered(dies, at_one_step=4), recovered()
    assert counts(env, 7, 9) == counts(plain, 7, 9)
    assert env.steps == plain.steps == 9
    assert env.crashes == len(pauses) == len(dies)
    assert env.lost == 0


def test_pauses_grow_and_begin_anew_after_a_new_step():
    env, pauses = recovered([0, 1, 2, 6], first=1, longest=3, in_a_row=4)
    counts(env, 1, 9)
    assert pauses == [1, 2, 3, 1]


def test_at_the_limit_an_error_says_what_was_tried_and_how_to_go_on():
    env, pauses = recovered(range(2, 99), in_a_row=5, at_one_step=9, first=1)
    env.reset(seed=4)
    env.step(1)
    said = r"crashed 5 times in a row.*started anew each time, with 15 s of waiting.*saved.*same"
    with pytest.raises(GameLostError, match=rf"{said} command again(.|\n)*it died\nmore on that"):
        env.step(1)
    assert pauses == [1, 2, 4, 8]
    assert issubclass(GameLostError, MineRLServerError)


def test_every_crash_is_written_down_and_logged(caplog):
    env, _ = recovered([3, 6])
    noted = []
    env.on_crash = noted.append
    with caplog.at_level(logging.WARNING, "align_rudder"):
        counts(env, 5, 9)
    assert [(c.number, c.in_a_row, c.seed, c.at, c.reason) for c in noted] == [
        (1, 1, 5, 2, "it died"),
        (2, 2, 5, 2, "it died"),
    ]
    assert "crashed, 1 times in 2 steps so far; it is started anew in 1 s (try 1 of 7)" in (
        caplog.text
    )
    assert str(CrashCounts.of([env, recovered()[0]])).startswith(
        "the game crashed 2 times in 9 steps"
    )
    assert str(CrashCounts.of([recovered()[0]])) == "the game did not crash in 0 steps"


def test_an_episode_to_which_the_game_does_not_come_back_is_set_aside():
    env, _ = recovered([4], drift=1)
    seen = counts(env, 7, 3)
    obs, reward, terminated, truncated, info = env.step(2)
    assert "led elsewhere" in info["lost"]
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert int(obs["count"]) == seen[-1]  # the step was not done, and nothing is made up
    assert (env.steps, env.lost) == (3, 1)
    assert "lost" not in env.reset(seed=8)[1]
    env.step(1)
    assert env.steps == 4


def test_a_step_that_always_kills_the_game_costs_its_episode_only():
    class Poison(Planned):
        def step(self, action):
            if action == 5:
                self.alive = False
                raise MineRLServerError("poison")
            return super().step(action)

    env = CrashRecovery(Poison(), Restarts(), lambda seconds: None)
    counts(env, 1, 3)
    assert "crashed 3 times at this step" in env.step(5)[4]["lost"]


def test_episodes_that_are_all_set_aside_are_an_error():
    env = CrashRecovery(Planned(range(2, 999, 3)), Restarts(at_one_step=1, first=0))
    for seed in range(7):
        env.reset(seed=seed)
        env.step(1)
        assert env.step(1)[4]["lost"]
    env.reset(seed=7)
    env.step(1)
    with pytest.raises(GameLostError, match=r"8 episodes in a row had to be set aside.*same"):
        env.step(1)


def test_an_episode_that_was_not_set_aside_ends_the_row():
    env = CrashRecovery(Planned(range(2, 999, 5)), Restarts(at_one_step=1, first=0))
    for seed in range(20):
        env.reset(seed=seed)
        env.step(1)
        if seed % 2 == 0:
            assert env.step(1)[4]["lost"]


def test_worlds_that_are_drawn_are_not_shifted_by_a_crash():
    drawn = []
    for dies in ((), (0, 1, 3)):
        env, _ = recovered(dies)
        env.unwrapped.np_random = np.random.default_rng(3)
        drawn.append([])
        for _ in range(4):
            drawn[-1].append(env.reset()[1]["seed"])
            env.step(1)
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 4


def test_restarts_are_checked():
    for name, value in {"in_a_row": 0, "at_one_step": 0, "first": -1, "longest": -1}.items():
        with pytest.raises(ValueError, match=name):
            Restarts(**{name: value})


def test_a_real_server_that_is_killed_is_replaced():
    """A whole game to the diamond, with its process killed every forty steps."""
    killed = []

    class Killed(MineRLEnv):
        def step(self, action):
            out = super().step(action)
            if len(killed) < 3 and self._steps % 40 == 0:
                killed.append(self._server.process.pid)
                os.kill(killed[-1], signal.SIGKILL)
            return out

    restarts = Restarts(first=0, at_one_step=9)
    with MineRLEnv(module="scripted") as plain:
        wanted = play(plain, 5)
    with CrashRecovery(Killed(module="scripted"), restarts) as env:
        found = play(env, 5)
    assert len(killed) == env.crashes == 3
    assert env.steps == len(wanted[1])
    assert all(same(a, b) for a, b in zip(found[0], wanted[0], strict=True))
    assert found[2:] == wanted[2:]


def test_a_game_of_which_no_two_are_alike(make, trick):
    env = CrashRecovery(make(trick=trick("elsewhere")), Restarts(first=0))
    env.reset(seed=0)
    env.step(act())
    env.env._server.process.kill()
    assert env.step(act())[4]["lost"]


def test_a_game_that_dies_between_episodes_has_crashed():
    noted = []
    with CrashRecovery(MineRLEnv(module="scripted"), Restarts(first=0)) as env:
        env.on_crash = noted.append
        for seed in range(3):
            env.reset(seed=seed)
            env.unwrapped._server.process.kill()
            env.unwrapped._server.process.wait()
        seen, _ = env.reset(seed=0)
    assert (env.crashes, [crash.seed for crash in noted]) == (3, [1, 2, 0])
    with MineRLEnv(module="scripted") as plain:
        assert same(plain.reset(seed=0)[0], seen)


class Failing:
    """Opens a game, but for the starts that fail."""

    def __init__(self, *fails):
        self.fails, self.n = fails, 0

    def __call__(self):
        self.n += 1
        if self.n in self.fails:
            raise MineRLServerError(f"start {self.n} failed\nmore on that")
        return SimpleNamespace(env=CrashRecovery(Planned()))


def test_a_crash_while_a_game_starts_is_a_pause(tmp_path):
    games = Games(Failing(2, 4, 5), 3, Restarts(first=0))
    with games.playing(tmp_path / "crashes.csv") as envs:
        assert len(envs) == 3
        assert CrashCounts.of(env.env for env in envs).crashes == 3
    rows = read_rows(tmp_path / "crashes.csv", text=("time", "reason"))
    assert [(row["environment"], row["reason"]) for row in rows] == [
        ("1", "start 2 failed"),
        ("2", "start 4 failed"),
        ("2", "start 5 failed"),
    ]


def test_the_first_game_must_start_and_none_is_waited_for_without_end(tmp_path):
    """What cannot start at all is told at once."""
    for begin in (Games.check, lambda games: games.playing(tmp_path / "c.csv").__enter__()):
        games = Games(opener := Failing(1), 2)
        with pytest.raises(MineRLServerError, match="start 1 failed"):
            begin(games)
        assert opener.n == 1
    games = Games(opener := Failing(*range(2, 99)), 1, Restarts(in_a_row=4, first=0))
    games.check()
    with pytest.raises(MineRLServerError, match="start 5 failed"):
        games.playing(tmp_path / "c.csv").__enter__()
    assert opener.n == 5
