"""Make the pictures of docs/method.md, report.md, agent-logs.md and own-environment.md.

    python tools/docs_pictures.py            # method and report; needs Chromium and its driver
    python tools/docs_pictures.py --method   # only the figures of the method
    python tools/docs_pictures.py --log gpt-4o-airline.json   # only those of docs/agent-logs.md
    python tools/docs_pictures.py --live minigrid/runs   # only the curves of a training

The curves are those of TensorBoard's logs, which `python examples/minigrid_ppo.py --seed 7` writes.

Figures are SVG without a date, so that the same code writes the same bytes.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

import align_rudder as ar
from align_rudder.data.crafting import crafting_demonstrations, crafting_episode
from align_rudder.logs import LogModel, report_data
from align_rudder.show.figures import event_color
from align_rudder.show.figures.colors import ink_on, new_axes
from align_rudder.show.logs import write_page
from align_rudder.show.report import write_report
from align_rudder.text import letters_for

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
N_DEMONSTRATIONS = 6
WIDTH = 920  # of the screenshots
FLAGS = (
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
    "disable-component-update disable-sync hide-scrollbars"
)


# The method


def method_pictures() -> None:
    """Draw the six steps for six players who craft a stone pickaxe."""
    demos = crafting_demonstrations(N_DEMONSTRATIONS)
    model = ar.AlignRudder().fit(demos)
    (strategy,) = model.strategies_
    save("method-events", not_aligned(model))
    save("method-scoring", scoring(model))
    save(
        "method-alignment", ar.figures.alignment(strategy.alignment, ax=new_axes(None, (7.0, 2.0)))
    )
    save("method-tree", ar.figures.guide_tree(model, ax=new_axes(None, (5.0, 1.7))))
    save("method-logo", ar.figures.logo(strategy.profile, ax=new_axes(None, (6.0, 1.6))))
    save("method-pssm", ar.figures.pssm(strategy.profile, ax=new_axes(None, (7.0, 2.1))))
    save("method-redistribution", two_players(model))
    save("method-subgoals", segments(model, demos))


def save(name: str, drawn: Axes | Figure) -> None:
    """Write a figure into docs/images."""
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    assert figure is not None
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
    print(f"docs/images/{name}.svg")


def not_aligned(model: ar.AlignRudder) -> Axes:
    """Draw the events of the demonstrations as they happened, all rows beginning at the left."""
    sequences = [e.sequence for e in model.encoded_]
    rows = np.full((len(sequences), max(map(len, sequences))), -1)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    symbols = model.events_.symbols_
    ax = ar.figures.alignment(
        ar.Alignment(rows, symbols, model.scores_), ax=new_axes(None, (7.0, 1.9))
    )
    ax.set_xlabel("event")
    ax.xaxis.set_major_locator(MultipleLocator(5))
    return ax


def scoring(model: ar.AlignRudder) -> Axes:
    """Draw the scoring matrix."""
    scores, letters = model.scores_, letters_for(model.events_.symbols_)
    ax = new_axes(None, (3.4, 2.9))
    ax.imshow(scores, cmap="Greens", vmin=-2, vmax=1.6 * scores.max())
    for (i, j), score in np.ndenumerate(scores):
        ax.text(
            j, i, f"{score:.1f}" if i == j else f"{score:.0f}", ha="center", va="center", size=7
        )
    ax.set_xticks(range(len(letters)), letters)
    ax.set_yticks(range(len(letters)), letters)
    ax.tick_params(length=0)
    return ax


def two_players(model: ar.AlignRudder) -> Figure:
    """Draw the reward of a new player who makes it and of one who does not."""
    figure = Figure(figsize=(7.0, 5.0), layout="constrained")
    parts = figure.subplots(2, 1, sharey=True)
    titles = ("a new player who makes it", "one who digs dirt instead of stone")
    for ax, title, success in zip(parts, titles, (True, False), strict=True):
        episode = crafting_episode(500, success)
        rr = model.redistribute(episode)
        ar.figures.redistribution(rr, model.events_.symbols_, original=episode.rewards, ax=ax)
        ax.set_title(title, loc="left", fontsize=9)
    parts[0].set_xlabel("")
    return figure


def segments(model: ar.AlignRudder, demos: Sequence[ar.Episode]) -> Axes:
    """Draw the demonstrations over their steps, cut where they reach a sub-goal."""
    letters = letters_for(model.events_.symbols_)
    ax = new_axes(None, (7.0, 2.1))
    for task in model.subtasks():
        color = event_color(task.goal.event)
        for part in task.segments:
            width = part.stop - part.start
            ax.barh(part.episode, width, left=part.start, color=color, edgecolor="white", lw=1.2)
            if width > 1:
                ax.text(
                    part.start + width / 2,
                    part.episode,
                    letters[task.goal.event],
                    ha="center",
                    va="center",
                    fontsize=7,
                    color=ink_on(color),
                )
    ax.set(xlabel="step", ylabel="demonstration", yticks=range(len(demos)))
    ax.set_xlim(0, max(map(len, demos)))
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
    return ax


# A training


def live_curves(logs: Path) -> Figure:
    """Return what TensorBoard shows of the last run in a folder: sub-goals, reward and κ."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    file = max(logs.rglob("events.out.tfevents*"), key=lambda found: found.stat().st_mtime)
    events = EventAccumulator(str(file))
    events.Reload()
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    groups = ("subgoals/", "align_rudder/")
    for ax, group in zip(figure.subplots(1, 2, sharex=True), groups, strict=True):
        tags = [tag for tag in events.Tags()["scalars"] if tag.startswith(group)]
        lines = {}
        for tag in sorted(set(tags) - {"align_rudder/subgoals"}):
            scalars = events.Scalars(tag)
            steps = np.array([scalar.step for scalar in scalars]) / 1000
            lines[tag.removeprefix(group)] = (steps, [scalar.value for scalar in scalars])
        ar.figures.curves(lines, ax=ax)
        ax.set(xlabel="thousand environment steps", title=group)
    return figure


# Reports, good and bad


def good_report(path: Path) -> None:
    """Ten demonstrations that share a strategy."""
    model = ar.AlignRudder().fit(crafting_demonstrations(10))
    episodes = [crafting_episode(500), crafting_episode(500, success=False)]
    write_report(model, episodes, path, title="Crafting a stone pickaxe")


def two_strategies_report(path: Path) -> None:
    """Nine demonstrations: five find the treasure by digging, four by sea."""
    rng = np.random.default_rng(0)
    ways = {
        5: ["tent", "shovel", "map", "hill", "dig", "chest"],
        4: ["boat", "sail", "island", "cave", "lamp", "chest"],
    }
    runs = [detours(way, rng, ["wait", "eat"]) for n, way in ways.items() for _ in range(n)]
    write_report(ar.AlignRudder().fit_events(runs), [], path, title="Two ways to the treasure")


def detours(way: list[str], rng: np.random.Generator, others: list[str]) -> list[str]:
    """Return a way with other events put in here and there."""
    out = []
    for event in way:
        out += [str(x) for x in rng.choice(others, rng.integers(0, 2))]
        out.append(event)
    return out


def many_events_report(path: Path) -> None:
    """The tool calls of examples/event_logs.py, each with the name of the file it was for."""
    rng = np.random.default_rng(0)
    files = ["cart.py", "tax.py", "order.py", "user.py", "mail.py", "price.py", "stock.py"]
    calls = ["run_tests", "search", "read_file", "edit_file", "run_tests", "commit"]
    runs = [
        [f"{call} {rng.choice(files)}" for call in detours(calls, rng, ["read_file", "search"])]
        for _ in range(6)
    ]
    write_report(quiet(runs), [], path, title="Tool calls with file names")


def no_strategy_report(path: Path) -> None:
    """Six walks that visit the same places in no order."""
    rng = np.random.default_rng(3)
    places = ["mill", "bridge", "wood", "inn", "well", "field"]
    runs = [[str(p) for p in rng.permutation(places)] for _ in range(6)]
    write_report(quiet(runs), [], path, title="Walks without a common way")


def quiet(runs: list[list[str]]) -> ar.AlignRudder:
    """Return a model of demonstrations that are known to be bad."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ar.AlignRudderWarning)
        return ar.AlignRudder().fit_events(runs)


def log_page(log: Path, path: Path) -> None:
    """Why the runs of a log fail."""
    runs = ar.read_log(log)
    write_page(path, report_data(LogModel().fit(runs), runs))


# Each page, and what of it is shown under which name: from the top of one element to the end of
# another.
Parts = tuple[tuple[str, str, str], ...]
PAGES: tuple[tuple[Callable[[Path], None], Parts], ...] = (
    (
        good_report,
        (
            ("body", "#verdict", "report-verdict"),
            ("#strategy", "#scores", "report-strategy"),
            ("#alignment", "#alignment", "report-alignment"),
            ("#episodes", "#chart-key", "report-episode"),
        ),
    ),
    (two_strategies_report, (("#verdict", "#tree", "report-two-strategies"),)),
    (many_events_report, (("#verdict", "#warnings", "report-many-events"),)),
    (no_strategy_report, (("#verdict", "#numbers", "report-no-strategy"),)),
)
LOG_PARTS: Parts = (
    ("body", "#numbers", "logs-finding"),
    ("#road-title", "#funnel", "logs-funnel"),
    ("#runs", "#list", "logs-runs"),
    ("#detail", "#messages", "logs-run"),
)
# What a reader has clicked when the pictures are taken.
ACTIONS = {
    "report-verdict": "const e = document.getElementById('episode'); e.selectedIndex = 1;"
    "e.dispatchEvent(new Event('change'))",
    "logs-funnel": "document.querySelectorAll('#road-list button')[2].click()",
    "logs-runs": "document.querySelector('#table button').click()",
    "logs-run": "document.querySelector('#departure button').click()",
}
PLACE = """
const top = document.querySelector(arguments[0]).getBoundingClientRect().top + scrollY;
const end = document.querySelector(arguments[1]).getBoundingClientRect().bottom + scrollY;
return [Math.max(top - 12, 0), end + 16];
"""


def screenshots(pages: Sequence[tuple[Callable[[Path], None], Parts]]) -> None:
    """Write pages, open them in headless Chromium and photograph their parts."""
    from selenium import webdriver

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        sys.exit("the screenshots need chromium and chromedriver; --method does without")
    with tempfile.TemporaryDirectory() as folder:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in FLAGS.split():
            options.add_argument(f"--{flag}")
        options.add_argument(f"--window-size={WIDTH},900")
        options.add_argument(f"--user-data-dir={folder}/chromium")
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        try:
            page = Path(folder, "page.html")
            for write, parts in pages:
                write(page)
                browser.get("about:blank")
                browser.get(page.as_uri())
                for first, last, name in parts:
                    browser.execute_script(ACTIONS.get(name, ""))
                    top, end = browser.execute_script(PLACE, first, last)
                    clip = {"x": 0, "y": top, "width": WIDTH, "height": end - top, "scale": 1}
                    shot = browser.execute_cdp_cmd(
                        "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
                    )
                    (IMAGES / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
                    print(f"docs/images/{name}.png")
        finally:
            browser.quit()


def main() -> None:
    """Make the pictures that are asked for."""
    parser = argparse.ArgumentParser(description="Pictures of the documentation")
    parser.add_argument("--method", action="store_true", help="only the figures of the method")
    parser.add_argument("--log", type=Path, help="a log; only the pictures of its page")
    parser.add_argument("--live", type=Path, help="logs of a training; only its curves")
    given = parser.parse_args()
    IMAGES.mkdir(exist_ok=True)
    if given.live is not None:
        save("live", live_curves(given.live))
        return
    if given.log is not None:
        screenshots([(partial(log_page, given.log), LOG_PARTS)])
        return
    method_pictures()
    if not given.method:
        screenshots(PAGES)


if __name__ == "__main__":
    main()
