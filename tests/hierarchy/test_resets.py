"""Where episodes begin: new worlds, and stored states that have just reached a sub-goal."""

import numpy as np
import pytest
import scipy.stats

jax = pytest.importorskip("jax")
pytest.importorskip("equinox")
import jax.numpy as jnp  # noqa: E402
import workshop  # noqa: E402

from align_rudder.hierarchy.cloning import Demonstrations  # noqa: E402
from align_rudder.hierarchy.resets import (  # noqa: E402
    begin_again,
    new_starts,
    remember,
    update_failure_rates,
)

pytestmark = pytest.mark.usefixtures("compiled_quickly")
K = workshop.K


def numbered(numbers, subtask):
    """States told apart by their numbers."""
    n = len(numbers)
    blank = workshop.known().worlds._replace(state=jnp.zeros(64, jnp.int32))
    blank = jax.tree.map(lambda x: np.repeat(np.asarray(x[:1]), n, axis=0), blank)
    subtask = jnp.broadcast_to(jnp.asarray(subtask, jnp.int32), (n,))
    position = blank.position._replace(subgoal=subtask)
    return blank._replace(state=jnp.asarray(numbers), position=position, idle=jnp.full(n, 7))


def shown_at(states, reached):
    return Demonstrations(states, jnp.asarray(reached, bool), None)


def held(starts, k):
    return np.asarray(starts.states.state)[k, : int(starts.filled[k])].tolist()


def test_demonstrations_fill_the_buffers_with_where_subtasks_begin(known, shown, worlds):
    starts = new_starts(worlds, K, 4, shown)
    assert starts.filled.tolist() == [0, 4, 4, 4]
    items = np.asarray(starts.states.state.items)
    for k, expected in ((1, [1, 0, 0]), (2, [2, 0, 0]), (3, [0, 1, 0])):
        assert (items[k] == expected).all()
        np.testing.assert_array_equal(starts.states.begun[k], k)
        np.testing.assert_array_equal(starts.states.subtask[k], k)
        assert not starts.states.pending[k].any()
        assert not starts.states.idle[k].any()
    # The first state of each demonstration's second sub-task, in their order.
    first = [states.time[np.flatnonzero(states.items[:, 0] == 1)[0]] for states, _ in known.runs]
    assert starts.states.state.time[1].tolist() == first[:4]


def test_a_buffer_takes_only_states_that_just_reached_its_subtask():
    s = numbered(range(10), [0, 1, 2, 3, 1, 2, 1, 1, 1, 1])
    shown = shown_at(s, [0, 1, 1, 1, 1, 0, 1, 1, 1, 0])
    starts = new_starts(numbered([-1, -2], 0), 3, 4, shown)
    assert [held(starts, k) for k in range(3)] == [[], [1, 4, 6, 7], [2]]


def test_a_full_buffer_forgets_at_random():
    starts = new_starts(numbered([-1], 0), 3, 4)
    store = jax.jit(remember)
    lost = set()
    for t in range(60):
        s = numbered(np.arange(6) + 100 * t, [1, 1, 1, 2, 2, 0])
        reached = jnp.array([1, 1, 0, t % 2, 0, 0], bool)
        before = held(starts, 1)
        starts = store(starts, jax.random.key(t), s, reached)
        after = held(starts, 1)
        new = set(after) - set(before)
        assert len(after) == min(t + 1, 4)
        assert len(new) == 1
        assert new < {100 * t, 100 * t + 1}
        if t >= 4:
            lost |= {before.index(x) for x in set(before) - set(after)}
        assert all(x % 100 == 3 and x // 100 % 2 for x in held(starts, 2))
    assert lost == {0, 1, 2, 3}
    assert starts.filled.tolist() == [0, 4, 4]
    assert not starts.states.idle[1].any()
    assert (starts.states.begun[2] == 2).all()


@pytest.fixture(scope="module")
def stored():
    """Buffers 1 and 3 of five have 2 and 3 states; the pool has numbers below zero."""
    shown = shown_at(numbered([10, 11, 30, 31, 32], [1, 1, 3, 3, 3]), np.ones(5))
    starts = new_starts(numbered([-1, -2, -3], 0), 5, 4, shown)
    return starts._replace(failure=jnp.array([1.0, 0.15, 1.0, 0.55, 1.0]))


def test_failing_subtasks_are_begun_more_often_and_empty_ones_never(stored):
    n = 6000
    s = numbered(np.full(n, 99), 4)
    ended = jnp.arange(n) % 3 > 0
    found = jax.jit(begin_again)(stored, jax.random.key(0), s, ended, jnp.float32(0.4))
    assert (found.state[~ended] == 99).all()
    drawn = np.asarray(found.state[ended])
    weights = {1: 0.2 / 0.8 * 0.6, 3: 0.6 / 0.8 * 0.6}
    expected = {-1: 0.4 / 3, -2: 0.4 / 3, -3: 0.4 / 3}
    expected |= {10: weights[1] / 2, 11: weights[1] / 2}
    expected |= dict.fromkeys((30, 31, 32), weights[3] / 3)
    values, counts = np.unique(drawn, return_counts=True)
    assert set(values) == set(expected)
    shares = [expected[v] * len(drawn) for v in values]
    assert scipy.stats.chisquare(counts, shares).pvalue > 1e-3


@pytest.mark.parametrize("empty", [True, False])
def test_new_worlds_alone_if_asked_for_or_nothing_is_stored(stored, empty):
    starts = new_starts(stored.pool, 5, 4) if empty else stored
    s = numbered(np.full(500, 99), 4)
    fresh = jnp.float32(0.0 if empty else 1.0)
    found = begin_again(starts, jax.random.key(0), s, jnp.ones(500, bool), fresh)
    assert set(found.state.tolist()) == {-1, -2, -3}


def begun_at(starts, backplay=True):
    """Return the sub-tasks at which episodes begin."""
    s = numbered(np.full(500, 99), 4)
    every = jnp.ones(500, bool)
    found = begin_again(starts, jax.random.key(0), s, every, 0.0, backplay)
    return set(found.begun.tolist())


@pytest.mark.parametrize(
    ("failure", "begun"),
    [
        ([1.0, 1.0, 1.0, 1.0, 1.0], {4}),
        ([0.0, 0.0, 0.0, 0.0, 0.5], {4}),  # what lies before says nothing; half is not enough
        ([1.0, 1.0, 1.0, 1.0, 0.49], {3, 4}),
        ([1.0, 1.0, 1.0, 0.6, 0.0], {3, 4}),
        ([1.0, 1.0, 1.0, 0.1, 0.2], {1, 3, 4}),  # nothing is stored of 2: it is passed by
        ([1.0, 0.1, 1.0, 0.1, 0.6], {4}),  # back to the end, should it be forgotten
    ],
)
def test_backplay_goes_on_to_the_subtask_before_where_those_behind_succeed(failure, begun):
    s = numbered(range(6), [1, 1, 3, 3, 4, 4])
    starts = new_starts(numbered([-1, -2], 0), 5, 4, shown_at(s, np.ones(6)))
    starts = starts._replace(failure=jnp.array(failure))
    assert begun_at(starts) == begun
    assert begun_at(starts, backplay=False) == {1, 3, 4}


def test_backplay_needs_more_than_half_of_the_last_tries_to_succeed():
    s = numbered(range(4), [3, 3, 4, 4])
    starts = new_starts(numbered([-1, -2], 0), 5, 4, shown_at(s, np.ones(4)))
    half, most = (jnp.array([0, 0, 0, 0, n]) for n in (5, 7))
    for _ in range(60):
        starts = update_failure_rates(starts, half, half)
        assert begun_at(starts) == {4}
    starts = update_failure_rates(starts, most, half)
    assert begun_at(starts) == {3, 4}


def test_failures_are_followed_slowly(stored):
    reached, failed = jnp.array([0, 3, 0, 0, 5]), jnp.array([0, 1, 4, 0, 0])
    found = update_failure_rates(stored, reached, failed).failure
    expected = [1.0, 0.15 + 0.1 * (0.25 - 0.15), 1.0, 0.55, 0.9]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    starts = stored
    for _ in range(100):
        starts = update_failure_rates(starts, reached, failed)
    np.testing.assert_allclose(starts.failure, [1, 0.25, 1, 0.55, 0], atol=1e-4)
