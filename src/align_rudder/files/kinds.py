"""What a value may be: said once, and checked wherever it comes from (file, option, argument)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = [
    "LARGEST",
    "Anything",
    "Choice",
    "Each",
    "Flag",
    "Kind",
    "Many",
    "Maybe",
    "Number",
    "Table",
    "Text",
    "Whole",
    "check_values",
    "kind_like",
    "shown",
]

LARGEST = 1e50
"""Numbers beyond this size are refused, so that products of a few of them stay finite."""

_WHOLE = 2**31 - 1


def shown(value: Any, most: int = 60) -> str:
    """Return a value as a message shows it: cut where it is long."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits
        return f"a {type(value).__name__} too long to show"
    return text if len(text) <= most else text[: most - 1] + "…"


class Kind(ABC):
    """What a value may be.

    Attributes:
        needed: What is needed, in words.

    Example:
        >>> Whole(1, 9).check(3, "--n")
        3
        >>> Whole(1, 9).check("3", "--n")
        Traceback (most recent call last):
        ...
        ValueError: --n is '3'; a whole number from 1 to 9 is needed
    """

    needed: str

    @abstractmethod
    def _holds(self, value: Any) -> bool:
        """Return whether the value is of this kind, whatever its parts may be."""

    def check(self, value: Any, name: str) -> Any:
        """Return the value, or raise a `ValueError` that says what it is and what is needed."""
        if not self._holds(value):
            raise ValueError(f"{name} is {shown(value)}; {self.needed} is needed")
        return value


class Anything(Kind):
    """Any value at all."""

    needed = "any value"

    def _holds(self, value: Any) -> bool:
        return True


class Whole(Kind):
    """A whole number from `low` to `high`; a truth value is none."""

    def __init__(self, low: int = 0, high: int = _WHOLE) -> None:
        self.low, self.high = low, high
        self.needed = f"a whole number from {low} to {high}"
        if high == _WHOLE:
            self.needed = f"a whole number of at least {low} (and below 2^31)"

    def _holds(self, value: Any) -> bool:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return whole and self.low <= int(value) <= self.high


class Number(Kind):
    """A finite number from `low` to `high`, or `above` and `below` bounds that it must not reach.

    A truth value is none.
    """

    def __init__(
        self,
        low: float = -LARGEST,
        high: float = LARGEST,
        *,
        above: float = -np.inf,
        below: float = np.inf,
    ) -> None:
        self.low, self.high, self.above, self.below = low, high, above, below
        bounds = [
            f"at least {low:g}" if low > -LARGEST else "",
            f"above {above:g}" if above > -np.inf else "",
            f"at most {high:g}" if high < LARGEST else "",
            f"below {below:g}" if below < np.inf else "",
        ]
        said = " and ".join(bound for bound in bounds if bound)
        self.needed = f"a number {said}" if said else f"a finite number (up to {LARGEST:g})"

    def _holds(self, value: Any) -> bool:
        number: Any = value.item() if isinstance(value, np.generic) else value
        if not isinstance(number, Real) or isinstance(number, bool):
            return False
        return self.low <= number <= self.high and self.above < number < self.below  # pyright: ignore[reportOperatorIssue]


class Flag(Kind):
    """True or false, of Python or NumPy."""

    needed = "true or false"

    def _holds(self, value: Any) -> bool:
        return isinstance(value, (bool, np.bool_))


class Text(Kind):
    """A string."""

    needed = "text"

    def _holds(self, value: Any) -> bool:
        return isinstance(value, str)


class Choice(Kind):
    """One of some values."""

    def __init__(self, values: Sequence[Hashable]) -> None:
        self.values = values
        self.needed = "one of " + ", ".join(repr(value) for value in values)

    def _holds(self, value: Any) -> bool:
        return any(type(value) is type(one) and value == one for one in self.values)


class Maybe(Kind):
    """A value of some kind, or None."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.needed = kind, f"{kind.needed}, or none,"

    def _holds(self, value: Any) -> bool:
        return value is None or self.kind._holds(value)

    def check(self, value: Any, name: str) -> Any:
        """Return the value if it is None or of that kind."""
        return None if value is None else self.kind.check(value, name)


class Many(Kind):
    """A list of values of one kind, at least `least` and at most `most` of them."""

    def __init__(self, kind: Kind, least: int = 0, most: int = _WHOLE) -> None:
        self.kind, self.least, self.most = kind, least, most
        self.needed = f"a list of {least} to {most}" if most < _WHOLE else "a list"

    def _holds(self, value: Any) -> bool:
        listed = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        return listed and self.least <= len(value) <= self.most

    def check(self, value: Any, name: str) -> Any:
        """Return the list if each value is of that kind."""
        for i, part in enumerate(super().check(value, name)):
            self.kind.check(part, f"{name}[{i}]")
        return value


class Each(Kind):
    """A mapping from text to values of one kind."""

    needed = "an object with names"

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def _holds(self, value: Any) -> bool:
        return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)

    def check(self, value: Any, name: str) -> Any:
        """Return the mapping if each value is of that kind."""
        for key, part in super().check(value, name).items():
            self.kind.check(part, f"{name}[{shown(key)}]")
        return value


class Table(Kind):
    """A mapping with these entries, all of them but the optional ones, and no others."""

    def __init__(self, entries: Mapping[str, Kind], optional: Sequence[str] = ()) -> None:
        self.entries, self.optional = entries, optional
        self.needed = "an object with " + (", ".join(entries) or "no entries")

    def _holds(self, value: Any) -> bool:
        return isinstance(value, Mapping)

    def check(self, value: Any, name: str) -> Any:
        """Return the mapping if it has the entries, each of its kind."""
        super().check(value, name)
        missing = [e for e in self.entries if e not in value and e not in self.optional]
        if missing:
            raise ValueError(f"{name} has no {missing[0]!r}; {self.needed} is needed")
        for key, part in value.items():
            if key not in self.entries:
                raise ValueError(f"{name} has {shown(key)}, which is not known there")
            self.entries[key].check(part, f"{name}[{key!r}]")
        return value


def check_values(**arguments: tuple[Any, Kind]) -> None:
    """Raise a `ValueError` for the first argument that is not of its kind.

    Args:
        **arguments: Value and kind of each.

    Example:
        >>> check_values(batch=(10, Whole(1)), gamma=(1.0, Number(0, below=1)))
        Traceback (most recent call last):
        ...
        ValueError: gamma is 1.0; a number at least 0 and below 1 is needed
    """
    for name, (value, kind) in arguments.items():
        kind.check(value, name)


def kind_like(value: Any) -> Kind:
    """Return the kind of the values that have the type of this one.

    Example:
        >>> kind_like((0.5, 1.0)).check([1, "x"], "weights")
        Traceback (most recent call last):
        ...
        ValueError: weights[1] is 'x'; a finite number (up to 1e+50) is needed
    """
    if is_dataclass(value):
        return Table({field.name: kind_like(getattr(value, field.name)) for field in fields(value)})
    if isinstance(value, bool):
        return Flag()
    if isinstance(value, int):
        return Whole(-(2**62), 2**62)
    if isinstance(value, float):
        return Number()
    if isinstance(value, str):
        return Text()
    if isinstance(value, (list, tuple)):
        return Many(kind_like(value[0]) if value else Anything())
    return Anything()
