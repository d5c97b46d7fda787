"""Demonstrations: the expert's runs, with every state, so that training can begin anywhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from craftax.craftax_classic.constants import BlockType
from tqdm import tqdm

from align_rudder.episodes import Episode
from align_rudder.events import DeltaEvents
from align_rudder.files import Choice, Flag, Format, Ints, Many, Number
from align_rudder.model import AlignRudder
from align_rudder.runs.checkpoint import named_leaves
from align_rudder.tasks.diamond.expert import MARGIN, Scene, expert_action
from align_rudder.tasks.diamond.task import (
    FEATURES,
    DiamondState,
    DiamondTask,
    items_of,
    marked,
    vitals_of,
)

__all__ = [
    "Demonstration",
    "Setup",
    "Traces",
    "chosen_runs",
    "events_of",
    "fit_demonstrations",
    "load_demonstrations",
    "play_expert",
    "prepare",
    "save_chosen",
    "save_demonstrations",
    "scene_of",
]

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
        values = np.asarray(jax.vmap(task.report)(states))
        observations = {name: values[:, i] for i, name in enumerate(FEATURES)}
        if vector:
            see = jax.jit(jax.vmap(lambda state: task.encode(task.observe(state))))
            observations["vector"] = np.asarray(see(states))
        rewards = np.zeros(len(self.actions))
        rewards[-1] = float(self.solved)
        return Episode(observations, self.actions, rewards, terminated=True)


class Setup(NamedTuple):
    """Task, demonstrations and the model of them, with which training begins.

    Attributes:
        task: The task.
        demos: The demonstrations.
        model: The model that was fitted to them.
        more: Runs that are cloned and begun in as well, and not aligned.
    """

    task: DiamondTask
    demos: list[Demonstration]
    model: AlignRudder
    more: Sequence[Demonstration] = ()

    @property
    def goals(self) -> list[str]:
        """Symbols of the sub-goals."""
        return [str(goal.symbol) for goal in self.model.subgoals_]

    @property
    def runs(self) -> list[tuple[DiamondState | None, np.ndarray]]:
        """States and actions of each demonstration, then of the runs that are not aligned."""
        return [(demo.states, demo.actions) for demo in (*self.demos, *self.more)]


def prepare(
    path: str | os.PathLike[str] | None = None, more: str | os.PathLike[str] | None = None
) -> Setup:
    """Load demonstrations and align them.

    Args:
        path: A file that `align-rudder diamond demos` wrote; None for the ten of the package.
        more: Another one, of runs that are cloned as well and not aligned.
    """
    task = DiamondTask()
    demos = load_demonstrations(path, task)
    others = () if more is None else _solved(load_demonstrations(more, task))
    return Setup(task, demos, fit_demonstrations(task, demos), others)


def fit_demonstrations(
    task: DiamondTask, demos: Sequence[Demonstration], **options: Any
) -> AlignRudder:
    """Return the model: events found in the changes of the task's features, aligned.

    What crafting takes is spent, not lost, so that nothing is undone; the rest is the library's
    default, events paid in order.

    Args:
        task: The task.
        demos: The demonstrations.
        options: Other arguments of `AlignRudder`.
    """
    episodes = [demo.episode(task) for demo in _solved(demos)]
    form = {"strategies": 1, "done": False, "undo": None, **options}
    return AlignRudder(events_of(task), **form).fit(episodes)


def _solved(demos: Sequence[Demonstration]) -> Sequence[Demonstration]:
    without = [i for i, demo in enumerate(demos) if not demo.solved]
    if without:
        raise ValueError(f"demonstrations {without} found no diamond; give only runs that did")
    return demos


def events_of(task: DiamondTask) -> DeltaEvents:
    """Return the events of a task: changes of its features."""
    return DeltaEvents(max_events=20, keys=task.feature_names)


# The expert's runs


def scene_of(task: DiamondTask, state: DiamondState) -> Scene:
    """Return what the expert may know of a state."""
    world = state.world
    seen = jnp.pad(state.seen, MARGIN, constant_values=BlockType.OUT_OF_BOUNDS.value)
    y, x = world.player_position + MARGIN
    mobs = cows = jnp.zeros(seen.shape, bool)
    for kind in (world.zombies, world.skeletons, world.cows):
        away = jnp.abs(kind.position - world.player_position)
        near = kind.mask & (away <= jnp.array([3, 4])).all(axis=1)
        cows = marked(seen.shape, kind.position + MARGIN, near)
        mobs |= cows  # cows are the last kind
    return Scene(
        seen,
        mobs,
        cows,
        y,
        x,
        world.player_direction,
        items_of(state),
        vitals_of(state),
        world.is_sleeping,
        world.light_level < 0.5,
    )


class Traces:
    """States of the worlds that still go on, as NumPy arrays; with Craftax, a state takes 25 kB."""

    def __init__(self) -> None:
        self._kept: list[tuple[np.ndarray, Any]] = []

    def add(self, states: Any, worlds: np.ndarray) -> None:
        """Keep the states (N, …) of some of the worlds, given by their sorted numbers."""
        self._kept.append((worlds, jax.tree.map(lambda x: np.asarray(x)[worlds], states)))

    def of(self, world: int, length: int | None = None) -> Any:
        """Return the first states of a world, all if None, stacked (T, …)."""
        states = []
        for worlds, kept in self._kept[:length]:
            i = np.searchsorted(worlds, world)
            states.append(jax.tree.map(lambda x, i=i: x[i], kept))
        return jax.tree.map(lambda *x: np.stack(x), *states)


def play_expert(
    task: DiamondTask,
    n: int,
    seed: int = 0,
    max_steps: int = 2500,
    keep: int = 200,
    progress: bool = True,
    noise: float = 0.0,
) -> list[Demonstration]:
    """Return the expert's runs in n new worlds.

    Args:
        task: The task.
        n: Number of worlds.
        seed: Seed.
        max_steps: Steps after which a run is given up.
        keep: The longest run whose states are kept; a state takes 25 kB.
        progress: Whether to show a progress bar.
        noise: Share of the actions that are replaced by random ones.
    """
    Number(0, below=1).check(noise, "noise")
    rng = np.random.default_rng(seed)
    keys = jax.random.split(jax.random.key(seed), n + 1)
    state = jax.jit(lambda k: jax.lax.map(task.new_world, k, batch_size=32))(keys[1:])
    step = jax.jit(jax.vmap(task.step))
    look = jax.jit(jax.vmap(lambda s: (scene_of(task, s), task.over(s), task.solved(s))))
    lengths, solved = np.full(n, max_steps), np.zeros(n, bool)
    going = np.ones(n, bool)
    viewed = np.zeros((n, *(task.map_size + 2 * MARGIN,) * 2), np.int64)
    traces, actions = Traces(), []
    key = keys[0]
    for t in tqdm(range(max_steps + 1), "expert", disable=not progress):
        scenes, over, found = jax.tree.map(np.asarray, look(state))
        if t <= keep:
            traces.add(state, np.flatnonzero(going))
        newly = going & over
        lengths[newly], solved[newly] = t, found[newly]
        going &= ~over
        if not going.any() or t == max_steps:
            break
        chosen = np.zeros(n, np.int32)
        for i in np.flatnonzero(going):
            scene = Scene(*(x[i] if x.ndim > 1 else x[i].item() for x in scenes))
            chosen[i] = expert_action(scene, viewed[i], t)
        if noise:
            random = rng.integers(task.n_actions, size=n)
            chosen = np.where(rng.random(n) < noise, random, chosen).astype(np.int32)
        key, here = jax.random.split(key)
        state = step(jax.random.split(here, n), state, jnp.asarray(chosen))
        actions.append(chosen)
    return [
        Demonstration(
            traces.of(i, length + 1) if length <= keep else None,
            np.array([chosen[i] for chosen in actions[:length]]),
            bool(solved[i]),
        )
        for i, length in enumerate(lengths)
    ]


def chosen_runs(
    runs: Sequence[Demonstration], n: int = 10, choose: str = "first"
) -> list[Demonstration]:
    """Return n of the runs that found the diamond and were kept, or as many as there are.

    Args:
        runs: The runs.
        n: How many.
        choose: "first": those of the first worlds, however long they are; or "shortest".
    """
    Choice(("first", "shortest")).check(choose, "choose")
    kept = [run for run in runs if run.solved and run.states is not None]
    return (sorted(kept, key=lambda run: len(run.actions)) if choose == "shortest" else kept)[:n]


def save_chosen(
    path: str | os.PathLike[str],
    runs: Sequence[Demonstration],
    n: int = 10,
    choose: str = "first",
) -> list[Demonstration]:
    """Return n of the runs that found the diamond, and save them; see `chosen_runs`.

    If there are fewer, these are saved too, beside a file that is there already; then a
    `ValueError` says so.
    """
    chosen = chosen_runs(runs, n, choose)
    if len(chosen) == n:
        save_demonstrations(path, chosen)
        return chosen
    there = Path(path)
    if there.exists():  # it may be better
        there = there.with_stem(f"{there.stem}-{len(chosen)}")
    if chosen:
        save_demonstrations(there, chosen)
    raise ValueError(
        f"{sum(run.solved for run in runs)} of {len(runs)} runs found a diamond, {len(chosen)} of "
        f"them short enough to be kept{f' (in {there})' if chosen else ''}; {n} are needed: play "
        "more worlds (--worlds), for longer (--max-steps), keep longer runs (--keep), or choose "
        "fewer (--n)"
    )


# Files: leaves of the states by name, maps as bytes


def save_demonstrations(path: str | os.PathLike[str], demos: Sequence[Demonstration]) -> None:
    """Save demonstrations as one npz file."""
    arrays = {}
    for i, demo in enumerate(demos):
        for name, leaf in named_leaves(demo.states).items():
            arrays[f"{i}/{name}"] = leaf.astype(np.uint8) if name.endswith(".map") else leaf
        arrays[f"{i}/actions"] = demo.actions
    header = {"solved": [demo.solved for demo in demos]}
    _DEMONSTRATIONS.save(path, header, arrays)


def load_demonstrations(
    path: str | os.PathLike[str] | None, task: DiamondTask
) -> list[Demonstration]:
    """Load demonstrations that `save_demonstrations` wrote; anything else is refused.

    Args:
        path: The file; None for the ten demonstrations of the package.
        task: The task.
    """
    path = path or str(files("align_rudder.tasks.diamond") / "demonstrations.npz")
    needed = {"actions": Ints("steps", high=task.n_actions - 1, dtype=None)}
    needed |= task.state_kinds("steps+1")  # one before each action and one after the last
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
            states = task.state_of(arrays)
            solved = bool(task.solved(jax.tree.map(lambda x: jnp.asarray(x[-1]), states)))
            out.append(Demonstration(states, actions, solved))
    return out
