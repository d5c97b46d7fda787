"""The one warning class of the package."""

from __future__ import annotations

import warnings

__all__ = ["AlignRudderWarning", "warn"]


class AlignRudderWarning(UserWarning):
    """Something the user should know about the demonstrations, the model or its use."""


def warn(message: str, stacklevel: int = 3) -> None:
    """Issue an `AlignRudderWarning` at the caller's caller."""
    warnings.warn(message, AlignRudderWarning, stacklevel=stacklevel)
