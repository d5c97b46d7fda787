"""The live display: its numbers are those of the episodes, whoever steps the environments."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

import align_rudder as ar
from align_rudder.gym.live import LiveCurves
from align_rudder.gym.sb3 import LiveCallback

LAKE = {"is_slippery": False, "max_episode_steps": 15}
WINDOW = 100


def lake():
    return gym.make("FrozenLake-v1", **LAKE)


def expected(model, episodes, window=WINDOW):
    """Return the numbers by another way: whole episodes through `redistribute` and cell tables."""
    rows = []
    for episode in episodes[-window:]:
        rr = model.redistribute(episode)
        columns = [model.scorer_.column_of(c) for c in rr.cells]
        reached = [max(columns) >= goal.column for goal in model.subgoals_]
        rows.append([rr.ret, rr.rewards.sum(), rr.kappa.mean(), sum(reached), *reached])
    names = ["return", "redistributed", "kappa", "subgoals"]
    names = [f"align_rudder/{name}" for name in names]
    names += [f"subgoals/{k + 1}_{goal.symbol}" for k, goal in enumerate(model.subgoals_)]
    return dict(zip(names, np.mean(np.array(rows, float), axis=0), strict=True))


def assert_same(numbers, wanted, atol=1e-9):
    assert list(numbers) == list(wanted)
    np.testing.assert_allclose(list(numbers.values()), list(wanted.values()), atol=atol)


def actions_of(rng, n):
    """Return actions that reach the goal now and then."""
    return np.where(rng.random(n) < 0.6, rng.integers(1, 3, n), rng.integers(0, 4, n))


def run_one(env, model, episodes, seed=0):
    """Step one wrapped environment; return the tracker and the episodes."""
    rng, tracker, finished = np.random.default_rng(seed), LiveCurves(model), []
    for _ in range(episodes):
        obs, info = env.reset(seed=int(rng.integers(1000)))
        observations, actions, rewards, done = [obs], [], [], False
        tracker.add(info)  # no transition: ignored
        while not done:
            action = int(actions_of(rng, 1)[0])
            obs, _, terminated, truncated, info = env.step(action)
            tracker.add(info)
            observations.append(obs)
            actions.append(action)
            rewards.append(info["original_reward"])
            done = terminated or truncated
        finished.append(ar.Episode(observations, actions, rewards, terminated, truncated))
    return tracker, finished


def test_one_environment(model):
    tracker, episodes = run_one(
        ar.RedistributeReward(lake(), model, observe_progress=False), model, 150
    )
    assert tracker.episodes == 150
    wanted = expected(model, episodes)
    assert_same(tracker.numbers(), wanted)
    assert 0 < wanted["align_rudder/return"] < 1  # some succeed, some fail
    shares = [v for k, v in wanted.items() if k.startswith("subgoals/")]
    assert len(set(shares)) > 1
    assert shares == sorted(shares, reverse=True)


def run_vector(env, tracker, mode, steps, wrapped_outside):
    """Step a vector environment; return the episodes, read from observations and true rewards."""
    rng = np.random.default_rng(3)
    obs, infos = env.reset(seed=3)
    tracker.add(infos)
    running = [([o], [], []) for o in obs]
    finished, waiting = [], np.zeros(env.num_envs, bool)
    for _ in range(steps):
        actions = actions_of(rng, env.num_envs)
        obs, _, terminated, truncated, infos = env.step(actions)
        tracker.add(infos)
        done = terminated | truncated
        for i in range(env.num_envs):
            if waiting[i]:
                running[i] = ([obs[i]], [], [])
                continue
            same = mode == AutoresetMode.SAME_STEP and done[i]
            held = infos["final_info"] if same and not wrapped_outside else infos
            running[i][0].append(infos["final_obs"][i] if same else obs[i])
            running[i][1].append(actions[i])
            running[i][2].append(held["original_reward"][i])
            if done[i]:
                finished.append(ar.Episode(*running[i], terminated[i], truncated[i]))
                running[i] = ([obs[i]], [], [])
        waiting = done if mode == AutoresetMode.NEXT_STEP else np.zeros_like(done)
        if mode == AutoresetMode.DISABLED and done.any():
            obs, infos = env.reset(options={"reset_mask": done})
            tracker.add(infos)
            for i in np.flatnonzero(done):
                running[i] = ([obs[i]], [], [])
    return finished


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("wrapped_outside", [True, False])
def test_vector_environments_in_every_autoreset_mode(model, mode, wrapped_outside):
    if wrapped_outside:
        env = SyncVectorEnv([lake] * 5, autoreset_mode=mode)
        env = ar.vector.RedistributeReward(env, model, observe_progress=False)
    else:
        make = [lambda: ar.RedistributeReward(lake(), model, observe_progress=False)] * 5
        env = SyncVectorEnv(make, autoreset_mode=mode)
    tracker = LiveCurves(model)
    episodes = run_vector(env, tracker, mode, 300, wrapped_outside)
    assert tracker.episodes == len(episodes) > WINDOW
    assert_same(tracker.numbers(), expected(model, episodes))


class Record(BaseCallback):
    """Collects whole episodes of a VecEnv, by itself, and the expected numbers at each log."""

    def __init__(self, model):
        super().__init__()
        self.redistribution, self.running, self.episodes = model, {}, []
        self.before = None

    def _on_step(self):
        for i, info in enumerate(self.locals["infos"]):
            episode = self.running.setdefault(i, ([], [], []))
            episode[0].append(self.before[i])
            episode[1].append(int(self.locals["actions"][i]))
            episode[2].append(info["original_reward"])
            if self.locals["dones"][i]:
                episode[0].append(info["terminal_observation"])
                self.episodes.append(ar.Episode(*self.running.pop(i)))
        self.before = np.array(self.locals["new_obs"]).ravel()
        return True

    def _on_training_start(self):
        self.before = np.array(self.model._last_obs).ravel()


class AtRolloutEnd(Record):
    """Notes the expected numbers whenever PPO has collected a rollout, which is when it logs."""

    def _on_training_start(self):
        super()._on_training_start()
        self.wanted = {}

    def _on_rollout_end(self):
        self.wanted[self.num_timesteps] = expected(self.redistribution, self.episodes)


def read_events(folder):
    (file,) = folder.rglob("events.out.tfevents*")
    events = EventAccumulator(str(file))
    events.Reload()
    tags = [t for t in events.Tags()["scalars"] if t.split("/")[0] in ("align_rudder", "subgoals")]
    return {tag: {e.step: e.value for e in events.Scalars(tag)} for tag in tags}


@pytest.mark.parametrize("kind", [DummyVecEnv, SubprocVecEnv])
def test_ppo_writes_the_numbers_to_tensorboard(model, tmp_path, kind):
    torch.set_num_threads(1)
    model.save(tmp_path / "model.npz")
    env = make_vec_env(  # a Monitor inside
        "FrozenLake-v1",
        n_envs=3,
        seed=0,
        env_kwargs=LAKE,
        wrapper_class=ar.RedistributeReward,
        wrapper_kwargs={"model": str(tmp_path / "model.npz"), "observe_progress": False},
        vec_env_cls=kind,
    )
    env = VecNormalize(env, norm_obs=False)  # changes the rewards that the learner sees
    logs = tmp_path / "runs"
    ppo = PPO("MlpPolicy", env, n_steps=64, batch_size=64, seed=0, tensorboard_log=str(logs))
    record = AtRolloutEnd(model)
    ppo.learn(1_000, callback=[record, LiveCallback(tmp_path / "model.npz")])
    env.close()
    written = read_events(logs)
    assert len(record.wanted) == 6
    some = next(iter(record.wanted.values()))
    assert set(written) == set(some)
    for step, numbers in record.wanted.items():
        for tag, value in numbers.items():
            assert written[tag][step] == pytest.approx(value, abs=1e-6)
    returns = [episode.ret for episode in record.episodes]
    monitored = [episode["r"] for episode in ppo.ep_info_buffer]
    assert monitored == returns[-len(monitored) :]


def test_an_off_policy_learner_logs_them_too(model, tmp_path):
    env = DummyVecEnv(
        [lambda: Monitor(ar.RedistributeReward(lake(), model, observe_progress=False))]
    )
    dqn = DQN("MlpPolicy", env, learning_starts=10_000, seed=0, tensorboard_log=str(tmp_path))
    record, live = Record(model), LiveCallback(model)
    dqn.learn(600, callback=[record, live], log_interval=4)
    assert len(record.episodes) == live.tracker.episodes > 20
    written = read_events(tmp_path)
    ends = np.cumsum([len(e) for e in record.episodes])
    for tag in written:
        assert len(written[tag]) == len(record.episodes) // 4
        for step, value in written[tag].items():
            n = int(np.searchsorted(ends, step)) + 1
            wanted = expected(model, record.episodes[:n])[tag]
            assert value == pytest.approx(wanted, abs=1e-6)


def test_learning_again_continues_or_begins_anew(model):
    env = DummyVecEnv([lambda: ar.RedistributeReward(lake(), model, observe_progress=False)] * 2)
    ppo = PPO("MlpPolicy", env, n_steps=7, batch_size=14, seed=0)  # stops within episodes
    live, record = LiveCallback(model), Record(model)
    for anew in (True, False, False):
        ppo.learn(14, callback=[live, record], reset_num_timesteps=anew)
    assert len(record.episodes) == live.tracker.episodes > 0
    assert_same(live.tracker.numbers(), expected(model, record.episodes))
    ppo.learn(14, callback=live)  # resets the environments in the middle of episodes
    assert all(running.steps <= 7 for running in live.tracker._running.values())


def test_plain_writing_to_a_summary_writer(model, tmp_path):
    tracker, episodes = run_one(
        ar.RedistributeReward(lake(), model, observe_progress=False), model, 30
    )
    with SummaryWriter(tmp_path) as writer:
        tracker.write(writer, 30)
        tracker.write(writer, 31)
    written = read_events(tmp_path)
    wanted = expected(model, episodes)
    assert set(written) == set(wanted)
    for tag, value in wanted.items():
        assert written[tag] == pytest.approx({30: value, 31: value}, abs=1e-6)


def test_a_model_without_subgoals():
    with pytest.warns(ar.AlignRudderWarning, match="no strategy"):
        empty = ar.AlignRudder().fit(
            [ar.Episode([0, 1, 2, 3], [0] * 3, [0, 0, 1]), ar.Episode([0, 4, 5], [0] * 2, [0, 1])]
        )
    assert not empty.strategies_
    tracker, episodes = run_one(
        ar.RedistributeReward(lake(), empty, observe_progress=False), empty, 20
    )
    returns = np.mean([episode.ret for episode in episodes])
    wanted = {"return": returns, "redistributed": 0.0, "kappa": returns}
    assert_same(tracker.numbers(), {f"align_rudder/{k}": v for k, v in wanted.items()})


def test_without_a_model_there_are_no_names(model):
    env = ar.RedistributeReward(lake(), model, observe_progress=False)
    tracker = LiveCurves()
    env.reset(seed=0)
    for action in (1, 1, 2, 2, 1, 2):
        tracker.add(env.step(action)[-1])
    assert set(tracker.numbers()) == {
        f"align_rudder/{k}" for k in ("return", "redistributed", "kappa")
    }


def test_several_strategies_have_names_of_their_own():
    runs = [["key", "door", "chest"]] * 4 + [["rope", "wall", "roof"]] * 4
    model = ar.AlignRudder(strategies=2).fit_events(runs)
    tracker, stream = LiveCurves(model), model.stream()
    for run in (["key", "door"], ["rope", "wall", "roof"], ["rope"], ["cat"]):
        stream.reset()
        for t, symbol in enumerate(run):
            stream.step_event(symbol)
            info = {
                "redistributed": stream.given,
                "subgoal": stream.subgoal_of[stream.cell],
                "strategy": stream.strategy_of[stream.cell],
            }
            last = {"correction": stream.correction} if t == len(run) - 1 else {}
            tracker.add([{**info, **last}])
    numbers = tracker.numbers()
    shares = {name.split("/")[1]: v for name, v in numbers.items() if "subgoals/" in name}
    shares.pop("subgoals", None)
    first = "1" if model.strategies_[0].subgoals[0].symbol == "key" else "2"
    second = "2" if first == "1" else "1"
    assert shares == {
        f"{first}.1_key": 0.25,
        f"{first}.2_door": 0.25,
        f"{first}.3_chest": 0.0,
        f"{second}.1_rope": 0.5,
        f"{second}.2_wall": 0.25,
        f"{second}.3_roof": 0.25,
    }
    assert numbers["align_rudder/subgoals"] == (2 + 3 + 1 + 0) / 4


def test_a_model_aligned_again_begins_a_new_window(model, demos):
    env = ar.RedistributeReward(lake(), model, observe_progress=False)
    tracker, _ = run_one(env, model, 5)
    model.update(demos[:2])
    for _ in range(2):
        env.reset(seed=0)
        for action in (1, 1, 2, 2, 1, 2):
            tracker.add(env.step(action)[-1])
    assert tracker.episodes == 7
    assert_same(tracker.numbers(), expected(model, [demos[0]] * 2))


def test_bad_use(model):
    with pytest.raises(ValueError, match="window=0"):
        LiveCurves(model, window=0)
    with pytest.raises(ValueError, match="wrap the environment with"):
        LiveCurves(model).add({"original_reward": 0.0})
    with pytest.raises(ValueError, match="wrap the environment with"):
        LiveCurves(model).add([{}, {"TimeLimit.truncated": False}])


def test_names_are_fit_for_tensorboard():
    strange = ["take the red/blue key, please: number one of many", "take the red/blue key, pleas2"]
    model = ar.AlignRudder().fit_events([strange, strange])
    tracker = LiveCurves(model)
    tracker.add({"redistributed": 0.0, "subgoal": 2, "strategy": 0, "correction": 0.0})
    names = [n for n in tracker.numbers() if n.startswith("subgoals/")]
    assert len(set(names)) == 2
    assert all(n.removeprefix("subgoals/").replace("_", "").isalnum() for n in names)


def test_the_name_of_version_0_1_is_kept():
    assert ar.live.Tracker is LiveCurves
