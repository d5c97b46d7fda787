"""Put the tables under results/ into docs/reproduction.md, between the marks that name a study.

    python tools/results_page.py

With --check it only says whether the page holds what the results say.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reproduction.md"
MARKED = re.compile(r"(<!-- results: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def page() -> str:
    """Return the page with the tables as they are now."""

    def tables(found: re.Match[str]) -> str:
        text = (ROOT / "results" / found[2] / "tables.md").read_text()
        return f"{found[1]}{text}{found[3]}"

    return MARKED.sub(tables, PAGE.read_text())


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if page() == PAGE.read_text() else f"{PAGE} is not what results/ says")
    PAGE.write_text(page())
