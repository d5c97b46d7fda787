"""RRD: random parts of episodes, and rewards that are a solution of least squares."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from toys import random_memory

import align_rudder as ar
from align_rudder.baselines import Protocol, TabularMDP, learn_rrd
from align_rudder.baselines.kernels import seeded, uniform
from align_rudder.baselines.rrd import decompose, subsequence

SHAPE = (4, 2)


def rows_of(memory, k):
    """Return a row of the design for each part of k steps of each episode: shares of pairs.

    Also returns its episode, its steps, and the root of its weight: parts of an episode share one.
    """
    states, actions, lengths, _, _, _ = memory
    rows, which, parts, roots = [], [], [], []
    for i, n in enumerate(lengths):
        found = list(combinations(range(n), min(k, n)))
        for part in found:
            row = np.zeros(SHAPE)
            np.add.at(row, (states[i, list(part)], actions[i, list(part)]), 1 / len(part))
            rows.append(row.ravel())
            which.append(i)
            parts.append(np.array(part))
            roots.append(len(found) ** -0.5)
    return np.array(rows), np.array(which), parts, np.array(roots)


def mean_change(table, memory, k, unbiased=False):
    """Return the change of the table by one step, on the mean over all parts and episodes."""
    total, room = np.zeros(SHAPE), np.empty(k)
    _, which, parts, roots = rows_of(memory, k)
    for i, part, root in zip(which, parts, roots):
        moved = table.copy()
        decompose(moved, memory, i, part, room, 1.0, unbiased)
        total += root**2 * (moved - table)
    return total / len(memory[2])


@pytest.mark.parametrize("k", [2, 3, 6])
def test_the_expected_step_is_zero_at_the_least_squares_solution(k):
    """And elsewhere it is the slope of the expected loss; with k = 6 episodes are taken whole."""
    memory = random_memory(np.random.default_rng(1), 20, 6, *SHAPE)
    rows, which, _, roots = rows_of(memory, k)
    goals = (memory[3] / memory[2])[which]
    solution = np.linalg.lstsq(rows * roots[:, None], goals * roots)[0]
    assert np.abs(goals - rows @ solution).max() > 0.1
    np.testing.assert_allclose(mean_change(solution.reshape(SHAPE), memory, k), 0, atol=1e-12)
    table = np.random.default_rng(2).normal(size=SHAPE)
    slope = rows.T @ (roots**2 * (goals - rows @ table.ravel())) / len(memory[2])
    np.testing.assert_allclose(mean_change(table, memory, k).ravel(), slope, atol=1e-12)


def test_without_bias_the_expected_step_is_that_of_whole_episodes():
    memory = random_memory(np.random.default_rng(1), 20, 6, *SHAPE)
    memory[2][:] = np.maximum(memory[2], 3)
    table = np.random.default_rng(2).normal(size=SHAPE)
    whole = mean_change(table, memory, 6)
    np.testing.assert_allclose(mean_change(table, memory, 3, unbiased=True), whole, atol=1e-12)
    assert np.abs(mean_change(table, memory, 3) - whole).max() > 0.01


@pytest.mark.parametrize("k", [3, 8])
def test_random_parts_lead_to_the_least_squares_solution(k):
    """No rewards sum to these returns, so that the table never rests; its mean over time does."""
    memory = random_memory(np.random.default_rng(3), 20, 8, *SHAPE)
    rows, which, _, roots = rows_of(memory, k)
    goals = (memory[3] / memory[2])[which]
    solution = np.linalg.lstsq(rows * roots[:, None], goals * roots)[0]
    table, rng, picks, room = np.zeros(SHAPE), seeded(0), np.empty(k, np.int64), np.empty(k)
    total, steps = np.zeros(SHAPE), 300_000
    for step in range(steps):
        i = int(uniform(rng) * 20)
        found = subsequence(picks, memory[2][i], rng)
        decompose(table, memory, i, picks[:found], room, 0.1, False)
        if step >= steps // 3:
            total += table
    mean = total.ravel() / (steps - steps // 3)
    np.testing.assert_allclose(mean, solution, atol=0.03 * np.abs(solution).max())


def test_rewards_that_returns_identify_are_recovered():
    """Returns are sums of rewards, and pairs are met in enough combinations."""
    rng = np.random.default_rng(0)
    memory, rewards = random_memory(rng, 30, 6, *SHAPE), rng.normal(size=SHAPE)
    states, actions, lengths, returns, _, _ = memory
    for i, n in enumerate(lengths):
        returns[i] = rewards[states[i, :n], actions[i, :n]].sum()
    table, room = np.zeros(SHAPE), np.empty(6)
    for _ in range(3000):
        for i, n in enumerate(lengths):
            decompose(table, memory, i, np.arange(n), room, 1.0, False)
    np.testing.assert_allclose(table, rewards, atol=1e-6)


def test_all_parts_of_a_size_are_drawn_alike():
    rng, picks = seeded(1), np.empty(3, np.int64)
    found = Counter()
    for _ in range(20_000):
        assert subsequence(picks, 6, rng) == 3
        found[tuple(picks)] += 1
    assert set(found) == set(combinations(range(6), 3))
    assert max(abs(count - 1000) for count in found.values()) < 5 * 1000**0.5
    assert subsequence(picks, 2, rng) == 2
    assert picks[:2].tolist() == [0, 1]


@pytest.mark.parametrize("length", [2, 32])
def test_the_return_of_a_chain_is_spread_and_its_value_kept(length):
    outcomes = [[[(1.0, min(s + 1, 4), float(s == 3), s >= 3)]] for s in range(5)]
    mdp = TabularMDP.from_outcomes(outcomes, np.eye(5)[0], 50)
    demos = [ar.Episode(np.arange(5), [0] * 4, [0, 0, 0, 1.0])] * 2
    protocol = Protocol(max_episodes=500, target=2.0)
    result = learn_rrd(mdp, demos, gamma=1.0, length=length, protocol=protocol)
    np.testing.assert_allclose(result.q[:4, 0], [1.0, 0.75, 0.5, 0.25], rtol=1e-6)
