"""Checks of options, with their names, before any work is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from align_rudder.files import Kind, Maybe, Whole

__all__ = [
    "SEED",
    "OptionalOutput",
    "Output",
    "check_figure",
    "check_folder",
    "check_least",
    "check_options",
    "check_seed",
    "make_folder",
]

Output = Annotated[str, tyro.conf.arg(aliases=["-o"])]
OptionalOutput = Annotated[str | None, tyro.conf.arg(aliases=["-o"])]

SEED = Whole(0, 2**32 - 1)
_FIGURES = (".png", ".svg", ".pdf")


def check_options(command: Any, kinds: Mapping[str, Kind]) -> None:
    """Refuse an option that is not of its kind; None is left out.

    Args:
        command: A command; those of its fields that have a kind are checked.
        kinds: The kinds by name, of more than this command perhaps.
    """
    for name in (field.name for field in fields(command) if field.name in kinds):
        Maybe(kinds[name]).check(getattr(command, name), f"--{name.replace('_', '-')}")


def check_least(command: Any, **least: int) -> None:
    """Refuse an option of a command that is below the least it may be; None is left out."""
    check_options(command, {name: Whole(n) for name, n in least.items()})


def check_seed(seed: int) -> None:
    """Refuse a seed that is negative or too large."""
    SEED.check(seed, "--seed")


def check_folder(path: str | None, option: str = "--out") -> None:
    """Refuse an empty name as that of a folder; None is left out."""
    if path is not None and not path.strip():
        raise ValueError(f"{option} is empty; give the name of a folder, . for the one you are in")


def make_folder(path: str | None, option: str) -> None:
    """Make a folder for results, before the work is done; None is left out."""
    check_folder(path, option)
    if path is not None:
        try:
            Path(path).mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise ValueError(f"{option} {path}: there can be no such folder: {error}") from error


def check_figure(
    path: str | None, option: str = "--figure", endings: Sequence[str] = _FIGURES
) -> None:
    """Refuse a figure of a kind that is not drawn."""
    if path is not None and (not Path(path).name or Path(path).suffix.lower() not in endings):
        raise ValueError(f"{option} {path}: its name must end with {', '.join(endings)}")
