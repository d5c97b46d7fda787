"""A method of a comparison: a learner, and the values of its hyper-parameters that are tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from align_rudder.baselines import Result

__all__ = ["Method"]


@dataclass(frozen=True)
class Method:
    """A method of the comparison.

    Attributes:
        label: How tables and figures name it.
        learner: Name of its learner in `align_rudder.baselines`.
        color: Its color in figures, by its name in the palette if it is of it.
        marker: Its marker, for print without color.
        grid: Values of its hyper-parameters; every method has the same number of combinations. None
            for a variant of another one, `base`, whose hyper-parameters it has.
        fixed: Arguments that are not searched.
        always: Arguments that make the learner the one of the paper; no part of what is recorded.
        network: Names of the hyper-parameters with which its network is trained, if it has one.
        sample: How many combinations are drawn from the grid; None for all of them.
        base: For a variant, the method whose hyper-parameters it has.
    """

    label: str
    learner: str
    color: str
    marker: str
    grid: Mapping[str, Sequence[Any]] | None = None
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
        grid = self.grid or {}
        if self.sample is None:
            chosen = product(*grid.values())
        else:
            chosen = _drawn([*grid.values()], self.sample)
        return [{**dict(zip(grid, values, strict=True)), **self.fixed} for values in chosen]

    def edges(self, parameters: Mapping[str, Any]) -> list[str]:
        """Return the hyper-parameters that lie at an end of their values, as text.

        A choice there may have been better beyond. Names have no order, and where 0 or 1 is the
        end there is nothing beyond.
        """
        out = []
        for name, values in (self.grid or {}).items():
            value = parameters.get(name)
            ends = (values[0], values[-1])
            if isinstance(value, (int, float)) and value in ends and value not in (0, 1):
                out.append(f"{name}={value:g}")
        return out


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
