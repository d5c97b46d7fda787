"""What a study shows: tables, figures, and the numbers behind them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from align_rudder.files import write_figure, write_json, write_text
from align_rudder.studies.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Report"]


@dataclass
class Report:
    """What a study shows.

    Attributes:
        tables: Tables.
        figures: Figures by the name of their file.
        data: The numbers behind the tables.
        partial: Whether more trials are stored than were asked for; then the tables and figures in
            the folder, which show all of them, are left as they are.
    """

    tables: list[Table]
    figures: dict[str, Figure]
    data: list[dict[str, Any]]
    partial: bool = field(default=False, init=False)

    def text(self) -> str:
        """Return the tables for a terminal."""
        return "\n\n".join(table.text() for table in self.tables)

    def write(self, folder: Path, partial: bool) -> None:
        """Write tables, numbers and figures into a folder, unless they show a part of it only."""
        self.partial = partial
        if partial:
            return
        pages = "\n\n".join(table.markdown() for table in self.tables) + "\n"
        write_text(folder / "tables.md", pages)
        write_json(folder / "summary.json", self.data)
        for name, figure in self.figures.items():
            write_figure(folder / f"{name}.png", figure, dpi=130)
