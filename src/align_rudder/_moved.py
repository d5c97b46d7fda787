"""Modules of version 0.1 that live elsewhere now: the old name imports the new module."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["MOVED", "NAMES", "attribute_of", "install", "new_name"]

_PACKAGE = __name__.partition(".")[0]
_MOVES = {
    "demo": "data.crafting",
    "diamond": "tasks.diamond",
    "diamond.commands": "cli.diamond",
    **{
        f"diamond.{name}": f"studies.diamond.{name}"
        for name in ("figures", "methods", "results", "tables", "video")
    },
    "envs": "tasks",
    "envs.base": "tasks.environment",
    "envs.diamond": "tasks.diamond.environment",
    "experiments": "studies.rooms",
    "experiments.commands": "cli.reproduce",
    "experiments.demo": "cli.demo",
    "experiments.key_chest": "studies.key_chest",
    "experiments.paper": "studies.paper",
    "experiments.statistics": "studies.statistics",
    "experiments.store": "studies.rooms.trials",
    "hierarchy.alignment": "hierarchy.aligned",
    "hierarchy.checkpoints": "runs.checkpoint",
    "hierarchy.improvement": "hierarchy.ppo",
    "hierarchy.interrupts": "runs.interrupt",
    "hierarchy.loading": "hierarchy.folder",
    "hierarchy.training": "hierarchy.settings",
    "hierarchy.unfinished": "runs.checkpoint",
    "integrations": "gym",
    "integrations.minari": "data.minari",
    "live": "gym.live",
    "minerl.colours": "minerl.testing.videos",
    "minerl.commands": "cli.minerl",
    "minerl.initial": "minerl.networks",
    "minerl.learning_commands": "cli.minerl",
    "minerl.recording": "minerl.testing.recording",
    "minerl.scripted": "minerl.testing.scripted",
    "minerl.synthetic": "minerl.testing.synthetic",
    "plot": "show.figures",
    "report": "show.report",
    "report.commands": "cli.model",
    "report.notebook": "show.notebook",
    "rudder": "baselines.lstm",
    "sources": "data.sources",
    "spaces": "gym.spaces",
    "streaming": "streams",
    "tabular": "baselines",
    "tabular.mdp": "tasks.mdp",
    "vector": "gym.vector",
    "wrappers": "gym.wrapper",
}
MOVED = {f"{_PACKAGE}.{old}": f"{_PACKAGE}.{new}" for old, new in _MOVES.items()}
"""Old names and new ones; what lies below an old name lies below the new one, unless named too."""

NAMES = {
    "experiments.methods": {"Method": "studies.method", "check_methods": "studies.method"},
    "experiments.studies": {"run_key_chest": "studies.key_chest"},
    "hierarchy.training": {"train": "hierarchy.trainer"},
    "minerl.spaces": {"DECLARED": "minerl.testing.scripted"},
    "minerl.training": {"evaluate": "minerl.playing", "load_players": "minerl.playing"},
    "spaces": {"check_space": "events.spaces"},
    "text": {"read_fasta": "fasta", "write_fasta": "fasta"},
}
"""Things that left a module for another one than the rest of it, all below the package."""


def new_name(name: str) -> str | None:
    """Return where a module of an old name is now, by the longest part of it that moved."""
    head, rest = name, ""
    while head:
        if head in MOVED:
            return MOVED[head] + rest
        head, _, last = head.rpartition(".")
        rest = f".{last}{rest}"
    return None


def attribute_of(module: str, rest: ModuleType | None = None) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that things have left.

    Args:
        module: Its old name.
        rest: Where all else is now; None if it is still there.
    """
    left = NAMES[module.removeprefix(f"{_PACKAGE}.")]

    def attribute(name: str) -> Any:
        if name in left:
            return getattr(import_module(f"{_PACKAGE}.{left[name]}"), name)
        if rest is not None:
            return getattr(rest, name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return attribute


class _Alias(Loader):
    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = new_name(old)
        assert new is not None
        home = import_module(new)
        left = NAMES.get(old.removeprefix(f"{_PACKAGE}."))
        if left is not None:  # it became several: no one of them has all of its names
            vars(module).update(
                __doc__=home.__doc__,
                __all__=[*home.__all__, *left],
                __getattr__=attribute_of(old, home),
            )
            return
        sys.modules[old] = home
        # What the package has loaded is known under its old names as well: importing it by one of
        # them would set it as an attribute, in place of a function of the same name.
        for name in [name for name in sys.modules if name.startswith(f"{new}.")]:
            below = old + name.removeprefix(new)
            if new_name(below) == name and below.removeprefix(f"{_PACKAGE}.") not in NAMES:
                sys.modules.setdefault(below, sys.modules[name])


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = new_name(fullname)
        if new is None or (fullname not in MOVED and find_spec(new) is None):
            return None
        return ModuleSpec(fullname, _Alias(), is_package=True)


def install() -> None:
    """Let `import` know the old names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # First, so that an empty folder left over from the old layout is not taken for a package.
        sys.meta_path.insert(0, _Finder())
