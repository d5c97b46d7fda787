"""Built-in demonstrations: someone crafts a stone pickaxe, with the detours of a human."""

from __future__ import annotations

import numpy as np

from align_rudder.episodes import Episode

__all__ = ["crafting_demonstrations", "crafting_episode"]

_RECIPES = {
    "log": {"log": 1},
    "dirt": {"dirt": 1},
    "cobblestone": {"cobblestone": 1},
    "plank": {"log": -1, "plank": 4},
    "table": {"plank": -4, "table": 1},
    "stick": {"plank": -2, "stick": 4},
    "wooden_pickaxe": {"plank": -3, "stick": -2, "wooden_pickaxe": 1},
    "stone_pickaxe": {"cobblestone": -3, "stick": -2, "stone_pickaxe": 1},
}
_ITEMS = sorted({item for recipe in _RECIPES.values() for item in recipe})
_ACTIONS = ("wait", *_RECIPES)


def _plan(rng: np.random.Generator, success: bool) -> list[str]:
    """Return what one player does: the strategy that all share, and what is theirs alone."""
    plan: list[str] = []

    def dither() -> None:
        plan.extend(["wait"] * int(rng.integers(0, 4)))
        if rng.random() < 0.35:
            plan.extend(["dirt"] * int(rng.integers(1, 3)))

    for item, times in (
        ("log", 3 + int(rng.integers(0, 2))),
        ("plank", 3),
        ("table", 1),
        ("stick", 1),
        ("wooden_pickaxe", 1),
    ):
        for _ in range(times):
            dither()
            plan.append(item)
    if not success:
        return [*plan, *(["dirt", "wait", "wait"] * 6)]
    for item in ["cobblestone"] * (3 + int(rng.integers(0, 2))) + ["stone_pickaxe"]:
        dither()
        plan.append(item)
    return plan


def crafting_episode(seed: int, success: bool = True) -> Episode:
    """Return one episode: inventories as dict observations, reward 1 for the stone pickaxe alone.

    Args:
        seed: Seed of the player's detours.
        success: Whether the player makes it; otherwise they dig dirt until the time is over.
    """
    plan = _plan(np.random.default_rng(seed), success)
    inventory: dict[str, int] = dict.fromkeys(_ITEMS, 0)
    observations = [dict(inventory)]
    for action in plan:
        for item, change in _RECIPES.get(action, {}).items():
            inventory[item] += change
        observations.append(dict(inventory))
    rewards = np.zeros(len(plan))
    rewards[-1] = float(success)
    actions = [_ACTIONS.index(action) for action in plan]
    return Episode(observations, actions, rewards, terminated=success, truncated=not success)


def crafting_demonstrations(n: int = 10, seed: int = 0) -> list[Episode]:
    """Return n successful episodes."""
    return [crafting_episode(seed * 1000 + i) for i in range(n)]
