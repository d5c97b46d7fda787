"""Recording: copies, successes apart from failures, the same seed, and files that survive."""

import os
import signal
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from conftest import PATHS
from stable_baselines3 import PPO

import align_rudder as ar
from align_rudder.gym.cautions import has_action


class Counter(gym.Env):
    """Counts up in one buffer that it hands out again and again; 3 right moves are paid."""

    observation_space = gym.spaces.Box(0, 99, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self):
        self.buffer = np.zeros(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.buffer[:] = 0.0, self.np_random.integers(50)
        return self.buffer, {}

    def step(self, action):
        self.buffer[0] += action
        won = self.buffer[0] == 3
        over = won or action == 0
        return self.buffer, float(won), bool(over), False, {"moves": np.array(self.buffer[0])}


class Goal(gym.Env):
    """A goal-conditioned task: −1 a step, `is_success` in info, cut off after five steps."""

    place = gym.spaces.Box(-9, 9, (1,), np.float64)
    observation_space = gym.spaces.Dict(
        {"observation": place, "achieved_goal": place, "desired_goal": place}
    )
    action_space = gym.spaces.Box(-1, 1, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.to, self.t = np.zeros(1), self.np_random.uniform(-3, 3, 1), 0
        return self._obs(), {}

    def _obs(self):
        return {"observation": self.at, "achieved_goal": self.at, "desired_goal": self.to}

    def step(self, action):
        self.at += action
        self.t += 1
        near = bool(abs(self.at - self.to)[0] < 0.5)
        return self._obs(), -float(not near), False, self.t == 5, {"is_success": near}


def same(a, b):
    return all(
        np.array_equal(x.observations, y.observations)
        and np.array_equal(x.actions, y.actions)
        and np.array_equal(x.rewards, y.rewards)
        for x, y in zip(a, b, strict=True)
    )


def test_observations_and_actions_are_copied_from_buffers_that_are_used_again():
    action = np.zeros((), np.int64)

    def policy(obs):
        action[...] = 1
        return action

    (episode,) = ar.record(Counter(), policy, 1, seed=4).successes
    assert episode.observations[:, 0].tolist() == [0, 1, 2, 3]
    assert episode.actions.tolist() == [1, 1, 1]
    move = np.zeros(1)

    def towards(obs):
        return np.clip(obs["desired_goal"] - obs["observation"], -1, 1, out=move)

    (episode,) = ar.record(Goal(), towards, 1, seed=1).successes
    places, to = episode.observations["observation"], episode.observations["desired_goal"]
    assert np.allclose(np.diff(places, axis=0), episode.actions)
    assert np.allclose(episode.actions, np.clip(to - places, -1, 1)[:-1])
    assert abs(episode.actions[0]) > abs(episode.actions[-1])


def test_failures_are_kept_apart_and_recording_stops_at_n():
    plan = iter([1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1])
    recording = ar.record(Counter(), lambda obs: next(plan), 2)
    assert [len(e) for e in recording.successes] == [3, 3]
    assert [len(e) for e in recording.failures] == [2, 1]
    assert len(list(plan)) == 3  # nothing was played after the second success
    successes, failures = recording
    assert successes is recording.successes
    assert failures is recording.failures


def test_what_counts_as_a_success():
    def towards(obs):
        return np.clip(obs["desired_goal"] - obs["observation"], -1, 1)

    good = ar.record(Goal(), towards, 3, seed=0)
    assert all(e.ret <= 0 for e in good.successes)  # info says it, not the return
    assert set(good.successes[0].observations) == {"observation", "achieved_goal", "desired_goal"}
    assert len(ar.record(Goal(), towards, 3, seed=0, success="is_success").successes) == 3
    strict = ar.record(Goal(), towards, 1, seed=0, success=-1.0)
    assert strict.successes[0].ret >= -1
    assert all(e.ret < -1 for e in strict.failures)
    by_function = ar.record(Goal(), towards, 2, seed=0, success=lambda e, info: e.ret < -1)
    assert all(e.ret < -1 for e in by_function.successes)
    away = {"max_attempts": 4, "seed": 0}
    with pytest.warns(ar.AlignRudderWarning, match="0 of 2 successes in 4 episodes"):
        bad = ar.record(Goal(), lambda obs: np.sign(obs["observation"] - 1e-9), 2, **away)
    assert len(bad.failures) == 4
    with pytest.raises(ValueError, match=r"info has no 'won'; it has \['is_success'\]"):
        ar.record(Goal(), towards, 1, success="won")


def test_the_same_seed_plays_the_same_episodes(lake):
    slippery = gym.make("FrozenLake-v1", is_slippery=True)
    every = {"success": lambda episode, info: True}
    a, b, c = (ar.record(slippery, "random", 6, seed=s, **every).successes for s in (3, 3, 4))
    assert same(a, b)
    assert not same(a[:1], c[:1]) or not same(a[1:2], c[1:2])
    later = ar.record(slippery, "random", 1, seed=3, **every).successes
    assert same(a[:1], later)
    worlds = [e.observations[0, 1] for e in ar.record(Counter(), lambda o: 1, 9, seed=7).successes]
    again = [e.observations[0, 1] for e in ar.record(Counter(), lambda o: 1, 9, seed=8).successes]
    assert worlds[1:] == again[:-1]  # episode i begins with seed + i
    assert len(set(worlds)) > 3


def test_demonstrations_of_the_lake_fit_a_model_and_are_read_back(lake, tmp_path):
    steps = iter([a for path in PATHS for a in path])
    path, failed = tmp_path / "demos.npz", tmp_path / "failures.npz"
    recording = ar.record(
        lake, lambda obs: next(steps), len(PATHS), path=path, failures_path=failed, keep_infos=True
    )
    read = ar.load_episodes(path)
    assert same(read, recording.successes)
    assert read[0].infos == [{"prob": 1.0}] * 6
    assert not failed.exists()  # nobody failed
    assert [goal.symbol for goal in ar.AlignRudder().fit(read).subgoals_][-1] == 15


def test_a_model_of_stable_baselines_is_a_policy(lake):
    ppo = PPO("MlpPolicy", lake, seed=0, device="cpu")
    recording = ar.record(lake, ppo, 4, seed=0, success=lambda e, info: True)
    assert all(isinstance(int(a), int) for e in recording.successes for a in e.actions)
    assert len({tuple(e.actions) for e in recording.successes}) > 1  # sampled

    class Remembers:
        """Goes on where it was, as recurrent policies do, and begins anew with an episode."""

        def predict(self, obs, state=None, episode_start=None, deterministic=False):
            assert bool(episode_start[0]) == (state is None)
            state = 0 if state is None else state + 1
            return np.array(PATHS[0][state]), state

    good, bad = ar.record(lake, Remembers(), 2)
    assert [e.actions.tolist() for e in good] == [PATHS[0]] * 2
    assert not bad


class BrokenError(Exception):
    pass


def fails_after(n):
    """Return a policy that wins n episodes and then raises."""
    left = iter(range(3 * n + 1))

    def policy(obs):
        if next(left) == 3 * n:
            raise BrokenError("the joystick broke")
        return 1

    return policy


def test_what_was_played_is_written_when_the_policy_fails(tmp_path):
    path = tmp_path / "demos.npz"
    with pytest.raises(BrokenError) as caught:
        ar.record(Counter(), fails_after(2), 5, path=path)
    assert [len(e) for e in ar.load_episodes(path)] == [3, 3]
    assert "2 successes and 0 failures" in caught.value.__notes__[0]
    assert str(path) in caught.value.__notes__[0]
    with pytest.raises(BrokenError) as caught:
        ar.record(Counter(), fails_after(1), 5)
    assert "give path" in caught.value.__notes__[0]


def test_an_earlier_file_is_replaced_by_a_complete_recording_only(tmp_path):
    path, beside = tmp_path / "demos.npz", tmp_path / "demos-unfinished.npz"
    ar.record(Counter(), lambda obs: 1, 4, path=path)
    with pytest.raises(BrokenError):
        ar.record(Counter(), fails_after(1), 5, path=path)
    assert [len(ar.load_episodes(p)) for p in (path, beside)] == [4, 1]
    plan = iter([1, 1, 1, 0, 0])
    with pytest.warns(ar.AlignRudderWarning) as caught:
        ar.record(Counter(), lambda obs: next(plan), 2, max_attempts=3, path=path)
    assert any("demos-unfinished-2.npz" in str(w.message) for w in caught)
    assert [len(ar.load_episodes(p)) for p in (path, beside)] == [4, 1]
    ar.record(Counter(), lambda obs: 1, 2, path=path)
    assert len(ar.load_episodes(path)) == 2


def test_a_running_recording_is_on_disk_before_it_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("align_rudder.gym.record._EVERY", 0.0)
    path, beside = tmp_path / "demos.npz", tmp_path / "demos-unfinished.npz"
    seen = []

    def policy(obs):  # as if the process were killed here
        seen.append(len(ar.load_episodes(beside)) if beside.exists() else 0)
        return 1

    ar.record(Counter(), policy, 4, path=path)
    assert seen[:6] == [0] * 3 + [1] * 3  # then it waits ten times as long as writing took
    assert not beside.exists()
    assert len(ar.load_episodes(path)) == 4


SCRIPT = """
import sys
import gymnasium as gym
import align_rudder as ar
steps = iter([1, 1, 2, 2, 1, 2] * 2)
def policy(obs):
    for action in steps:
        return action
    print("here", flush=True)
    while True:
        pass
ar.record(gym.make("FrozenLake-v1", is_slippery=False), policy, 5, path=sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_recording_that_is_stopped(tmp_path, number):
    """Ctrl-C and SIGTERM: what was played is written. Killed: the earlier file is whole."""
    path, earlier = tmp_path / "demos.npz", number == signal.SIGKILL
    if earlier:
        ar.record(Counter(), lambda obs: 1, 4, path=path)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "here\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert len(ar.load_episodes(path)) == (4 if earlier else 2)
    assert [p.name for p in tmp_path.glob("*demos*")] == ["demos.npz"]
    if not earlier:
        assert "KeyboardInterrupt" in said


def test_replay_shows_the_same_episodes_through_wrappers(lake, model):
    slippery = gym.make("FrozenLake-v1", is_slippery=True)
    old = ar.record(slippery, "random", 5, seed=11, success=lambda e, info: True).successes
    new = ar.replay(ar.SubTaskReward(slippery, model), old, range(11, 16))
    n = len(model.subgoals_) + 1
    assert all(np.array_equal(a.observations // n, b.observations) for a, b in zip(new, old))
    with pytest.raises(ValueError, match=r"episode 0, played again, (ended|goes on) after"):
        ar.replay(slippery, old, range(30, 35))
    with pytest.raises(ValueError, match="1 seeds for 5 episodes"):
        ar.replay(slippery, old, [0])


def test_bad_use(lake, tmp_path):
    vector = gym.make_vec("FrozenLake-v1", 2)
    with pytest.raises(ValueError, match="vector environment"):
        ar.record(vector, "random", 1)
    for n in (0, 1.5, -1):
        with pytest.raises(ValueError, match=f"n={n}"):
            ar.record(lake, "random", n)
    with pytest.raises(ValueError, match="max_attempts=0"):
        ar.record(lake, "random", 1, max_attempts=0)
    with pytest.raises(ValueError, match="policy='expert' is not known"):
        ar.record(lake, "expert", 1)
    with pytest.raises(ValueError, match="policy is a int"):
        ar.record(lake, 3, 1)
    with pytest.raises(ValueError, match="success=True; a number"):
        ar.record(lake, "random", 1, success=True)
    with pytest.raises(ValueError, match="does not exist"):  # before anything is played
        ar.record(lake, 3, 1, path=tmp_path / "no" / "demos.npz")

    class Tells(Counter):
        def step(self, action):
            return *super().step(action)[:4], {"self": self}

    with pytest.raises(ValueError, match="infos hold a Tells"):  # at the first, not the last
        ar.record(Tells(), lambda obs: 1, 9, keep_infos=True, path=tmp_path / "demos.npz")


class Changes(Counter):
    """In episode 3 the infos hold what no file can, or the observations have another entry."""

    def __init__(self, what):
        super().__init__()
        self.what, self.played = what, 0
        if what == "observations":
            self.observation_space = None

    def reset(self, *, seed=None, options=None):
        self.played += 1
        obs, info = super().reset(seed=seed, options=options)
        return self._as_now(obs), info

    def _as_now(self, obs):
        return np.zeros(3) if self.what == "observations" and self.played == 3 else obs

    def step(self, action):
        obs, *rest, info = super().step(action)
        odd = {"self": self} if self.what == "infos" and self.played == 3 else {}
        return self._as_now(obs), *rest, {**info, **odd}


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("infos", "episode 2 cannot be written: infos hold a Changes"),
        ("observations", "episode 2 has other observations or actions than the first one"),
    ],
)
def test_what_was_played_is_written_when_a_later_episode_cannot_be(tmp_path, what, said):
    path = tmp_path / "demos.npz"
    with pytest.raises(ValueError, match=said) as caught:
        ar.record(Changes(what), lambda obs: 1, 5, path=path, keep_infos=True)
    assert [len(e) for e in ar.load_episodes(path)] == [3, 3]
    assert f"2 successes and 0 failures, which are in {path}" in caught.value.__notes__[0]
    kept = ar.record(Changes(what), lambda obs: 1, 5, keep_infos=True)
    assert len(kept.successes) == 5  # in memory they may be what they like


class Broken(Counter):
    """Shows NaN after the second step."""

    def step(self, action):
        obs, *rest = super().step(action)
        return np.array([obs[0], np.nan if obs[0] == 2 else 0.0]), *rest


def test_observations_that_no_model_is_fitted_to_are_recorded_with_a_warning():
    with pytest.warns(ar.AlignRudderWarning) as caught:
        found = ar.record(Broken(), lambda obs: 1, 3, seed=0)
    (said,) = [str(w.message) for w in caught]
    assert "observation 2 of episode 0 (after step 1) holds NaN" in said
    assert all(np.isnan(e.observations[2, 1]) for e in found.successes)
    with pytest.raises(ValueError, match="NaN"):
        ar.AlignRudder(ar.DeltaEvents()).fit(found.successes)


def test_actions_that_the_space_has_not_are_recorded_with_a_warning():
    plan = iter([1, 1, 1, 3, 3, 3])
    first = ar.record(Counter(), lambda obs: next(plan), 1)
    with pytest.warns(ar.AlignRudderWarning) as caught:
        found = ar.record(Counter(), lambda obs: next(plan), 3)
    (said,) = [str(w.message) for w in caught]
    assert "the policy returned 3, which is no action of Discrete(2)" in said
    assert [e.actions.tolist() for e in (*first[0], *found[0])] == [[1, 1, 1], [3], [3], [3]]


@pytest.mark.parametrize(
    ("space", "good", "bad"),
    [
        (
            gym.spaces.Discrete(3, start=2),
            [2, np.int64(4), np.array(3), True + 1],
            [1, 5, 2.0, None, "2", [2], np.array([2])],
        ),
        (
            gym.spaces.Box(-1, 0.1, (2,), np.float32),
            [[0.1, -1.0], np.array([0.0, 0.1]), np.zeros(2, int)],
            [[0.2, 0.0], [np.nan, 0.0], 0.0, np.zeros(3), [[0.0], [0.0, 0.0]], None],
        ),
        (gym.spaces.MultiDiscrete([2, 3]), [[1, 2], np.zeros(2, int)], [[2, 2], [0.5, 0.0], 1]),
        (gym.spaces.MultiBinary(2), [np.array([0, 1], np.int8)], [np.array([0, 2])]),
        (
            gym.spaces.Dict(a=gym.spaces.Discrete(2), b=gym.spaces.Box(0, 1, (1,), np.float32)),
            [{"a": 1, "b": np.array([0.5])}],
            [{"a": 2, "b": np.array([0.5])}, {"a": 1}, 1],
        ),
        (
            gym.spaces.Tuple([gym.spaces.Discrete(2), gym.spaces.Discrete(3)]),
            [(1, 2)],
            [(2, 1), (1,), 1],
        ),
    ],
)
def test_which_actions_a_space_has(space, good, bad):
    assert all(has_action(space, action) for action in [*good, space.sample()])
    assert not any(has_action(space, action) for action in bad)
