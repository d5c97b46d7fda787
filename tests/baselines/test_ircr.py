"""IRCR: guidance rewards are mean returns, and what an end is worth."""

import numpy as np
import pytest
from toys import corridor, random_memory

import align_rudder as ar
from align_rudder.baselines import Protocol, TabularMDP, Trial, learn_ircr
from align_rudder.baselines.ircr import _train, guide, tally
from align_rudder.baselines.trajectories import new_memory


def brute_force(memory, shape):
    """Return the mean normalised return of the episodes that hold each pair, 0 for none."""
    states, actions, lengths, returns, _, _ = memory
    normalised = (returns - returns.min()) / (returns.max() - returns.min())
    guidance = np.zeros(shape)
    for s, a in np.ndindex(shape):
        held = [
            normalised[i]
            for i, n in enumerate(lengths)
            if (s, a) in set(zip(states[i, :n].tolist(), actions[i, :n].tolist()))
        ]
        guidance[s, a] = np.mean(held) if held else 0.0
    return guidance


def test_guidance_is_the_mean_return_of_the_episodes_that_hold_a_pair():
    """Also after episodes were overwritten: nothing of the old ones is left."""
    rng, shape = np.random.default_rng(0), (9, 3)
    memory = random_memory(rng, 8, 6, *shape)
    guidance, sums, counts = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape, np.int64)
    for i in range(8):
        tally(sums, counts, memory, i, 1)
    guide(guidance, sums, counts, memory[3])
    expected = brute_force(memory, shape)
    assert 0 < (expected == 0).sum() < 20
    np.testing.assert_allclose(guidance, expected, atol=1e-12)
    other = random_memory(rng, 8, 6, *shape)
    for i in (2, 5, 6):
        tally(sums, counts, memory, i, -1)
        for mine, new in zip(memory[:5], other[:5], strict=True):
            mine[i] = new[i]
        tally(sums, counts, memory, i, 1)
    guide(guidance, sums, counts, memory[3])
    np.testing.assert_allclose(guidance, brute_force(memory, shape), atol=1e-12)


def test_the_learner_is_guided_by_the_episodes_in_its_memory_and_no_others():
    mdp, demos = corridor(5, horizon=12)
    trial = Trial(mdp, demos, None, 0)
    memory, q = new_memory(trial, 3), np.zeros((5, 2))
    credit = np.zeros((5, 2)), np.zeros((5, 2)), np.zeros((5, 2), np.int64)
    for i in range(2):
        tally(*credit[1:], memory, i, 1)
    room = np.empty(12), np.zeros(12, np.int64)
    rule = (0.1, 0.5, 0.9, True)
    tables = trial.tables
    _train(q, trial.observed, credit, memory, 2, 1, rule, room, tables, 1.0, 20, trial.rng)
    assert memory[5][0] == 20
    assert np.ptp(memory[3]) > 0
    np.testing.assert_allclose(credit[0], brute_force(memory, (5, 2)), atol=1e-12)


@pytest.mark.parametrize("trace", [0.0, 0.6])
@pytest.mark.parametrize("absorbing", [False, True])
def test_values_of_a_chain_are_those_of_a_pay_of_one(trace, absorbing):
    """All episodes are alike, so that each step is paid 1: until the end, or for ever."""
    outcomes = [[[(1.0, min(s + 1, 4), float(s == 3), s >= 3)]] for s in range(5)]
    mdp = TabularMDP.from_outcomes(outcomes, np.eye(5)[0], 50)
    demos = [ar.Episode(np.arange(5), [0] * 4, [0, 0, 0, 1.0])] * 2
    protocol = Protocol(max_episodes=200, target=2.0)
    result = learn_ircr(mdp, demos, gamma=0.5, trace=trace, absorbing=absorbing, protocol=protocol)
    expected = [2.0, 2.0, 2.0, 2.0] if absorbing else [1.875, 1.75, 1.5, 1.0]
    np.testing.assert_allclose(result.q[:4, 0], expected, rtol=1e-6)


def test_without_an_absorbing_end_it_pays_to_live_on(rooms):
    env, demos = rooms
    protocol = Protocol(max_episodes=1000, target=2.0)
    late = [
        learn_ircr(env.mdp, demos, absorbing=absorbing, protocol=protocol).curve[-20:].mean()
        for absorbing in (False, True)
    ]
    assert late[0] < 0.5 * late[1]
