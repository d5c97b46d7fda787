"""How alignment, model and redistribution look in a notebook: small HTML with its own style."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from html import escape

import numpy as np

from align_rudder.alignment import Alignment
from align_rudder.model import AlignRudder
from align_rudder.redistribution import Redistribution
from align_rudder.sequences import GAP
from align_rudder.show.figures.colors import event_color, event_hex, ink_on
from align_rudder.text import letters_for, short

__all__ = ["alignment_html", "html_of", "model_html", "redistribution_html"]

_MAX_ROWS, _MAX_COLUMNS, _MAX_EVENTS, _MAX_BARS = 30, 200, 60, 400
_CELL = "padding:0 1px;min-width:1.15em;text-align:center;font:12px monospace"
_SMALL = "font-size:12px;opacity:.75"


def html_of(thing: Alignment | AlignRudder | Redistribution) -> str:
    """Return what a notebook shows of a model, an alignment or a redistribution."""
    if isinstance(thing, Alignment):
        return alignment_html(thing)
    return redistribution_html(thing) if isinstance(thing, Redistribution) else model_html(thing)


def _text(symbol: Hashable) -> str:
    return escape(short(symbol, 60).encode("utf-8", "replace").decode())


def _colored(event: int) -> str:
    return f"background:{event_hex(event)};color:{ink_on(event_color(event))}"


def alignment_html(aligned: Alignment, marked: dict[int, int] | None = None) -> str:
    """Return an alignment as a table that scrolls; a large one is cut, and says so.

    Args:
        aligned: The alignment.
        marked: Number of the sub-goal at columns that are one.
    """
    n, length = aligned.matrix.shape
    shown = aligned.matrix[:_MAX_ROWS, :_MAX_COLUMNS]
    letters = [_text(letter) for letter in letters_for(aligned.symbols)]
    style = [f'style="{_CELL};{_colored(e)}"' for e in range(len(letters))]
    rows = []
    if marked:
        cells = "".join(
            f'<td style="{_CELL}" title="sub-goal {marked[c]}">▾</td>'
            if c in marked
            else "<td></td>"
            for c in range(shown.shape[1])
        )
        rows.append(f"<tr><th></th>{cells}</tr>")
    for i, row in enumerate(shown):
        cells = "".join(
            "<td></td>" if e == GAP else f"<td {style[e]}>{letters[e]}</td>" for e in row
        )
        rows.append(f'<tr><th style="{_SMALL};text-align:right">{i}</th>{cells}</tr>')
    cut = []
    if n > _MAX_ROWS:
        cut.append(f"the first {_MAX_ROWS} of {n} sequences")
    if length > _MAX_COLUMNS:
        cut.append(f"the first {_MAX_COLUMNS} of {length} columns")
    note = f" Shown: {' and '.join(cut)}." if cut else ""
    return (
        f'<div style="{_SMALL}">{escape(repr(aligned))}.{note}</div>'
        f'<div style="overflow:auto;max-height:30em"><table style="border-collapse:collapse;'
        f'margin:4px 0">{"".join(rows)}</table></div>{_legend(aligned.symbols, letters)}'
    )


def _legend(symbols: Sequence[Hashable], letters: list[str]) -> str:
    parts = [
        f'<span style="white-space:nowrap;margin-right:1em"><span style="{_colored(e)};'
        f'padding:0 .35em">{letter}</span> {_text(symbol)}</span>'
        for e, (letter, symbol) in enumerate(zip(letters, symbols, strict=True))
    ][:_MAX_EVENTS]
    if len(symbols) > _MAX_EVENTS:
        parts.append(f"and {len(symbols) - _MAX_EVENTS} more events")
    return f'<div style="font-size:12px;line-height:1.8">{" ".join(parts)}</div>'


def model_html(model: AlignRudder) -> str:
    """Return what a model found: alignment and sub-goals of its largest strategy."""
    if not hasattr(model, "strategies_"):
        return f"<pre>{escape(repr(model))}</pre>"
    parts = [f"<div><b>{escape(type(model).__name__)}</b> {_found(model)}</div>"]
    if not model.strategies_:
        parts.append("<div>The demonstrations share no strategy; rewards stay episodic.</div>")
        return "".join(parts)
    strategy = model.strategies_[0]
    at = {int(strategy.profile.columns[g.column]): i for i, g in enumerate(strategy.subgoals, 1)}
    parts.append(alignment_html(strategy.alignment, at))
    rows = "".join(
        f"<tr><td>{i}</td><td style='text-align:left'>{_text(goal.symbol)}</td>"
        f"<td>{goal.share:.0%}</td><td>{goal.reward:.4g}</td></tr>"
        for i, goal in enumerate(strategy.subgoals[:_MAX_EVENTS], 1)
    )
    more = len(strategy.subgoals) - _MAX_EVENTS
    note = f"<div style='{_SMALL}'>and {more} more sub-goals</div>" if more > 0 else ""
    parts.append(
        "<details><summary>Sub-goals</summary><table><tr><th>sub-goal</th><th>event</th>"
        f"<th>held by</th><th>mean reward</th></tr>{rows}</table>{note}</details>"
    )
    return "".join(parts)


def _found(model: AlignRudder) -> str:
    sizes = ", ".join(str(len(s.members)) for s in model.strategies_)
    one = "strategy" if len(model.strategies_) == 1 else "strategies"
    return (
        f"fitted to {len(model.encoded_)} demonstrations: {model.events_.n_events} kinds of event, "
        f"{len(model.strategies_)} {one}{f' (of {sizes} demonstrations)' if sizes else ''}, "
        f"{len(model.subgoals_)} sub-goals"
        + (f", {len(model.outliers_)} demonstrations in none" if len(model.outliers_) else "")
    )


def redistribution_html(rr: Redistribution) -> str:
    """Return a small picture of the redistributed reward of an episode, its largest bars."""
    wide, high, steps = 640, 110, len(rr.rewards)
    values = np.append(rr.rewards, rr.correction)
    sums = np.cumsum(values)
    low, top = min(0.0, float(sums.min()), values.min()), max(float(sums.max()), values.max(), 0.0)
    span = (top - low) or 1.0

    def x(t: float) -> float:
        return 10 + (wide - 20) * t / (steps + 1)  # half a bar from the edge

    def y(value: float) -> float:
        return 6 + (high - 12) * (top - value) / span

    paid = np.flatnonzero(rr.rewards)
    bars = np.sort(paid[np.argsort(-np.abs(rr.rewards[paid]), kind="stable")[:_MAX_BARS]])
    width = min(max(x(1) - x(0) - 1, 1.0), 12.0)

    def bar(t: int, value: float, look: str) -> str:
        base, end = sorted((y(0.0), y(value)))
        return (
            f'<rect x="{x(t) - width / 2:.1f}" y="{base:.1f}" width="{width:.1f}" '
            f'height="{max(end - base, 0.5):.1f}" {look}/>'
        )

    shapes = [
        bar(t + 1, float(rr.rewards[t]), f'fill="{event_hex(max(int(rr.events[t]), 0))}"')
        for t in bars.tolist()
    ]
    shapes.append(bar(steps + 1, rr.correction, 'fill="none" stroke="currentColor"'))
    line = f"M{x(0):.1f} {y(0.0):.1f}"
    for t in [*bars.tolist(), steps]:
        line += f"H{x(t + 1):.1f}V{y(float(sums[t])):.1f}"
    note = f" The {_MAX_BARS} largest are drawn." if len(paid) > _MAX_BARS else ""
    return (
        f'<div style="{_SMALL}">{escape(repr(rr))}.{note} The line is their sum, the outlined bar '
        f'at the end the correction.</div><svg viewBox="0 0 {wide} {high}" width="{wide}" '
        f'style="max-width:100%" role="img" aria-label="{escape(repr(rr))}">'
        f'<path d="M0 {y(0.0):.1f}H{wide}" stroke="currentColor" stroke-opacity=".3"/>'
        f'{"".join(shapes)}<path d="{line}" fill="none" stroke="currentColor" stroke-width="1.3"/>'
        "</svg>"
    )
