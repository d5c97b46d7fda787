"""Short names of events that are changes, for tables and figures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

__all__ = ["changes", "event_name", "event_names", "goal_names", "in_words"]

_CHANGE = re.compile(r"(.+?)([+-][\d.]+(?:e[+-]?\d+)?)")


def changes(symbol: Hashable) -> dict[str, float]:
    """Return what a symbol of `DeltaEvents` says: by how much each named number changes.

    Example:
        >>> changes("iron_pickaxe+1 coal-1 …")
        {'iron_pickaxe': 1.0, 'coal': -1.0}
    """
    found = (_CHANGE.fullmatch(word) for word in str(symbol).split())
    return {change[1]: float(change[2]) for change in found if change}


def in_words(changed: Mapping[str, float]) -> str:
    """Return what is gained, else what is lost; "" if nothing is."""
    gained = [
        name.replace("_", " ") + (f" +{amount:g}" if amount != 1 else "")
        for name, amount in changed.items()
        if amount > 0
    ]
    lost = [f"{name.replace('_', ' ')} −{-amount:g}" for name, amount in changed.items()]
    return " and ".join(gained or lost)


def event_name(symbol: Hashable) -> str:
    """Return a short name of an event: what it gives, else what it takes, else the symbol.

    Example:
        >>> event_name("iron_pickaxe+1 coal-1"), event_name("stick+4 plank-2"), event_name("wood-2")
        ('iron pickaxe', 'stick +4', 'wood −2')
    """
    return in_words(changes(symbol)) or str(symbol)


def goal_names(
    goals: Sequence[Hashable], name: Callable[[Hashable], str] = event_name
) -> list[str]:
    """Return short names of sub-goals: the n-th goal of the same name has the number n.

    Args:
        goals: Symbols of the sub-goals, in order.
        name: What a task calls an event.

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
        name: What a task calls an event.

    Example:
        >>> event_names(["wood+1", "wood+1 stone+1", "table+1 wood-2", "table+1 wood-1"])
        ['wood', 'wood and stone', 'table+1 wood-2', 'table+1 wood-1']
    """
    names = [name(symbol) for symbol in symbols]
    shared = Counter(names)
    return [
        str(symbol) if shared[short] > 1 else short
        for short, symbol in zip(names, symbols, strict=True)
    ]
