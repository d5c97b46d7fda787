"""Recipes: items to be visited in order, in a layout drawn anew for every task.

Logs of other layouts show the order, but no state and no action to copy. Where the inventory is
hidden, the agent does not see how far it has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from align_rudder.events import EventEncoder
from align_rudder.files import Choice, Flag, Maybe, Number, Whole, check_values
from align_rudder.tasks.environment import TabularEnv
from align_rudder.tasks.mdp import Outcome, TabularMDP
from align_rudder.tasks.pictures import grid_picture

__all__ = ["RecipesEnv"]

_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
_LOST = "lost "
_SEED = Whole(0, 2**63 - 1)


def _check_seed(seed: int | Sequence[int]) -> None:
    """Refuse a seed that is neither a whole number nor a sequence of them."""
    several = isinstance(seed, list | tuple | np.ndarray) and len(seed)
    for one in seed if several else [seed]:  # pyright: ignore[reportGeneralTypeIssues]
        _SEED.check(one, "seed")


class RecipesEnv(TabularEnv):
    """Stations of items and distractors on a grid; a recipe of items must be visited in order.

    The recipe is that of `recipe_seed`, the layout that of `seed`: logs of the same recipe in other
    layouts are event logs (`log`) from which `AlignRudder.fit_events` learns the order. The reward
    is 1 when the last item of the recipe is visited, which ends the episode.

    Args:
        length: Items of the recipe, L; the same one may come again, not twice in a row.
        items: Kinds of items.
        distractors: Kinds of stations that no recipe needs.
        size: Width and height of the grid.
        hidden: Whether the agent sees only where it is, not how far it has come.
        wrong: What a wrong item does: "nothing", or "undo": the last right one is lost.
        seed: Seed of the layout, a number or several.
        recipe_seed: Seed of the recipe.
        horizon: Time limit; None for 25 steps for each item.
        render_mode: "rgb_array", "human" or None.
    """

    def __init__(
        self,
        length: int = 8,
        items: int = 6,
        distractors: int = 4,
        size: int = 8,
        hidden: bool = True,
        wrong: str = "nothing",
        seed: int | Sequence[int] = 0,
        recipe_seed: int = 0,
        horizon: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        check_values(
            length=(length, Whole(1, 100)),
            items=(items, Whole(2, 26)),
            distractors=(distractors, Whole(0, 26)),
            size=(size, Whole(2, 100)),
            hidden=(hidden, Flag()),
            wrong=(wrong, Choice(("nothing", "undo"))),
            horizon=(horizon, Maybe(Whole(1))),
            recipe_seed=(recipe_seed, _SEED),
        )
        _check_seed(seed)
        if items + distractors >= size * size:
            raise ValueError(
                f"{items} items and {distractors} distractors do not fit on {size} × {size} cells "
                "with one to start from"
            )
        self.length, self.items, self.distractors, self.size = length, items, distractors, size
        self.hidden, self.wrong, self.layout_seed = hidden, wrong, seed
        self.horizon = 25 * length if horizon is None else horizon
        rng = np.random.default_rng([recipe_seed, length, items])
        recipe = [int(rng.integers(items))]
        while len(recipe) < length:
            following = int(rng.integers(items))
            if following != recipe[-1]:
                recipe.append(following)
        self.recipe: tuple[int, ...] = tuple(recipe)
        layout = np.random.default_rng(np.append(seed, size))
        for _ in range(1000):
            places = layout.permutation(size * size)
            self.stations = places[: items + distractors]
            self.start = int(places[items + distractors])
            if wrong == "nothing" or self._open():
                break
        else:
            raise ValueError(
                f"{items} items on {size} × {size} cells lie in each other's way, and wrong ones "
                "undo: use fewer items or a larger grid"
            )
        super().__init__(render_mode)

    @property
    def symbols(self) -> tuple[str, ...]:
        """What may happen, by name; an item is visited, or one is lost."""
        names = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: self.items])
        names += tuple("abcdefghijklmnopqrstuvwxyz"[: self.distractors])
        return names + (tuple(_LOST + n for n in names[: self.items]) if self.undo else ())

    @property
    def undo(self) -> dict[str, str]:
        """Which event takes back which, for `AlignRudder(undo=…)`; empty if none does."""
        names = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: self.items]
        return {_LOST + name: name for name in names} if self.wrong == "undo" else {}

    def _tables(self) -> TabularMDP:
        cells, stages = self.size**2, self.length
        station_at = np.full(cells, -1)
        station_at[self.stations] = np.arange(len(self.stations))
        outcomes: list[list[list[Outcome]]] = []
        labels = np.full((cells * stages, 4, 1), -1, np.int64)
        for stage in range(stages):
            for cell in range(cells):
                row: list[list[Outcome]] = []
                for a in range(4):
                    there = self._move(cell, a)
                    after, label = self._visit(stage, station_at[there] if there != cell else -1)
                    labels[stage * cells + cell, a, 0] = label
                    ended = after == stages
                    reached = there + cells * (0 if ended else after)
                    row.append([(1.0, reached, float(ended), ended)])
                outcomes.append(row)
        starts = np.zeros(cells * stages)
        starts[self.start] = 1.0
        mdp = TabularMDP.from_outcomes(outcomes, starts, self.horizon)
        states = np.arange(cells * stages)
        return TabularMDP(
            mdp.next_states,
            mdp.cumulative,
            mdp.rewards,
            mdp.terminal,
            mdp.starts,
            mdp.horizon,
            mdp.time_factor,
            observed=states % cells if self.hidden else states,
            labels=labels,
            symbols=self.symbols,
        )

    def _move(self, cell: int, action: int) -> int:
        row, column = divmod(cell, self.size)
        down, right = _MOVES[action]
        if 0 <= row + down < self.size and 0 <= column + right < self.size:
            return (row + down) * self.size + column + right
        return cell

    def _visit(self, stage: int, station: int) -> tuple[int, int]:
        """Return how many items are right after a station is visited, and what happened."""
        if station < 0:
            return stage, -1
        if station == self.recipe[stage]:
            return stage + 1, station
        if self.wrong == "undo" and stage > 0 and station < self.items:
            return stage - 1, self.items + self.distractors + self.recipe[stage - 1]
        return stage, station

    def _observe(self, state: int) -> Any:
        return int(self.mdp.observed[state])

    def _space(self) -> Any:
        from gymnasium import spaces

        return spaces.Discrete(self.mdp.n_observations)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step; `info["happened"]` names what happened, if anything did."""
        before = self._state
        obs, reward, terminated, truncated, info = super().step(action)
        label = int(self.mdp.labels[before, self._checked(action), 0])
        return obs, reward, terminated, truncated, {**info, "happened": self._name(label)}

    def _name(self, label: int) -> str:
        return self.symbols[label] if label >= 0 else ""

    def log(self, seed: int = 0, detours: float = 0.5) -> list[str]:
        """Return what happens on the shortest ways from item to item, as an event log.

        Args:
            seed: Seed of the detours.
            detours: Before each item, the probability of a detour over another station.
        """
        check_values(detours=(detours, Number(0, 1)))
        _check_seed(seed)
        rng = np.random.default_rng(np.append(self.layout_seed, seed))
        cell, stage, events = self.start, 0, []
        while stage < self.length:
            goals = [int(self.stations[self.recipe[stage]])]
            harmless = self.stations[self.items :] if self.undo else self.stations
            if rng.random() < detours and len(harmless):
                goals = [int(rng.choice(harmless)), *goals]
            for goal in goals:
                ways = self._distances(goal)
                while cell != goal and stage < self.length:
                    a = self._towards(cell, ways, rng)
                    state = stage * self.size**2 + cell
                    label = int(self.mdp.labels[state, a, 0])
                    cell = self._move(cell, a)
                    if label >= 0:
                        events.append(self.symbols[label])
                    stage = (
                        self.length
                        if self.mdp.terminal[state, a, 0]
                        else int(self.mdp.next_states[state, a, 0]) // self.size**2
                    )
            if stage < self.length and cell == int(self.stations[self.recipe[stage]]):
                # It stands on the item that comes next: off it and back.
                a = next(a for a in rng.permutation(4) if self._move(cell, int(a)) != cell)
                off = self._move(cell, int(a))
                station = np.flatnonzero(self.stations == off)
                stage, label = self._visit(stage, int(station[0]) if len(station) else -1)
                events += [self.symbols[label]] if label >= 0 else []
                cell = off
        return events

    def held(self, log: Sequence[str]) -> dict[str, np.ndarray]:
        """Return how many of each item are held before and after each event of a log (T+1,)."""
        return self._items(self.stages(log))

    def stages(self, log: Sequence[str]) -> np.ndarray:
        """Return how many items are right before and after each event of a log (T+1,)."""
        names, stage, rows = self.symbols[: self.items], 0, [0]
        for symbol in log:
            if symbol.startswith(_LOST):
                stage -= 1
            elif stage < self.length and symbol == names[self.recipe[stage]]:
                stage += 1
            rows.append(stage)
        return np.array(rows)

    def _items(self, stages: np.ndarray) -> dict[str, np.ndarray]:
        """Return how many of each item are held after so many right ones."""
        recipe, names = np.array(self.recipe), self.symbols[: self.items]
        first = np.arange(self.length) < stages[..., None]
        return {name: (first & (recipe == i)).sum(axis=-1) for i, name in enumerate(names)}

    def events_of(self, encoder: EventEncoder) -> np.ndarray:
        """Return the event of each outcome of the table, for an encoder that sees what is held."""
        cells, after = self.size**2, self.mdp.next_states // self.size**2
        after = np.where(self.mdp.terminal, self.length, after)
        before = np.broadcast_to(
            (np.arange(self.mdp.n_states) // cells)[:, None, None], after.shape
        )
        rewards = self.mdp.rewards.ravel()
        events = encoder.transition_events(
            self._items(before.ravel()),
            np.zeros(len(rewards)),
            rewards,
            self._items(after.ravel()),
            [{}] * len(rewards),
        )
        return events.reshape(after.shape)

    def _distances(self, goal: int) -> np.ndarray:
        """Return how far each cell is from a goal; what spoils is walked round where it can be."""
        far = self.size**2
        avoided = set(self.stations[: self.items].tolist()) if self.wrong == "undo" else set()
        distances = np.full(far, far)
        distances[goal], queue = 0, [goal]
        for cell in queue:
            for there in {self._move(cell, a) for a in range(4)}:
                if distances[there] == far and there not in avoided:
                    distances[there] = distances[cell] + 1
                    queue.append(there)
        if (distances == far).any():
            rows, columns = np.divmod(np.arange(far), self.size)
            straight = np.abs(rows - goal // self.size) + np.abs(columns - goal % self.size)
            distances = np.where(distances == far, far + straight, distances)
        return distances

    def _open(self) -> bool:
        """Return whether every station can be reached without stepping on another item."""
        return all(self._distances(int(s))[self.start] < self.size**2 for s in self.stations)

    def _towards(self, cell: int, distances: np.ndarray, rng: np.random.Generator) -> int:
        """Return an action that comes closer."""
        reached = np.array([distances[self._move(cell, a)] for a in range(4)])
        return int(rng.choice(np.flatnonzero(reached == reached.min())))

    def _picture(self, state: int) -> np.ndarray:
        places = [divmod(int(place), self.size) for place in self.stations]
        following = self.recipe[state // self.size**2]
        agent = divmod(state % self.size**2, self.size)
        items, others = places[: self.items], places[self.items :]
        return grid_picture(self.size, agent, items, others, places[following])
