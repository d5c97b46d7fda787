"""Names of events: regions by their coordinates; short names of changes, for tables and figures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

import numpy as np

__all__ = ["apart", "event_name", "event_names", "goal_names", "region_names"]

_CHANGE = re.compile(r"([^≈]+?)([+-][\d.]+(?:e[+-]?\d+)?)")


def event_name(symbol: Hashable) -> str:
    """Return a short name of an event: what it gives, else what it takes, else the symbol.

    Example:
        >>> event_name("iron_pickaxe+1 coal-1"), event_name("stick+4 plank-2"), event_name("wood-2")
        ('iron pickaxe', 'stick +4', 'wood −2')
    """
    found = [_CHANGE.fullmatch(word) for word in str(symbol).split()]
    changes = [(change[1].replace("_", " "), float(change[2])) for change in found if change]
    gained = [f"{name} +{n:g}" if n != 1 else name for name, n in changes if n > 0]
    lost = [f"{name} −{-n:g}" for name, n in changes]
    return " and ".join(gained or lost) or str(symbol)


def goal_names(
    goals: Sequence[Hashable], name: Callable[[Hashable], str] = event_name
) -> list[str]:
    """Return short names of sub-goals: the n-th goal of the same name has the number n.

    Args:
        goals: Symbols of the sub-goals, in order.
        name: What the task calls an event.

    Example:
        >>> goal_names(["wood+1", "wood+1", "table+1 wood-2", "wood+1"])
        ['wood', 'wood 2', 'table', 'wood 3']
    """
    seen: Counter[str] = Counter()
    names = []
    for short in map(name, goals):
        seen[short] += 1
        names.append(f"{short} {seen[short]}" if seen[short] > 1 else short)
    return names


def event_names(
    symbols: Sequence[Hashable], name: Callable[[Hashable], str] = event_name
) -> list[str]:
    """Return short names of different events; where two would be the same, the whole symbols.

    Args:
        symbols: Symbols of the events.
        name: What the task calls an event.

    Example:
        >>> event_names(["wood+1", "table+1 wood-2", "table+1 wood-1"])
        ['wood', 'table+1 wood-2', 'table+1 wood-1']
    """
    shared = Counter(map(name, symbols))
    return [str(s) if shared[name(s)] > 1 else name(s) for s in symbols]


def region_names(
    vectors: np.ndarray, labels: np.ndarray, n_events: int, components: Sequence[str]
) -> list[str]:
    """Return names of regions: the coordinates that say most of each, and tell it from others.

    Args:
        vectors: States (n, d).
        labels: The region of each.
        n_events: Number of regions.
        components: The name of each coordinate.

    Notes:
        A coordinate says the more, the less it varies inside of the region, compared with how
        much it varies at all. Two are named, three where two are not enough; regions that are still
        called the same have the two in which they differ most before the one that says most.

    Example:
        >>> states = np.array([[0.1, 5.0], [0.1, 5.0], [0.9, 5.0]])
        >>> region_names(states, np.array([0, 0, 1]), 2, ["x", "y"])
        ['x≈0.1', 'x≈0.9']
    """
    names: list[str] = [f"region {e}" for e in range(n_events)]
    spread = vectors.std(axis=0)
    told = np.flatnonzero(spread > 1e-9 * np.abs(vectors).max(axis=0, initial=1e-300))
    for most, digits in ((2, 2), (3, 3)):
        shared = {name for name, n in Counter(names).items() if n > 1 or most == 2}
        for e in range(n_events):
            if names[e] in shared:
                own = vectors[labels == e]
                if len(own) and len(told):
                    chosen = _says(own, spread, told)[:most]
                    names[e] = _coordinates(own, chosen, spread, components, digits)
    for name in [name for name, n in Counter(names).items() if n > 1]:
        alike = [e for e in range(n_events) if names[e] == name and (labels == e).any()]
        if len(alike) < 2 or not len(told):
            continue
        middles = np.array([vectors[labels == e].mean(axis=0) for e in alike])
        apart_by = middles[:, told].std(axis=0) / spread[told]
        differ = told[np.argsort(-apart_by, kind="stable")[:2]]
        for e in alike:
            own = vectors[labels == e]
            rest = [j for j in _says(own, spread, told) if j not in differ][:1]
            names[e] = _coordinates(own, [*differ, *rest], spread, components, 3)
    return apart(names)


def _says(own: np.ndarray, spread: np.ndarray, told: np.ndarray) -> np.ndarray:
    """Return the coordinates of a region, the one that varies least inside of it first."""
    return told[np.argsort(own[:, told].std(axis=0) / spread[told], kind="stable")]


def _coordinates(
    own: np.ndarray,
    chosen: Sequence[int] | np.ndarray,
    spread: np.ndarray,
    components: Sequence[str],
    digits: int,
) -> str:
    """Return the middle of a region in some of its coordinates."""
    middle = own.mean(axis=0)
    middle = np.where(np.abs(middle) < 5e-3 * spread, 0.0, middle)
    return " ".join(f"{components[j]}≈{middle[j]:.{digits}g}" for j in sorted(chosen))


def apart(names: Sequence[str]) -> list[str]:
    """Return names no two of which are the same: the second of a name has a number.

    Example:
        >>> apart(["door", "key", "door"])
        ['door', 'key', 'door (2)']
    """
    seen: Counter[str] = Counter()
    out: list[str] = []
    for name in names:
        seen[name] += 1
        told = f"{name} ({seen[name]})" if seen[name] > 1 else name
        while told in out:
            told += "'"
        out.append(told)
    return out
