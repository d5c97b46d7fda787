"""Tables of results, as text and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from align_rudder.studies import paper
from align_rudder.studies.rooms.methods import all_methods
from align_rudder.studies.rooms.settings import Setting
from align_rudder.studies.rooms.statistics import Summary, compare

__all__ = ["Table", "cluster_table", "episode_table", "p_value_table", "scaling_table"]


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        title: What it shows.
        header: Names of the columns; the first column holds names of rows.
        rows: The rows.
        notes: Lines under it.
    """

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the table for a terminal."""
        lines = [self.header, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]

        def line(cells: list[str]) -> str:
            first = cells[0].ljust(widths[0])
            return "  ".join([first, *(c.rjust(w) for c, w in zip(cells[1:], widths[1:]))]).rstrip()

        rule = "─" * len(line(self.header))
        body = [line(row) for row in self.rows]
        return "\n".join([self.title, rule, line(self.header), rule, *body, rule, *self.notes])

    def markdown(self) -> str:
        """Return the table as Markdown."""
        head = "| " + " | ".join(self.header) + " |"
        rule = "|---|" + "---:|" * (len(self.header) - 1)
        rows = ["| " + " | ".join(row) + " |" for row in self.rows]
        notes = ["", *self.notes] if self.notes else []
        return "\n".join([f"**{self.title}**", "", head, rule, *rows, *notes])


def _by_method(found: Sequence[Summary]) -> dict[str, dict[int, Summary]]:
    out: dict[str, dict[int, Summary]] = {}
    for summary in found:
        out.setdefault(summary.setting.method, {})[summary.setting.demos] = summary
    return out


def _mean(value: Summary | None) -> str:
    if value is None:
        return "–"
    mark = f" ({value.capped}†)" if value.capped else ""
    return f"{value.mean:,.0f}{mark}"


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
    methods = _by_method(found)
    demos = sorted({s.setting.demos for s in found})
    trials = max((s.trials for s in found), default=0)
    rows = [
        [all_methods()[name].label, *(_mean(cells.get(n)) for n in demos)]
        for name, cells in methods.items()
    ]
    numbers = paper.EPISODES.get(published)
    if numbers:
        rows.append(
            ["Align-RUDDER, paper", *(f"{numbers[n]:,}" if n in numbers else "–" for n in demos)]
        )
    header = ["demonstrations", *map(str, demos)]
    return Table(f"{title} ({trials} trials)", header, rows, _capped_note(found, cap))


def p_value_table(title: str, found: Sequence[Summary], published: str = "") -> Table | None:
    """Return the one-sided Mann–Whitney p-values of Align-RUDDER against every other method."""
    methods = _by_method(found)
    ours = methods.pop("align-rudder", None)
    if not ours or not methods:
        return None
    demos = sorted(ours)
    rows = []
    for name, cells in methods.items():
        values = [f"{compare(ours[n], cells[n]):.1e}" if n in cells else "–" for n in demos]
        rows.append([all_methods()[name].label, *values])
        numbers = paper.P_VALUES.get(published, {}).get(name)
        if numbers:
            rows.append(["  paper", *(numbers.get(n, "–") for n in demos)])
    note = "one-sided Mann–Whitney U: Align-RUDDER needs fewer episodes"
    return Table(title, ["Align-RUDDER against", *map(str, demos)], rows, (note,))


def cluster_table(found: Sequence[Summary], cap: int) -> Table:
    """Return mean episodes over the most events allowed, the paper's beside ours."""
    demos = sorted({s.setting.demos for s in found})
    cells = {(s.setting.max_events, s.setting.demos): s for s in found}
    rows = []
    for most in sorted({s.setting.max_events for s in found}):
        rows.append([str(most), *(_mean(cells.get((most, n))) for n in demos)])
        numbers = paper.CLUSTERS.get(most, {})
        rows.append(["  paper", *(f"{numbers[n]:,}" if n in numbers else "–" for n in demos)])
    trials = max((s.trials for s in found), default=0)
    return Table(
        f"Episodes to 80 % over the most clusters, FourRooms ({trials} trials; paper: 10)",
        ["most clusters", *map(str, demos)],
        rows,
        _capped_note(found, cap),
    )


def scaling_table(found: Sequence[Summary], cap: int) -> Table:
    """Return mean episodes over the number of rooms."""
    rooms = sorted({s.setting.rooms for s in found})
    by_method: dict[str, dict[int, Summary]] = {}
    for summary in found:
        by_method.setdefault(summary.setting.method, {})[summary.setting.rooms] = summary
    rows = [
        [all_methods()[name].label, *(_mean(cells.get(r)) for r in rooms)]
        for name, cells in by_method.items()
    ]
    demos = found[0].setting.demos if found else 0
    trials = max((s.trials for s in found), default=0)
    return Table(
        f"Episodes to 80 % over the number of rooms, {demos} demonstrations ({trials} trials)",
        ["rooms", *map(str, rooms)],
        rows,
        _capped_note(found, cap),
    )


def world_name(setting: Setting) -> str:
    """Return how tables name the environment of a setting."""
    return {4: "FourRooms", 8: "EightRooms"}.get(setting.rooms, f"{setting.rooms} rooms")
