"""Put the tables under results/ into the pages of docs/, between the marks that name a study.

A mark names a folder with tables.md in it, or FOLDER/FILE.

    python tools/results_page.py

Between the marks of "time" it puts how long each study of `align-rudder reproduce` took. With
--check it only says whether the pages hold what the results say.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from align_rudder.studies.networks.settings import NETWORKS
from align_rudder.studies.recipes.settings import RECIPES
from align_rudder.studies.rooms.settings import EXPERIMENTS

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
PAGES = tuple(ROOT / "docs" / f"{name}.md" for name in ("reproduction", "diamond", "minerl"))
MARKED = re.compile(r"(<!-- results: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: Path) -> str:
    """Return a page with the tables as they are now."""

    def tables(found: re.Match[str]) -> str:
        if found[2] == "time":
            return f"{found[1]}{time_table()}{found[3]}"
        path = RESULTS / (found[2] if "/" in found[2] else f"{found[2]}/tables")
        path = path.with_suffix(".md")
        if not path.exists():  # a study that was not run yet
            return found[0]
        return f"{found[1]}{path.read_text()}{found[3]}"

    return MARKED.sub(tables, page.read_text())


def time_table() -> str:
    """Return how long each study took and all together, as Markdown."""
    studies = [s for s in (*EXPERIMENTS, RECIPES, NETWORKS) if (RESULTS / s / "time.json").exists()]
    rows, total = [], 0.0
    for study in studies:
        timed, seconds = time_of(study)
        note = f" (of {timed:,} trials)" * (timed < stored(study))
        rows.append(f"| {study} | {stored(study):,} | {seconds / 60:.0f}{note} |")
        total += seconds
    last = f"| **all** | {sum(map(stored, studies)):,} | **{total / 60:.0f}** |"
    return "\n".join(["| study | trials | minutes |", "|---|---:|---:|", *rows, last]) + "\n"


def stored(study: str) -> int:
    """Return how many trials of a study there are."""
    return len((RESULTS / study / "trials.csv").read_text().splitlines()) - 1


def time_of(study: str) -> tuple[int, float]:
    """Return how many trials the last calls ran, until they are as many as there are, and seconds.

    Some methods were run again after the others, so this is at least what the study takes at once.
    A call that was stopped before its end left no time.
    """
    trials, seconds = 0, 0.0
    for call in reversed(json.loads((RESULTS / study / "time.json").read_text())):
        if trials < stored(study):
            trials, seconds = trials + call["trials"], seconds + call["seconds"]
    return trials, seconds


if __name__ == "__main__":
    for page in PAGES:
        text = filled(page)
        if "--check" not in sys.argv:
            page.write_text(text)
        elif text != page.read_text():
            sys.exit(f"{page} is not what results/ says; run tools/results_page.py")
