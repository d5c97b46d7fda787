"""A method of a comparison: how it is shown, and the values of its hyper-parameters that are tried.

Nothing heavy is imported here: command lines take their choices from tables of methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Method", "check_methods"]


@dataclass(frozen=True)
class Method:
    """A method of a comparison; each study adds what it needs to run it.

    Attributes:
        label: How tables and figures name it.
        color: Its color in figures, by its name in the palette if it is of it.
        marker: Its marker, for print without color.
        grid: The values of each of its hyper-parameters that are tried.
    """

    label: str
    color: str
    marker: str
    grid: Mapping[str, Sequence[Any]]

    def edges(self, parameters: Mapping[str, Any]) -> list[str]:
        """Return the hyper-parameters that lie at an end of their values, as text.

        A choice there may have been better beyond. Names have no order, and where 0 or 1 is the
        end there is nothing beyond.

        Example:
            >>> method = Method("Q(λ)", "sky", "P", {"trace": (0.5, 0.8, 1.0), "rate": (0.1, 0.2)})
            >>> method.edges({"trace": 1.0, "rate": 0.2})
            ['rate=0.2']
        """
        out = []
        for name, values in self.grid.items():
            value = parameters.get(name)
            ends = (values[0], values[-1])
            if isinstance(value, (int, float)) and value in ends and value not in (0, 1):
                out.append(f"{name}={value:g}")
        return out


def check_methods(names: Iterable[str], known: Iterable[str]) -> None:
    """Raise a `ValueError` for a method that is not known."""
    for name in names:
        if name not in known:
            raise ValueError(f"method {name!r} is not known; use some of {', '.join(known)}")
