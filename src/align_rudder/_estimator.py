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
        >>> Line(slope=2.0).get_params()
        {'slope': 2.0, 'offset': 0.0}
        >>> Line(slope=2.0)
        Line(slope=2.0)
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Args:
            deep: Whether to add those of parameters that are estimators, as `name__parameter`.
        """
        found = {name: getattr(self, name) for name in self._get_param_names()}
        for name, value in list(found.items()) if deep else ():
            if hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
        return found

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name, those of a parameter as `name__parameter`; return self."""
        from sklearn.base import BaseEstimator

        BaseEstimator.set_params(self, **parameters)  # pyright: ignore[reportArgumentType]
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    def __repr__(self) -> str:
        usual = signature(type(self)).parameters
        values = self.get_params(deep=False).items()
        changed = [f"{name}={v!r}" for name, v in values if repr(v) != repr(usual[name].default)]
        return f"{type(self).__name__}({', '.join(changed)})"
