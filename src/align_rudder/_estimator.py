"""The parameters of an estimator, as scikit-learn has them, without the second its import takes."""

from __future__ import annotations

from inspect import signature
from typing import Any, Self

__all__ = ["Estimator"]


class Estimator:
    """An estimator whose parameters are the arguments of its `__init__`.

    scikit-learn's `clone`, pipelines and searches take it as one of theirs.

    Example:
        >>> class Line(Estimator):
        ...     def __init__(self, slope=1.0, offset=0.0):
        ...         self.slope, self.offset = slope, offset
        >>> Line(slope=2.0).set_params(offset=1.0).get_params()
        {'slope': 2.0, 'offset': 1.0}
        >>> Line(slope=2.0)
        Line(slope=2.0)
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Args:
            deep: Whether to add those of parameters that are estimators, as `name__parameter`.
        """
        found = {name: getattr(self, name) for name in signature(type(self)).parameters}
        for name, value in list(found.items()) if deep else ():
            if hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
        return found

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name, those of a parameter as `name__parameter`; return self."""
        known = self.get_params(deep=False)
        for name, value in parameters.items():
            first, nested, rest = name.partition("__")
            if first not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {first!r}; it has {', '.join(known)}"
                )
            if nested:
                getattr(self, first).set_params(**{rest: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        usual = signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(usual[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()
