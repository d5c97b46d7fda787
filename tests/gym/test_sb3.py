"""Stable-Baselines3: it logs the true return, learns, and its buffers hold our rewards."""

from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
import torch
from settled import COST, GAMMA, KINDS, StepCost, online, paid_share, settlement, transitions
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import align_rudder as ar
from align_rudder.gym.sb3 import (
    RedistributedDictReplayBuffer,
    RedistributedNStepReplayBuffer,
    RedistributedReplayBuffer,
    fill_replay_buffer,
)

LAKE = {"is_slippery": False, "max_episode_steps": 15}
SPACES = gym.spaces.Discrete(16), gym.spaces.Discrete(4)


def stood(steps):
    """Return an episode that goes to and fro until a time limit, and earns on its way."""
    states = [0, *([4, 0] * steps)][: steps + 1]
    actions = ([1, 3] * steps)[:steps]
    return ar.Episode(states, actions, [-COST] * steps, terminated=False, truncated=True)


def add(buffer, episode, steps=None):
    """Let a buffer of one environment see an episode, or its first steps."""
    for step in list(transitions(episode))[:steps]:
        *values, info = step
        buffer.add(*(np.array([v]) for v in values), [info])


def test_ppo_through_make_vec_env_learns_and_logs_the_true_return(model, tmp_path):
    torch.set_num_threads(1)
    path = tmp_path / "model.npz"
    model.save(path)
    wrapped = {"wrapper_class": ar.RedistributeReward, "wrapper_kwargs": {"model": str(path)}}
    env = make_vec_env("FrozenLake-v1", n_envs=8, seed=0, env_kwargs=LAKE, **wrapped)
    ppo = PPO("MlpPolicy", env, n_steps=64, batch_size=256, gamma=1.0, seed=0, ent_coef=0.01)
    ppo.learn(12_000)
    logged = [episode["r"] for episode in ppo.ep_info_buffer]
    assert set(logged) <= {0.0, 1.0}  # the environment's returns, not parts of them
    mean, _ = evaluate_policy(ppo, make_vec_env("FrozenLake-v1", env_kwargs=LAKE, **wrapped), 20)
    assert mean == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_dqn_buffer_holds_the_settled_reward_of_whole_episodes(model, kind):
    env = make_vec_env("FrozenLake-v1", n_envs=3, seed=1, env_kwargs=LAKE, wrapper_class=StepCost)
    dqn = DQN(
        "MlpPolicy",
        env,
        seed=1,
        learning_starts=10_000,
        buffer_size=3000,
        replay_buffer_class=RedistributedReplayBuffer,
        replay_buffer_kwargs={"model": model, "settlement": settlement(kind)},
    )
    dqn.learn(900)
    buffer = dqn.replay_buffer
    ends, found = [], []
    for i in range(3):
        start = 0
        for t in range(buffer.pos):
            if buffer.dones[t, i]:
                steps = slice(start, t + 1)
                observations = np.append(
                    buffer.observations[steps, i].ravel(), buffer.next_observations[t, i].ravel()
                )
                rewards = np.full(t - start + 1, -COST)
                rewards[-1] += observations[-1] == 15
                cut = bool(buffer.timeouts[t, i])
                actions = buffer.actions[steps, i].ravel()
                rr = model.redistribute(ar.Episode(observations, actions, rewards, not cut, cut))
                found.append((start, t, buffer.rewards[steps, i], rr))
                ends.append(cut)
                start = t + 1
    for start, _, rewards, rr in found:
        before = [(past.own, past.rewards) for _, end, _, past in found if end < start]
        expected = rr.settled(settlement(kind))
        if kind == "annealed":  # as it was paid while it ran
            share = paid_share(before, model.return_range_, 3)
            expected = rr.own + share * rr.rewards
        np.testing.assert_allclose(rewards, expected, atol=1e-6)
    assert len(ends) > 50
    assert 0 < sum(ends) < len(ends)


@pytest.mark.parametrize("size", [5, 9, 23])
def test_the_rest_is_spread_where_the_buffer_was_overwritten_meanwhile(model, demos, size):
    """Several environments, whose episodes end at different times and may outlast the buffer."""
    plays = [
        [demos[0], stood(12), demos[1], demos[2], stood(3), demos[3]],
        [stood(30), demos[4], demos[0]],
        [demos[3], demos[1], stood(25), demos[2]],
    ]
    steps = [[step for e in episodes for step in transitions(e)] for episodes in plays]
    wanted = [
        np.concatenate([model.redistribute(e).settled("even") for e in episodes])
        for episodes in plays
    ]
    ended = [np.cumsum([len(e) for e in episodes]) for episodes in plays]
    buffer = RedistributedReplayBuffer(
        3 * size, *SPACES, "cpu", n_envs=3, model=model, settlement="even"
    )
    compared = wrapped = 0
    for t in range(min(map(len, steps))):
        *values, infos = zip(*(own[t] for own in steps), strict=True)
        buffer.add(*(np.array(v) for v in values), list(infos))
        for i in range(3):
            settled_until = ended[i][ended[i] <= t + 1].max(initial=0)
            held = np.arange(max(0, t + 1 - size), settled_until)
            np.testing.assert_allclose(buffer.rewards[held % size, i], wanted[i][held], atol=1e-6)
            compared += len(held)
            wrapped += len(held) > 0 and t >= size
    assert compared > 100
    assert wrapped > 20


def test_before_its_end_an_episode_has_what_the_wrapper_would_pay(model, demos):
    buffer = RedistributedReplayBuffer(50, *SPACES, "cpu", model=model, settlement="even")
    failed = stood(12)
    add(buffer, failed)
    add(buffer, demos[0], 4)
    rr, whole = model.redistribute(failed), model.redistribute(demos[0])
    paid = online("even", whole.own, whole.rewards, True, [(rr.own, rr.rewards)])
    np.testing.assert_allclose(buffer.rewards[12:16, 0], paid[:4], atol=1e-6)
    assert abs(paid - whole.rewards - whole.own)[:4].min() > 0.01


def test_a_potential_is_kept_at_time_limits(model):
    """The learner bootstraps there; where it does not, they are terminal and it is zero."""
    episode = stood(4)
    shares, (_, gamma, fade) = model.redistribute(episode).rewards, ("potential", GAMMA, 0.05)
    assert shares[0] > 0.05
    assert (shares[1:] == 0).all()
    phi = shares[0] * (1 - fade) ** np.arange(4)
    for handled, last in ((True, phi[-1]), (False, 0.0)):
        buffer = RedistributedReplayBuffer(
            20,
            *SPACES,
            "cpu",
            handle_timeout_termination=handled,
            model=model,
            settlement=settlement("potential"),
        )
        add(buffer, episode)
        assert fill_replay_buffer(buffer, [episode]) == 4
        after = [*phi[:-1], last]
        expected = -COST + gamma * np.array(after) - [0.0, *phi[:-1]]
        np.testing.assert_allclose(buffer.rewards[:4, 0], expected, atol=1e-6)
        np.testing.assert_allclose(buffer.rewards[4:8, 0], expected, atol=1e-6)
        assert buffer.timeouts[[3, 7], 0].tolist() == [handled] * 2


def test_observations_that_are_not_numbers_are_equal_to_themselves():
    """A sensor that gives NaN does not look like the beginning of another episode."""
    cells = np.array([0.0, 1, 2, 3, 4, 5])
    noise = np.array([1.0, np.nan, np.nan, 2.0, np.nan, 3.0])
    episode = ar.Episode(np.stack([cells, noise], axis=1), [0] * 5, [0, 0, 0, 0, 1.0])

    def cell(obs, action, reward, next_obs, info):
        return None if np.isnan(next_obs[0]) else int(next_obs[0])

    model = ar.AlignRudder(cell).fit([episode] * 3)
    box = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    for kind in KINDS:
        buffer = RedistributedReplayBuffer(
            20, box, SPACES[1], "cpu", model=model, settlement=settlement(kind)
        )
        add(buffer, episode)
        expected = model.redistribute(episode).settled(settlement(kind))
        np.testing.assert_allclose(buffer.rewards[:5, 0], expected, atol=1e-6)


def test_not_a_number_at_another_place_is_another_observation():
    states = np.array([[0, np.nan], [4, np.nan], [np.nan, 8], [np.nan, 9]])

    def state(obs, action, reward, next_obs, info):
        return int(np.nanmax(next_obs))

    box = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    whole = ar.Episode(states, [0] * 3, [0, 0, 1.0])
    model = ar.AlignRudder(state).fit([whole] * 3)
    buffer = RedistributedReplayBuffer(20, box, SPACES[1], "cpu", model=model, settlement="beside")
    add(buffer, whole, 1)  # to (4, NaN)
    add(buffer, ar.Episode(np.array([[np.nan, 4.0], [4.0, np.nan]]), [0], [0.0]))
    assert buffer.rewards[0, 0] > 0.1
    assert buffer.rewards[1, 0] == pytest.approx(buffer.rewards[0, 0])  # it had begun anew


@pytest.mark.parametrize("n_envs", [1, 4])
def test_demonstrations_fill_a_buffer(model, demos, n_envs):
    buffer = ReplayBuffer(400, *SPACES, n_envs=n_envs, device="cpu")
    added = fill_replay_buffer(buffer, demos, model)
    steps = sum(len(e) for e in demos)
    assert added == buffer.pos * n_envs >= steps
    seen = set()
    for column in range(n_envs):
        states, paid = buffer.observations[: buffer.pos, column], buffer.rewards[:, column]
        starts = [0, *(np.flatnonzero(buffer.dones[: buffer.pos, column]) + 1), buffer.pos]
        for start, stop in pairwise(starts):
            if start == stop:
                continue
            mine = states[start:stop].ravel().tolist()
            same = [e for e in demos if e.observations[: stop - start].tolist() == mine]
            assert same  # whole demonstrations, the last one may be cut
            rewards = [model.redistribute(e).settled("annealed")[: stop - start] for e in same]
            assert any(np.allclose(paid[start:stop], r, atol=1e-6) for r in rewards)
            if stop - start == len(same[0]):
                seen |= {tuple(e.actions.tolist()) for e in same}
    assert seen == {tuple(e.actions.tolist()) for e in demos}


def test_returns_of_n_steps_stay_within_demonstrations():
    """Of several environments too: steps of one demonstration follow each other in one column."""
    line = [ar.Episode(np.arange(11.0)[:, None], [1] * 10, np.eye(10)[9]) for _ in range(3)]
    model = ar.AlignRudder(lambda o, a, r, n, i: int(n[0]) if int(n[0]) % 3 == 0 else None)
    space = gym.spaces.Box(0, 20, (1,))
    buffer = RedistributedNStepReplayBuffer(
        100, space, SPACES[1], device="cpu", n_envs=2, model=model.fit(line), n_steps=3, gamma=1.0
    )
    fill_replay_buffer(buffer, line)
    np.random.seed(0)  # noqa: NPY002  (the buffer's own)
    sample = buffer.sample(400)
    pairs = {(int(a), int(b)) for a, b in zip(sample.observations, sample.next_observations)}
    assert {(k, k + 3) for k in range(8)} <= pairs
    assert all(1 <= b - a <= 3 for a, b in pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_redistributed_buffer_knows_its_model_and_goes_on_collecting(model, demos, kind):
    buffer = RedistributedReplayBuffer(
        200, *SPACES, n_envs=1, device="cpu", model=model, settlement=settlement(kind)
    )
    episode = demos[0]
    for k, (*values, info) in enumerate(transitions(episode)):
        if k == 3:
            fill_replay_buffer(buffer, demos[1:])
        buffer.add(*(np.array([v]) for v in values), [info])
    expected = [model.redistribute(e).settled(settlement(kind)) for e in (*demos[1:], episode)]
    filled, mine = np.concatenate(expected[:-1]), expected[-1]
    wanted = np.concatenate([mine[:3], filled, mine[3:]])
    np.testing.assert_allclose(buffer.rewards[: buffer.pos, 0], wanted, atol=1e-6)


def test_what_was_filled_over_a_running_episode_stays(model, demos):
    n = len(demos[0])
    buffer = RedistributedReplayBuffer(n + 2, *SPACES, "cpu", model=model, settlement="even")
    *values, _ = zip(*transitions(stood(9)), strict=True)
    for t in range(9):
        if t == 5:
            fill_replay_buffer(buffer, demos[:1])  # over the first steps
        buffer.add(*(np.array([v[t]]) for v in values), [{}])
    filled = model.redistribute(demos[0]).settled("even")
    mine = model.redistribute(stood(9)).settled("even")
    wanted = np.concatenate([mine[:5], filled, mine[5:]])[-(n + 2) :]
    places = np.arange(n + 9)[-(n + 2) :] % (n + 2)
    np.testing.assert_allclose(buffer.rewards[places, 0], wanted, atol=1e-6)


def test_dict_observations():
    plans = [[1, 0, 2], [0, 1, 2], [1, 2, 0]]
    episodes = []
    for plan in plans:
        items = np.array([[plan[:t].count(1), plan[:t].count(2)] for t in range(4)])
        episodes.append(ar.Episode({"items": items, "t": np.arange(4)}, plan, [0, 0, 1]))
    model = ar.AlignRudder(ar.DeltaEvents(keys=["items"])).fit(episodes)
    space = gym.spaces.Dict(
        {"items": gym.spaces.Box(0, 9, (2,), np.int64), "t": gym.spaces.Discrete(9)}
    )
    actions = gym.spaces.Discrete(3)
    buffer = RedistributedDictReplayBuffer(20, space, actions, n_envs=1, device="cpu", model=model)
    assert isinstance(buffer, DictReplayBuffer)
    assert fill_replay_buffer(buffer, episodes) == 9
    expected = np.concatenate([model.redistribute(e).settled("annealed") for e in episodes])
    np.testing.assert_allclose(buffer.rewards[:9, 0], expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["even", "mean", "last", "beside"])
def test_a_buffer_of_wrapped_environments_settles_what_the_wrapper_tells(model, kind):
    """The agent observes the position, and yet the buffer holds exact returns."""
    bare = make_vec_env("FrozenLake-v1", n_envs=3, seed=1, env_kwargs=LAKE)
    wrapped = make_vec_env(
        "FrozenLake-v1", n_envs=3, seed=1, env_kwargs=LAKE,
        wrapper_class=ar.RedistributeReward, wrapper_kwargs={"model": model},
    )  # fmt: skip
    n_cells = model.scorer_.n_cells
    one = RedistributedReplayBuffer(
        400, *SPACES, device="cpu", n_envs=3, model=model, settlement=kind
    )
    other = RedistributedReplayBuffer(
        400, gym.spaces.Discrete(16 * n_cells), SPACES[1], device="cpu", n_envs=3,
        model=model, settlement=kind, wrapped=True,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    seen, positions = bare.reset(), wrapped.reset()
    assert (positions // n_cells == seen).all()
    for _ in range(300):
        actions = rng.integers(4, size=3)
        for env, buffer, before in ((bare, one, seen), (wrapped, other, positions)):
            after, rewards, dones, infos = env.step(actions)
            last = [i.get("terminal_observation", o) for i, o in zip(infos, after)]
            buffer.add(before, np.array(last), actions, rewards, dones, infos)
            if env is bare:
                seen = after
            else:
                positions = after
    np.testing.assert_allclose(one.rewards[:300], other.rewards[:300], atol=1e-6)
    assert np.abs(one.rewards).sum() > 1
    with pytest.raises(ValueError, match="infos have no 'original_reward'; wrap the environments"):
        other.add(positions, positions, actions, rewards, dones, [{}] * 3)


def test_returns_of_n_steps_are_those_of_the_settled_rewards(model, demos):
    steps, gamma = 3, 0.9
    buffer = RedistributedNStepReplayBuffer(
        200, *SPACES, device="cpu", model=model, settlement="even", n_steps=steps, gamma=gamma
    )
    add(buffer, demos[0])
    settled = model.redistribute(demos[0]).settled("even")
    for t in range(len(settled)):
        part = settled[t : t + steps]
        expected = (part * gamma ** np.arange(len(part))).sum()
        sample = buffer._get_samples(np.array([t]))
        assert float(sample.rewards) == pytest.approx(expected, abs=1e-6)


def test_bad_use(model, demos):
    with pytest.raises(ValueError, match="no model of its own"):
        fill_replay_buffer(ReplayBuffer(100, *SPACES, device="cpu"), demos)
    with pytest.raises(ValueError, match="do not fit into a buffer of 10"):
        fill_replay_buffer(ReplayBuffer(10, *SPACES, device="cpu"), demos, model)
    told = RedistributedReplayBuffer(100, *SPACES, "cpu", model=model, wrapped=True)
    with pytest.raises(ValueError, match=r"wrapped=True gets.*Clone them instead"):
        fill_replay_buffer(told, demos)
    twice = RedistributedReplayBuffer(100, *SPACES, "cpu", model=model)
    one = np.zeros(1, int)
    with pytest.raises(ValueError, match=r"redistributed twice; give wrapped=True"):
        twice.add(one, one, one, one, one, [{"original_reward": 0.0, "redistributed": 0.0}])
    logs = ar.AlignRudder().fit_events([["key", "door"]] * 3)
    with pytest.raises(ValueError, match=r"none of the model's symbols.*give events="):
        RedistributedReplayBuffer(100, *SPACES, "cpu", model=logs)
    both = gym.spaces.Dict({"a": SPACES[0]})
    with pytest.raises(ValueError, match=r"dict of \['a'\]; use RedistributedDictReplayBuffer"):
        RedistributedNStepReplayBuffer(100, both, SPACES[1], "cpu", model=model)
    with pytest.raises(ValueError, match="settlement is 'info'; one of 'annealed'"):
        RedistributedReplayBuffer(100, *SPACES, "cpu", model=model, settlement="info")


def test_a_reset_in_the_middle_of_an_episode_is_noticed(model, demos):
    """As when `learn` is called again: the environment is reset without a last step."""
    buffer = RedistributedReplayBuffer(
        200, *SPACES, n_envs=1, device="cpu", model=model, settlement="even"
    )
    add(buffer, demos[0], 3)
    add(buffer, demos[1])
    stored = buffer.rewards[3 : 3 + len(demos[1]), 0]
    np.testing.assert_allclose(stored, model.redistribute(demos[1]).settled("even"), atol=1e-6)
    add(buffer, demos[0], 2)
    buffer.restart()
    add(buffer, demos[2])
    stored = buffer.rewards[buffer.pos - len(demos[2]) : buffer.pos, 0]
    np.testing.assert_allclose(stored, model.redistribute(demos[2]).settled("even"), atol=1e-6)


def test_observations_that_are_not_numbers_do_not_break_an_episode_in_two():
    """A sensor that says NaN is still the same sensor: the parts of the return sum to it."""
    seen = np.array([[0, 0], [1, np.nan], [1, np.nan], [2, 0], [3, np.nan]], np.float32)

    def count(obs, action, reward, next_obs, info):
        return f"at {next_obs[0]:.0f}" if next_obs[0] > obs[0] else None

    episode = ar.Episode(seen, [0] * 4, [0.0, 0.0, 0.0, 1.0])
    model = ar.AlignRudder(count, strategies=1).fit([episode] * 3)
    space = gym.spaces.Box(-9, 9, (2,), np.float32)
    options = {"device": "cpu", "settlement": "even"}
    plain = RedistributedReplayBuffer(9, space, gym.spaces.Discrete(2), model=model, **options)
    both = gym.spaces.Dict({"a": space})
    named = ar.AlignRudder(
        lambda o, *rest: count(o["a"], *rest[:2], rest[2]["a"], {}), strategies=1
    )
    named.fit([ar.Episode({"a": seen}, [0] * 4, episode.rewards)] * 3)
    parts = RedistributedDictReplayBuffer(9, both, gym.spaces.Discrete(2), model=named, **options)
    for t in range(4):
        step = (np.array([x]) for x in (0, episode.rewards[t], t == 3))
        plain.add(seen[[t]].copy(), seen[[t + 1]].copy(), *step, [{}])
        step = (np.array([x]) for x in (0, episode.rewards[t], t == 3))
        parts.add({"a": seen[[t]].copy()}, {"a": seen[[t + 1]].copy()}, *step, [{}])
    expected = model.redistribute(episode).settled("even")
    for buffer in (plain, parts):
        np.testing.assert_allclose(buffer.rewards[:4, 0], expected, atol=1e-6)
        assert buffer.rewards[:4, 0].sum() == pytest.approx(1.0)


def test_an_event_that_an_encoder_should_not_return_earns_nothing(lake, demos):
    """Ids above the known ones, far above too: unknown, in one stream, many, and buffers."""

    class Hostile(ar.StateEvents):
        def transition_event(self, *step):
            return 10**6 + int(step[3])

        def transition_events(self, obs, actions, rewards, next_obs, infos):
            return 10**6 + np.asarray(next_obs, np.int64).ravel()

    hostile = ar.AlignRudder().fit(demos)
    hostile.events_.__class__ = Hostile
    unknown = hostile.events_.n_events
    env = ar.RedistributeReward(lake, hostile, "last")
    vector = ar.vector.RedistributeReward(
        gym.make_vec("FrozenLake-v1", 2, is_slippery=False), hostile, "last"
    )
    env.reset()
    vector.reset()
    buffer = RedistributedReplayBuffer(
        99,
        lake.observation_space,
        lake.action_space,
        device="cpu",
        model=hostile,
        settlement="last",
    )
    for t, action in enumerate(demos[0].actions):
        _, reward, *_, info = env.step(action)
        _, rewards, *_, infos = vector.step([action] * 2)
        place, last = demos[0].observations, t == len(demos[0]) - 1
        assert (reward, info["event"]) == (float(last), unknown)
        assert (rewards.tolist(), infos["event"].tolist()) == ([float(last)] * 2, [unknown] * 2)
        step = (np.array([x]) for x in (place[t], place[t + 1], action, float(last), last))
        buffer.add(*step, [{}])
    assert buffer.rewards[: len(demos[0]), 0].tolist() == [0.0] * (len(demos[0]) - 1) + [1.0]
    assert hostile.redistribute(demos[0]).rewards.tolist() == [0.0] * len(demos[0])
