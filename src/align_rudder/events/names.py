"""Short names of events that are changes, for tables and figures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

__all__ = ["event_name", "event_names", "goal_names"]

_CHANGE = re.compile(r"(.+?)([+-][\d.]+(?:e[+-]?\d+)?)")


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
