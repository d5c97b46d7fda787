"""Numba's `njit`, which goes without its cache where no folder for it can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["njit"]


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function; `cache=True` is a wish, not a condition."""

    def decorate(function: Callable[..., Any]) -> Any:
        compiler: Any = numba.njit
        try:
            return compiler(**options)(function)
        except RuntimeError:
            return compiler(**{**options, "cache": False})(function)

    return decorate
