"""States of many worlds that are played side by side, kept step by step."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

__all__ = ["Traces"]


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
