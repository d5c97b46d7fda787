"""Short names of events that are changes, for tables and figures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence

__all__ = ["event_names", "short_goal_names"]

_CHANGE = re.compile(r"(.+?)([+-][\d.]+(?:e[+-]?\d+)?)")
_PLAIN_VERBS = ("collect", "make", "place")  # what was collected, made or placed says enough


def _short(symbol: Hashable) -> str:
    """Return what an event is about: the item it gives, else the achievement, else the change."""
    gained, made, lost = [], [], []
    for word in str(symbol).split():
        change = _CHANGE.fullmatch(word)
        if change is None:
            continue
        name, amount = change[1], float(change[2])
        words = name.split("_")
        if words[0] == "did":
            made.append(words[1:])
        elif amount > 0:
            gained.append(" ".join(words) + (f" +{amount:g}" if amount != 1 else ""))
        else:
            lost.append(" ".join(words) + f" −{-amount:g}")
    away = {name.rpartition(" ")[0] for name in lost}  # what is placed is lost: keep the verb
    done = [
        " ".join(words[1:])
        if words[0] in _PLAIN_VERBS and words[1:] and " ".join(words[1:]) not in away
        else " ".join(words)
        for words in made
    ]
    return " and ".join(gained or done or lost) or str(symbol)


def short_goal_names(goals: Sequence[Hashable]) -> list[str]:
    """Return short names of sub-goals, numbered where they repeat.

    A goal is named after the item that it gives, else after its achievement. The n-th goal of the
    same name has the number n.

    Args:
        goals: Symbols of `DeltaEvents`: names of what changed, each with by how much.

    Example:
        >>> short_goal_names(
        ...     ["did_collect_wood+1 wood+1", "wood+1", "did_place_table+1 wood-2", "wood+1"]
        ... )
        ['wood', 'wood 2', 'table', 'wood 3']
        >>> short_goal_names(["iron_pickaxe+1 did_make_iron_pickaxe+1 coal-1 …", "did_wake_up+1"])
        ['iron pickaxe', 'wake up']
    """
    seen: Counter[str] = Counter()
    names = []
    for goal in goals:
        name = _short(goal)
        seen[name] += 1
        names.append(f"{name} {seen[name]}" if seen[name] > 1 else name)
    return names


def event_names(symbols: Sequence[Hashable]) -> list[str]:
    """Return short names of different events; of two that give the same, one is its first time.

    Example:
        >>> event_names(["did_collect_wood+1 wood+1", "wood+1", "wood-2"])
        ['first wood', 'wood', 'wood −2']
    """
    names = [_short(symbol) for symbol in symbols]
    shared = Counter(names)
    named = [
        f"first {name}" if shared[name] > 1 and "did_" in str(symbol) else name
        for name, symbol in zip(names, symbols, strict=True)
    ]
    again = Counter(named)
    return [
        str(symbol) if again[name] > 1 else name
        for name, symbol in zip(named, symbols, strict=True)
    ]
