"""Which encoders come into question for observations, the one that their type suggests first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from align_rudder.episodes import Episode, tree_index
from align_rudder.events.base import EventEncoder
from align_rudder.events.deltas import DeltaEvents
from align_rudder.events.features import FeatureEvents
from align_rudder.events.goals import GOAL_KEYS, has_goal
from align_rudder.events.observations import flat, leaves
from align_rudder.events.projection import CHUNK, WIDE
from align_rudder.events.states import StateEvents

__all__ = ["by_type", "candidates", "is_continuous"]

_SIZES = (5, 10, 15)
_SHARES = (0.2, 0.5, 0.8, 0.95)  # of the random episodes that may enter a region
_FEW_SHARES = (0.2, 0.5)  # of pictures, which take longer
_LOOKED_AT = 2000  # steps, to see whether changes repeat
_OPTIONS: dict[str, Any] = {"max_samples": 200, "beginning": 0.5}


def by_type(episodes: Sequence[Episode]) -> EventEncoder:
    """Return the encoder that the type of the observations suggests.

    Whole numbers and strings alone are states (`StateEvents`); vectors and dicts of numbers are
    taken by their changes (`DeltaEvents`).
    """
    parts = leaves(episodes[0].observations)
    whole = all(part.dtype.kind in "biuUS" for part in parts)
    named = isinstance(episodes[0].observations, dict)
    if whole and not named and sum(int(np.prod(part.shape[1:])) for part in parts) <= 4:
        return StateEvents()
    return DeltaEvents()


def candidates(episodes: Sequence[Episode], chance_known: bool = False) -> list[EventEncoder]:
    """Return the encoders that come into question, the one their type suggests first.

    Args:
        episodes: The demonstrations.
        chance_known: Whether there are random episodes. If so, regions that many of them enter
            come into question too: what chance earns of the whole can be measured.

    Where that is the only one (texts, single whole numbers), it is alone. Dicts whose entries are
    of both kinds, those that repeat and those that hardly ever do, have changes of the one
    and regions of the other as well, and both together.
    """
    observations, first = episodes[0].observations, by_type(episodes)
    parts = leaves(observations)
    width, moves = sum(int(np.prod(part.shape[1:])) for part in parts), is_continuous(episodes)
    if any(part.dtype.kind not in "biuf" for part in parts) or (width < 2 and not moves):
        return [first]
    found: list[EventEncoder] = [] if width > WIDE and moves else [first]
    shares = (_FEW_SHARES if width > WIDE else _SHARES) if chance_known else _SHARES[:1]
    if has_goal(observations):
        both = list(GOAL_KEYS)
        found += _regions(_SIZES[1:], shares, keys=both, goal="difference")
        found += _regions(_SIZES[1:2], shares, keys=both, goal="distance")
        rest = sorted(observations.keys() - set(both))  # pyright: ignore[reportAttributeAccessIssue]
        return found + (_regions(_SIZES[1:], shares, keys=rest) if rest else [])
    if isinstance(observations, Mapping) and len(observations) > 1:
        moving = [key for key in sorted(observations) if is_continuous(episodes, key)]
        counted = sorted(observations.keys() - set(moving))
        if moving and counted:
            changes = DeltaEvents(keys=counted)
            regions = _regions(_SIZES, shares, keys=moving)
            return [*found, changes, *regions, *(changes + region for region in regions)]
    return found + _regions(_SIZES, shares)


def _regions(sizes: Sequence[int], shares: Sequence[float], **options: Any) -> list[EventEncoder]:
    """Return regions in several numbers; the most of them also where chance gets now and then."""
    few = [FeatureEvents(n, **_OPTIONS, **options) for n in sizes[:-1]]
    return [*few, *(FeatureEvents(sizes[-1], max_random=x, **_OPTIONS, **options) for x in shares)]


def is_continuous(episodes: Sequence[Episode], key: str | None = None) -> bool:
    """Return whether most changes of the observations, or of one entry, are never seen again."""
    seen: Counter[bytes] = Counter()
    for episode in episodes:
        tree: Any = episode.observations if key is None else episode.observations[key]  # pyright: ignore[reportCallIssue, reportArgumentType]
        if any(part.dtype.kind not in "biuf" for part in leaves(tree)):
            return False
        for first in range(0, len(episode), CHUNK):
            some = tree_index(tree, np.s_[first : first + CHUNK + 1])
            rows = flat(some, None, min(CHUNK, len(episode) - first) + 1)
            rows = rows.astype(rows.dtype if rows.dtype.kind == "f" else np.int64)
            changes = np.diff(rows, axis=0).round(9)
            seen.update(change.tobytes() for change in changes[(changes != 0).any(axis=1)] + 0)
        if seen.total() > _LOOKED_AT:
            break
    return sum(n for n in seen.values() if n > 1) < seen.total() / 2
