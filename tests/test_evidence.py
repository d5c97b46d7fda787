"""Evidence: probabilities against counting and sampling, and its promise under the null."""

import warnings
from itertools import pairwise, product

import numpy as np
import pytest

import align_rudder as ar
from align_rudder.alignment import align_ids, guide_tree, pairwise_scores, progressive
from align_rudder.evidence import (
    _log_embedding,
    chain_evidence,
    directed_evidence,
    embedding,
    kept_columns,
)
from align_rudder.groups import evident_groups, members_below
from align_rudder.null import Null
from align_rudder.scoring import inverse_frequency


def holds(sequence, chain):
    rest = iter(sequence)
    return all(event in rest for event in chain)


def chain_of(rng, n):
    transition = rng.dirichlet(np.ones(n), n)
    start = rng.dirichlet(np.ones(n))
    return start, transition


@pytest.mark.parametrize("chain", [(0,), (0, 1), (1, 1), (2, 0, 2), (0, 1, 2, 0)])
@pytest.mark.parametrize("independent", [False, True])
def test_the_probability_to_hold_a_chain_is_that_of_all_sequences_that_do(chain, independent):
    start, transition = chain_of(np.random.default_rng(len(chain)), 3)
    if independent:
        transition = start[None]
    found = embedding(np.array(chain), start, transition, 5)
    rows = np.tile(start, (3, 1)) if independent else transition
    for length in range(6):
        expected = sum(
            start[s[0]] * np.prod([rows[a, b] for a, b in pairwise(s)])
            for s in product(range(3), repeat=length)
            if s and holds(s, chain)
        )
        assert found[length] == pytest.approx(expected)


@pytest.mark.parametrize("markov", [False, True])
def test_by_chance_evidence_is_seldom_large(markov):
    """Of a chain that is chosen before, a value of x or more has a probability of exp(−x)."""
    rng = np.random.default_rng(0)
    start, transition = chain_of(rng, 4)
    if not markov:
        start, transition = np.full(4, 0.25), np.full((4, 4), 0.25)
    null = Null(start, transition, np.full(4, 0.25))
    chain = np.array([0, 2, 1])
    values = []
    for _ in range(400):
        sequences = null.sample([6] * 5, rng)
        best = -np.inf
        for parts in product(range(8), repeat=1):
            part = np.array([bool(parts[0] >> k & 1) for k in range(3)])
            held = np.array([part & holds(s, chain[part]) for s in sequences])
            best = max(best, chain_evidence(chain, held, np.full(5, 6), null, markov=markov))
        values.append(best)
    for x in (1.0, 2.0, 3.0):
        assert np.mean(np.array(values) >= x) <= np.exp(-x) + 0.03


@pytest.mark.parametrize("seed", range(20))
def test_the_search_finds_as_much_evidence_as_its_columns_have(seed):
    """What grows column by column is what the definition gives for all of them at once."""
    rng = np.random.default_rng(seed)
    n, length, kinds = int(rng.integers(2, 12)), int(rng.integers(3, 60)), 6
    base = rng.integers(0, kinds, length)
    noisy = np.where(rng.random((n, length)) < 0.2, rng.integers(0, kinds, (n, length)), base)
    matrix = np.where(rng.random((n, length)) < 0.1, -1, noisy).astype(np.int32)
    null = Null.of([row[row >= 0] for row in matrix], rng.dirichlet(np.ones(kinds)))
    kept = kept_columns(matrix, null, quick=True)
    held, lengths = matrix[:, kept.columns] == kept.events, (matrix >= 0).sum(axis=1)
    expected = chain_evidence(kept.events, held, lengths, null, markov=False)
    assert kept.evidence == pytest.approx(expected, rel=1e-9)
    assert kept.evidence > 0
    assert kept.nearest == kept.evidence or len(kept.columns) == 1


@pytest.mark.parametrize("seed", range(10))
def test_without_columns_the_nearest_pair_lacks_evidence(seed):
    """Of two columns, which are tried together, the definition gives the evidence they lack."""
    rng = np.random.default_rng(seed)
    kinds = 8
    matrix = np.full((10, 30), -1, np.int32)
    matrix[:, 4::5] = rng.integers(0, kinds, (10, 6))
    for column, event in ((3, 1), (9, 5)):
        matrix[rng.permutation(10)[:7], column] = event
    null = Null.of([row[row >= 0] for row in matrix], np.full(kinds, 1 / kinds))
    kept = kept_columns(matrix, null)
    chain = np.array([1, 5])
    held, lengths = matrix[:, [3, 9]] == chain, (matrix >= 0).sum(axis=1)
    expected = chain_evidence(chain, held, lengths, null, markov=False)
    assert not len(kept.columns)
    assert kept.nearest == pytest.approx(expected)
    assert kept.nearest < 0
    assert kept_columns(matrix[:, :9], null).nearest == -np.inf  # one column is no pair


def test_columns_of_keys_are_kept_and_those_of_noise_are_not():
    rng = np.random.default_rng(0)
    sequences = []
    for _ in range(10):
        places = np.sort(rng.integers(0, 51, 3))
        sequences.append(np.insert(rng.integers(0, 10, 50), places, [10, 11, 12]).astype(np.int32))
    p = np.bincount(np.concatenate(sequences)) / sum(map(len, sequences))
    alignment = align_ids(sequences, range(13), inverse_frequency(p))
    null = Null.of(sequences, p)
    kept = kept_columns(alignment.matrix, null)
    assert (alignment.matrix[:, kept.columns].max(axis=0) == [10, 11, 12]).all()
    assert kept.evidence > 10
    assert directed_evidence(alignment.matrix, kept, null, np.inf) > 5
    shuffled = [rng.permutation(s) for s in sequences]
    again = align_ids(shuffled, range(13), inverse_frequency(p))
    assert kept_columns(again.matrix, null).evidence < np.log(100)


def test_no_partition_of_the_tree_has_more_evidence():
    """Branches are chosen so that their evidence is largest: two ways that share no order."""
    forth, back = np.arange(8), np.arange(8)[::-1]
    sequences = [forth, back, forth, back, back, forth, forth]
    p = np.full(8, 1 / 8)
    scores = inverse_frequency(p)
    tree = guide_tree(pairwise_scores(sequences, scores))
    matrices = progressive(sequences, tree, scores, 0.0)
    groups = evident_groups(tree, members_below(tree), matrices, Null.of(sequences, p))
    assert {tuple(g.members.tolist()) for g in groups} == {(0, 2, 5, 6), (1, 3, 4)}
    for group in groups:
        assert group.evidence >= np.log(100)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize(("m", "length"), [(1, 1), (3, 7), (12, 40), (300, 310)])
def test_the_logarithm_of_an_embedding_is_that_of_its_probability(m, length, independent):
    rng = np.random.default_rng(m)
    start, transition = chain_of(rng, 5)
    if independent:
        start, transition = transition[0], transition[:1]
    chain = rng.integers(5, size=m)
    found = _log_embedding(chain, start, transition, length)
    assert found == pytest.approx(np.log(embedding(chain, start, transition, length)[length]))
    assert _log_embedding(chain, start, transition, m - 1) == -np.inf


@pytest.mark.parametrize("n", [150, 600])
def test_long_sequences_have_as_much_evidence_for_each_column(n):
    """Probabilities far below what a float can hold."""
    rng = np.random.default_rng(0)
    row = rng.integers(12, size=n)
    matrix = np.tile(row, (4, 1)).astype(np.int32)
    null = Null.of([*matrix], np.bincount(row, minlength=12) / n)
    found = kept_columns(matrix, null)
    assert len(found.columns) == n
    # All of a row of n events is one way of many, each event of its own probability.
    by_hand = -4 * np.log(null.p[row]).sum()
    cost = n * (np.log(2 * 12) - np.log(10 / 14))
    assert found.evidence == pytest.approx(by_hand - cost, rel=1e-6)


def test_long_logs_are_paid_to_their_end():
    log = [f"step {k}" for k in range(200)]
    with warnings.catch_warnings(action="ignore", category=ar.AlignRudderWarning):
        model = ar.AlignRudder().fit_events([log] * 4)
    rr = model.redistribute_events(log, ret=1.0)
    assert (rr.rewards > 0).all()
