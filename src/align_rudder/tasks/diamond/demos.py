"""Demonstrations: the expert's runs, with every state, so that training can begin anywhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from align_rudder.episodes import Episode
from align_rudder.events import DeltaEvents
from align_rudder.files import Array, Flag, Flags, Floats, Format, Ints, Many
from align_rudder.model import AlignRudder
from align_rudder.tasks.diamond.expert import expert_action
from align_rudder.tasks.diamond.task import FEATURES, ITEMS, N_BLOCKS, DiamondState, DiamondTask

__all__ = ["Demonstration", "fit_demonstrations", "load_demonstrations", "play_expert"]

_DEMONSTRATIONS = Format(
    "align-rudder-diamond-demonstrations",
    1,
    header={"solved": Many(Flag())},
    groups=("",),  # 0/…, 1/…: an array for each part of the states, and the actions
    remedy="make it again with: align-rudder diamond demos",
)


class Demonstration(NamedTuple):
    """A run of the expert.

    Attributes:
        states: All states, stacked (T + 1, …), as NumPy arrays; None if it was too long to keep.
        actions: Actions (T,).
        solved: Whether it found the diamond.
    """

    states: DiamondState | None
    actions: np.ndarray
    solved: bool

    def episode(self, task: DiamondTask, vector: bool = False) -> Episode:
        """Return the run as an episode of items and achievements, paid for the diamond alone.

        Args:
            task: The task.
            vector: Whether observations also have the "vector" of `AlignRudder/Diamond-v0`.
        """
        if self.states is None:
            raise ValueError(f"the states of this run of {len(self.actions)} steps were not kept")
        states = jax.tree.map(jnp.asarray, self.states)
        values = np.asarray(jax.vmap(task.features)(states))
        observations = {name: values[:, i] for i, name in enumerate(FEATURES)}
        if vector:
            see = jax.jit(jax.vmap(lambda state: task.encode(task.observe(state))))
            observations["vector"] = np.asarray(see(states))
        rewards = np.zeros(len(self.actions))
        rewards[-1] = float(self.solved)
        return Episode(observations, self.actions, rewards, terminated=True)


def _shown(task: DiamondTask, state: DiamondState) -> dict[str, Any]:
    """Return what the expert may know."""
    world = state.world
    mobs = jnp.zeros((task.map_size, task.map_size), jnp.uint8)
    for bit, kind in ((1, world.zombies), (1, world.skeletons), (3, world.cows)):
        away = jnp.abs(kind.position - world.player_position)
        near = kind.mask & (away <= jnp.array([3, 4])).all(axis=1)
        rows = jnp.where(near, kind.position[:, 0], task.map_size)
        mobs = mobs.at[rows, kind.position[:, 1]].max(jnp.uint8(bit), mode="drop")
    return {
        "seen": state.seen,
        "mobs": mobs,
        "place": world.player_position,
        "facing": world.player_direction,
        "items": jnp.stack([getattr(world.inventory, name) for name in ITEMS]),
        "needs": jnp.stack(
            [world.player_health, world.player_food, world.player_drink, world.player_energy]
        ),
        "asleep": world.is_sleeping,
        "dark": world.light_level < 0.5,
        "over": task.over(state),
        "solved": task.solved(state),
    }


def _choose(shown: dict[str, np.ndarray], viewed: np.ndarray, t: int, i: int) -> int:
    """Return the expert's action in the i-th world, given what it is shown at time t."""
    return expert_action(
        shown["seen"][i],
        viewed,
        t,
        shown["mobs"][i] > 0,
        shown["mobs"][i] == 3,
        int(shown["place"][i, 0]),
        int(shown["place"][i, 1]),
        int(shown["facing"][i]),
        shown["items"][i].astype(np.int64),
        shown["needs"][i].astype(np.int64),
        bool(shown["asleep"][i]),
        bool(shown["dark"][i]),
    )


def play_expert(
    task: DiamondTask,
    n: int,
    seed: int = 0,
    max_steps: int = 2500,
    keep: int = 200,
    progress: bool = True,
) -> list[Demonstration]:
    """Return the expert's runs in n new worlds.

    Args:
        task: The task.
        n: Number of worlds.
        seed: Seed.
        max_steps: Steps after which a run is given up.
        keep: The longest run whose states are kept; a state takes 25 kB.
        progress: Whether to show a progress bar.
    """
    keys = jax.random.split(jax.random.key(seed), n + 1)
    state = jax.jit(lambda k: jax.lax.map(task.new_world, k, batch_size=32))(keys[1:])
    step = jax.jit(jax.vmap(task.step))
    show = jax.jit(jax.vmap(lambda s: _shown(task, s)))
    lengths, solved = np.full(n, max_steps), np.zeros(n, bool)
    going = np.ones(n, bool)
    viewed = np.zeros((n, task.map_size, task.map_size), np.int64)
    states, actions = [], []
    key = keys[0]
    for t in tqdm(range(max_steps + 1), "expert", disable=not progress):
        shown = {name: np.asarray(value) for name, value in show(state).items()}
        if t <= keep:
            rows = np.flatnonzero(going)
            states.append((rows, jax.tree.map(lambda x, rows=rows: np.asarray(x)[rows], state)))
        newly = going & shown["over"]
        lengths[newly], solved[newly] = t, shown["solved"][newly]
        going &= ~shown["over"]
        if not going.any() or t == max_steps:
            break
        chosen = np.zeros(n, np.int32)
        for i in np.flatnonzero(going):
            chosen[i] = _choose(shown, viewed[i], t, int(i))
        key, here = jax.random.split(key)
        state = step(jax.random.split(here, n), state, jnp.asarray(chosen))
        actions.append(chosen)
    out = []
    for i, length in enumerate(lengths):
        mine = []
        for rows, kept in states[: length + 1] if length <= keep else []:
            j = np.searchsorted(rows, i)
            mine.append(jax.tree.map(lambda x, j=j: x[j], kept))
        whole = jax.tree.map(lambda *x: np.stack(x), *mine) if mine else None
        out.append(
            Demonstration(whole, np.array([a[i] for a in actions[:length]]), bool(solved[i]))
        )
    return out


def shortest(runs: Sequence[Demonstration], n: int = 10) -> list[Demonstration]:
    """Return the n shortest runs that found the diamond."""
    found = sorted((r for r in runs if r.solved), key=lambda r: len(r.actions))
    kept = [r for r in found if r.states is not None]
    if len(kept) < n:
        raise ValueError(
            f"{len(found)} of {len(runs)} runs found a diamond, {len(kept)} of them short enough "
            f"to be kept; {n} are needed: play more worlds (--worlds), for longer (--max-steps), "
            "keep longer runs (--keep), or choose fewer (--n)"
        )
    return kept[:n]


def fit_demonstrations(task: DiamondTask, demos: Sequence[Demonstration]) -> AlignRudder:
    """Return the model: events found in the changes of items and achievements, aligned."""
    without = [i for i, demo in enumerate(demos) if not demo.solved]
    if without:
        raise ValueError(f"demonstrations {without} found no diamond; give only runs that did")
    episodes = [demo.episode(task) for demo in demos]
    return AlignRudder(DeltaEvents(max_events=20, keys=FEATURES), strategies=1).fit(episodes)


# Files: leaves of the states by name, maps as bytes


def _names(tree: Any) -> list[str]:
    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]


def save_demonstrations(path: str | os.PathLike[str], demos: Sequence[Demonstration]) -> None:
    """Save demonstrations as one npz file."""
    arrays = {}
    for i, demo in enumerate(demos):
        for name, leaf in zip(_names(demo.states), jax.tree.leaves(demo.states), strict=True):
            small = leaf.astype(np.uint8) if name.endswith(".map") else leaf
            arrays[f"{i}/{name}"] = small
        arrays[f"{i}/actions"] = demo.actions
    header = {"solved": [demo.solved for demo in demos]}
    _DEMONSTRATIONS.save(path, header, arrays)


def load_demonstrations(path: str | os.PathLike[str], task: DiamondTask) -> list[Demonstration]:
    """Load demonstrations that `save_demonstrations` wrote; anything else is refused."""
    like = jax.eval_shape(task.new_world, jax.random.key(0))
    needed: dict[str, Array] = {"actions": Ints("steps", high=task.n_actions - 1, dtype=None)}
    for name, leaf in zip(_names(like), jax.tree.leaves(like), strict=True):
        needed[name] = _part(name, leaf, task)
    out = []
    with _DEMONSTRATIONS.open(path) as contents:
        n = len(contents.header["solved"])
        if len(contents.others) > n * len(needed):
            raise ValueError(f"it has {len(contents.others)} arrays for {n} demonstrations")
        for i in range(n):
            arrays = contents.checked(f"{i}/", needed)
            actions = arrays.pop("actions")
            if not len(actions):
                raise ValueError(f"demonstration {i} has no actions; at least one is needed")
            found = [arrays[name] for name in _names(like)]
            states = jax.tree.unflatten(jax.tree.structure(like), found)
            solved = bool(task.solved(jax.tree.map(lambda x: jnp.asarray(x[-1]), states)))
            out.append(Demonstration(states, actions, solved))
    return out


def _part(name: str, leaf: Any, task: DiamondTask) -> Array:
    """Return what an array of states may be: one before each action and one after the last."""
    shape, dtype = ("steps+1", *leaf.shape), np.dtype(leaf.dtype)
    if dtype.kind == "b":
        return Flags(*shape)
    if dtype.kind == "f":
        return Floats(*shape, dtype=dtype)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if name in (".world.map", ".seen"):
        low, high = 0, N_BLOCKS - 1
    elif name == ".world.player_position":
        low, high = 0, task.map_size - 1
    return Ints(*shape, low=low, high=high, dtype=dtype)
