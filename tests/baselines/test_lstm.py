"""RUDDER (LSTM): it finds known credit, repeats itself, and its forward passes agree."""

import os
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.env_checker import check_env as check_env_sb3

import align_rudder as ar
from align_rudder.baselines import Protocol, TabularMDP, optimal_policy, rollout
from align_rudder.baselines.lstm import LstmRudder, StepInputs
from align_rudder.baselines.lstm.inputs import UNSEEN
from align_rudder.baselines.lstm.weights import Weights, predictions_numpy
from align_rudder.baselines.rudder import learn_rudder, random_episodes_of
from align_rudder.tasks import KeyChestEnv

jax = pytest.importorskip("jax")

LEVER, HORIZON = 5, 12


def levers(n, seed):
    """Return episodes of noise states that pay 1 at the end if the lever state was met."""
    rng = np.random.default_rng(seed)
    episodes = []
    for i in range(n):
        states = rng.integers(0, LEVER, HORIZON + 1)
        at = int(rng.integers(0, 6)) if i % 2 == 0 else None
        if at is not None:
            states[at] = LEVER
        rewards = [0.0] * (HORIZON - 1) + [float(at is not None)]
        episodes.append(ar.Episode(states, rng.integers(0, 2, HORIZON), rewards))
    return episodes


@pytest.fixture(scope="module")
def lever_model():
    episodes = levers(60, 0)
    return LstmRudder().fit(episodes[::2], episodes[1::2])


def lake_mdp(n=5):
    mdp = TabularMDP.from_gymnasium(gym.make("FrozenLake-v1", is_slippery=False), horizon=100)
    policy, rng = optimal_policy(mdp), np.random.default_rng(0)
    demos = []
    while len(demos) < n:
        episode = rollout(mdp, policy, rng, 0.1)
        if episode.ret > 0:
            demos.append(episode)
    return mdp, demos


@pytest.fixture(scope="module")
def lake_data():
    return lake_mdp()


@pytest.fixture(scope="module")
def lake_model(lake_data):
    mdp, demos = lake_data
    return LstmRudder(updates=150, max_steps=100).fit(demos, random_episodes_of(mdp, 30, 0))


def mixed(n, seed):
    """Return episodes with dict observations of whole numbers and floats, and float actions."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        steps = int(rng.integers(3, 20))
        observations = {
            "kind": rng.integers(-3, 3, (steps + 1, 2)),
            "place": rng.normal(5.0, 3.0, (steps + 1, 3)),
        }
        out.append(ar.Episode(observations, rng.normal(size=(steps, 2)), rng.normal(size=steps)))
    return out


@pytest.fixture(scope="module")
def mixed_model():
    return LstmRudder(updates=20).fit(mixed(8, 0), mixed(8, 1))


# What it learns


def test_the_largest_reward_is_where_the_lever_was_met(lever_model):
    found = 0
    held_out = levers(100, 1)[::2]
    for episode in held_out:
        at = int(np.flatnonzero(np.asarray(episode.observations) == LEVER)[0])
        found += int(lever_model.redistribute(episode).rewards.argmax() == at)
    assert found >= 0.95 * len(held_out)


def test_held_out_returns_are_predicted(lever_model):
    held_out = levers(100, 2)
    errors = [lever_model.predict(e)[-1] - e.ret for e in held_out]
    assert np.sqrt(np.mean(np.square(errors))) < 0.2  # 0.5 without looking


def test_prediction_before_the_first_step_is_near_the_mean_return(lever_model):
    episode = levers(1, 3)[0]
    assert lever_model.predict(episode)[0] == pytest.approx(0.5, abs=0.15)


def test_order_of_two_events_is_learned():
    """Only A before B pays: what B is worth depends on what the LSTM remembers."""
    rng = np.random.default_rng(0)

    def episode(order):
        states = rng.integers(0, 3, 11)
        first, second = sorted(rng.choice(10, 2, replace=False))
        states[first], states[second] = (3, 4) if order else (4, 3)
        return ar.Episode(states, rng.integers(0, 2, 10), [0.0] * 9 + [float(order)])

    model = LstmRudder().fit(
        [episode(True) for _ in range(30)], [episode(False) for _ in range(30)]
    )
    right = [model.predict(episode(True))[-1] for _ in range(50)]
    wrong = [model.predict(episode(False))[-1] for _ in range(50)]
    assert np.mean(np.array(right) > 0.5) > 0.9
    assert np.mean(np.array(wrong) < 0.5) > 0.9


def test_without_contrast_it_warns_and_keeps_the_episodic_reward(demos):
    with pytest.warns(ar.AlignRudderWarning, match=r"return 1.*random_episodes"):
        model = LstmRudder(updates=5).fit(demos)
    rr = model.redistribute(demos[0])
    assert not rr.rewards.any()
    assert rr.correction == 1.0


# Redistribution and streams


@settings(max_examples=60, deadline=None)
@given(
    states=st.lists(st.integers(-5, 20), min_size=2, max_size=60),
    rewards=st.lists(st.floats(-1e6, 1e6), min_size=60, max_size=60),
)
def test_return_equivalence_and_streams_for_any_episode(lever_model, states, rewards):
    steps = len(states) - 1
    actions = [abs(s) % 3 for s in states[1:]]  # action 2 was never seen
    episode = ar.Episode(states, actions, rewards[:steps])
    rr = lever_model.redistribute(episode)
    tolerance = 1e-12 * max(1.0, np.abs(episode.rewards).sum())
    assert rr.rewards.sum() + rr.correction == pytest.approx(episode.ret, rel=0, abs=tolerance)
    assert rr.with_correction().sum() == pytest.approx(episode.ret, rel=0, abs=tolerance)
    np.testing.assert_allclose(rr.kappa, episode.ret - np.cumsum(rr.rewards))
    np.testing.assert_allclose(
        rr.scores, np.diff(lever_model.predict(episode)).cumsum(), rtol=0, atol=1e-6
    )
    assert (rr.events == -1).all()
    stream = lever_model.stream()
    stream.reset(states[0])
    shares = [
        stream.step(states[t], actions[t], rewards[t], states[t + 1], {}) for t in range(steps)
    ]
    assert shares == rr.rewards.tolist()
    assert stream.correction == pytest.approx(rr.correction, rel=0, abs=tolerance)


def test_vector_stream_equals_streams_with_dicts_floats_and_masks(mixed_model):
    model = mixed_model
    episodes = mixed(5, 2)
    n = len(episodes)
    vector = model.vector_stream(n)
    at = [{k: v[0] for k, v in e.observations.items()} for e in episodes]
    stacked = {k: np.stack([o[k] for o in at]) for k in at[0]}
    vector.reset(stacked)
    got = [[] for _ in range(n)]
    for t in range(max(len(e) for e in episodes)):
        running = np.array([t < len(e) for e in episodes])
        rows = [min(t, len(e) - 1) for e in episodes]
        obs = {k: np.stack([e.observations[k][r] for e, r in zip(episodes, rows)]) for k in stacked}
        actions = np.stack([e.actions[r] for e, r in zip(episodes, rows)])
        rewards = np.array([e.rewards[r] for e, r in zip(episodes, rows)])
        share = vector.step(obs, actions, rewards, obs, [{}] * n, running)
        assert (share[~running] == 0).all()
        for i in np.flatnonzero(running):
            got[i].append(share[i])
    for i, episode in enumerate(episodes):
        rr = model.redistribute(episode)
        assert got[i] == rr.rewards.tolist()
        assert vector.corrections[i] == pytest.approx(rr.correction, abs=1e-12)
        assert np.abs(rr.rewards).max() > 0
    vector.reset(stacked, np.arange(n) == 2)
    assert vector.given[2] == vector.scores[2] == 0.0
    assert vector.given[1] == pytest.approx(sum(got[1]))


# Wrappers


def play(env, actions, seed=0):
    obs, _ = env.reset(seed=seed)
    observations, rewards, infos = [obs], [], []
    for action in actions:
        obs, reward, terminated, truncated, info = env.step(action)
        observations.append(obs)
        rewards.append(reward)
        infos.append(info)
        if terminated or truncated:
            break
    original = [info["original_reward"] for info in infos]
    return ar.Episode(observations, actions[: len(rewards)], original), rewards, infos


def test_wrapper_pays_what_redistribute_says(lake, lake_model):
    env = ar.RedistributeReward(lake, lake_model)
    outcomes = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        actions = [1, 1, 2, 2, 1, 2] if seed % 3 == 0 else rng.integers(0, 4, 200).tolist()
        episode, rewards, infos = play(env, actions, seed)
        rr = lake_model.redistribute(episode)
        np.testing.assert_allclose(rewards, rr.with_correction(), rtol=0, atol=1e-12)
        np.testing.assert_array_equal([info["score"] for info in infos], rr.scores)
        assert {info["event"] for info in infos} == {-1}
        assert {info["subgoal"] for info in infos} == {0}
        outcomes.add(episode.ret)
    assert outcomes == {0.0, 1.0}


def test_checkers_of_gymnasium_and_stable_baselines(lake, lake_model):
    env = ar.RedistributeReward(lake, lake_model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)
        check_env_sb3(env)
    assert env.observation_space == lake.observation_space


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vector_wrapper_pays_the_same(lake_model, mode):
    def make():
        return gym.make("FrozenLake-v1", is_slippery=False, max_episode_steps=15)

    env = ar.vector.RedistributeReward(SyncVectorEnv([make] * 3, autoreset_mode=mode), lake_model)
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    single = ar.RedistributeReward(make(), lake_model)
    running, waiting, compared = [[] for _ in range(3)], np.zeros(3, bool), 0
    for _ in range(120):
        actions = rng.integers(0, 4, 3)
        _, rewards, terminated, truncated, _ = env.step(actions)
        done = terminated | truncated
        for i in np.flatnonzero(~waiting):
            running[i].append((int(actions[i]), rewards[i]))
            if done[i]:
                _, alone, _ = play(single, [a for a, _ in running[i]])
                np.testing.assert_allclose([r for _, r in running[i]], alone, atol=1e-12)
                running[i], compared = [], compared + 1
        waiting = done if mode == AutoresetMode.NEXT_STEP else np.zeros(3, bool)
        if mode == AutoresetMode.DISABLED and done.any():
            env.reset(options={"reset_mask": done})
    assert compared > 15


def test_replay_buffer_holds_the_redistributed_rewards(lake_data, lake_model):
    from align_rudder.gym.sb3 import RedistributedReplayBuffer, fill_replay_buffer

    space = gym.spaces.Discrete(16), gym.spaces.Discrete(4)
    buffer = RedistributedReplayBuffer(200, *space, model=lake_model)
    _, demos = lake_data
    n = fill_replay_buffer(buffer, demos)
    expected = np.concatenate([lake_model.redistribute(e).with_correction() for e in demos])
    np.testing.assert_allclose(buffer.rewards[:n, 0], expected, rtol=1e-6)
    filled = RedistributedReplayBuffer(200, *space, model=lake_model)
    for episode in demos:
        for t in range(len(episode)):
            states = np.asarray(episode.observations)[t : t + 2]
            done = np.array([t == len(episode) - 1])
            action, reward = np.array([episode.actions[t]]), np.array([episode.rewards[t]])
            filled.add(states[:1], states[1:], action, reward, done, [{}])
    np.testing.assert_allclose(filled.rewards[:n, 0], expected, rtol=1e-6)


def test_spec_rebuilds_the_stack_from_the_path(lake, lake_model, tmp_path):
    path = tmp_path / "lstm.npz"
    lake_model.save(path)
    env = ar.RedistributeReward(lake, path)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    actions = [1, 1, 2, 2, 1, 2]
    assert play(env, actions)[1] == play(again, actions)[1]
    assert isinstance(again.model, LstmRudder)


def test_wrappers_refuse_what_does_not_fit(lake, lake_model):
    with pytest.raises(ValueError, match=r"shapes.*\[4\]"):
        ar.RedistributeReward(gym.make("CartPole-v1"), lake_model)
    small = gym.make("FrozenLake-v1", desc=["SF", "FG"])
    with pytest.raises(ValueError, match=r"fitted on states 0 to \d+.*Discrete\(4\)"):
        ar.RedistributeReward(small, lake_model)
    with pytest.raises(ValueError, match="an LSTM has none"):
        ar.RedistributeReward(lake, lake_model, observe_progress=True)
    with pytest.raises(ValueError, match="not fitted"):
        ar.RedistributeReward(lake, LstmRudder())


# Files


@pytest.mark.parametrize("kind", ["lake", "mixed"])
def test_a_saved_model_is_the_same(kind, lake_data, lake_model, mixed_model, tmp_path):
    if kind == "lake":
        model, episodes = lake_model, lake_data[1]
    else:
        model, episodes = mixed_model, mixed(4, 5)
    model.save(tmp_path / "lstm.npz")
    again = LstmRudder.load(tmp_path / "lstm.npz")
    assert again.get_params() == model.get_params()
    assert repr(again) == repr(model)
    np.testing.assert_array_equal(again.losses_, model.losses_)
    for episode in episodes:
        a, b = model.redistribute(episode), again.redistribute(episode)
        assert a.rewards.tolist() == b.rewards.tolist()
        assert a.correction == b.correction
        assert model.predict(episode).tolist() == again.predict(episode).tolist()


def test_files_of_another_kind_and_damaged_ones(model, lake_model, tmp_path):
    model.save(tmp_path / "align.npz")
    with pytest.raises(ValueError, match=r"holds 'align-rudder-model'.*'align-rudder-lstm'"):
        LstmRudder.load(tmp_path / "align.npz")
    lake_model.save(tmp_path / "lstm.npz")
    with pytest.raises(ValueError, match=r"holds 'align-rudder-lstm'"):
        ar.AlignRudder.load(tmp_path / "lstm.npz")
    whole = (tmp_path / "lstm.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cannot be read"):
        LstmRudder.load(tmp_path / "half.npz")
    with np.load(tmp_path / "lstm.npz") as file:
        members = {k: file[k] for k in file.files if k != "weights/head"}
    np.savez(tmp_path / "headless.npz", **members)
    with pytest.raises(ValueError, match=r"damaged .* has no array 'weights/head'"):
        LstmRudder.load(tmp_path / "headless.npz")
    with pytest.raises(FileNotFoundError, match="no file"):
        LstmRudder.load(tmp_path / "none.npz")


# Training


def assert_same_weights(a, b, tolerance):
    for name in ("embedding", "numeric", "bias", "recurrent", "head"):
        np.testing.assert_allclose(
            getattr(a.weights_, name), getattr(b.weights_, name), rtol=0, atol=tolerance
        )


@pytest.fixture(scope="module")
def trials():
    """Return datasets of different sizes, which are padded to the same shapes."""
    mdp, _ = lake_mdp()
    return [(lake_mdp(2 + i)[1], random_episodes_of(mdp, 8 + 2 * i, i)) for i in range(3)]


SHORT = {"updates": 40, "max_steps": 60}


def test_same_seed_same_weights_other_seed_others(trials):
    a, b = (LstmRudder(**SHORT, seed=3).fit(*trials[0]) for _ in range(2))
    assert_same_weights(a, b, 0.0)
    other = LstmRudder(**SHORT).fit(*trials[0])
    assert np.abs(other.weights_.embedding - a.weights_.embedding).max() > 0.01


def test_fit_many_equals_fit_whatever_else_is_in_the_batch(trials):
    template = LstmRudder(**SHORT)
    together = template.fit_many(trials, seeds=[5, 6, 7])
    assert not hasattr(template, "weights_")
    for i, (demos, random) in enumerate(trials):
        alone = LstmRudder(**SHORT, seed=5 + i).fit(demos, random)
        assert together[i].get_params() == alone.get_params()
        assert_same_weights(together[i], alone, 1e-4)
        for episode in [*demos, *random]:
            np.testing.assert_allclose(
                together[i].predict(episode), alone.predict(episode), rtol=0, atol=1e-4
            )


def test_padding_changes_no_result(trials):
    short = LstmRudder(**SHORT).fit(*trials[0])
    long = LstmRudder(**{**SHORT, "max_steps": 90}).fit(*trials[0])
    assert_same_weights(short, long, 1e-4)


def test_threads_change_no_result():
    code = """
from align_rudder.tasks import KeyChestEnv
from align_rudder.baselines.lstm import LstmRudder
env = KeyChestEnv()
model = LstmRudder(updates=10, batch_size=64)
random = env.demonstrations(8, 1, exploration=0.9)
random = [type(e)(e.observations, e.actions, 0 * e.rewards) for e in random]
text = model.fit(env.demonstrations(8, 0), random).weights_.embedding.tobytes().hex()
"""
    here: dict[str, str] = {}
    exec(code, here)
    one_thread = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    there = subprocess.run(
        [sys.executable, "-c", code + "print(text)"],
        env={**os.environ, "XLA_FLAGS": one_thread},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == here["text"]


@pytest.mark.parametrize("kind", ["lake", "mixed"])
def test_compiled_forward_pass_equals_jax_and_numpy(kind, lake_data, lake_model, mixed_model):
    from align_rudder.baselines.lstm.network import Network

    if kind == "lake":
        model, episodes = lake_model, lake_data[1]
    else:
        model, episodes = mixed_model, mixed(4, 5)
    w = model.weights_
    network = Network(w.embedding, w.numeric, w.bias, w.recurrent, w.head)
    for episode in episodes[:2]:
        tokens, numbers = model.inputs_.encode_episode(episode)
        compiled = w.predict(tokens, numbers)
        in_jax = np.asarray(network(tokens[:, None], numbers[:, None]))[:, 0]
        np.testing.assert_allclose(compiled, in_jax, rtol=0, atol=2e-5)
        np.testing.assert_allclose(compiled, predictions_numpy(w, tokens, numbers), atol=2e-5)
        assert np.ptp(compiled) > 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 50), st.floats(0.1, 30.0))
def test_compiled_forward_pass_equals_numpy_for_any_weights(seed, hidden, steps, size):
    rng = np.random.default_rng(seed)
    shapes = ((7, 2 * hidden), (2, 2 * hidden), (2 * hidden,), (hidden, hidden), (hidden + 1,))
    weights = Weights(*(rng.normal(0, 1, shape).astype(np.float32) for shape in shapes))
    weights.embedding[:] *= np.float32(size)  # saturated gates and cells too
    tokens = rng.integers(0, 7, (steps, 2)).astype(np.int32)
    numbers = rng.normal(size=(steps, 2)).astype(np.float32)
    got = weights.predict(tokens, numbers)
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, predictions_numpy(weights, tokens, numbers), atol=5e-3)


def test_padding_and_auxiliary_in_the_loss():
    """The loss of a padded batch is the mean over its episodes, computed step by step."""
    from align_rudder.baselines.lstm.network import Batch, Network, loss

    rng = np.random.default_rng(0)
    parts = [(7, 4), (0, 4), (4,), (2, 2), (3,)]
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in parts]
    weights, network = Weights(*arrays), Network(*arrays)
    lengths, returns = np.array([3, 6]), np.array([0.5, -1.0], np.float32)
    tokens = rng.integers(0, 7, (2, 6, 1)).astype(np.int32)
    numbers = np.zeros((2, 6, 0), np.float32)
    expected = []
    for i in range(2):
        n = lengths[i]
        errors = (predictions_numpy(weights, tokens[i, :n], numbers[i, :n]) - returns[i]) ** 2
        expected.append(errors[-1] + 0.3 * errors.mean())
    got = loss(network, Batch(tokens, numbers, returns, lengths), 0.3)
    assert float(got) == pytest.approx(np.mean(expected), rel=1e-5)


# Inputs


def test_a_discrete_observation_and_action_are_one_input():
    episodes = [ar.Episode([3, 5, 3, 9], [0, 1, 0], [0, 0, 1.0])]
    inputs = StepInputs().fit(episodes)
    rows = inputs.pair_rows(10, 3)
    assert sorted(rows[rows != UNSEEN].tolist()) == [1, 2]
    assert rows[3, 0] != UNSEEN != rows[5, 1]
    assert rows[3, 1] == rows[9, 0] == rows[0, 2] == UNSEEN
    assert inputs.encode_episode(episodes[0])[0][:, 0].tolist() == [
        rows[3, 0],
        rows[5, 1],
        rows[3, 0],
    ]


def test_floats_are_standardised_and_whole_numbers_looked_up():
    episodes = mixed(20, 0)
    inputs = StepInputs().fit(episodes)
    assert (inputs.n_tokens, inputs.n_numbers) == (2, 5)
    numbers = np.concatenate([inputs.encode_episode(e)[1] for e in episodes])
    np.testing.assert_allclose(numbers.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(numbers.std(axis=0), 1, atol=1e-5)
    tokens = np.concatenate([inputs.encode_episode(e)[0] for e in episodes])
    assert set(tokens.ravel()) == set(range(1, inputs.n_rows))


def test_unseen_steps_say_the_same_whatever_they_are(lever_model):
    a = ar.Episode([50, 60, 70], [0, 1], [0.0, 0.0])
    b = ar.Episode([80, 90, 99], [1, 0], [0.0, 0.0])
    assert lever_model.predict(a).tolist() == lever_model.predict(b).tolist()


# Tabular learner


def test_frozen_lake_is_learned_from_demonstrations(lake_data, lake_model):
    mdp, demos = lake_data
    protocol = Protocol(max_episodes=2000)
    for seed in range(3):
        for options in ({}, {"trace": 0.9}, {"trace": 0.9, "settle": False}):
            result = learn_rudder(
                mdp, demos, seed=seed, model=lake_model, protocol=protocol, **options
            )
            assert result.solved


def test_the_learner_fits_a_model_of_its_own_and_repeats_itself(lake_data):
    mdp, demos = lake_data
    protocol = Protocol(max_episodes=500)
    a, b = (learn_rudder(mdp, demos, seed=4, protocol=protocol) for _ in range(2))
    assert a.solved
    assert a.q.tolist() == b.q.tolist()
    assert a.curve.tolist() == b.curve.tolist()


@pytest.mark.parametrize("settle", [False, True])
@pytest.mark.parametrize("trace", [0.0, 0.8])
def test_the_kernel_follows_redistribute(lake_model, settle, trace):
    """One episode in a corridor with one action: the table is what the equations say."""
    n = 6
    outcomes = [[[(1.0, min(s + 1, n), float(s == n - 1), s == n - 1)]] for s in range(n + 1)]
    starts = np.eye(n + 1)[0]
    mdp = TabularMDP.from_outcomes(outcomes, starts, horizon=10)
    episode = rollout(mdp, np.zeros(n + 1, int), np.random.default_rng(0))
    result = learn_rudder(
        mdp,
        [episode],
        learning_rate=0.5,
        trace=trace,
        settle=settle,
        model=lake_model,
        initial_scale=0.0,
        protocol=Protocol(max_episodes=1, evaluate_every=1),
    )
    rr = lake_model.redistribute(episode)
    gains = rr.with_correction() if settle else rr.rewards
    q, g = np.zeros(n + 1), 0.0
    if trace == 0.0:
        q[:n] = 0.5 * gains  # the next state's value is still zero
    else:
        for t in range(n - 1, -1, -1):
            future = trace * g + (1 - trace) * q[t + 1] if t < n - 1 else 0.0
            g = gains[t] + future
            q[t] = 0.5 * g
    np.testing.assert_allclose(result.q[:n, 0], q[:n], rtol=0, atol=1e-6)  # float32


def test_tabular_needs_states(lake_data, mixed_model):
    mdp, demos = lake_data
    with pytest.raises(ValueError, match="single whole numbers"):
        learn_rudder(mdp, demos, model=mixed_model)


# Bad input


@pytest.mark.parametrize(
    ("episodes", "random", "message"),
    [
        ([], [], "no episodes were given"),
        (3, [], "list of episodes"),
        ([1, 2], [], "an Episode is needed"),
        ([ar.Episode([[0.0], [np.nan], [1.0]], [0, 1], [0, 1])], [], "NaN"),
        ([ar.Episode(["a", "b"], [0], [1.0])], [], "needs numbers"),
        ([ar.Episode([0, 1], [0], [1.0])], [ar.Episode([[0, 1], [1, 1]], [0], [0.0])], "shapes"),
        ([ar.Episode([0, 1], [0], [1.0])], [ar.Episode([0.5, 1.0], [0], [0.0])], "same types"),
        ([ar.Episode([0, 1], [0], [1.0])], [ar.Episode([0, 1], [0.5], [0.0])], "same types"),
    ],
)
def test_bad_episodes(episodes, random, message):
    with pytest.raises(ValueError, match=message):
        LstmRudder(updates=2).fit(episodes, random)


def test_an_episode_of_another_environment_is_refused(lever_model):
    with pytest.raises(ValueError, match="fitted on 1 and 0"):
        lever_model.redistribute(ar.Episode([[0, 1], [1, 1]], [0], [0.0]))
    with pytest.raises(ValueError, match="fitted on 1 and 0"):
        lever_model.redistribute(ar.Episode([0.0, 1.0], [0], [0.0]))
    with pytest.raises(ValueError, match="actions have 0 whole numbers and 1 floats"):
        lever_model.redistribute(ar.Episode([0, 1], [0.5], [0.0]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hidden": 0}, "hidden is 0; "),
        ({"updates": 1.5}, "updates is 1.5; "),
        ({"batch_size": -1}, "batch_size is -1; "),
        ({"learning_rate": np.nan}, "learning_rate is nan; "),
        ({"learning_rate": 1e30}, "diverged with learning_rate=1e"),
        ({"max_steps": 5}, "12 steps, more than max_steps=5"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        LstmRudder(**parameters).fit(levers(60, 0))


def test_not_fitted_and_wrong_numbers_of_seeds(demos):
    for call in (LstmRudder().stream, lambda: LstmRudder().redistribute(demos[0])):
        with pytest.raises(ValueError, match="not fitted"):
            call()
    with pytest.raises(ValueError, match="1 datasets but 2 seeds"):
        LstmRudder().fit_many([(demos, ())], seeds=[1, 2])


def test_without_jax_fitting_names_the_extra_and_a_saved_model_works(lake_model, tmp_path):
    lake_model.save(tmp_path / "lstm.npz")
    episode = ar.Episode([0, 4, 8], [1, 1], [0.0, 0.0])
    expected = lake_model.redistribute(episode).rewards.tolist()
    code = (
        "import sys\n"
        "sys.modules['jax'] = None\n"
        "import align_rudder as ar\n"
        "from align_rudder.baselines.lstm import LstmRudder\n"
        "episode = ar.Episode([0, 4, 8], [1, 1], [0.0, 0.0])\n"
        f"model = LstmRudder.load({str(tmp_path / 'lstm.npz')!r})\n"
        f"assert model.redistribute(episode).rewards.tolist() == {expected!r}\n"
        "try:\n"
        "    LstmRudder().fit([episode])\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'align-rudder[jax]'" in done.stdout


@pytest.mark.parametrize("name", ["embedding", "bias", "recurrent", "head"])
def test_a_file_whose_arrays_do_not_go_together_is_refused(tmp_path, name):
    env = KeyChestEnv()
    failed = ar.Episode(env.demonstrations(1)[0].observations, [0] * 32, [0.0] * 32)
    path = tmp_path / "model.npz"
    LstmRudder(updates=2, hidden=4).fit(env.demonstrations(3), [failed]).save(path)
    whole = dict(np.load(path))
    key = f"weights/{name}"
    np.savez(path, **{**whole, key: whole[key][:-1]})
    with pytest.raises(ValueError, match=rf"damaged .* 'weights/{name}' has shape"):
        LstmRudder.load(path)
    np.savez(path, **{**whole, key: whole[key] * np.float32(np.nan)})
    with pytest.raises(ValueError, match=rf"'weights/{name}' holds nan; finite numbers are needed"):
        LstmRudder.load(path)
