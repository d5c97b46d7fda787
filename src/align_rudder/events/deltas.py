"""Events that are changes: clusters of the differences of consecutive observations."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from align_rudder._compile import njit
from align_rudder.episodes import Episode, Tree, tree_index
from align_rudder.events.base import SHAPES, NumberEvents, check_labels, check_some
from align_rudder.events.losses import LOSS_ARRAYS, Losses, find_losses, named
from align_rudder.events.observations import (
    check_keys,
    check_width,
    common_shapes,
    component_names,
    flat,
    leaves,
    numbers,
)
from align_rudder.events.projection import CHUNK, WIDE, places_of_sample, principal_axes
from align_rudder.files import LARGEST, Each, Floats, Ints, Many, Maybe, Number, Text, Whole
from align_rudder.sequences import NO_EVENT

__all__ = ["DeltaEvents"]

_RANK = 32  # components of each part of wide observations
_MAX_PROPAGATED = 400  # affinity propagation may take a thousand iterations over all pairs


@njit(cache=True)
def _nearest(deltas, projection, exemplars, labels, radii, unknown):
    """Return the label of the exemplar nearest to each projected delta; no change, no event.

    What is farther from it than its radius is unknown, unless the exemplar is of no event.
    """
    n, d = deltas.shape
    out = np.empty(n, np.int64)
    z = np.empty(projection.shape[1])
    for i in range(n):
        changed = False
        z[:] = 0.0
        for j in range(d):
            if deltas[i, j] != 0.0:
                changed = True
                for k in range(len(z)):
                    z[k] += deltas[i, j] * projection[j, k]
        if not changed:
            out[i] = -1
            continue
        best, at = np.inf, 0
        for x in range(len(exemplars)):
            distance = 0.0
            for k in range(len(z)):
                distance += (z[k] - exemplars[x, k]) ** 2
            if distance < best:
                best, at = distance, x
        out[i] = labels[at]
        if out[i] >= 0 and best > radii[at] ** 2:
            out[i] = unknown
    return out


class DeltaEvents(NumberEvents):
    """Differences of consecutive observations, clustered; an event is each change that is seen.

    Made for inventories and other vectors or dicts of numbers. The parts of an observation (the
    entries of a dict; of a plain vector its components, or the given `parts`) are brought to the
    same variance. Changes that repeat exactly (counts of items) are clusters by themselves,
    continuous ones are clustered by affinity propagation; what differs by no more than the
    rounding of float32 is the same. The cluster of no change and very large
    clusters are no events; above `max_events` the rarest is merged into the most similar one, "no
    change" included. Of more than 256 numbers (pictures), few principal components are taken. A
    change that is far from all known ones is the unknown event, which earns nothing: 100 planks are
    not 4.

    Args:
        max_events: The most events.
        keys: For dict observations, the entries used; None for all.
        parts: For plain vectors, the parts as name -> (start, stop); None: each component.
        max_share: A cluster with more than this share of all steps is no event.
        max_samples: The most different changes to cluster (of continuous ones 400); above it,
            k-means goes first.
        radius: How far from a known change another one may be and still count as the same: so many
            times as far as that change is from no change at all, or as far as the demonstrations
            themselves are spread around it, if that is more. None: the nearest known change
            counts, however far.

    Example:
        >>> log, plank = [0, 1, 2, 2, 1, 1], [0, 0, 0, 0, 4, 4]
        >>> demos = [Episode({"log": log, "plank": plank}, [0] * 5, [0, 0, 0, 0, 1])] * 2
        >>> events = DeltaEvents().fit(demos)
        >>> events.symbols_
        ['log+1', 'plank+4 log-1']
        >>> events.encode(demos[0]).events
        array([ 0,  0, -1,  1, -1])
    """

    PARAMETERS: ClassVar = {
        "max_events": Whole(1),
        "keys": Maybe(Many(Text())),
        "parts": Maybe(Each(Many(Whole(), 2, 2))),
        "max_share": Number(0),
        "max_samples": Whole(1),
        "radius": Maybe(Number(0)),
    }
    LATER: ClassVar = ("radius",)
    HEADER: ClassVar = {"shapes": SHAPES, "symbols": Many(Text())}
    ARRAYS: ClassVar = {
        "projection": Floats("width", "components"),
        "exemplars": Floats("exemplars", "components"),
        "labels": Ints("exemplars", low=NO_EVENT),
        "radii": Floats("exemplars", low=0, optional=True),  # version 0.1 had none
        **LOSS_ARRAYS,
    }

    _too_often: tuple[str, float] | None = None

    def __init__(
        self,
        max_events: int = 20,
        *,
        keys: Sequence[str] | None = None,
        parts: Mapping[str, tuple[int, int]] | None = None,
        max_share: float = 0.5,
        max_samples: int = 1500,
        radius: float | None = 1.0,
    ) -> None:
        self.max_events = max_events
        self.keys = check_keys(keys)
        self.parts = None if parts is None else {k: (int(a), int(b)) for k, (a, b) in parts.items()}
        self.max_share = max_share
        self.max_samples = max_samples
        self.radius = radius

    def _vectors(self, tree: Tree, n: int) -> np.ndarray:
        return numbers(flat(tree, self.keys, n), "DeltaEvents")

    def fit(self, episodes: Sequence[Episode], random_episodes: Sequence[Episode] = ()) -> Self:
        """Find the kinds of change in the demonstrations."""
        self.check_parameters()
        self.shapes_, self.losses_ = common_shapes(episodes, self.keys), None
        names, parts = self._layout(episodes[0])
        wide = len(names) > WIDE and self.parts is None
        seen = None
        if wide:
            steps, told, rows = self._wide(episodes, parts)
        else:
            vectors = self._vectors_of(episodes)
            deltas = np.concatenate([np.diff(rows, axis=0) for rows in vectors])
            self._projection = same_information(deltas, parts, len(names))
            changed = (deltas != 0).any(axis=1)
            same = without_rounding(deltas, vectors, _precision(episodes, self.keys))
            told, steps = same[changed], len(deltas)
            rows = told @ self._projection
            seen = None if same is deltas else deltas[changed] @ self._projection
        z, first, inverse, counts = np.unique(
            rows.round(6), axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        groups, points, labels = np.arange(len(z)), z, np.full(len(z), NO_EVENT)
        if len(z):
            groups, points, labels = self._cluster(z, counts, steps)
            inverse = groups[inverse.ravel()]
        labels, n_events = number_events(labels, inverse)
        self._too_often = None
        if len(z) and not n_events:
            top = int(counts.argmax())
            change = told[first[top]]
            if not isinstance(change, str):
                change = _describe(change, self._projection, names)
            self._too_often = change, float(counts[top] / steps)
        symbols: list[Hashable] = []
        for e in range(n_events):
            members = np.flatnonzero(labels[groups] == e)
            top = members[counts[members].argmax()]
            change = told[first[top]]
            symbols.append(
                change if isinstance(change, str) else _describe(change, self._projection, names)
            )
        self.symbols_ = symbols
        self._exemplars = np.vstack([np.zeros((1, self._projection.shape[1])), points])
        self._labels = np.append(NO_EVENT, labels)
        self._radii = self._reach(z if seen is None else seen)
        self.warn_if_many()
        return self

    def advice_on_none(self) -> str:
        """Return what to do where the demonstrations hold no event: what was seen says it."""
        if self._too_often is None and len(self._exemplars) > 1:  # from a file, which has it not
            return super().advice_on_none()
        if self._too_often is None:
            return "Nothing that is looked at ever changes: choose other keys, or a function"
        change, share = self._too_often
        return (
            f"The most frequent change is {change!r}, at {share:.0%} of the steps. What happens at "
            f"more than max_share={self.max_share:g} of them marks nothing and is no event: if "
            "each time counts, as with an inventory, give events=DeltaEvents(max_share=1); if it "
            "is a clock, leave it out with keys=…"
        )

    def with_losses(self, episodes: Sequence[Episode]) -> Self:
        """Return the encoder with events for losing what these demonstrations gain."""
        names, _ = self._layout(episodes[0])
        losses, symbols = find_losses(
            self._vectors_of(episodes),
            [self.encode(e).events for e in episodes],
            self.n_events,
            lambda change: _describe(change, self._projection, names),
        )
        if losses is None:
            return self
        found = copy.copy(self)
        found.losses_, found.symbols_ = losses, [*self.symbols_, *symbols]
        return found

    def _wide(
        self, episodes: Sequence[Episode], parts: Sequence[np.ndarray]
    ) -> tuple[int, list[str], np.ndarray]:
        """Return the number of steps, and of each with a change where it is, and it projected.

        Each part is brought to a few principal components, found in a sample of the changes; not
        all of the changes are in memory at once.
        """

        def changes(episode: Episode, at: np.ndarray) -> np.ndarray:
            before, after = (tree_index(episode.observations, at + i) for i in (0, 1))
            return self._vectors(after, len(at)) - self._vectors(before, len(at))

        lengths = [len(e) for e in episodes]
        places = zip(episodes, places_of_sample(lengths), strict=True)
        sample = np.concatenate([changes(e, at) for e, at in places if len(at)])
        self._projection = low_rank_information(
            sample, parts if len(parts) < WIDE else [np.arange(sample.shape[1])]
        )
        told, rows = [], [np.empty((0, self._projection.shape[1]))]
        for i, episode in enumerate(episodes):
            for start in range(0, len(episode), CHUNK):
                at = np.arange(start, min(start + CHUNK, len(episode)))
                some = changes(episode, at)
                changed = (some != 0).any(axis=1)
                told += [f"as in demonstration {i}, step {t + 1}" for t in at[changed]]
                rows.append(some[changed] @ self._projection)
        return sum(lengths), told, np.concatenate(rows)

    def _reach(self, z: np.ndarray) -> np.ndarray:
        """Return how far from each exemplar a change may be, given those of the demonstrations."""
        if self.radius is None:
            return np.full(len(self._labels), LARGEST)
        radii = self.radius * np.linalg.norm(self._exemplars, axis=1)
        if len(z):
            at, distance = _closest(z, self._exemplars)
            np.maximum.at(radii, at, distance)
            for e in range(self.n_events):  # an event of several kinds of change is as wide as they
                own = z[self._labels[at] == e]
                if len(own):
                    spread = np.linalg.norm(own - own.mean(axis=0), axis=1).max()
                    radii[self._labels == e] = np.maximum(radii[self._labels == e], spread)
        return radii * (1 + 1e-6) + 1e-5  # exemplars are rounded

    def _layout(self, episode: Episode) -> tuple[list[str], list[np.ndarray]]:
        """Return the name of each component, and the components of each part."""
        names = component_names(episode.observations, self.keys)
        sizes = [int(np.prod(leaf.shape[1:])) for leaf in leaves(episode.observations, self.keys)]
        parts = np.split(np.arange(len(names)), np.cumsum(sizes)[:-1])
        if len(parts) == 1 and self.parts is None:
            parts = [np.array([i]) for i in parts[0]]
        elif self.parts is not None:
            parts = [np.arange(a, b) for a, b in self.parts.values()]
            covered = np.sort(np.concatenate(parts))
            if not np.array_equal(covered, np.arange(len(names))):
                raise ValueError(
                    f"parts={self.parts} must cover each of the {len(names)} components once"
                )
        return names, parts

    def _cluster(
        self, z: np.ndarray, counts: np.ndarray, steps: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the group of each different change, and centre and cluster of each group.

        The cluster is -1 for changes that are no events. Groups are single changes, or, where
        there are too many, what k-means makes of them.
        """
        from sklearn.cluster import KMeans, MiniBatchKMeans

        from align_rudder.events.clusters import EventClustering

        groups = np.arange(len(z))
        repeated = counts[counts > 1].sum() >= counts.sum() / 2
        limit = self.max_samples if repeated else min(self.max_samples, _MAX_PROPAGATED)
        if len(z) > limit:
            kind = KMeans if len(z) <= 20_000 else MiniBatchKMeans
            found = kind(limit, random_state=0).fit_predict(z, sample_weight=counts)
            groups = np.unique(np.asarray(found), return_inverse=True)[1]
        weight = np.bincount(groups, weights=counts)
        points = np.array([np.bincount(groups, weights=counts * c) for c in z.T]).T
        points /= weight[:, None]
        if repeated:
            start = np.arange(len(points))
        else:
            start = EventClustering(len(points)).fit(points, visits=weight).labels_
        labels = few_events(points, start, weight, steps, self.max_events, self.max_share)
        return groups, points, labels

    def transition_events(
        self,
        obs: Tree,
        actions: Tree,
        rewards: np.ndarray,
        next_obs: Tree,
        infos: Sequence[Mapping[str, Any]],
    ) -> np.ndarray:
        return self._events_between(obs, next_obs, len(leaves(next_obs, self.keys)[0]))

    def transition_event(
        self, obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
    ) -> int:
        return int(self._events_of(self._row(next_obs) - self._row(obs))[0])

    def _events_between(self, obs: Tree, next_obs: Tree, n: int) -> np.ndarray:
        """Return the events of n transitions."""
        return self._events_of(self._vectors(next_obs, n) - self._vectors(obs, n))

    def _events_of(self, deltas: np.ndarray) -> np.ndarray:
        """Return the events of changes."""
        if deltas.shape[1] != len(self._projection):
            check_width(self.shapes_ or {}, deltas.shape[1])
        events = _nearest(
            deltas, self._projection, self._exemplars, self._labels, self._radii, self.n_events
        )
        if self.losses_ is not None:
            self.losses_.mark(deltas, events)
        return events

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {
            "projection": self._projection,
            "exemplars": self._exemplars,
            "labels": self._labels,
            "radii": self._radii,
            **({} if self.losses_ is None else self.losses_.arrays()),
        }
        symbols = list(self.symbols_)
        return {
            "parameters": self.parameters(),
            "shapes": self.shapes_,
            "symbols": symbols,
        }, arrays

    def _restore(self, header: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        check_width(header["shapes"], len(arrays["projection"]))
        check_some(arrays["exemplars"], "exemplars")
        self.shapes_, symbols = header["shapes"], list(header["symbols"])
        self.losses_ = Losses.restore(arrays, len(symbols))
        self.symbols_ = named(symbols, self.losses_)
        self._projection, self._exemplars = arrays["projection"], arrays["exemplars"]
        self._labels = check_labels(arrays["labels"], len(self.symbols_))
        if "radii" not in arrays:
            self.radius = None
        self._radii = arrays.get("radii", np.full(len(self._labels), LARGEST))


def _precision(episodes: Sequence[Episode], keys: Sequence[str] | None) -> np.ndarray:
    """Return the relative precision of each component (d,); 0 for whole numbers and float64."""
    found = []
    for episode in episodes:
        some = []
        for leaf in leaves(episode.observations, keys):
            coarse = leaf.dtype.kind == "f" and leaf.dtype.itemsize < 8
            eps = float(np.finfo(leaf.dtype).eps) if coarse else 0.0
            some += [eps] * int(np.prod(leaf.shape[1:]))
        found.append(some)
    return np.max(np.array(found), axis=0)


def without_rounding(
    deltas: np.ndarray, vectors: Sequence[np.ndarray], precision: np.ndarray
) -> np.ndarray:
    """Return changes of which those are equal that differ by the rounding of float32 or float16.

    Args:
        deltas: Changes of all episodes, one after the other (n, d).
        vectors: The observations of each episode (T + 1, d).
        precision: Relative precision of each component (d,); those with 0 stay as they are, and so
            do those of whole numbers.

    Notes:
        A number x is known to ε|x|/2, a change from x to y so to ε·max(|x|, |y|). In the order of
        their size, changes join the smallest one of a group while they differ from it by no more
        than twice what both are known to; the most frequent one stands for all. Increases and
        decreases stay apart, and both from no change.

    Example:
        >>> x = np.linspace(0, 1, 21, dtype=np.float32)[:, None].astype(float)
        >>> same = without_rounding(np.diff(x, axis=0), [x], np.array([2.0**-23]))
        >>> len(np.unique(np.diff(x, axis=0))), len(np.unique(same))
        (6, 1)
    """
    out = deltas
    for j in np.flatnonzero(precision):
        if all((rows[:, j] == np.rint(rows[:, j])).all() for rows in vectors):
            continue
        size = [np.maximum(np.abs(rows[:-1, j]), np.abs(rows[1:, j])) for rows in vectors]
        known = 2 * precision[j] * np.concatenate(size)
        values, inverse, counts = np.unique(deltas[:, j], return_inverse=True, return_counts=True)
        within = np.zeros(len(values))
        np.maximum.at(within, inverse.ravel(), known)
        same = _representatives(values, within, counts)
        if not np.array_equal(same, values):
            out = deltas.copy() if out is deltas else out
            out[:, j] = same[inverse.ravel()]
    return out


@njit(cache=True)
def _representatives(values, within, counts):
    """Return for each value, in order, the most frequent one of its group."""
    out = values.copy()
    start = 0
    for i in range(1, len(values) + 1):
        if (
            i < len(values)
            and values[i] - values[start] <= within[i] + within[start]
            and (values[i] < 0.0 or values[start] > 0.0)
        ):
            continue
        top = start
        for k in range(start, i):
            if counts[k] > counts[top]:
                top = k
        out[start:i] = values[top]
        start = i
    return out


def _closest(z: np.ndarray, exemplars: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the exemplar nearest to each row, and its distance."""
    from sklearn.metrics import pairwise_distances_argmin

    at = np.asarray(pairwise_distances_argmin(z, exemplars))
    return at, np.linalg.norm(z - exemplars[at], axis=1)


def few_events(
    points: np.ndarray,
    start: np.ndarray,
    visits: np.ndarray,
    steps: int,
    max_events: int,
    max_share: float,
    *,
    size: np.ndarray | None = None,
    allowed: np.ndarray | None = None,
) -> np.ndarray:
    """Return the event of each point: small clusters merged, large ones left out (-1).

    Args:
        points: Kinds of change (n, k).
        start: The cluster of each.
        visits: How often each was seen.
        steps: Number of all steps.
        max_events: The most events; above it the smallest cluster is merged into the most similar
            one, "no change" included.
        max_share: A cluster with more than this share of all steps is no event.
        size: What makes a cluster small, if not its visits.
        allowed: Which points may share a cluster (n, n); None for all. Each may become "no change".
    """
    from sklearn.metrics import euclidean_distances

    from align_rudder.events.clusters import merge_least_visited

    share = np.bincount(start, weights=visits) / steps
    n_large = int((share > max_share).sum())
    # The last sample stands for "no change"; it can take others in but is never merged.
    with_none = np.vstack([points, np.zeros(points.shape[1])])
    similarity = -euclidean_distances(with_none, squared=True)
    if allowed is not None:
        similarity[:-1, :-1][~allowed] += len(similarity) ** 2 * (similarity.min() - 1.0)
    merged = merge_least_visited(
        similarity,
        np.append(start, start.max() + 1),
        np.append(visits if size is None else size, np.inf),
        max_events + n_large + 1,
    )
    share = np.bincount(merged[:-1], weights=visits, minlength=merged.max() + 1) / steps
    gone = (share > max_share) | (np.arange(len(share)) == merged[-1])
    return np.where(gone[merged[:-1]], NO_EVENT, merged[:-1])


def number_events(labels: np.ndarray, occurrences: np.ndarray) -> tuple[np.ndarray, int]:
    """Return labels renamed to 0…n−1 as they first occur, -1 where they do not, and n."""
    order = dict.fromkeys(label for label in labels[occurrences].tolist() if label >= 0)
    renamed = {label: i for i, label in enumerate(order)}
    return np.array([renamed.get(label, NO_EVENT) for label in labels.tolist()], np.int64), len(
        order
    )


def same_information(
    deltas: np.ndarray, parts: Sequence[np.ndarray], n_components: int
) -> np.ndarray:
    """Return the projection that gives all parts the same variance, and not too many components.

    Args:
        deltas: Changes (n, d).
        parts: The components of each part.
        n_components: The most components of a part; of larger ones the principal ones are taken.
    """
    blocks = []
    for part in parts:
        values = deltas[:, part]
        if len(part) > n_components:
            axes = np.linalg.svd(values, full_matrices=False)[2][:n_components].T
        else:
            axes = np.eye(len(part))
        block = np.zeros((deltas.shape[1], axes.shape[1]))
        block[part] = axes
        size = np.sqrt((((deltas @ block) ** 2).sum(axis=1)).mean())
        blocks.append(block / size if size > 0 else block)
    return np.hstack(blocks)


def low_rank_information(deltas: np.ndarray, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return a projection (d, k) of wide changes: each part in few components of one variance."""
    blocks = []
    for part in parts:
        axes = principal_axes(deltas[:, part], _RANK)
        size = np.sqrt(((deltas[:, part] @ axes) ** 2).sum(axis=1).mean())
        block = np.zeros((deltas.shape[1], axes.shape[1]))
        block[part] = axes / size if size > 0 else axes
        blocks.append(block)
    return np.hstack(blocks)


def _describe(delta: np.ndarray, projection: np.ndarray, names: Sequence[str]) -> str:
    """Return a change in words: its components, the most telling first."""
    weight = np.abs(delta) * np.abs(projection).max(axis=1)
    order = [j for j in np.argsort(-weight, kind="stable") if delta[j] != 0]
    text = " ".join(f"{names[j]}{delta[j]:+.3g}" for j in order[:3])
    return text + (" …" if len(order) > 3 else "")
