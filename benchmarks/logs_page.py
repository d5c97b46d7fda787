"""How fast the page of a log opens, filters and scrolls in headless Chromium.

python benchmarks/logs_page.py                    # 12,000 made-up runs
python benchmarks/logs_page.py gpt-4o-airline.json   # a log, from the file on
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from logs_speed import many_runs

from align_rudder.files import write_json
from align_rudder.logs import LogModel, report_data
from align_rudder.show.logs import write_page

FLAGS = (
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
    "disable-component-update disable-sync window-size=1200,900"
)
# From the beginning of the navigation to two frames after the page was loaded.
OPENED = """
const done = arguments[0];
const now = () => done(performance.now());
const told = () => requestAnimationFrame(() => requestAnimationFrame(now));
if (document.readyState === "complete") told(); else addEventListener("load", told);
"""
# Milliseconds until the list shows what was asked for, as drawn.
FILTERED = """
const done = arguments[arguments.length - 1], start = performance.now();
const outcome = document.getElementById("outcome");
outcome.value = "failure";
outcome.dispatchEvent(new Event("change"));
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
"""
SCROLLED = """
const done = arguments[arguments.length - 1], list = document.getElementById("list"), times = [];
let last = performance.now();
const step = () => {
  const now = performance.now();
  times.push(now - last);
  last = now;
  list.scrollTop += 700;
  if (times.length < 60) requestAnimationFrame(step); else done(Math.max(...times.slice(1)));
};
requestAnimationFrame(step);
"""


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description="Speed of the page of a log in a browser")
    parser.add_argument("runs", nargs="?", type=Path, help="a log; default: made-up runs")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page, row = Path(folder, "page.html"), {}
        start = time.perf_counter()
        if given.runs is None:
            log = many_runs(12_000, 4_000, 20)
            data = report_data(LogModel().fit(log), log)
            start = time.perf_counter()
            write_page(page, data)
        else:
            command = [
                sys.executable,
                "-m",
                "align_rudder",
                "logs",
                str(given.runs),
                "-o",
                str(page),
            ]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        row["seconds_to_page"] = time.perf_counter() - start
        row["page_mb"] = page.stat().st_size / 2**20
        row |= measured(page, folder, given.repeats)
    for name, value in row.items():
        print(f"{name:18} {value:.3g}")
    write_json(given.json, row)


def measured(page: Path, folder: str, repeats: int) -> dict[str, Any]:
    """Return seconds to open a page, to filter it, and the longest frame while it scrolls."""
    from selenium import webdriver

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        sys.exit("chromium and chromedriver are needed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS.split():
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={folder}/chromium")
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    found: dict[str, list[float]] = {"open": [], "filter": [], "longest_frame": []}
    try:
        for _ in range(repeats):
            browser.get("about:blank")
            browser.get(page.as_uri())
            for name, script in zip(found, (OPENED, FILTERED, SCROLLED), strict=True):
                found[name].append(browser.execute_async_script(script) / 1e3)
            row_count = browser.execute_script("return document.querySelectorAll('.row').length")
    finally:
        browser.quit()
    out: dict[str, Any] = {f"seconds_{k}": statistics.median(v) for k, v in found.items()}
    return out | {"rows_in_document": row_count}


if __name__ == "__main__":
    main()
