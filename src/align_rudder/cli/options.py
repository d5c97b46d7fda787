"""Checks of options that several commands have, before any work is done."""

from __future__ import annotations

from typing import Any

__all__ = ["check_figure", "check_least", "check_seed"]

_FIGURES = (".png", ".svg", ".pdf")


def check_least(command: Any, **least: int) -> None:
    """Refuse an option of a command that is below the least it may be; None is left out."""
    for name, n in least.items():
        value = getattr(command, name)
        if value is not None and value < n:
            option = name.replace("_", "-")
            raise ValueError(f"--{option} is {value}; at least {n} is needed")


def check_seed(seed: int) -> None:
    """Refuse a seed that is negative or too large."""
    if not 0 <= seed < 2**32:
        raise ValueError(f"--seed is {seed}; one from 0 to {2**32 - 1:,} is needed")


def check_figure(path: str | None) -> None:
    """Refuse a figure of a kind that is not drawn."""
    if path is not None and not path.endswith(_FIGURES):
        raise ValueError(f"--figure {path}: its name must end with {', '.join(_FIGURES)}")
