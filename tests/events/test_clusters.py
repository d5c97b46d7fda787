"""Clustering into few events."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from align_rudder.events import EventClustering
from align_rudder.events.clusters import merge_least_visited

examples = settings(deadline=None, max_examples=60, derandomize=True)


def _partition(labels):
    """Return the groups, whatever their numbers are."""
    return {frozenset(np.flatnonzero(labels == k).tolist()) for k in np.unique(labels)}


# Merging


def _merge_slowly(similarity, labels, visits, max_events):
    """Merge sets of samples by the words of the documentation."""
    groups = [np.flatnonzero(labels == k).tolist() for k in np.unique(labels)]
    symmetric = (similarity + similarity.T) / 2
    while len(groups) > max_events:
        source = min(range(len(groups)), key=lambda g: sum(visits[i] for i in groups[g]))
        target = max(
            (g for g in range(len(groups)) if g != source),
            key=lambda g: np.mean([symmetric[i, j] for i in groups[source] for j in groups[g]]),
        )
        groups[target] += groups[source]
        del groups[source]
    return {frozenset(group) for group in groups}


@given(st.integers(1, 14), st.integers(1, 8), st.integers(0, 2**32 - 1))
@examples
def test_merging_is_what_it_says(n, max_events, seed):
    rng = np.random.default_rng(seed)
    similarity, labels = rng.normal(size=(n, n)), rng.integers(0, 9, n) * 3
    visits = rng.random(n)
    merged = merge_least_visited(similarity, labels, visits, max_events)
    assert _partition(merged) == _merge_slowly(similarity, labels, visits, max_events)
    assert len(set(merged.tolist())) == min(max_events, len(np.unique(labels)))
    # Labels are 0…k−1 in the order in which clusters first occur.
    assert list(dict.fromkeys(merged.tolist())) == list(range(merged.max() + 1))


def test_few_enough_clusters_stay_as_they_are():
    labels = np.array([5, 2, 2, 9])
    merged = merge_least_visited(np.random.default_rng(0).random((4, 4)), labels, np.ones(4), 3)
    assert merged.tolist() == [0, 1, 1, 2]


def test_what_is_visited_often_is_kept_apart_even_if_it_is_similar():
    points = np.array([0.0, 0.1, 50.0])  # two similar clusters, often seen; one far off, rare
    similarity = -((points[:, None] - points) ** 2)
    merged = merge_least_visited(similarity, np.arange(3), np.array([9.0, 8.0, 1.0]), 2)
    assert merged.tolist() == [0, 1, 1]


def test_merging_leaves_its_input_alone():
    rng = np.random.default_rng(0)
    given_values = rng.random((6, 6)), np.arange(6), rng.random(6)
    before = [x.copy() for x in given_values]
    merge_least_visited(*given_values, 2)
    for x, y in zip(given_values, before, strict=True):
        np.testing.assert_array_equal(x, y)


# Clustering


@parametrize_with_checks([EventClustering(), EventClustering(max_events=2, preference=-50.0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def _blobs(seed, k=4, n=60, spread=0.1):
    rng = np.random.default_rng(seed)
    truth = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    centres = 10.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]])[:k]
    return centres[truth] + rng.normal(0, spread, (n, 2)), truth


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [2, 4, 6])
def test_separated_blobs_are_found(seed, k):
    points, truth = _blobs(seed, k)
    model = EventClustering(max_events=k).fit(points)
    assert _partition(model.labels_) == _partition(truth)
    np.testing.assert_allclose(
        model.centers_, [points[model.labels_ == e].mean(axis=0) for e in range(k)], atol=1e-9
    )
    np.testing.assert_array_equal(model.predict(points), model.labels_)
    assert model.predict(model.centers_).tolist() == list(range(k))


@pytest.mark.parametrize("max_events", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("preference", [None, -0.01])
def test_there_are_at_most_max_events(max_events, preference):
    points = np.random.default_rng(0).normal(size=(80, 3))
    model = EventClustering(max_events, preference=preference).fit(points)
    n = len(np.unique(model.labels_))
    assert n <= max_events
    free = EventClustering(80, preference=preference).fit(points)
    assert n == min(max_events, len(np.unique(free.labels_)))
    assert set(model.labels_.tolist()) == set(range(n))
    # Clusters are only merged, never cut.
    assert all(any(a <= b for b in _partition(model.labels_)) for a in _partition(free.labels_))


def test_the_same_input_gives_the_same_clusters():
    points = np.random.default_rng(3).normal(size=(70, 2))
    a, b = EventClustering(5).fit(points), EventClustering(5).fit(points)
    np.testing.assert_array_equal(a.labels_, b.labels_)
    np.testing.assert_array_equal(a.centers_, b.centers_)
    # On a grid everything is tied, and chance would decide.
    grid = np.array([(x, y) for x in range(6) for y in range(6)])
    a_grid, b_grid = (EventClustering(9, preference=-1.0).fit(grid).labels_ for _ in range(2))
    np.testing.assert_array_equal(a_grid, b_grid)
    refitted = clone(a).fit(_blobs(0)[0]).fit(points)
    np.testing.assert_array_equal(refitted.labels_, a.labels_)


def test_precomputed_similarities_are_the_distances_they_are():
    points, _ = _blobs(5, 6, spread=1.5)
    similarity = -((points[:, None] - points) ** 2).sum(axis=2)
    a = EventClustering(4).fit(points)
    b = EventClustering(4, affinity="precomputed").fit(similarity)
    assert _partition(a.labels_) == _partition(b.labels_)


def test_similarities_need_not_be_symmetric():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 8)
    similarity = np.where(truth[:, None] == truth, 5.0, 0.0) + rng.random((24, 24))
    model = EventClustering(3, affinity="precomputed", preference=0.0).fit(similarity)
    assert _partition(model.labels_) == _partition(truth)


def test_visits_decide_what_is_merged():
    points, truth = _blobs(1, 3)
    few = np.where(truth == 0, 0.001, 1.0)
    for rare in range(3):
        labels = EventClustering(2).fit(points, visits=np.where(truth == rare, 1e-3, 1.0)).labels_
        kept = [k for k in range(3) if k != rare]
        assert labels[truth == kept[0]][0] != labels[truth == kept[1]][0]
    assert _partition(EventClustering(3).fit(points, visits=few).labels_) == _partition(truth)


def test_samples_that_coincide_are_one_cluster():
    model = EventClustering().fit(np.ones((9, 2)))
    assert model.labels_.tolist() == [0] * 9
    np.testing.assert_array_equal(model.centers_, [[1.0, 1.0]])


def test_states_that_are_equally_dissimilar_stay_apart():
    model = EventClustering(affinity="precomputed").fit(np.eye(5))
    assert len(_partition(model.labels_)) == 5


def test_clusters_that_do_not_settle_still_come_down_to_max_events():
    points = np.random.default_rng(0).normal(size=(40, 2))
    model = EventClustering(3, max_iter=2).fit(points)
    assert len(np.unique(model.labels_)) == 3


@pytest.mark.parametrize(
    ("model", "x", "message"),
    [
        (EventClustering(0), np.ones((3, 2)), "max_events=0; at least one"),
        (EventClustering(affinity="precomputed"), np.ones((3, 2)), r"square, got shape \(3, 2\)"),
        (EventClustering(), np.full((3, 2), np.nan), "NaN"),
        (EventClustering(), np.ones((8001, 1)), "8001 samples need .* GB .*at most 8000"),
        (EventClustering(affinity="cosine"), np.ones((3, 2)), "affinity"),
    ],
)
def test_bad_input_is_explained(model, x, message):
    with pytest.raises(ValueError, match=message):
        model.fit(x)


def test_predict_needs_vectors_and_a_fit():
    with pytest.raises(NotFittedError):
        EventClustering().predict(np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"predict needs vectors.*labels_"):
        EventClustering(affinity="precomputed").fit(np.eye(3)).predict(np.eye(3))
