"""Tables of the rooms: episodes to the target, and p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from align_rudder.studies import paper
from align_rudder.studies.rooms.methods import METHODS
from align_rudder.studies.rooms.settings import Setting
from align_rudder.studies.statistics import Summary, compare
from align_rudder.studies.tables import Table

__all__ = [
    "cluster_table",
    "episode_table",
    "growth_table",
    "p_value_table",
    "scaling_table",
    "world_name",
]


def _rows(
    found: Sequence[Summary], row: str = "method", column: str = "demos"
) -> dict[Any, dict[int, Summary]]:
    """Return the summaries by two fields of their settings."""
    out: dict[Any, dict[int, Summary]] = {}
    for summary in found:
        cells = out.setdefault(getattr(summary.setting, row), {})
        cells[getattr(summary.setting, column)] = summary
    return out


def _columns(found: Sequence[Summary], column: str = "demos") -> list[int]:
    return sorted({getattr(s.setting, column) for s in found})


def _means(cells: Mapping[int, Summary], columns: Sequence[int]) -> list[str]:
    """Return the mean episodes in each column, with the trials that did not get there."""
    return [
        f"{cells[n].mean:,.0f}" + (f" ({cells[n].capped}†)" if cells[n].capped else "")
        if n in cells
        else "–"
        for n in columns
    ]


def _published(numbers: Mapping[int, float], columns: Sequence[int]) -> list[str]:
    return [f"{numbers[n]:,}" if n in numbers else "–" for n in columns]


def _trials(found: Sequence[Summary]) -> str:
    n = max((s.trials for s in found), default=0)
    return f"{n} trial{'s' * (n != 1)}"


def _capped_note(found: Sequence[Summary], cap: int) -> tuple[str, ...]:
    if not any(s.capped for s in found):
        return ()
    return (f"† trials that did not reach the target in {cap:,} episodes; they count as {cap:,}",)


def episode_table(title: str, found: Sequence[Summary], cap: int, published: str = "") -> Table:
    """Return mean episodes to 80 %, a row for each method, a column for each number.

    Args:
        title: Title.
        found: Summaries that differ in method and demonstrations.
        cap: The cap on episodes.
        published: Name of the paper's results to put beside ours.
    """
    demos = _columns(found)
    rows = [[METHODS[name].label, *_means(cells, demos)] for name, cells in _rows(found).items()]
    if numbers := paper.EPISODES.get(published):
        rows.append(["Align-RUDDER, paper", *_published(numbers, demos)])
    header = ["demonstrations", *map(str, demos)]
    return Table(f"{title} ({_trials(found)})", header, rows, _capped_note(found, cap))


def p_value_table(title: str, found: Sequence[Summary], published: str = "") -> Table | None:
    """Return the one-sided Mann–Whitney p-values of Align-RUDDER against every other method."""
    methods = _rows(found)
    ours = methods.pop("align-rudder", None) or methods.pop("default", None)
    if not ours or not methods:
        return None
    demos = sorted(ours)
    rows = []
    for name, cells in methods.items():
        values = [f"{compare(ours[n], cells[n]):.1e}" if n in cells else "–" for n in demos]
        rows.append([METHODS[name].label, *values])
        if numbers := paper.P_VALUES.get(published, {}).get(name):
            rows.append(["  paper", *(numbers.get(n, "–") for n in demos)])
    note = "one-sided Mann–Whitney U: Align-RUDDER needs fewer episodes"
    return Table(title, ["Align-RUDDER against", *map(str, demos)], rows, (note,))


def cluster_table(found: Sequence[Summary], cap: int) -> Table:
    """Return mean episodes over the most events allowed, the paper's beside ours."""
    demos, rows = _columns(found), []
    for most, cells in sorted(_rows(found, "max_events").items()):
        rows.append([str(most), *_means(cells, demos)])
        rows.append(["  paper", *_published(paper.CLUSTERS.get(most, {}), demos)])
    title = f"Episodes to 80 % over the most clusters, FourRooms ({_trials(found)}; paper: 10)"
    return Table(title, ["most clusters", *map(str, demos)], rows, _capped_note(found, cap))


def scaling_table(found: Sequence[Summary], cap: int) -> Table:
    """Return mean episodes over the number of rooms."""
    rooms, by_method = _columns(found, "rooms"), _rows(found, column="rooms")
    rows = [[METHODS[name].label, *_means(cells, rooms)] for name, cells in by_method.items()]
    demos = found[0].setting.demos if found else 0
    title = f"Episodes to 80 % over the number of rooms, {demos} demonstrations "
    title += f"({_trials(found)})"
    return Table(title, ["rooms", *map(str, rooms)], rows, _capped_note(found, cap))


def growth_table(found: Sequence[Summary]) -> Table:
    """Return how the episodes grow with the rooms: the exponent of a power law."""
    rows = []
    for name, cells in _rows(found, column="rooms").items():
        if len(cells) > 1:
            rooms, means = np.log([*cells]), np.log([s.mean for s in cells.values()])
            limit = " or more" if any(s.capped for s in cells.values()) else ""
            rows.append([METHODS[name].label, f"{np.polyfit(rooms, means, 1)[0]:.2f}{limit}"])
    return Table("Growth: episodes ~ rooms^x, least squares on logarithms", ["method", "x"], rows)


def world_name(setting: Setting) -> str:
    """Return how tables name the environment of a setting."""
    return {4: "FourRooms", 8: "EightRooms"}.get(setting.rooms, f"{setting.rooms} rooms")
