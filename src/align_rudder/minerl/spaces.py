"""Names, orders and spaces of the MineRL tasks, for versions 3 and 4 of the dataset.

The strings of an action such as `craft` become indices in *sorted* order, as the environment's Enum
space sorts its values; the order in which the environment declares them is another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import gymnasium as gym
import numpy as np

from align_rudder._moved import attribute_of

__all__ = [
    "BUTTONS",
    "DIAMOND_REWARD",
    "DO_NOTHING",
    "ENUMS",
    "FORMATS",
    "HEADS",
    "HELD",
    "ITEMS",
    "TASKS",
    "Format",
    "Task",
    "action_space",
    "array_names",
    "enum_indices",
    "format_of",
    "task_named",
]

if not TYPE_CHECKING:
    __getattr__ = attribute_of(__name__)

_BLOCKS = ("cobblestone", "crafting_table", "dirt", "furnace", "stone", "torch")
_TOOLS = (
    "iron_axe",
    "iron_pickaxe",
    "stone_axe",
    "stone_pickaxe",
    "wooden_axe",
    "wooden_pickaxe",
)
_MATERIALS = ("coal", "iron_ingot", "iron_ore", "log", "planks", "stick")

ITEMS = tuple(sorted((*_BLOCKS, *_TOOLS, *_MATERIALS)))
"""What the inventory counts, in stored order. There is no diamond: it shows only as a reward."""

BUTTONS = ("forward", "left", "back", "right", "jump", "sneak", "sprint", "attack")

ENUMS = {
    head: tuple(sorted(("none", *values)))
    for head, values in {
        "place": _BLOCKS,
        "equip": ("air", *_TOOLS),
        "craft": ("torch", "stick", "planks", "crafting_table"),
        "nearbyCraft": ("furnace", *_TOOLS),
        "nearbySmelt": ("iron_ingot", "coal"),
    }.items()
}
"""Values of the actions that name an item: `ENUMS["craft"][0]` is what the action 0 makes."""

DO_NOTHING = {head: values.index("none") for head, values in ENUMS.items()}
"""The index with which nothing is made, placed or equipped."""

HELD = tuple(sorted(("air", "none", "other", *_TOOLS)))
"""Types of the item in the main hand, in index order."""

HEADS = (*BUTTONS, "camera", *ENUMS)
"""All parts of an action, in stored order."""

DIAMOND_REWARD = 1024.0
MAX_COUNT, MAX_DAMAGE, FRAME_SIZE, FRAME_RATE = 2304, 1562, 64, 20


@dataclass(frozen=True)
class Format:
    """What differs between the versions of the dataset.

    Attributes:
        version: 3 (minerl 0.3) or 4 (minerl 0.4).
        count_type: Type of the inventory counts.
        mainhand: What the names of the arrays of the main hand begin with.
        empty_hand: The type of the main hand when it holds nothing.
    """

    version: int
    count_type: np.dtype
    mainhand: str
    empty_hand: str


FORMATS = {
    3: Format(3, np.dtype(np.int32), "observation$equipped_items.mainhand.", "none"),
    4: Format(4, np.dtype(np.int64), "observation$equipped_items$mainhand$", "air"),
}


@dataclass(frozen=True)
class Task:
    """A task of the dataset.

    Attributes:
        name: Name of its folder.
        items: What its inventory counts; nothing for Treechop, which records none.
        heads: The parts that its actions have.
        limit: Steps after which the environment ends an episode; people played longer.
    """

    name: str
    items: tuple[str, ...]
    heads: tuple[str, ...]
    limit: int


TASKS = {
    task.name: task
    for task in (
        Task("MineRLObtainDiamond-v0", ITEMS, HEADS, 18000),
        Task("MineRLObtainIronPickaxe-v0", ITEMS, HEADS, 6000),
        Task("MineRLTreechop-v0", (), (*BUTTONS, "camera"), 8000),
    )
}


def task_named(name: str) -> Task:
    """Return a task by its name."""
    if name not in TASKS:
        raise ValueError(f"the task {name!r} is not known; known are {', '.join(TASKS)}")
    return TASKS[name]


def array_names(task: str, version: int) -> tuple[str, ...]:
    """Return the members of a trajectory's `rendered.npz`, in stored order.

    Example:
        >>> len(array_names("MineRLObtainDiamond-v0", 3)), len(array_names("MineRLTreechop-v0", 3))
        (36, 10)
        >>> array_names("MineRLObtainDiamond-v0", 3)[21]
        'observation$equipped_items.mainhand.type'
    """
    spec, form = task_named(task), format_of(version)
    observed = [f"observation$inventory${item}" for item in spec.items]
    if spec.items:
        observed += [form.mainhand + part for part in ("damage", "maxDamage", "type")]
    return ("reward", *observed, *(f"action${head}" for head in spec.heads))


def format_of(version: int) -> Format:
    """Return the format of a version."""
    if version not in FORMATS:
        raise ValueError(
            f"version {version} of the MineRL dataset is not known; versions 3 and 4 can be read"
        )
    return FORMATS[version]


def enum_indices(head: str, strings: np.ndarray) -> np.ndarray:
    """Return the index of each string among the sorted values of a head, or of `HELD`.

    Args:
        head: A name in `ENUMS`, or "type" for the item in the main hand.
        strings: The stored strings.

    Example:
        >>> enum_indices("craft", np.array(["none", "planks", "torch", "crafting_table"]))
        array([1, 2, 4, 0])
    """
    values = HELD if head == "type" else ENUMS[head]
    indices = np.minimum(np.searchsorted(values, strings), len(values) - 1)
    unknown = np.flatnonzero(np.array(values)[indices] != strings)
    if len(unknown):
        t = int(unknown[0])
        raise ValueError(
            f"{head} has the value {str(strings[t])!r} at step {t}; known are {', '.join(values)}"
        )
    return indices


def action_space(task: str = "MineRLObtainDiamond-v0") -> gym.spaces.Dict:
    """Return the space of actions, with enums as indices (`ENUMS`)."""
    parts: dict[str, gym.Space] = {button: gym.spaces.Discrete(2) for button in BUTTONS}
    parts["camera"] = gym.spaces.Box(-180, 180, (2,), np.float32)
    parts |= {head: gym.spaces.Discrete(len(values)) for head, values in ENUMS.items()}
    return gym.spaces.Dict({head: parts[head] for head in task_named(task).heads})
