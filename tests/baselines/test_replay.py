"""Replay: the sum tree against brute force, and what the memory holds."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder.baselines.kernels import seeded, uniform
from align_rudder.baselines.replay import find, new_tree, next_slot, put

priorities = st.floats(0.0, 1e6, allow_subnormal=False) | st.just(0.0)


@given(
    size=st.integers(1, 700),
    changes=st.lists(st.tuples(st.integers(0, 10**6), priorities), min_size=1, max_size=60),
    us=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20),
)
@settings(max_examples=150, deadline=None)
def test_the_tree_finds_what_cumulative_sums_find(size, changes, us):
    tree, plain = new_tree(size), np.zeros(size)
    for i, p in changes:
        put(tree, i % size, p)
        plain[i % size] = p
    np.testing.assert_array_equal(tree[0][:size], plain)
    ends = np.cumsum(plain)
    np.testing.assert_allclose(tree[0][-1], ends[-1], rtol=1e-12)
    if ends[-1] == 0:
        return
    for u in us:
        u *= ends[-1]
        i = find(tree, u)
        assert plain[i] > 0
        # The two add in different orders: u may lie beyond the leaf by a rounding error.
        slack = 1e-12 * ends[-1]
        assert ends[i] - plain[i] - slack <= u <= ends[i] + slack


@given(
    weights=st.lists(st.integers(0, 9), min_size=1, max_size=300).filter(any),
    data=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_whole_priorities_are_found_exactly(weights, data):
    """Whole numbers add up without rounding: the leaf of every u is known."""
    tree = new_tree(len(weights))
    for i, p in enumerate(weights):
        put(tree, i, float(p))
    ends = np.cumsum(weights)
    u = data.draw(st.integers(0, int(ends[-1]) - 1)) + data.draw(st.sampled_from([0.0, 0.5]))
    assert find(tree, u) == np.searchsorted(ends, u, side="right")


def test_the_end_of_the_tree_is_its_last_positive_priority():
    tree = new_tree(200)
    for i in (3, 77, 150):
        put(tree, i, 0.1)
    assert find(tree, tree[0][-1]) == find(tree, np.inf) == 150
    put(tree, 150, 0.0)
    assert find(tree, np.inf) == 77


def test_sampling_frequencies_follow_the_priorities():
    rng, tree = seeded(1), new_tree(100)
    p = np.random.default_rng(0).random(100) ** 3
    p[::7] = 0.0
    for i in range(100):
        put(tree, i, p[i])
    n = 40_000
    counts = np.bincount([find(tree, uniform(rng) * tree[0][-1]) for _ in range(n)], minlength=100)
    expected = n * p / p.sum()
    assert (counts[p == 0] == 0).all()
    positive = p > 0
    chi2 = ((counts - expected)[positive] ** 2 / expected[positive]).sum()
    assert chi2 < 130  # 85 degrees of freedom: exceeded by chance once in a thousand


def test_sums_do_not_drift():
    tree, rng = new_tree(1000), np.random.default_rng(0)
    for i in rng.integers(0, 1000, 20_000):
        put(tree, i, 10.0 ** rng.uniform(-9, 9))
    for i in range(1000):
        put(tree, i, 1e-9)
    np.testing.assert_allclose(tree[0][-1], 1e-6, rtol=1e-12)


@given(kept=st.integers(0, 5), capacity=st.integers(1, 7), n=st.integers(1, 40))
@settings(deadline=None)
def test_the_newest_are_stored_and_demonstrations_stay(kept, capacity, n):
    cursor, slots = np.zeros(1, np.int64), np.full(kept + capacity, -1)
    for step in range(n):
        slots[next_slot(cursor, kept, capacity)] = step
    assert (slots[:kept] == -1).all()
    newest = set(range(max(n - capacity, 0), n))
    assert set(slots[kept:]) - {-1} == newest
