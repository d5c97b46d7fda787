"""Generated datasets in MineRL's format, for tests, benchmarks and a look at the format.

People in it follow the chain to the diamond, with what people do on the way: dirt, logs that nobody
needs, torches, axes, blocks placed again. Items come and go as in Minecraft's recipes. The pictures
are of one colour each, which tells the number of the frame (see `videos`).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from align_rudder.minerl.spaces import BUTTONS, ENUMS, ITEMS, array_names, format_of, task_named
from align_rudder.minerl.testing.scripted import DURABILITY, RECIPES, REWARDS
from align_rudder.minerl.testing.videos import cut_video, numbered_frames, write_video

__all__ = [
    "CHAIN",
    "claim_folder",
    "rendered",
    "simulate",
    "write_dataset",
    "write_trajectory",
]

CHAIN = tuple(REWARDS)
"""The items in the order in which they are first had."""

Arrays = dict[str, np.ndarray]


class _Player:
    """Does one thing after another and keeps the inventory; each is a row of `events`."""

    def __init__(self, rng: np.random.Generator, goal: str, noise: float) -> None:
        self.rng, self.goal, self.noise = rng, goal, noise
        self.items: dict[str, int] = dict.fromkeys((*ITEMS, "diamond"), 0)
        self.events: list[tuple[dict[str, int], str | None, str | None]] = []
        self.done = False

    def do(self, head: str | None = None, value: str | None = None, /, **changes: int) -> None:
        """Add an event unless the goal has been reached: changes of items, and the action."""
        if self.done:
            return
        for item, change in changes.items():
            self.items[item] += change
            if self.items[item] < 0:
                raise AssertionError(f"used a {item} that was not there")
        self.events.append((changes, head, value))
        self.done = changes.get(self.goal, 0) > 0

    def make(self, item: str) -> None:
        """Make an item by its recipe."""
        uses, n, station = RECIPES[item]
        head = {None: "craft", "crafting_table": "nearbyCraft", "furnace": "nearbySmelt"}[station]
        self.do(head, item, **{part: -k for part, k in uses.items()}, **{item: n})

    def place(self, block: str) -> None:
        self.do("place", block, **{block: -1})

    def collect(self, item: str, n: int) -> None:
        for _ in range(n):
            self.wander()
            self.do(**{item: 1})

    def wander(self) -> None:
        """Do something that leads nowhere, every now and then."""
        if self.rng.random() >= self.noise:
            return
        options = ["dirt", "dirt", "log"]
        if self.items["dirt"] > 2:
            options.append("place dirt")
        if self.items["cobblestone"] > 12:
            options.append("place cobblestone")
        if self.items["coal"] > 1 and self.items["stick"] > 2:
            options.append("torch")
        if self.items["torch"]:
            options.append("place torch")
        choice = str(self.rng.choice(options))
        if choice == "torch":
            self.make("torch")
        elif choice.startswith("place "):
            self.place(choice.removeprefix("place "))
        else:
            self.do(**{choice: 1})

    def obtain_diamond(self) -> None:
        """Follow the chain, with a margin of everything that differs from person to person."""
        extra = self.rng.integers
        self.collect("log", 6 + int(extra(4)))
        for _ in range(5 + int(extra(2))):
            self.make("planks")
        for _ in range(3):
            self.make("stick")
        self.make("crafting_table")
        self.place("crafting_table")
        self.make("wooden_pickaxe")
        self.do("equip", "wooden_pickaxe")
        self.collect("cobblestone", 11 + int(extra(6)))
        self.make("stone_pickaxe")
        if self.items["cobblestone"] > 12 and self.rng.random() < self.noise:
            self.make("stone_axe")
        self.do("equip", "stone_pickaxe")
        self.collect("coal", 2 + int(extra(3)))
        if self.rng.random() < self.noise:  # the first one was left behind
            self.make("crafting_table")
            self.place("crafting_table")
        self.collect("iron_ore", 3 + int(extra(2)))
        self.collect("cobblestone", max(0, 8 - self.items["cobblestone"]))
        self.make("furnace")
        self.place("furnace")
        self.make("iron_ingot")
        for _ in range(2):
            self.do("nearbySmelt", "iron_ingot", iron_ore=-1, iron_ingot=1)
        self.make("iron_pickaxe")
        self.do("equip", "iron_pickaxe")
        self.collect("cobblestone", int(extra(6)))
        self.do(diamond=1)


def simulate(
    rng: np.random.Generator,
    steps: int,
    *,
    task: str = "MineRLObtainDiamond-v0",
    version: int = 3,
    goal: str | None = None,
    noise: float = 0.3,
) -> Arrays:
    """Return the arrays of one trajectory, named and typed as in `rendered.npz`.

    Args:
        rng: Source of all randomness.
        steps: Number of steps T.
        task: Name of the task.
        version: Version of the format.
        goal: The item with which the trajectory ends, one of `CHAIN`; that of the task if None.
        noise: How often something is done that leads nowhere.

    Example:
        >>> arrays = simulate(np.random.default_rng(0), 500)
        >>> len(arrays), int(arrays["reward"].sum()), arrays["observation$inventory$log"].shape
        (36, 1571, (501,))
    """
    spec, form = task_named(task), format_of(version)
    last = {"MineRLObtainDiamond-v0": "diamond", "MineRLObtainIronPickaxe-v0": "iron_pickaxe"}
    goal = goal or last.get(task, "log")
    if goal not in CHAIN:
        raise ValueError(f"goal={goal!r} is not on the way to the diamond: {', '.join(CHAIN)}")
    player = _Player(rng, goal if spec.items else "nothing", noise)
    if spec.items:
        player.obtain_diamond()
    else:
        player.collect("log", 3 + int(rng.integers(6)))
    events = player.events
    if len(events) >= steps:
        raise ValueError(f"steps={steps} is too few for the {len(events)} things done on the way")
    times = np.sort(rng.choice(steps - 1, len(events) - 1, replace=False))
    times = np.append(times, steps - 1)  # the last event ends the trajectory
    rewards, counts = np.zeros(steps), np.zeros((steps + 1, len(ITEMS)), np.int64)
    heads = {head: np.full(steps, "none", dtype=object) for head in ENUMS}
    had: set[str] = set()
    for t, (changes, head, value) in zip(times, events, strict=True):
        if head is not None:
            heads[head][t] = value
        for item, change in changes.items():
            if item in ITEMS:
                counts[t + 1, ITEMS.index(item)] += change
            if change > 0 and (item not in had or not spec.items):
                had.add(item)
                rewards[t] += REWARDS.get(item, 0)
    hand = _hand(rng, steps, heads["equip"], form.empty_hand) if spec.items else {}
    # Buttons are held for a while, released for a while.
    actions = {button: np.cumsum(rng.random(steps) < 0.05) % 2 for button in BUTTONS}
    actions["attack"][times] = 1
    moves = rng.normal(0, 5, (steps, 2)) * (rng.random((steps, 1)) < 0.4)
    actions |= {"camera": np.clip(moves, -180, 180), **heads}
    return rendered(task, version, rewards, counts.cumsum(0), hand, actions)


def rendered(
    task: str,
    version: int,
    rewards: np.ndarray,
    counts: np.ndarray,
    hand: Mapping[str, np.ndarray],
    actions: Mapping[str, np.ndarray],
) -> Arrays:
    """Return a trajectory as the arrays of `rendered.npz`; what the task lacks is left out.

    Args:
        task: Name of the task.
        version: Version of the format.
        rewards: The rewards (T,).
        counts: Counts of `ITEMS` (T+1, 18).
        hand: `damage`, `maxDamage` and `type` (T+1,) of what is held.
        actions: Each of `HEADS` (T, …), enums by name.
    """
    form = format_of(version)
    arrays: Arrays = {"reward": rewards.astype(np.float32)}
    for i, item in enumerate(ITEMS):
        arrays[f"observation$inventory${item}"] = counts[:, i].astype(form.count_type)
    for part, array in hand.items():
        # Strings as lists: NumPy makes them as wide as the longest of the file.
        kept = np.array(array.tolist()) if part == "type" else array.astype(np.int32)
        arrays[form.mainhand + part] = kept
    for head, array in actions.items():
        kind = np.float32 if head == "camera" else np.int64
        kept = np.array(array.tolist()) if head in ENUMS else array.astype(kind)
        arrays[f"action${head}"] = kept
    return {name: arrays[name] for name in array_names(task, version)}


def _hand(rng: np.random.Generator, steps: int, equip: np.ndarray, empty: str) -> Arrays:
    """Return what is held: nothing, now and then an unlisted block, and tools, which wear off."""
    held = np.full(steps + 1, empty, dtype=object)
    damage, most = np.zeros(steps + 1), np.zeros(steps + 1)
    starts = [0, *(np.flatnonzero(equip != "none") + 1), steps + 1]
    for start, stop in pairwise(starts):
        if start == 0:
            held[:stop][rng.random(stop) < 0.1] = "other"
            continue
        tool = str(equip[start - 1])
        held[start:stop] = tool
        most[start:stop] = limit = DURABILITY[tool.split("_")[0]]
        damage[start:stop] = np.minimum(np.arange(stop - start) // 40, limit)
    return {"damage": damage, "maxDamage": most, "type": held}


def write_trajectory(folder: Path, arrays: Arrays, version: int, n_frames: int) -> None:
    """Write the arrays and metadata of a trajectory into a folder; the video is written apart.

    Args:
        folder: The folder of the trajectory, whose name is that of its stream; it is made.
        arrays: As `simulate` returns them.
        version: Version of the format.
        n_frames: Number of frames of its recording.
    """
    folder.mkdir(parents=True)
    np.savez_compressed(folder / "rendered.npz", **arrays)  # pyright: ignore[reportArgumentType]
    rewards = arrays["reward"]
    metadata = {
        # The publisher asks for more distinct rewards than a full run has, so this is never true.
        "success": False if version == 4 else "False",
        "duration_ms": 50 * len(rewards),
        "duration_steps": len(rewards),
        "total_reward": float(rewards.sum(dtype=np.float64)),
        "stream_name": folder.name,
        "true_video_frame_count": n_frames,
    }
    (folder / "metadata.json").write_text(json.dumps(metadata))


def claim_folder(root: str | os.PathLike[str], task: str, version: int) -> Path:
    """Return the folder for a new task of a dataset; write what version the dataset has.

    Args:
        root: The folder of the dataset; it is made.
        task: Name of the task; its folder must not be there yet.
        version: Version of the format, 3 or 4.
    """
    root = Path(root)
    task_named(task)
    format_of(version)
    stated, folder = root / "VERSION", root / task
    if stated.exists() and stated.read_text() != str(version):
        raise ValueError(
            f"{root} holds version {stated.read_text()} of the dataset; version {version} needs "
            "another folder"
        )
    if folder.exists():
        raise ValueError(f"{folder} is already there; give another folder or delete it")
    root.mkdir(parents=True, exist_ok=True)
    stated.write_text(str(version))
    return folder


def write_dataset(
    root: str | os.PathLike[str],
    n: int,
    version: int = 3,
    task: str = "MineRLObtainDiamond-v0",
    seed: int = 0,
    *,
    lengths: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    diamonds: int | None = None,
    noise: float = 0.3,
    video: bool = True,
) -> list[Path]:
    """Write a dataset of one task; further tasks are added by writing into the same folder.

    Args:
        root: The folder of the dataset; it is made.
        n: Number of trajectories.
        version: Version of the format, 3 or 4.
        task: Name of the task.
        seed: The same seed gives the same files, but for the bytes of the videos where the codec
            is of another version.
        lengths: Steps of each; drawn between 200 and 400 if None.
        names: Names of the folders; made up if None.
        diamonds: How many mine a diamond (ObtainDiamond only), the first ones; 60 % if None. The
            others stop somewhere on the way.
        noise: How often something is done that leads nowhere.
        video: Whether to write recordings; without, `recording.mp4` is missing.

    Returns:
        The folders of the trajectories.
    """
    folder = claim_folder(root, task, version)
    rng = np.random.default_rng(seed)
    drawn: list[int] = rng.integers(200, 400, n).tolist()
    lengths = drawn if lengths is None else [int(steps) for steps in lengths]
    if len(lengths) != n or (names is not None and len(set(names)) != n):
        given = "" if names is None else f" and {len(set(names))} different names"
        raise ValueError(f"{len(lengths)} lengths{given} for n={n} trajectories; give one for each")
    diamonds = round(0.6 * n) if diamonds is None else diamonds
    skips = rng.integers(0, 60, n)
    starts = rng.integers(100, 100_000, n)
    if names is None:
        words = ("grape", "okra", "chard", "tuber", "olive", "mango", "kale", "endive")
        beasts = ("djinn", "orc", "golum", "nymph", "harpy", "dwarf", "angel", "ghost")
        streams = [f"{rng.choice(words)}_{rng.choice(beasts)}-{i}" for i in range(n)]
        names = [
            f"v{version}_{stream}_{start}-{start + steps + skip}"
            for stream, start, steps, skip in zip(streams, starts, lengths, skips, strict=True)
        ]
    # Each trajectory has its own random numbers, so that it does not depend on the others.
    children = rng.spawn(n)
    frames = [int(steps) + 1 + int(skip) for steps, skip in zip(lengths, skips, strict=True)]
    with tempfile.TemporaryDirectory() as scratch:
        longest = Path(scratch) / "longest.mp4"
        if video and n:
            write_video(longest, numbered_frames(max(frames)))
        for i, (name, steps, child) in enumerate(zip(names, lengths, children, strict=True)):
            goal = None
            if task == "MineRLObtainDiamond-v0" and i >= diamonds:
                goal = str(child.choice(CHAIN[:-1]))
            arrays = simulate(child, int(steps), task=task, version=version, goal=goal, noise=noise)
            write_trajectory(folder / name, arrays, version, frames[i])
            if video:
                cut_video(longest, folder / name / "recording.mp4", frames[i])
    return [folder / name for name in names]
