"""Episodes that are learned from again: paid as they were, demonstrations among them."""

import numpy as np
import pytest
from toys import corridor

import align_rudder as ar
from align_rudder.baselines import Protocol, TabularMDP, learn_align_rudder, learn_q
from align_rudder.baselines.kernels import seeded
from align_rudder.baselines.protocol import Trial
from align_rudder.baselines.replayed import CAPACITY, keep, new_paid, outcome, replay, shown_paths
from align_rudder.tasks import RoomsEnv


def chain(n):
    """Return a corridor of n states with one action, paid 1 at its end, and its demonstrations."""
    outcomes = [[[(1.0, s + 1, float(s == n - 2), s == n - 2)]] for s in range(n - 1)]
    outcomes.append([[(1.0, n - 1, 0.0, True)]])
    demo = ar.Episode(np.arange(n), [0] * (n - 1), [0.0] * (n - 2) + [1.0])
    return TabularMDP.from_outcomes(outcomes, np.eye(n)[0], 50), [demo] * 2


def protocol(episodes):
    return Protocol(max_episodes=episodes, target=2.0, evaluate_every=1)


@pytest.mark.parametrize("settlement", [None, "mean", "even", "last", "beside", "potential"])
def test_four_replays_are_four_more_episodes_where_all_are_the_same(settlement):
    """Demonstrations too: they are paid as the agent is."""
    mdp, demos = chain(6)
    options = {"settlement": settlement, "learning_rate": 0.05, "trace": 0.5}
    again = learn_align_rudder(mdp, demos, replays=4, protocol=protocol(6), **options)
    more = learn_align_rudder(mdp, demos, protocol=protocol(30), **options)
    np.testing.assert_allclose(again.q, more.q, rtol=1e-12)
    assert again.steps == more.steps / 5


def test_the_control_replays_as_well():
    mdp, demos = chain(6)
    again = learn_q(mdp, demos, trace=0.5, gamma=0.9, replays=9, protocol=protocol(3))
    more = learn_q(mdp, demos, trace=0.5, gamma=0.9, protocol=protocol(30))
    np.testing.assert_allclose(again.q, more.q, rtol=1e-12)


def test_demonstrations_stay_and_the_oldest_episode_is_overwritten():
    mdp, demos = chain(4)
    memory = new_paid(Trial(mdp, demos, None, 0), 1)
    rows, ones = np.arange(4), np.ones(3)
    for i in range(2 + CAPACITY + 3):
        keep(memory, rows, rows, i * ones, rows, 3)
    paid = memory[2][:, 0]
    assert paid[:2].tolist() == [0, 1]
    assert paid[2:5].tolist() == [CAPACITY + 2, CAPACITY + 3, CAPACITY + 4]
    assert sorted(paid[2:]) == list(range(5, CAPACITY + 5))


def test_each_episode_of_the_memory_is_drawn_as_often():
    mdp, demos = chain(4)
    memory = new_paid(Trial(mdp, demos, None, 0), 1)
    for i in range(5):
        keep(memory, np.array([i, 9]), np.zeros(1, int), np.ones(1), np.zeros(1, int), 1)
    q = np.zeros((10, 1))
    replay(q, memory, 10_000, 1e-6, 0.5, True, 0.9, seeded(0))
    assert q[5:].sum() == 0
    np.testing.assert_allclose(q[:5, 0], 2000e-6, rtol=0.1)


def test_what_demonstrations_did_is_found_in_a_world_of_chance():
    env = RoomsEnv(4, slip=0.3)
    demos = env.demonstrations(3, 0)
    trial = Trial(env.mdp, demos, None, 0)
    states, actions, lengths = shown_paths(trial)
    for i, demo in enumerate(demos):
        assert lengths[i] == len(demo.actions)
        for t in range(lengths[i]):
            k = outcome(trial.tables, states[i, t], actions[i, t], states[i, t + 1])
            assert env.mdp.next_states[states[i, t], actions[i, t], k] == states[i, t + 1]
            assert env.mdp.probabilities[states[i, t], actions[i, t], k] > 0


def test_replays_save_episodes():
    """Half of the actions of the demonstrations were random."""
    env = RoomsEnv(8, slip=0.1)
    needed = {0: [], 10: []}
    for seed in range(5):
        demos = env.demonstrations(5, seed, exploration=0.5)
        target = 0.65 / float(np.mean([demo.ret for demo in demos]))
        for replays, found in needed.items():
            judged = Protocol(max_episodes=1500, target=target, evaluation_epsilon=0.0)
            options = {"learning_rate": 0.1, "trace": 0.5, "gamma": 0.97, "initial_scale": 0.1}
            result = learn_q(env.mdp, demos, seed=seed, replays=replays, protocol=judged, **options)
            found.append(result.episodes)
    assert np.mean(needed[10]) < 0.7 * np.mean(needed[0])


@pytest.mark.parametrize(
    ("learn", "wrong", "message"),
    [
        (learn_q, {"trace": 0.5, "replays": -1}, "replays is -1"),
        (learn_q, {"replays": 5}, "give a trace above 0"),
        (learn_align_rudder, {"replays": 1.5}, r"replays is 1\.5"),
        (learn_align_rudder, {"method": "direct", "replays": 5}, "not 'direct'"),
    ],
)
def test_bad_arguments(learn, wrong, message):
    mdp, demos = corridor(4)
    with pytest.raises(ValueError, match=message):
        learn(mdp, demos, **wrong)
