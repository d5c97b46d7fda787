"""Clustering into few events: affinity propagation, then the least visited are merged."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import AffinityPropagation
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import euclidean_distances
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

__all__ = ["EventClustering", "merge_least_visited"]

_MAX_SAMPLES = 8000


def merge_least_visited(
    similarity: np.ndarray, labels: np.ndarray, visits: np.ndarray, max_events: int
) -> np.ndarray:
    """Merge the least visited cluster into its most similar one until `max_events` are left.

    Merging the most similar pair first would chain whole regions into one event; this keeps what
    is visited often apart.

    Args:
        similarity: Similarity of each pair of samples (n, n); need not be symmetric.
        labels: Cluster of each sample.
        visits: How often each sample was seen.
        max_events: Number of clusters to come down to.

    Returns:
        New labels 0…k−1, in the order in which clusters first occur.
    """
    labels = np.unique(labels, return_inverse=True)[1]
    member = np.eye(labels.max() + 1)[:, labels]
    total = member @ ((similarity + similarity.T) / 2) @ member.T
    size, weight = member.sum(axis=1), np.bincount(labels, weights=visits)
    alive = np.ones(len(size), bool)
    into = np.arange(len(size))
    while alive.sum() > max_events:
        candidates = np.flatnonzero(alive)
        source = candidates[np.argmin(weight[candidates])]
        others = candidates[candidates != source]
        mean = total[source, others] / (size[source] * size[others])
        target = others[np.argmax(mean)]
        total[target] += total[source]
        total[:, target] += total[:, source]
        size[target] += size[source]
        weight[target] += weight[source]
        alive[source] = False
        into[into == source] = target
    merged = into[labels]
    order = {label: i for i, label in enumerate(dict.fromkeys(merged.tolist()))}
    return np.array([order[label] for label in merged.tolist()])


class EventClustering(ClusterMixin, BaseEstimator):
    """Affinity propagation, brought down to a given number of events.

    Follows scikit-learn's contract. The number of clusters need not be known; if more than
    `max_events` are found, the least visited is merged into its most similar one, again and again.

    Args:
        max_events: The most clusters to return.
        damping: Damping of affinity propagation; raised in steps up to 0.95 if it does not settle.
        max_iter: The most iterations.
        preference: Preference of each sample to be an exemplar; None for the median similarity.
        affinity: "euclidean" (negative squared distance) or "precomputed" similarities, which
            need not be symmetric.

    Attributes:
        labels_: Cluster of each sample.
        centers_: Mean of each cluster ("euclidean" only).
        n_iter_: Iterations used.
    """

    def __init__(
        self,
        max_events: int = 15,
        *,
        damping: float = 0.5,
        max_iter: int = 1000,
        preference: float | None = None,
        affinity: Literal["euclidean", "precomputed"] = "euclidean",
    ) -> None:
        self.max_events = max_events
        self.damping = damping
        self.max_iter = max_iter
        self.preference = preference
        self.affinity: Literal["euclidean", "precomputed"] = affinity

    def __sklearn_tags__(self):
        """Tell scikit-learn that X may be a similarity matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.affinity == "precomputed"
        return tags

    def fit(self, X: Any, y: Any = None, visits: Any = None) -> EventClustering:
        """Cluster samples (n, d), or a similarity matrix (n, n).

        Args:
            X: Samples or similarities.
            y: Ignored, as scikit-learn wants it.
            visits: How often each sample was seen; it decides only what is merged.
        """
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=1)
        n = len(X)
        weights = _check_sample_weight(visits, X, dtype=np.float64)
        if self.affinity not in ("euclidean", "precomputed"):
            raise ValueError(
                f'affinity={self.affinity!r} is not known; use "euclidean" or "precomputed"'
            )
        if self.max_events < 1:
            raise ValueError(f"max_events={self.max_events}; at least one event is needed")
        if n > _MAX_SAMPLES:
            raise ValueError(
                f"{n} samples need {5 * n * n * 8 / 2**30:.1f} GB to cluster; at most "
                f"{_MAX_SAMPLES} are taken. Use fewer distinct states (fewer keys)"
            )
        if self.affinity == "precomputed":
            if X.shape[0] != X.shape[1]:
                raise ValueError(f"a similarity matrix must be square, got shape {X.shape}")
            similarity = X
        else:
            similarity = -euclidean_distances(X, squared=True)
        labels = self._propagate(similarity)
        self.labels_ = merge_least_visited(similarity, labels, weights, self.max_events)
        if self.affinity == "euclidean":
            member = np.eye(self.labels_.max() + 1)[:, self.labels_]
            self.centers_ = member @ X / member.sum(axis=1, keepdims=True)
        return self

    def _propagate(self, similarity: np.ndarray) -> np.ndarray:
        n = len(similarity)
        self.n_iter_ = 0
        if n == 1:
            return np.zeros(1, int)
        off = similarity[~np.eye(n, dtype=bool)]
        if np.ptp(off) == 0:
            # All pairs alike: one cluster if they coincide, each its own if not.
            alike = self.affinity == "euclidean" and off[0] == 0
            return np.zeros(n, int) if alike else np.arange(n)
        dampings = [self.damping, *(d for d in (0.7, 0.9, 0.95) if d > self.damping)]
        for damping in dampings:
            model = AffinityPropagation(
                damping=damping,
                max_iter=self.max_iter,
                preference=self.preference,
                affinity="precomputed",
                random_state=0,
            )
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                model.fit(similarity)
            self.n_iter_ = int(model.n_iter_)
            settled = not any(issubclass(w.category, ConvergenceWarning) for w in caught)
            if settled and model.labels_.min() >= 0:
                return np.asarray(model.labels_)
        # Still oscillating: begin with every sample on its own and let the merging decide.
        return np.arange(n)

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster whose centre is nearest ("euclidean" only)."""
        check_is_fitted(self, "labels_")
        if self.affinity != "euclidean":
            raise ValueError('predict needs vectors; with affinity="precomputed" use labels_')
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return euclidean_distances(X, self.centers_, squared=True).argmin(axis=1)
