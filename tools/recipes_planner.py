"""What an agent that plans solves of the recipes: one that knows the map, and learns nothing.

    python tools/recipes_planner.py             # a minute; writes results/recipes/planner.json

It knows where each station is and which of them are items, walks straight, and plays one order in
each episode. Without logs it plays tours through all items, round and round: the shortest first,
each from every item on. With logs it plays these in order, the shortest first, or their median
string. It is a control of the study of recipes: how much of what order adds is left for a learner
that does not have to find its ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from statistics import median
from typing import Any

from align_rudder.files import write_json
from align_rudder.studies.recipes.settings import FIRST_SEED, TIGHT, TRIALS, Setting
from align_rudder.studies.recipes.worlds import environment, logs_of, median_of
from align_rudder.tasks import RecipesEnv

RESULTS = Path(__file__).resolve().parent.parent / "results" / "recipes" / "planner.json"
SETTINGS = (*(Setting(n, pace=TIGHT) for n in (8, 12, 24)), Setting(12, pace=12))


def straight(env: RecipesEnv, cell: int, goal: int) -> Iterator[int]:
    """Yield the cells of a straight way, up or down first; of a goal it stands on, off it and back.

    Example:
        >>> env = RecipesEnv(2, size=4)
        >>> list(straight(env, 0, 10))
        [4, 8, 9, 10]
    """
    size = env.size
    if cell == goal:
        cell += 1 if cell % size + 1 < size else -1
        yield cell
    while cell != goal:
        rows, columns = goal // size - cell // size, goal % size - cell % size
        if rows:
            cell += size if rows > 0 else -size
        else:
            cell += 1 if columns > 0 else -1
        yield cell


def solves(env: RecipesEnv, order: Sequence[str]) -> bool:
    """Return whether visiting stations in this order makes the recipe before the time is over."""
    items = {int(env.stations[i]): i for i in range(env.items)}
    cell, stage, steps = env.start, 0, 0
    for name in order:
        goal = int(env.stations[env.symbols.index(name)])
        for there in straight(env, cell, goal):
            cell, steps = there, steps + 1
            stage += items.get(cell) == env.recipe[stage]
            if steps > env.horizon or stage == env.length:
                return stage == env.length and steps <= env.horizon
    return False


def tours(env: RecipesEnv) -> list[tuple[str, ...]]:
    """Return the tours through all items, the shortest first, each from every item on."""
    first, *others = env.symbols[: env.items]
    found = sorted(((first, *rest) for rest in permutations(others)), key=lambda t: _length(env, t))
    return [tour[k:] + tour[:k] for tour in found for k in range(len(tour))]


def _length(env: RecipesEnv, tour: Sequence[str]) -> int:
    places = [divmod(int(env.stations[env.symbols.index(name)]), env.size) for name in tour]
    following = [*places[1:], places[0]]
    return sum(abs(a - c) + abs(b - d) for (a, b), (c, d) in zip(places, following, strict=True))


def planned(setting: Setting) -> dict[str, Any]:
    """Return how many tasks of a setting each planner solves, and after how many tours."""
    tried: list[int] = []
    counts = dict.fromkeys(("tours", "any_log", "shortest_log", "median_string"), 0)
    for seed in range(FIRST_SEED, FIRST_SEED + TRIALS):
        env, logs = environment(setting, seed), sorted(logs_of(setting, seed), key=len)
        orders = (tour * setting.length for tour in tours(env))
        first = next((k for k, order in enumerate(orders, 1) if solves(env, order)), None)
        alone = [solves(env, log) for log in logs]
        tried += [] if first is None else [first]
        counts["tours"] += first is not None
        counts["any_log"] += any(alone)
        counts["shortest_log"] += alone[0]
        counts["median_string"] += solves(env, median_of(logs))
    where = {"length": setting.length, "pace": setting.pace, "tasks": TRIALS}
    return {**where, **counts, "median_episodes_of_tours": median(tried)}


if __name__ == "__main__":
    found = [planned(setting) for setting in SETTINGS]
    write_json(RESULTS, found)
    for row in found:
        print(row)
