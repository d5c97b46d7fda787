"""A table of results, as text and Markdown."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Table"]


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        title: What it shows; empty for none.
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
        title = [self.title] if self.title else []
        body = [line(row) for row in self.rows]
        return "\n".join([*title, rule, line(self.header), rule, *body, rule, *self.notes])

    def markdown(self) -> str:
        """Return the table as Markdown."""
        title = [f"**{self.title}**", ""] if self.title else []
        head = "| " + " | ".join(self.header) + " |"
        rule = "|---|" + "---:|" * (len(self.header) - 1)
        rows = ["| " + " | ".join(row) + " |" for row in self.rows]
        notes = ["", *self.notes] if self.notes else []
        return "\n".join([*title, head, rule, *rows, *notes])
