"""(I) Events of MineRL: changes of the inventory, with the picture and the hand as company.

A state is a vector of two blocks: what is owned (the counts of `ITEMS`, the diamond, the item in
the hand as one-hot) and, if there are any, the features of the picture. Its changes are clustered:

1.  Both blocks are brought to the same information, as the paper has it: the same number of
    components and the same variance. Every count is first divided by its root mean square change
    over all steps of the demonstrations, so that one diamond weighs as much as all the cobblestone.
    Features of pictures are reduced to at most as many principal components (of their changes) as
    the first block has. Then each block is divided by the root of its mean squared length.
2.  Changes that are the same in the inventory begin as one cluster, with their mean as its centre.
    Within such a cluster the inventory does not vary and the picture does, so measured by what
    varies inside of clusters (as linear discriminant analysis does) the inventory decides.
    Steps at which only the picture or the hand changes, by far the largest cluster, are no event,
    nor is any other cluster with too large a share of all steps.
3.  While there are too many clusters, the smallest (in the fewest demonstrations, then the fewest
    steps) is merged into the most similar one that gains the same, or becomes no event if nothing
    that gains the same is more similar. Here the picture has its say. The diamond is never merged
    into something else.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from align_rudder.episodes import Episode, Tree
from align_rudder.events.base import SHAPES, NumberEvents, check_labels
from align_rudder.events.deltas import few_events, number_events, same_information
from align_rudder.events.losses import LOSS_ARRAYS, Losses, find_losses, named
from align_rudder.events.observations import check_width, common_shapes, leaves, numbers
from align_rudder.files import Floats, Ints, Many, Maybe, Number, Text, Whole
from align_rudder.minerl.spaces import HELD, ITEMS
from align_rudder.sequences import NO_EVENT

__all__ = ["OWNED", "InventoryEvents", "change_name"]

OWNED = (*ITEMS, "diamond")
"""What an event can be a change of."""

_N = len(OWNED)


def change_name(change: np.ndarray, weights: np.ndarray | None = None) -> str:
    """Return a change of `OWNED` in words: what was gained, then what was spent.

    Args:
        change: The change of each of `OWNED` (19,), whole numbers.
        weights: How much each counts; what changed most comes first.

    Example:
        >>> change = np.zeros(19, int)
        >>> change[OWNED.index("planks")], change[OWNED.index("log")] = 4, -1
        >>> change_name(change)
        'planks+4 log-1'
    """
    told = np.abs(change) * (1.0 if weights is None else weights)
    order = sorted(np.flatnonzero(change), key=lambda j: (change[j] < 0, -told[j], j))
    return " ".join(f"{OWNED[j]}{int(change[j]):+d}" for j in order)


class InventoryEvents(NumberEvents):
    """Changes of the inventory, clustered together with those of picture and hand.

    Episodes are those of `episode_of`: observations with the entries `inventory`, `equipped` and
    `diamond`, and one more if `features` names it. See the module's notes for what is done.
    A change that the demonstrations never showed is the event of the most similar known change that
    gains nothing else than it does (for mere losses: loses nothing else): two logs at once are a
    log, but an axe is no pickaxe. If there is none, it is no event.

    Args:
        max_events: The most events.
        features: Name of the entry with the features of the picture; None to do without.
        max_share: A cluster with more than this share of all steps is no event.

    Example:
        >>> inventory = np.zeros((6, 18), int)
        >>> inventory[:, ITEMS.index("log")] = [0, 1, 2, 2, 1, 1]
        >>> inventory[:, ITEMS.index("planks")] = [0, 0, 0, 0, 4, 4]
        >>> observations = {"inventory": inventory, "equipped": [0] * 6, "diamond": [0] * 5 + [1]}
        >>> demos = [Episode(observations, [0] * 5, [0, 0, 0, 0, 1024])] * 2
        >>> events = InventoryEvents(max_share=0.5).fit(demos)
        >>> events.symbols_
        ['log+1', 'planks+4 log-1', 'diamond+1']
        >>> events.encode(demos[0]).events
        array([ 0,  0, -1,  1,  2])
    """

    PARAMETERS: ClassVar = {
        "max_events": Whole(1),
        "features": Maybe(Text()),
        "max_share": Number(above=0, high=1),
    }
    HEADER: ClassVar = {"module": Text(), "shapes": SHAPES, "symbols": Many(Text())}
    ARRAYS: ClassVar = {
        "projection": Floats("width", "components"),
        "kinds": Ints("kinds", _N, low=-(2**62)),
        "points": Floats("kinds", "components"),
        "labels": Ints("kinds", low=NO_EVENT),
        **LOSS_ARRAYS,
    }

    def __init__(
        self, max_events: int = 20, *, features: str | None = None, max_share: float = 0.25
    ) -> None:
        self.max_events = max_events
        self.features = features
        self.max_share = max_share

    @property
    def keys(self) -> list[str]:
        """The entries of an observation that are used."""
        return ["inventory", "diamond", "equipped", *([self.features] if self.features else [])]

    def _vectors(self, tree: Tree, n: int) -> np.ndarray:
        """Return n states as rows: what is owned, the hand as one-hot, the picture's features."""
        parts = [leaf.reshape(n, -1) for leaf in leaves(tree, self.keys)]
        held = parts[2]
        if held.shape[1] != 1 or held.dtype.kind not in "iu" or not np.isin(held, _HANDS).all():
            raise ValueError(
                f"equipped is {held.dtype} of shape {held.shape}, such as {held.ravel()[:3]}; an "
                f"index in HELD is needed, 0 to {len(HELD) - 1}, as episode_of gives it"
            )
        return numbers(np.hstack([*parts[:2], held == _HANDS, *parts[3:]]), type(self).__name__)

    def fit(self, episodes: Sequence[Episode], random_episodes: Sequence[Episode] = ()) -> Self:
        """Find the kinds of change in the demonstrations."""
        self.check_parameters()
        shapes = common_shapes(episodes, self.keys)
        if shapes["inventory"] != [len(ITEMS)] or shapes["diamond"]:
            raise ValueError(
                f"an observation has inventory {shapes['inventory']} and diamond "
                f"{shapes['diamond']}; {[len(ITEMS)]} counts and a single 0 or 1 are needed, as "
                "episode_of gives them"
            )
        self.shapes_, self.losses_ = shapes, None
        deltas = np.concatenate([np.diff(rows, axis=0) for rows in self._vectors_of(episodes)])
        self._projection = _projection(deltas)
        of = np.repeat(np.arange(len(episodes)), [len(e) for e in episodes])
        changed = (deltas[:, :_N] != 0).any(axis=1)
        self._kinds, inverse, visits = np.unique(
            deltas[changed, :_N].astype(np.int64), axis=0, return_inverse=True, return_counts=True
        )
        inverse = inverse.ravel()
        z = deltas[changed] @ self._projection
        self._points = np.array([np.bincount(inverse, c, len(visits)) for c in z.T]).T
        self._points = self._points / visits[:, None]
        self._labels, n_events = np.empty(0, np.int64), 0
        if len(visits):
            size = np.array([len(np.unique(of[changed][inverse == i])) for i in range(len(visits))])
            labels = few_events(
                self._points,
                np.arange(len(visits)),
                visits,
                len(deltas),
                self.max_events,
                self.max_share,
                size=_sizes(self._kinds, size, visits),
                allowed=_may_merge(self._kinds),
            )
            self._labels, n_events = number_events(labels, inverse)
        weights = np.abs(self._projection[:_N]).max(axis=1)
        tops = [np.where(self._labels == e, visits, -1).argmax() for e in range(n_events)]
        self.symbols_ = [change_name(self._kinds[top], weights) for top in tops]
        self._index()
        self.warn_if_many()
        return self

    def with_losses(self, episodes: Sequence[Episode]) -> Self:
        """Return the encoder with events for losing what these demonstrations gain."""
        weights = np.abs(self._projection[:_N]).max(axis=1)
        losses, symbols = find_losses(
            self._vectors_of(episodes),
            [self.encode(e).events for e in episodes],
            self.n_events,
            lambda change: change_name(change[:_N], weights),
            width=_N,
        )
        if losses is None:
            return self
        found = copy.copy(self)
        found.losses_, found.symbols_ = losses, [*self.symbols_, *symbols]
        return found

    def _index(self) -> None:
        """Make what is looked up when encoding."""
        self._label_of = {kind.tobytes(): int(e) for kind, e in zip(self._kinds, self._labels)}
        self._marks = _marks(self._kinds)

    def transition_events(
        self,
        obs: Tree,
        actions: Tree,
        rewards: np.ndarray,
        next_obs: Tree,
        infos: Sequence[Mapping[str, Any]],
    ) -> np.ndarray:
        """Return the events of a batch of transitions."""
        n = len(leaves(next_obs, self.keys)[0])
        deltas = self._vectors(next_obs, n) - self._vectors(obs, n)
        events = np.full(n, NO_EVENT, np.int64)
        for t in np.flatnonzero((deltas[:, :_N] != 0).any(axis=1)):
            events[t] = self._event(deltas[t])
        if self.losses_ is not None:
            self.losses_.mark(deltas, events)
        return events

    def transition_event(
        self, obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
    ) -> int:
        """Return the event of one transition."""
        deltas = self._vectors(next_obs, 1) - self._vectors(obs, 1)
        event = np.array([self._event(deltas[0]) if deltas[0, :_N].any() else NO_EVENT])
        if self.losses_ is not None:
            self.losses_.mark(deltas, event)
        return int(event[0])

    def _event(self, delta: np.ndarray) -> int:
        """Return the event of a change; if it was never shown, that of the most similar one."""
        kind = delta[:_N].astype(np.int64)
        known = self._label_of.get(kind.tobytes())
        if known is not None:
            return known
        candidates = np.flatnonzero(~(self._marks & ~_marks(kind[None])).any(axis=1))
        if not len(candidates):
            return NO_EVENT
        distance = ((self._points[candidates] - delta @ self._projection) ** 2).sum(axis=1)
        return int(self._labels[candidates[distance.argmin()]])

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what to save."""
        header = {
            "module": __name__,
            "parameters": self.parameters(),
            "shapes": self.shapes_,
            "symbols": list(self.symbols_),
        }
        return header, {
            "projection": self._projection,
            "kinds": self._kinds,
            "points": self._points,
            "labels": self._labels,
            **({} if self.losses_ is None else self.losses_.arrays()),
        }

    def _restore(self, header: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        shapes = header["shapes"]
        if [*shapes] != self.keys:
            raise ValueError(f"its observations have {[*shapes]}; {self.keys} are needed")
        check_width({**shapes, "equipped": [len(HELD)]}, len(arrays["projection"]))  # one-hot
        self.shapes_, symbols = shapes, list(header["symbols"])
        self.losses_ = Losses.restore(arrays, len(symbols))
        self.symbols_ = named(symbols, self.losses_)
        self._projection, self._points = arrays["projection"], arrays["points"]
        self._kinds = np.ascontiguousarray(arrays["kinds"])
        self._labels = check_labels(arrays["labels"], len(self.symbols_))
        self._index()


_HANDS = np.arange(len(HELD))


def _projection(deltas: np.ndarray) -> np.ndarray:
    """Return what brings what is owned and the picture to the same information (see the module)."""
    own = _N + len(HELD)
    rms = np.sqrt((deltas**2).mean(axis=0))
    scale = np.ones(deltas.shape[1])
    scale[:own] = np.where(rms[:own] > 0, 1.0 / np.maximum(rms[:own], 1e-300), 1.0)
    blocks = [np.arange(own), np.arange(own, deltas.shape[1])]
    blocks = [block for block in blocks if len(block)]
    return scale[:, None] * same_information(deltas * scale, blocks, own)


def _marks(kinds: np.ndarray) -> np.ndarray:
    """Return what makes each change what it is (n, 38): what it gains, or else what it loses."""
    gains = kinds > 0
    losses = (kinds < 0) & ~gains.any(axis=1, keepdims=True)
    return np.hstack([gains, losses])


def _may_merge(kinds: np.ndarray) -> np.ndarray:
    """Return which changes gain the same (n, n), one of them perhaps something besides."""
    marks = _marks(kinds)
    outside = np.asarray((marks[:, None] & ~marks[None]).any(axis=2))
    return ~(outside & outside.T)


def _sizes(kinds: np.ndarray, episodes: np.ndarray, visits: np.ndarray) -> np.ndarray:
    """Return the size of each change: how many demonstrations show it, then how many steps."""
    size = episodes + visits / (visits.sum() + 1.0)
    with_diamond = np.flatnonzero(kinds[:, OWNED.index("diamond")] > 0)
    if len(with_diamond):
        size[with_diamond[visits[with_diamond].argmax()]] = np.inf
    return size
