"""Rich display in notebooks, for classes of layers that know nothing of HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["RichDisplay", "set_renderer"]

_renderer: Callable[[Any], str] = repr


def set_renderer(renderer: Callable[[Any], str]) -> None:
    """Let this function make the HTML; the package sets `show.notebook.html_of`."""
    global _renderer
    _renderer = renderer


class RichDisplay:
    """Shown as HTML in notebooks."""

    def _repr_html_(self) -> str:
        return _renderer(self)
