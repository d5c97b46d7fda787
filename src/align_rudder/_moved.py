"""Modules of version 0.1 that live elsewhere now: the old name imports the new module."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MOVED", "install"]

MOVED = {
    "align_rudder.demo": "align_rudder.data.crafting",
    "align_rudder.diamond": "align_rudder.tasks.diamond",
    "align_rudder.diamond.commands": "align_rudder.tasks.diamond.demos",
    **{
        f"align_rudder.diamond.{name}": f"align_rudder.tasks.diamond.{name}"
        for name in ("demos", "expert", "task")
    },
    **{
        f"align_rudder.diamond.{name}": f"align_rudder.studies.diamond.{name}"
        for name in ("figures", "methods", "results", "tables", "video")
    },
    "align_rudder.envs": "align_rudder.tasks",
    "align_rudder.envs.diamond": "align_rudder.tasks.diamond.environment",
    "align_rudder.integrations": "align_rudder.gym",
    "align_rudder.integrations.minari": "align_rudder.data.minari",
    "align_rudder.integrations.sb3": "align_rudder.gym.sb3",
    "align_rudder.live": "align_rudder.gym.live",
    "align_rudder.plot": "align_rudder.show.figures",
    "align_rudder.report": "align_rudder.show.report",
    "align_rudder.rudder": "align_rudder.baselines.lstm",
    "align_rudder.streaming": "align_rudder.tracking",
    "align_rudder.tabular": "align_rudder.baselines",
    "align_rudder.vector": "align_rudder.gym.vector",
    "align_rudder.wrappers": "align_rudder.gym.wrapper",
}


class _Alias(Loader):
    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(MOVED[module.__name__])


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in MOVED:
            return None
        return ModuleSpec(fullname, _Alias(), is_package=True)


def install() -> None:
    """Let `import` know the old names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # First, so that an empty folder left over from the old layout is not taken for a package.
        sys.meta_path.insert(0, _Finder())
