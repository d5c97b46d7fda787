"""Events that are regions of vectors or pictures: clusters of their successor features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from align_rudder._compile import njit
from align_rudder.episodes import Episode, Tree, tree_index
from align_rudder.events.base import SHAPES, NumberEvents, RegionEvents, check_labels, check_some
from align_rudder.events.goals import GOAL_KEYS, GOALS, goal_names, goal_numbers, goal_width
from align_rudder.events.names import region_names
from align_rudder.events.observations import (
    NoNumberError,
    check_keys,
    check_width,
    common_shapes,
    component_names,
    flat,
    leaves,
    numbers,
)
from align_rudder.events.projection import CHUNK, WIDE, places_of_sample, principal_axes
from align_rudder.events.successor import successor_features
from align_rudder.files import (
    LARGEST,
    Floats,
    Ints,
    Many,
    Maybe,
    Number,
    Text,
    Whole,
    encode_symbol,
)
from align_rudder.sequences import NO_EVENT

__all__ = ["FeatureEvents"]

_COMPARED, _NEARLY = 500, 0.99


@njit(cache=True)
def _regions(z, centres, width, weights, exemplars, labels, radii, unknown):
    """Return the event of each row of standard numbers, as `FeatureEvents` says."""
    out = np.empty(len(z), np.int64)
    phi, psi = np.empty(len(centres)), np.empty(weights.shape[1])
    for i in range(len(z)):
        nearest, at = np.inf, 0
        for r in range(len(centres)):
            distance = 0.0
            for k in range(z.shape[1]):
                distance += (z[i, k] - centres[r, k]) ** 2
            phi[r] = distance
            if distance < nearest:
                nearest, at = distance, r
        if nearest > radii[at] ** 2:
            out[i] = unknown
            continue
        total = 0.0
        for r in range(len(centres)):
            phi[r] = np.exp(-(phi[r] - nearest) / (2 * width))
            total += phi[r]
        psi[:] = 0.0
        for r in range(len(centres)):
            for k in range(len(psi)):
                psi[k] += phi[r] / total * weights[r, k]
        best = np.inf
        for x in range(len(exemplars)):
            distance = 0.0
            for k in range(len(psi)):
                distance += (psi[k] - exemplars[x, k]) ** 2
                if distance >= best:
                    break
            if distance < best:
                best = distance
                out[i] = labels[x]
    return out


def _between(episodes: Sequence[np.ndarray]) -> float:
    """Return how far a state of one episode is from the nearest of the others, nearly at most."""
    from sklearn.metrics import euclidean_distances

    rows = np.concatenate(episodes)
    owner = np.repeat(np.arange(len(episodes)), [len(e) for e in episodes])
    some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _COMPARED)).astype(int))
    distance = euclidean_distances(rows[some])
    same = owner[some, None] == owner[some]
    distance[same if len(np.unique(owner[some])) > 1 else np.eye(len(some), dtype=bool)] = np.inf
    nearest = distance.min(axis=1)
    return float(np.quantile(nearest[np.isfinite(nearest)], _NEARLY)) if len(some) > 1 else 0.0


class FeatureEvents(NumberEvents, RegionEvents):
    """Vector states, clustered by their successor features; an event is a cluster entered.

    The features φ(s) are memberships in `n_features` regions of the demonstrations (soft
    k-means); their discounted sums ψ(s) say where a state leads. States with similar ψ are one
    event, named by its coordinates. A state that is far from all that demonstrations showed is the
    unknown event, which earns nothing. What a random policy reaches anyway is no event.

    Pictures and other wide observations are reduced to a few principal components first.

    Args:
        max_events: The most events.
        keys: For dict observations, the entries used; None for all.
        gamma: Discount of the successor features.
        n_features: Number of regions.
        max_samples: The most states that are clustered.
        seed: Seed of k-means.
        goal: For observations with a goal, "difference" (what was achieved less what is desired,
            and the distance) or "distance" alone; `keys` are then the two entries, as
            gymnasium-robotics names them if not given.
        radius: How far from the nearest region a state may be and still count as of it: so many
            times as far as states of the demonstrations are from those of the other ones, or from
            their own region, if that is more. None: however far.
        max_random: A cluster that more than this share of the random episodes enter is no event.
        beginning: Where there are no random episodes, this first share of every demonstration
            stands for them; 0 for nothing.
        rank: The most principal components of wide observations (more than 256 numbers).

    Example:
        >>> path = [[0.0, 0.0]] * 5 + [[9.0, 0.0]] * 5 + [[9.0, 9.0]] * 5
        >>> demos = [Episode(path, [0] * 14, [0] * 13 + [1]) for _ in range(2)]
        >>> events = FeatureEvents(3, gamma=0.9).fit(demos)
        >>> events.symbols_
        ['x[0]≈0 x[1]≈0', 'x[0]≈9 x[1]≈0', 'x[0]≈9 x[1]≈9']
        >>> int(events.start_event(np.array([500.0, 0.0])))  # an event never seen
        3
    """

    PARAMETERS: ClassVar = {
        "max_events": Whole(1),
        "keys": Maybe(Many(Text())),
        "gamma": Number(0, 1),
        "n_features": Whole(1),
        "max_samples": Whole(1),
        "seed": Whole(0, 2**32 - 1),
        "goal": Maybe(GOALS),
        "radius": Maybe(Number(0)),
        "max_random": Number(0, 1),
        "beginning": Number(0, 1),
        "rank": Whole(1),
    }
    LATER: ClassVar = ("goal", "radius", "max_random", "beginning", "rank")
    HEADER: ClassVar = {"shapes": SHAPES, "symbols": Many(Text())}
    ARRAYS: ClassVar = {
        "mean": Floats("width"),
        "scale": Floats("width", low=1 / LARGEST),
        "basis": Floats("width", "components", optional=True),
        "regions": Floats("regions", "components"),
        "radii": Floats("regions", low=0, optional=True),  # version 0.1 had none
        "width": Floats(low=1e-6),
        "weights": Floats("regions", "features"),
        "exemplars": Floats("exemplars", "features"),
        "labels": Ints("exemplars", low=NO_EVENT),
    }

    def __init__(
        self,
        max_events: int = 15,
        *,
        keys: Sequence[str] | None = None,
        gamma: float = 0.99,
        n_features: int = 64,
        max_samples: int = 400,
        seed: int = 0,
        goal: str | None = None,
        radius: float | None = 1.5,
        max_random: float = 0.2,
        beginning: float = 0.0,
        rank: int = 32,
    ) -> None:
        self.max_events = max_events
        self.keys = check_keys(GOAL_KEYS if goal is not None and keys is None else keys)
        self.gamma = gamma
        self.n_features = n_features
        self.max_samples = max_samples
        self.seed = seed
        self.goal = goal
        self.radius = radius
        self.max_random = max_random
        self.beginning = beginning
        self.rank = rank

    def _vectors(self, tree: Tree, n: int) -> np.ndarray:
        rows = numbers(flat(tree, self.keys, n), "FeatureEvents")
        return rows if self.goal is None else goal_numbers(rows, self.goal)

    def _width(self, shapes: Mapping[str, Sequence[int]]) -> int:
        return goal_width(shapes, self.goal)

    def fit(self, episodes: Sequence[Episode], random_episodes: Sequence[Episode] = ()) -> Self:
        """Learn successor features and cluster the states of the demonstrations."""
        from sklearn.cluster import KMeans

        from align_rudder.events.clusters import EventClustering

        self.check_parameters()
        shapes = common_shapes(episodes, self.keys, random_episodes)
        width = self._width(shapes)
        arrays = self._standard(episodes, width)
        self._set(arrays, [], shapes)
        reduced = [self._rows_of(e, f"demonstration {i}") for i, e in enumerate(episodes)]
        by_chance = [self._rows_of(e, f"random episode {i}") for i, e in enumerate(random_episodes)]
        shown = np.concatenate(reduced)
        n_regions = min(self.n_features, len(np.unique(shown.round(9), axis=0)))
        found = KMeans(n_regions, random_state=self.seed).fit(shown)
        nearest = np.asarray(found.labels_)
        spread = np.linalg.norm(shown - found.cluster_centers_[nearest], axis=1)
        arrays["regions"] = found.cluster_centers_
        arrays["width"] = np.array(max(float((spread**2).mean()), 1e-6))
        arrays["radii"] = self._radii(reduced, spread, nearest)
        phi = [self._phi(rows) for rows in reduced]
        arrays["weights"] = successor_features(phi, self.gamma)
        psi = np.einsum("ij,jk->ik", np.concatenate(phi), arrays["weights"])
        chosen = np.unique(
            np.linspace(0, len(psi) - 1, min(len(psi), self.max_samples)).astype(int)
        )
        arrays["exemplars"] = psi[chosen]
        arrays["labels"] = EventClustering(self.max_events).fit(psi[chosen]).labels_
        self._set(arrays, [""] * (int(arrays["labels"].max()) + 1), shapes)
        self._leave_out(self._reached_anyway(reduced, by_chance))
        self.symbols_ = self._names(episodes, reduced)
        self.warn_if_many()
        return self

    def _standard(self, episodes: Sequence[Episode], width: int) -> dict[str, np.ndarray]:
        """Return mean and scale of the numbers, and where there are many a basis for them."""
        if width <= WIDE:
            shown = np.concatenate(self._vectors_of(episodes))
            mean, scale = shown.mean(axis=0), shown.std(axis=0)
            return {"mean": mean, "scale": np.where(scale > 1 / LARGEST, scale, 1.0)}
        places = places_of_sample([len(e) + 1 for e in episodes])
        sample = np.concatenate(
            [
                self._vectors(tree_index(e.observations, at), len(at))
                for e, at in zip(episodes, places, strict=True)
                if len(at)
            ]
        )
        mean = sample.mean(axis=0)
        sample -= mean
        basis = principal_axes(sample, self.rank)
        size = float(np.sqrt((sample @ basis).var(axis=0).mean()))
        return {
            "mean": mean,
            "scale": np.full(width, size if size > 1 / LARGEST else 1.0),
            "basis": basis,
        }

    def _rows_of(self, episode: Episode, name: str) -> np.ndarray:
        """Return the observations of an episode in standard numbers, a part of them at a time."""
        n, parts = len(episode) + 1, []
        step = CHUNK if "basis" in self.arrays_ else n
        for first in range(0, n, step):
            some = tree_index(episode.observations, np.s_[first : first + step])
            try:
                parts.append(self._reduced(self._vectors(some, min(step, n - first))))
            except NoNumberError as error:
                raise NoNumberError.at(error.row + first, name) from None
        return np.concatenate(parts)

    def _reduced(self, vectors: np.ndarray) -> np.ndarray:
        standard = (vectors - self.arrays_["mean"]) / self.arrays_["scale"]
        if "basis" not in self.arrays_:
            return standard
        # einsum, not BLAS: a row's result must not depend on how many rows there are.
        return np.einsum("ij,jk->ik", standard, self.arrays_["basis"])

    def _radii(
        self, reduced: Sequence[np.ndarray], spread: np.ndarray, labels: np.ndarray
    ) -> np.ndarray:
        """Return how far from each region a state may be (R,)."""
        n = int(labels.max()) + 1
        if self.radius is None:
            return np.full(n, LARGEST)
        radii = np.full(n, self.radius * _between(reduced))
        np.maximum.at(radii, labels, max(self.radius, 1.0) * spread)
        return radii * (1 + 1e-6) + 1e-6

    def _phi(self, rows: np.ndarray) -> np.ndarray:
        """Return the soft memberships of rows in the regions."""
        a = self.arrays_
        distance = np.zeros((len(rows), len(a["regions"])))
        for k in range(rows.shape[1]):
            distance += (rows[:, k, None] - a["regions"][:, k]) ** 2
        logits = -(distance - distance.min(axis=1, keepdims=True)) / (2 * a["width"])
        weights = np.exp(logits)
        return weights / weights.sum(axis=1, keepdims=True)

    def _reached_anyway(
        self, reduced: Sequence[np.ndarray], by_chance: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Return the clusters that too many random episodes enter."""
        contrast = by_chance
        if not contrast and self.beginning > 0:
            contrast = [rows[: 1 + int(self.beginning * (len(rows) - 1))] for rows in reduced]
        entered = np.zeros(self.n_events + 1)
        for rows in contrast:
            entered[np.unique(self._events_of(rows))] += 1
        return np.flatnonzero(entered[:-1] > self.max_random * max(len(contrast), 1))

    def _leave_out(self, events: np.ndarray) -> None:
        """Make some clusters no events, and number the others anew."""
        kept = np.setdiff1d(np.arange(self.n_events), events)
        number = np.full(self.n_events, NO_EVENT)
        number[kept] = np.arange(len(kept))
        self.arrays_["labels"] = number[self.arrays_["labels"]]
        self._set(self.arrays_, [""] * len(kept), self.shapes_ or {})

    def _names(self, episodes: Sequence[Episode], reduced: Sequence[np.ndarray]) -> list[str]:
        """Return a name for each event: its coordinates, of pictures where one may look at it."""
        labels = [self._events_of(rows) for rows in reduced]
        if "basis" in self.arrays_:
            found = {}
            for i, of_episode in enumerate(labels):
                for t, event in enumerate(of_episode.tolist()):
                    found.setdefault(event, f"as in demonstration {i}, step {t}")
            return [found.get(e, f"region {e}") for e in range(self.n_events)]
        names = component_names(episodes[0].observations, self.keys)
        if self.goal is not None:
            names = goal_names(len(names) // 2, self.goal)
        vectors = np.concatenate(self._vectors_of(episodes))
        return region_names(vectors, np.concatenate(labels), self.n_events, names)

    def _set(
        self, arrays: dict[str, np.ndarray], symbols: list[str], shapes: dict[str, list[int]]
    ) -> None:
        self.arrays_, self.symbols_, self.shapes_ = arrays, symbols, shapes

    def _events_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the events of standard numbers."""
        a = self.arrays_
        return _regions(
            np.ascontiguousarray(rows),
            a["regions"],
            float(a["width"]),
            a["weights"],
            a["exemplars"],
            a["labels"],
            a["radii"],
            self.n_events,
        )

    def start_events(self, obs: Tree) -> np.ndarray:
        n = len(leaves(obs, self.keys)[0])
        if "basis" not in self.arrays_ or n <= CHUNK:
            return self._events_of(self._reduced(self._vectors(obs, n)))
        parts = [tree_index(obs, np.s_[i : i + CHUNK]) for i in range(0, n, CHUNK)]
        return np.concatenate([self.start_events(part) for part in parts])

    def start_event(self, obs: Any) -> int:
        rows = self._row(obs) if self.goal is None else self._vectors(obs, 1)
        return int(self._events_of(self._reduced(rows))[0])

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        symbols = [encode_symbol(s) for s in self.symbols_]
        header = {"parameters": self.parameters(), "shapes": self.shapes_, "symbols": symbols}
        return header, self.arrays_

    def _restore(self, header: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        width = len(arrays["mean"])
        if self.goal is None:
            check_width(header["shapes"], width)
        elif self._width(header["shapes"]) != width:
            raise ValueError(f"a goal of {header['shapes']} does not make {width} numbers")
        if "basis" not in arrays and arrays["regions"].shape[1] != width:
            raise ValueError(f"regions of {arrays['regions'].shape[1]} numbers, not {width}")
        check_labels(arrays["labels"], len(header["symbols"]))
        for name in ("regions", "exemplars"):
            check_some(arrays[name], name)
        if "radii" not in arrays:
            self.radius, self.max_random = None, 1.0
            arrays = {**arrays, "radii": np.full(len(arrays["regions"]), LARGEST)}
        self._set(arrays, list(header["symbols"]), header["shapes"])
