"""A method of the rooms: a learner, and the configurations of it that are tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any

from align_rudder.studies.method import Method

if TYPE_CHECKING:
    from align_rudder.baselines import Result

__all__ = ["RoomsMethod"]


@dataclass(frozen=True, kw_only=True)
class RoomsMethod(Method):
    """A method that learns the rooms.

    Every method of a comparison has the same number of configurations. The grid is empty for a
    variant of another method, `base`, whose hyper-parameters it has.

    Attributes:
        learner: Name of its learner in `align_rudder.baselines`.
        fixed: Arguments that are not searched.
        network: Names of the hyper-parameters with which its network is trained, if it has one.
        always: Arguments that make the learner the one of the paper; no part of what is recorded.
        sample: How many combinations are drawn from the grid; None for all of them.
        base: For a variant, the method whose hyper-parameters it has.
    """

    learner: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    network: tuple[str, ...] | None = None
    always: Mapping[str, Any] = field(default_factory=dict)
    sample: int | None = None
    base: str = "align-rudder"

    @property
    def function(self) -> Callable[..., Result]:
        """The learner, with the defaults of the library."""
        from align_rudder import baselines

        return getattr(baselines, self.learner)

    @property
    def learn(self) -> Callable[..., Result]:
        """The learner as the study has it."""
        return partial(self.function, **self.always)

    def configurations(self) -> list[dict[str, Any]]:
        """Return every combination of the grid, or as many as are drawn from it."""
        if self.sample is None:
            chosen = product(*self.grid.values())
        else:
            chosen = _drawn([*self.grid.values()], self.sample)
        return [{**dict(zip(self.grid, values, strict=True)), **self.fixed} for values in chosen]


def _drawn(values: list[Sequence[Any]], n: int) -> list[tuple[Any, ...]]:
    """Return n different combinations, always the same; each value comes about equally often."""
    rng, columns = Random(0), []
    for some in values:
        column = [*some] * (n // len(some) + 1)
        rng.shuffle(column)
        columns.append(column)
    out = dict.fromkeys(zip(*columns))
    if len(out) < n:
        raise ValueError(f"the grid has too few combinations to draw {n}")
    return [*out][:n]
