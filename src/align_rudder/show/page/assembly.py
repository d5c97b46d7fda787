"""A page: frame, style, scripts and data in one HTML file that needs nothing else."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from align_rudder.show.figures.colors import event_hex
from align_rudder.text import letters_for, short

__all__ = ["event_data", "html_page"]

_COMMON = "align_rudder.show.page"
_SCRIPTS = ("basics", "theme", "chart")


def html_page(
    package: str, links: Mapping[str, str], scripts: Iterable[str], data: Mapping[str, Any]
) -> str:
    """Return a page as HTML.

    Args:
        package: The package with the page's body.html, style.css and scripts.
        links: For the navigation: the id of each section, and its name.
        scripts: Names of its scripts, in the order in which they run, after those of all pages.
        data: What is shown, with a "title"; scripts find it as D.
    """
    own = files(package)
    common = files(_COMMON)
    codes = [common.joinpath("scripts", f"{name}.js").read_text("utf-8") for name in _SCRIPTS]
    codes += [own.joinpath("scripts", f"{name}.js").read_text("utf-8") for name in scripts]
    styles = [folder.joinpath("style.css").read_text("utf-8") for folder in (common, own)]
    parts = {
        "title": html.escape(data["title"]),
        "style": "\n".join(styles),
        "links": "".join(f'<a href="#{place}">{name}</a>' for place, name in links.items()),
        "body": own.joinpath("body.html").read_text("utf-8"),
        "script": "\n".join(codes),
        # "<" as \u003c: no symbol can end the script element or begin a comment.
        "data": json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
    }
    frame = common.joinpath("frame.html").read_text("utf-8")
    return re.sub("{{(.+?)}}", lambda found: parts[found[1]], frame)


def event_data(symbols: Sequence[Hashable], counts: Iterable[int]) -> list[dict[str, Any]]:
    """Return name, letter, colour and number of each event."""
    return [
        {"name": short(symbol, 200), "letter": letter, "color": event_hex(e), "count": count}
        for e, (symbol, letter, count) in enumerate(
            zip(symbols, letters_for(symbols), counts, strict=True)
        )
    ]
