"""What the events of Craftax are called: by the item they give, else by their achievement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from align_rudder.events import names

__all__ = ["DID", "event_name", "event_names", "goal_names"]

DID = "did_"
"""How the names of achievements begin among the features."""
_PLAIN_VERBS = ("collect", "make", "place")  # what was collected, made or placed says enough


def event_name(symbol: Hashable) -> str:
    """Return what an event is about: the item it gives, else its achievement, else the change.

    Example:
        >>> event_name("iron_pickaxe+1 did_make_iron_pickaxe+1 coal-1 …")
        'iron pickaxe'
        >>> event_name("did_place_table+1 wood-2"), event_name("did_wake_up+1")
        ('table', 'wake up')
    """
    words = str(symbol).split()
    items = [word for word in words if not word.startswith(DID)]
    made = [word[len(DID) :].partition("+")[0] for word in words if word.startswith(DID)]
    if made and not any("+" in item for item in items):
        return " and ".join(_achievement(name, items) for name in made)
    return names.event_name(" ".join(items))


def _achievement(name: str, lost: Sequence[str]) -> str:
    verb, _, thing = name.partition("_")
    # A stone that is placed is lost: "stone" alone would say the opposite.
    plain = verb in _PLAIN_VERBS and thing and not any(i.startswith(f"{thing}-") for i in lost)
    return (thing if plain else name).replace("_", " ")


def goal_names(goals: Sequence[Hashable]) -> list[str]:
    """Return short names of sub-goals, numbered where they repeat.

    Example:
        >>> goal_names(["did_collect_wood+1 wood+1", "wood+1", "did_place_table+1 wood-2"])
        ['wood', 'wood 2', 'table']
    """
    return names.goal_names(goals, event_name)


def event_names(symbols: Sequence[Hashable]) -> list[str]:
    """Return short names of different events; of two that give the same, one is its first time.

    Example:
        >>> event_names(["did_collect_wood+1 wood+1", "wood+1", "wood-2"])
        ['first wood', 'wood', 'wood −2']
    """
    shared = Counter(map(event_name, symbols))

    def name(symbol: Hashable) -> str:
        short = event_name(symbol)
        return f"first {short}" if shared[short] > 1 and DID in str(symbol) else short

    return names.event_names(symbols, name)
