"""Put the tables under results/ into the pages of docs/, between the marks that name a study.

    python tools/results_page.py

With --check it only says whether the pages hold what the results say.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "docs" / "reproduction.md", ROOT / "docs" / "diamond.md")
MARKED = re.compile(r"(<!-- results: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: Path) -> str:
    """Return a page with the tables as they are now."""

    def tables(found: re.Match[str]) -> str:
        path = ROOT / "results" / found[2] / "tables.md"
        if not path.exists():  # a study that was not run yet
            return found[0]
        return f"{found[1]}{path.read_text()}{found[3]}"

    return MARKED.sub(tables, page.read_text())


if __name__ == "__main__":
    for page in PAGES:
        text = filled(page)
        if "--check" not in sys.argv:
            page.write_text(text)
        elif text != page.read_text():
            sys.exit(f"{page} is not what results/ says; run tools/results_page.py")
