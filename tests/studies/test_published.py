"""What README and docs say is what the files under results/ say."""

import csv
import json
import runpy
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_pages_of_results_hold_the_tables_of_the_results():
    tool = runpy.run_path(str(ROOT / "tools" / "results_page.py"))
    for page in tool["PAGES"]:
        assert tool["filled"](page) == page.read_text()


def test_the_page_says_whether_the_time_is_as_was_aimed_at():
    tool = runpy.run_path(str(ROOT / "tools" / "results_page.py"))
    studies = [path.parent.name for path in (ROOT / "results").glob("*/time.json")]
    shown = [name for name in studies if not name.startswith("tune")]
    minutes = {name: tool["time_of"](name)[1] / 60 for name in shown}
    page = (ROOT / "docs" / "reproduction.md").read_text()
    assert ("is **missed**; without the networks" in page) == (sum(minutes.values()) > 120)
    assert sum(minutes.values()) - minutes["networks"] <= 120


def diamond_rows(name):
    """Return the rows of a folder of trainings, after its table is found to follow from them."""
    from align_rudder.studies.diamond.tables import results_rows, results_table

    folder = ROOT / "results" / name
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*m/*/evaluation.json"))]
    assert results_table(found, markdown=True) + "\n" == (folder / "tables.md").read_text()
    return {
        (row["method"], row["steps"]): row
        for row in results_rows(found)
        if row["label"] != "… without the manager"
    }


def test_the_tables_of_the_diamond_follow_from_the_counts():
    rows, before = diamond_rows("diamond"), diamond_rows("diamond-0.1")
    assert rows["align-rudder", 8_000_000]["low"] >= 0.38
    assert rows["align-rudder", 8_000_000]["low"] > before["align-rudder", 8_000_000]["high"]
    assert all(row["seeds"] == [0, 1, 2] for row in rows.values())
    readme = (ROOT / "README.md").read_text().replace("**", "")
    for start, found, method in (
        ("Align-RUDDER |", rows, "align-rudder"),
        ("… fifty more runs", rows, "align-rudder+more"),
        ("Align-RUDDER, version 0.1", before, "align-rudder"),
    ):
        table = readme.split("| environment steps |")[1].splitlines()
        line = next(x for x in table if x.startswith(f"| {start}"))
        cells = (found.get((method, steps)) for steps in (1_000_000, 8_000_000))
        assert [cell.strip() for cell in line.split("|")[2:4]] == [
            f"{100 * row['share']:.1f} % ({100 * row['low']:.1f}–{100 * row['high']:.1f})"
            if row
            else "–"
            for row in cells
        ]
    text = " ".join(readme.split())
    equal, dense = before["equal-reward", 8_000_000], before["ppo-dense", 240_000_000]
    assert f"was as good ({100 * equal['share']:.1f} %)" in text
    assert f"and {100 * dense['share']:.1f} % with 240 M" in text
    assert f"ours found {100 * before['align-rudder', 240_000_000]['share']:.1f} %" in text


def test_the_page_of_the_diamond_has_the_counts_of_the_settings_that_were_tried():
    path = ROOT / "results" / "diamond" / "explored.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    page = (ROOT / "docs" / "diamond.md").read_text().split("### What moved it")[1].split("\n- ")[0]
    shown = [line.split("|")[-2].strip() for line in page.splitlines() if line.startswith("| ten")]
    counted = [row["counts"] for row in rows if "counts" in row]
    expected = [f"{100 * found['solved'] / found['worlds']:.1f}" for found in counted]
    assert sorted(shown) == sorted(expected)


def test_the_page_of_the_diamond_has_the_numbers_of_the_curves_and_of_the_grid():
    folder = ROOT / "results" / "diamond-0.1"
    page = " ".join((ROOT / "docs" / "diamond.md").read_text().split())

    def steps_to(method, share):
        rows = csv.DictReader((folder / "240m" / f"{method}-0" / "evaluations.csv").open())
        solved = (r["steps"] for r in rows if int(r["solved"]) >= share * int(r["worlds"]))
        return f"{int(next(solved)) / 1e6:.0f} M"

    quarter, half = (
        [steps_to(m, x) for m in ("no-redistribution", "align-rudder")] for x in (0.25, 0.5)
    )
    assert f"a quarter of the worlds after {quarter[0]} steps instead of {quarter[1]}" in page
    assert f"half of them after {half[0]} instead of {half[1]}" in page
    assert f"a quarter of the worlds after {steps_to('ppo-dense', 0.25)} steps" in page
    rows = {
        (r["method"], r["gamma"], r["entropy"]): r
        for r in csv.DictReader((folder / "tune.csv").open())
    }
    for gamma in ("0.99", "0.995"):
        for entropy in ("0.005", "0.02"):
            ours, dense = (rows[m, gamma, entropy] for m in ("align-rudder", "ppo-dense"))
            line = page.split(f"| γ {gamma}, entropy {entropy}")[1].split(" |")
            assert line[1].strip("| ") == ours["diamonds"]
            assert line[2].strip("| ") == f"{float(dense['subgoals_per_world']):.1f}"
            assert dense["diamonds"] == "0"


def test_the_expert_is_as_good_as_the_page_says():
    found = json.loads((ROOT / "results" / "diamond" / "demos.json").read_text())
    page = " ".join((ROOT / "docs" / "diamond.md").read_text().split())
    steps, chosen = found["steps"], found["lengths"]
    assert found["solved"] == len(steps) >= 0.6 * found["worlds"]
    assert set(chosen) <= set(steps)
    assert f"in {found['solved']} of {found['worlds']} new worlds" in page
    assert f"in {np.median(steps):.0f} steps (median)" in page
    assert f"of {min(chosen)} to {max(chosen)} steps" in page


def test_the_page_of_minerl_says_what_the_study_of_the_small_world_found():
    from align_rudder.studies.minerl import results_table, sub_agents_table

    found = json.loads((ROOT / "results" / "minerl" / "small.json").read_text())
    tables = (table(found).markdown() for table in (results_table, sub_agents_table))
    assert "\n\n".join(tables) + "\n" == (ROOT / "results" / "minerl" / "small.md").read_text()
    for run in found["runs"]:
        cloned, tuned = (run["played"][who]["reached"] for who in ("cloned", "agent"))
        assert all(t > c or t == c == 0 for c, t in zip(cloned, tuned, strict=True))
        assert {who["episodes"] for who in run["played"].values()} == {200}
        assert sum(run["frames"].values()) == pytest.approx(1.2e6, rel=0.05)
    solved = {
        who: sum(run["played"][who]["solved"] for run in found["runs"])
        for who in ("cloned", "agent", "manager")
    }
    assert solved == {"cloned": 0, "agent": 8, "manager": 4}


def test_training_with_redistribution_is_about_as_fast_as_without():
    found = json.loads((ROOT / "results" / "diamond" / "throughput.json").read_text())
    for name, seconds in found["seconds"].items():
        speed = found["steps_per_update"] / np.median(seconds)
        assert speed == pytest.approx(found["steps_per_second"][name])
    assert found["ratio"]["align-rudder"] >= 0.8


@pytest.mark.parametrize("study", ["four-rooms", "eight-rooms", "rooms"])
def test_the_main_tables_follow_from_their_trials(study):
    with open(ROOT / "results" / study / "trials.csv") as file:
        rows = list(csv.DictReader(file))
    for cell in json.loads((ROOT / "results" / study / "summary.json").read_text()):
        named = ("rooms", "demos", "method")
        mine = [r for r in rows if all(r[name] == str(cell[name]) for name in named)]
        assert sorted(int(r["seed"]) for r in mine) == list(range(100))
        assert cell["mean"] == np.mean([int(r["episodes"]) for r in mine])
        assert cell["capped"] == sum(r["solved"] == "0" for r in mine)


def test_the_readme_shows_the_means():
    text = (ROOT / "README.md").read_text()
    cells = json.loads((ROOT / "results" / "rooms" / "summary.json").read_text())
    means = {(c["method"], c["rooms"], c["demos"]): c["mean"] for c in cells}
    for method in sorted({c["method"] for c in cells}):
        numbers = [f"{means[method, rooms, n]:,.0f}" for rooms in (4, 8) for n in (2, 5, 10)]
        shown = [f"**{n}**" for n in numbers] if method == "default" else numbers
        assert f" | {' | '.join(shown)} |\n" in text, method
    cells = json.loads((ROOT / "results" / "recipes" / "summary.json").read_text())
    found = {
        (
            c["method"],
            *(c[x] for x in ("length", "pace", "missing", "foreign")),
        ): c
        for c in cells
        if (c["logs"], c["detours"], c["wrong"]) == (10, 0.5, "nothing")
    }

    def shown_in(text, method, numbers):
        shown = [f"**{n}**" for n in numbers] if method == "defaults" else numbers
        assert f" | {' | '.join(shown)} |\n" in text, method

    elsewhere = {"ircr-absorbing", "consensus-alone", "median-in-turn"}  # in the table of the page
    lengths = [(8, 9), (12, 9), (24, 9), (8, 25), (12, 25), (24, 25)]
    for method in {name for name, *_ in found} - elsewhere:
        mine = [found[method, *task, 0.0, 0] for task in lengths]
        solved = [c["trials"] - c["capped"] for c in mine]
        numbers = [f"{c['median']:,.0f}, {n}/{c['trials']}" for c, n in zip(mine, solved)]
        shown_in(text, method, numbers)
    noise = [(0.0, 0), (0.05, 0), (0.1, 0), (0.0, 1), (0.0, 2)]
    for method in {name for name, *task in found if task == [12, 9, 0.1, 0]}:
        mine = [found[method, 12, 9, *logs] for logs in noise]
        numbers = [f"{c['trials'] - c['capped']}, {c['median']:,.0f}" for c in mine]
        shown_in(text, method, numbers)


def test_the_page_of_logs_has_the_figures_of_the_planted_causes():
    found = json.loads((ROOT / "results" / "logs" / "planted.json").read_text())
    page = (ROOT / "docs" / "agent-logs.md").read_text()
    assert f"seeds from {found['first_seed']:,} on" in page
    table = page.split("| cause | named first |")[1].split("\n\n")[0].splitlines()[2:]
    shown = [[cell.strip() for cell in line.split("|")[2:4]] for line in table]
    kinds = {}
    for row in found["rows"]:
        kinds.setdefault(row["noise"], []).append(row)
    first, *others = kinds.values()
    for cells, rows in zip(shown, [*([row] for row in first), *others], strict=True):
        named, share = (cell.split(" of ")[0].split(" %")[0] for cell in cells)
        assert named == ", ".join(str(row["named_first"]) for row in rows)
        assert share == ", ".join(f"{100 * row['turns_right']:.0f}" for row in rows)
        assert all(row["named_first"] >= 95 and row["turns_right"] >= 0.9 for row in rows)


def test_the_page_of_logs_has_the_false_alarms_where_outcomes_are_dealt_at_random():
    rows = json.loads((ROOT / "results" / "logs" / "null.json").read_text())["rows"]
    alarms, sets = (sum(row[key] for row in rows) for key in ("alarms", "sets"))
    page = (ROOT / "docs" / "agent-logs.md").read_text()
    assert f"something told in {alarms} of {sets} logs" in page
    assert alarms <= 0.05 * sets
