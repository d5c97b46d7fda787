"""A level of MiniGrid: items to be picked in a hidden order, in a room drawn anew each episode.

The agent sees the cells before it, neither the whole room nor how far it has come. A scripted
player makes event logs of other rooms (`MiniGridRecipeEnv.log`).
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from gymnasium import spaces

from align_rudder.files import Number, Whole, check_values

try:
    from minigrid.core.actions import Actions
    from minigrid.core.constants import DIR_TO_VEC
    from minigrid.core.grid import Grid
    from minigrid.core.mission import MissionSpace
    from minigrid.core.world_object import Ball, Box, Key
    from minigrid.minigrid_env import MiniGridEnv
except ImportError as error:
    raise ImportError('this needs MiniGrid; in a clone: pip install ".[networks]"') from error

__all__ = ["KINDS", "MiniGridRecipeEnv", "Player"]

_SHAPES = {"ball": Ball, "box": Box, "key": Key}
_COLORS = ("red", "green", "blue", "purple", "yellow", "grey")
KINDS = tuple(
    f"{_COLORS[(i + turn) % 6]} {tuple(_SHAPES)[i % 3]}" for turn in range(3) for i in range(6)
)
"""Names of the kinds of items; the first six differ in color."""
_EMPTY, _WALL, _ITEM = 0, 1, 2
_FREE = 10_000  # steps of the scripted player, which knows the way


class MiniGridRecipeEnv(MiniGridEnv):
    """A room with one item of each kind, some of which must be picked in the order of a recipe.

    Actions are MiniGrid's first four: left, right, forward and pickup. Picking the item in front is
    an event, `info["happened"]`; the item stays where it is. One that is not the next of the
    recipe does nothing. The reward is 1 when the last one is picked, which ends the episode
    (`info["is_success"]`).

    An observation is MiniGrid's view, each cell as a one-hot of wall and kinds (all zeros: nothing
    there, or not seen), and the direction. The recipe is that of `recipe_seed`; items and agent are
    placed anew in each episode.

    Args:
        length: Items of the recipe, L; the same one may come again, not twice in a row.
        items: Kinds of items in the room.
        size: Width and height of the room, walls included.
        view: Width and height of the view, an odd number.
        recipe_seed: Seed of the recipe.
        max_steps: Time limit; None for 40 steps for each item, about four times what the scripted
            player needs.
        render_mode: "rgb_array", "human" or None.

    Attributes:
        recipe: The kinds to be picked, by their index.
        stage: How many of them were picked.
    """

    def __init__(
        self,
        length: int = 5,
        items: int = 6,
        size: int = 8,
        view: int = 7,
        recipe_seed: int = 0,
        max_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        check_values(
            length=(length, Whole(1, 100)),
            items=(items, Whole(2, len(KINDS))),
            size=(size, Whole(4, 100)),
            view=(view, Whole(3, 99)),
        )
        if items > (size - 2) ** 2 // 4:
            raise ValueError(
                f"{items} items bar the ways of a room of {size} × {size} cells with its walls; "
                "use fewer items or a larger room"
            )
        if view % 2 == 0:
            raise ValueError(f"view={view}; the agent stands in the middle: give an odd number")
        self.length, self.items = length, items
        self.recipe, self.stage = _recipe(recipe_seed, length, items), 0
        self._recipe_seed = recipe_seed
        super().__init__(
            mission_space=MissionSpace(lambda: "pick the items in the right order"),
            grid_size=size,
            agent_view_size=view,
            max_steps=40 * length if max_steps is None else max_steps,
            render_mode=render_mode,
        )
        self.action_space = spaces.Discrete(int(Actions.pickup) + 1)
        self._cells, self._around = np.zeros(0, np.int64), _views(size, view)
        # Nothing is a row of zeros; a wall and each kind have an entry of their own.
        self._one_hot = np.eye(_ITEM + items, dtype=np.uint8)[:, 1:]
        self._compass = np.eye(4, dtype=np.uint8)
        self._margin, self._width = view - 1, size + 2 * (view - 1)
        self._entries = view * view * self._one_hot.shape[1]
        self.observation_space = spaces.Box(0, 1, (self._entries + 4,), np.uint8)

    @property
    def symbols(self) -> tuple[str, ...]:
        """What may happen: the kinds of items in the room, by name."""
        return KINDS[: self.items]

    def _gen_grid(self, width: int, height: int) -> None:
        """Place items and agent so that the agent can come to every item."""
        inner = [(x, y) for x in range(1, width - 1) for y in range(1, height - 1)]
        while True:
            chosen = self.np_random.permutation(len(inner))[: self.items + 1]
            *places, start = (inner[i] for i in chosen.tolist())
            if _reachable(places, start, inner):
                break
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        cells = np.full((self._width, self._width), _EMPTY)
        inside = slice(self._margin, -self._margin)
        cells[inside, inside] = _WALL
        inside = slice(self._margin + 1, -self._margin - 1)
        cells[inside, inside] = _EMPTY
        for kind, (x, y) in enumerate(places):
            color, shape = KINDS[kind].split()
            self.put_obj(_SHAPES[shape](color), x, y)
            cells[x + self._margin, y + self._margin] = _ITEM + kind
        self._cells, self.places = cells.ravel(), places
        self.agent_pos, self.agent_dir = start, int(self.np_random.integers(4))
        self.stage = 0

    def _ahead(self, steps: int = 1) -> int:
        x, y = self.agent_pos
        right, down = DIR_TO_VEC[self.agent_dir]
        x, y = int(x) + steps * int(right), int(y) + steps * int(down)
        return (x + self._margin) * self._width + y + self._margin

    @property
    def facing(self) -> int:
        """The kind of the item in front of the agent, -1 for none."""
        return max(int(self._cells[self._ahead()]) - _ITEM, -1)

    def gen_obs(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return what the agent sees, as one vector of zeros and ones."""
        seen = np.empty(self._entries + 4, np.uint8)
        cells = self._cells[self._ahead(0) + self._around[self.agent_dir]]
        seen[: self._entries] = self._one_hot[cells].ravel()
        seen[self._entries :] = self._compass[self.agent_dir]
        return seen

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step; `info["happened"]` names the item that was picked, if any was."""
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r}; 0 to {int(Actions.pickup)} are needed")
        picked = self.facing if action == Actions.pickup else -1
        # Items stay where they are, so MiniGrid is told to do nothing.
        own = Actions.done if action == Actions.pickup else action
        if picked >= 0 and picked == self.recipe[self.stage]:
            self.stage += 1
        obs, _, _, truncated, info = super().step(own)
        done = self.stage == self.length
        info["happened"], info["is_success"] = KINDS[picked] if picked >= 0 else "", done
        return obs, float(done), done, truncated and not done, info

    def log(self, seed: int = 0, detours: float = 0.5, trips: float = 0.3) -> list[str]:
        """Return what happens when the scripted player plays an episode, as an event log.

        By default it is about as long as those of `RecipesEnv`: two events for each item.

        Args:
            seed: Seed of the room and of the player.
            detours: Before each item, the probability that another one is picked first.
            trips: Probability, in each step, that another item is picked because it is faced.
        """
        room = MiniGridRecipeEnv(
            self.length, self.items, self.width, self.agent_view_size, self._recipe_seed, _FREE
        )
        room.reset(seed=seed)
        player, events, done = Player(room, seed, detours, trips), [], False
        while not done:
            _, _, done, _, info = room.step(player.act())
            events += [info["happened"]] * bool(info["happened"])
        return events


class Player:
    """A scripted player, who sees the whole room and knows the recipe but does not play well.

    Args:
        env: The level.
        seed: Seed of what it does wrong.
        detours: Before each item, the probability that another one is picked first.
        trips: Probability, in each step, that another item is picked because it is faced.
    """

    def __init__(
        self, env: MiniGridRecipeEnv, seed: int = 0, detours: float = 0.5, trips: float = 0.3
    ) -> None:
        check_values(detours=(detours, Number(0, 1)), trips=(trips, Number(0, 1)))
        self.env, self.detours, self.trips = env, detours, trips
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """Begin an episode."""
        # Other numbers than those that place the items, whose generator has the seed alone.
        self._rng, self._goals = np.random.default_rng([seed, 1]), []

    def act(self, observation: Any = None) -> int:
        """Return the next action, from the whole state of the room."""
        env, rng = self.env, self._rng
        if not self._goals:
            needed = env.recipe[env.stage]
            others = [kind for kind in range(env.items) if kind != needed]
            first = [int(rng.choice(others))] if rng.random() < self.detours else []
            self._goals = [*first, needed]
        if env.facing == self._goals[0]:
            del self._goals[0]
            return int(Actions.pickup)
        if env.facing >= 0 and rng.random() < self.trips:
            return int(Actions.pickup)
        return _way(env, env.places[self._goals[0]])


def _recipe(seed: int, length: int, items: int) -> tuple[int, ...]:
    """Return the kinds of a recipe; none comes twice in a row."""
    rng = np.random.default_rng([seed, length, items])
    recipe = [int(rng.integers(items))]
    while len(recipe) < length:
        following = int(rng.integers(items))
        if following != recipe[-1]:
            recipe.append(following)
    return tuple(recipe)


def _views(size: int, view: int) -> np.ndarray:
    """Return for each direction where the cells of the view are, from the agent's (4, view²).

    They are in the order of MiniGrid's images: column by column from left to right, each from the
    farthest cell to the nearest. Rooms are counted with a margin of `view` − 1 cells around them.
    """
    column, row = np.divmod(np.arange(view * view), view)
    aside, before = column - view // 2, view - 1 - row
    width = size + 2 * (view - 1)
    return np.stack(
        [(before * x - aside * y) * width + before * y + aside * x for x, y in DIR_TO_VEC]
    )


def _reachable(
    places: list[tuple[int, int]], start: tuple[int, int], inner: list[tuple[int, int]]
) -> bool:
    """Return whether an agent that starts there can come to the side of every place."""
    free, queue, met = set(inner) - {start}, [start], set()
    for x, y in queue:
        for there in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if there in places:
                met.add(there)
            elif there in free:
                free.remove(there)
                queue.append(there)
    return len(met) == len(places)


def _way(env: MiniGridRecipeEnv, goal: tuple[int, int]) -> int:
    """Return the first action of a shortest way to face a place."""
    x, y = (int(i) for i in env.agent_pos)
    start, taken = (x, y, int(env.agent_dir)), set(env.places)
    first: dict[tuple[int, int, int], int] = {start: -1}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        x, y, d = here
        ahead = x + int(DIR_TO_VEC[d][0]), y + int(DIR_TO_VEC[d][1])
        if ahead == goal:
            return first[here]
        reached = {(x, y, (d - 1) % 4): Actions.left, (x, y, (d + 1) % 4): Actions.right}
        inside = all(0 < i < env.width - 1 for i in ahead)
        if inside and ahead not in taken:
            reached[*ahead, d] = Actions.forward
        for there, action in reached.items():
            if there not in first:
                first[there] = int(action) if here == start else first[here]
                queue.append(there)
    raise ValueError(f"there is no way to {goal}")
