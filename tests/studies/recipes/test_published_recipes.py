"""Committed trials of the recipes: run again they are the same, and the tables follow from them."""

import csv
import json
import runpy
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from align_rudder.baselines import Protocol
from align_rudder.studies.recipes.methods import METHODS, chosen_parameters
from align_rudder.studies.recipes.settings import FIRST_SEED, Setting
from align_rudder.studies.recipes.study import configuration
from align_rudder.studies.recipes.trials import RecipeTrial, run_trial
from align_rudder.tasks import RecipesEnv

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "results" / "recipes"


def page_of(name):
    return " ".join((ROOT / name).read_text().split())


def power_of_ten(p):
    """Return a p-value as the pages write it."""
    digits, exponent = f"{p:.0e}".split("e")
    return f"{digits}·10" + str(int(exponent)).translate(
        str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    )


@pytest.fixture(scope="module")
def config():
    return json.loads((FOLDER / "config.json").read_text())


def test_the_study_was_run_with_what_tuning_chose(config):
    protocol = Protocol(**config["protocol"])
    assert config == configuration(chosen_parameters(), protocol)
    tuned = json.loads((FOLDER.parent / "tune-recipes" / "hyperparameters.json").read_text())
    chosen = chosen_parameters()
    assert {name: chosen[name] for name in tuned["parameters"]} == tuned["parameters"]
    others = {name: chosen[name] for name in chosen if name not in tuned["parameters"]}
    assert others.pop("collect-told") == chosen["collect"]
    assert not any(others.values())


@pytest.mark.parametrize("name", METHODS)
def test_a_committed_trial_run_again_is_the_same(name, config):
    found = [t for setting in trials() if setting.method == name for t in trials()[setting]]
    told = name.startswith("collect-told")
    for length, seed in ((4, FIRST_SEED + 3), (8 if told else 12, FIRST_SEED)):
        stored = next(t for t in found if t.setting.length == length and t.seed == seed)
        protocol = Protocol(**config["protocol"])
        assert run_trial(stored.setting, seed, config["parameters"][name], protocol) == stored


def test_the_summary_follows_from_the_trials():
    for cell in json.loads((FOLDER / "summary.json").read_text()):
        mine = trials()[Setting(**{name: cell[name] for name in Setting.COLUMNS})]
        assert len(mine) == cell["trials"]
        assert cell["mean"] == np.mean([trial.episodes for trial in mine])
        assert cell["median"] == np.median([trial.episodes for trial in mine])
        assert cell["capped"] == sum(not trial.solved for trial in mine)


@cache
def trials():
    """Return the trials of each setting."""
    found = defaultdict(list)
    with open(FOLDER / "trials.csv") as file:
        for trial in map(RecipeTrial.parse, csv.DictReader(file)):
            found[trial.setting].append(trial)
    return found


def episodes_of(method, **task):
    return [trial.episodes for trial in trials()[Setting(method=method, **task)]]


def p_value(ours, other, **task):
    """Return how likely it is by chance that the first needs so much fewer episodes."""
    found = [episodes_of(name, **task) for name in (ours, other)]
    assert [len(x) for x in found] == [40, 40]
    return mannwhitneyu(*found, alternative="less").pvalue


@pytest.mark.parametrize("ours", ["align-rudder", "defaults"])
@pytest.mark.parametrize("length", [8, 12, 24])
def test_ours_is_ahead_of_others_that_lack_the_inventory(ours, length):
    """Of all but the common subsequence and the median string, with which it ties."""
    for name in ("shortest-log", "unordered", "gail-events", "q-memory", "rrd", "ircr-absorbing"):
        # Not tuned, ours is ahead of the shortest log at 8 items with less certainty.
        close = (ours, name, length) == ("defaults", "shortest-log", 8)
        assert p_value(ours, name, length=length) < (1e-4 if close else 1e-6)
    mine = episodes_of(ours, length=length)
    assert np.mean(mine) < np.mean(episodes_of("gail-inventory", length=length))
    assert ours != "defaults" or max(mine) < 3000


@pytest.mark.parametrize("length", [4, 8, 12, 24])
def test_the_common_subsequence_is_level_with_ours_where_logs_are_clean(length):
    pair = "align-rudder", "common-subsequence"
    assert p_value(*pair, length=length) > 0.1
    assert p_value(*reversed(pair), length=length) > 0.1
    assert max(episodes_of("common-subsequence", length=length)) < 3000


@pytest.mark.parametrize(
    "noise", [{"missing": 0.05}, {"missing": 0.1}, {"foreign": 1}, {"foreign": 2}]
)
def test_the_common_subsequence_fails_where_logs_are_not_clean(noise):
    found = episodes_of("common-subsequence", length=12, **noise)
    assert len(found) == 40
    assert np.sum(np.array(found) < 3000) <= 3
    for ours in ("align-rudder", "defaults"):
        assert p_value(ours, "common-subsequence", length=12, **noise) < 1e-9
        assert p_value(ours, "shortest-log", length=12, **noise) < 1e-4


POOR = [{"missing": 0.05}, {"missing": 0.1}, {"foreign": 1}, {"foreign": 2}]
SHORT = {"length": 12, "pace": 9}


@pytest.mark.parametrize("task", [*({"length": n} for n in (4, 8, 12, 24)), {}, *POOR[2:]])
def test_the_median_string_is_level_with_ours(task):
    """Where neither is ahead beyond chance: what counts is the order, however it is found."""
    task = {"length": 12, **task}
    assert p_value("align-rudder", "median", **task) >= 0.05
    assert p_value("median", "align-rudder", **task) >= 0.05


def test_the_median_string_is_better_where_logs_lack_events():
    for time in ({"length": 12}, SHORT):
        assert p_value("median", "defaults", **time, missing=0.1) < 0.02


@pytest.mark.parametrize("noise", POOR)
def test_turns_get_past_a_wrong_consensus(noise):
    with_turns, without, in_turn = (
        np.array(episodes_of(name, length=12, **noise))
        for name in ("defaults", "consensus-alone", "in-turn")
    )
    assert (with_turns < 3000).all()
    assert (without < 3000).sum() < 40 or "foreign" in noise
    # To compare the logs first is quicker than to take one after another.
    ours = np.array(episodes_of("align-rudder", length=12, **noise))
    assert np.median(ours) <= 0.55 * np.median(in_turn)
    assert p_value("align-rudder", "in-turn", length=12, **noise) < 0.05


@pytest.mark.parametrize("task", [*({"length": n} for n in (4, 8, 12, 24)), *POOR])
def test_rounds_in_any_order_are_quicker_where_time_is_long(task):
    """Then no order is needed at all, which the pages say."""
    task = {"length": 12, **task}
    assert np.median(episodes_of("collect", **task)) <= np.median(
        episodes_of("align-rudder", **task)
    )
    assert max(episodes_of("collect", **task)) < 3000


@pytest.mark.parametrize("task", [{"length": n} for n in (8, 12, 24)] + POOR)
def test_where_time_is_short_the_order_decides(task):
    task = {**SHORT, **task}
    clearly = 1e-3 if task["length"] == 8 or "missing" in task else 1e-4
    for ours in ("align-rudder", "defaults", "consensus-alone"):
        for rival in ("collect", "rounds", "unordered", "gail-events"):
            assert p_value(ours, rival, **task) < clearly
        for rival in ("in-turn", "shortest-log"):
            assert p_value(ours, rival, **task) < 1e-3
    assert (np.array(episodes_of("collect", **task)) < 3000).sum() <= 22


@pytest.mark.parametrize("length", [4, 6, 8])
def test_where_wrong_items_spoil_the_order_decides(length):
    """Against rivals that are told what is lost, as ours is, too."""
    task, told = {"length": length, "wrong": "undo"}, ("collect-told", "collect-told-defaults")
    for ours in ("align-rudder", "defaults"):
        assert max(episodes_of(ours, **task)) < 3000
        for rival in ("collect", "rounds", "unordered", *told):
            assert p_value(ours, rival, **task) < (1e-4 if rival in told else 1e-5)


def test_to_be_told_what_is_lost_helps_to_collect():
    told = "collect-told-defaults"
    for length in (4, 6, 8):
        assert p_value(told, "collect", length=length, wrong="undo") < 1e-3


def solved_of(method, **task):
    return int((np.array(episodes_of(method, **task)) < 3000).sum())


def test_the_pages_have_what_is_solved_where_wrong_items_spoil():
    def counts(method):
        found = [solved_of(method, length=n, wrong="undo") for n in (4, 6, 8)]
        return "{}, {} and {}".format(*found)

    page, readme = page_of("docs/reproduction.md"), page_of("README.md")
    told = counts("collect-told-defaults")
    assert f"they solve {told} of 40 tasks of 4, 6 and 8 items" in page
    assert f"nothing is lost, {counts('collect-told')}; not told" in page
    assert f"not told what is lost, {counts('collect')}. Ours solves all 40 of each" in page
    assert f"it solves {told} of 40 recipes of 4, 6 and 8 items" in readme
    for method in ("align-rudder", "defaults", "median", "common-subsequence", "shortest-log"):
        assert counts(method) == "40, 40 and 40"
    shown = [
        p_value("defaults", "collect-told-defaults", length=n, wrong="undo") for n in (4, 6, 8)
    ]
    assert "(p = {}, {} and {} against the better".format(*map(power_of_ten, shown)) in page


def test_the_pages_have_what_replay_and_turns_change():
    tasks = [{"length": n, "pace": 9} for n in (8, 12, 24)]

    def found(method):
        medians = [f"{np.median(episodes_of(method, **task)):.0f}" for task in tasks]
        solved = [solved_of(method, **task) for task in tasks]
        return medians, solved

    page = page_of("docs/reproduction.md")
    (ours, solved), (plain, _) = found("replayed"), found("defaults")
    (median, also), (alone, without) = found("median-replayed"), found("consensus-alone")
    assert "the defaults need {}, {} and {} episodes".format(*ours) in page
    assert "instead of {}, {} and {}, and solve {}, {} and {};".format(*plain, *solved) in page
    assert "either, {}, {} and {} ({}, {} and {} solved)".format(*median, *also) in page
    assert f"without them it is {alone[2]} ({without[2]} solved)" in page
    readme = page_of("README.md")
    assert f"Of the {plain[2]} episodes of our defaults at 24 items" in readme
    assert f"without them it is {alone[2]}, {without[2]}/40" in readme
    hard = {"length": 12, "detours": 1.0}
    assert solved_of("align-rudder", **hard) == solved_of("defaults", **hard) == 40
    assert solved_of("consensus-alone", **hard) == 39
    assert solved_of("align-rudder", length=12, logs=2) == 38


def test_the_page_has_what_an_agent_that_plans_solves():
    planned = json.loads((FOLDER / "planner.json").read_text())
    page = (ROOT / "docs" / "reproduction.md").read_text()
    table = page.split("<!-- planner -->")[1].split("<!-- end of planner -->")[0].splitlines()
    rows_shown = [line for line in table if line.startswith(("| planned", "| learned"))]
    shown = [[int(x) for x in line.split("|")[2:6]] for line in rows_shown]
    names = ("tours", "shortest_log", "any_log", "median_string")
    tasks = [{"length": row["length"], "pace": row["pace"]} for row in planned]
    learned = [[solved_of(name, **t) for t in tasks] for name in ("collect", "defaults")]
    assert shown == [[row[name] for row in planned] for name in names] + learned
    tours = [row["tours"] for row in planned]
    text = page_of("README.md")
    assert "solves {}, {} and {} of the recipes".format(*tours) in text
    assert f"and {tours[3]} of those of 12 with 12 steps for each item" in text
    assert "string {}, {} and {} in".format(*(row["median_string"] for row in planned)) in text


def test_the_planner_is_right_about_a_small_recipe():
    tool = runpy.run_path(str(ROOT / "tools" / "recipes_planner.py"))
    env = RecipesEnv(3, items=3, distractors=1, size=4, horizon=60)
    recipe = [env.symbols[item] for item in env.recipe]
    assert tool["solves"](env, recipe)
    assert not tool["solves"](env, recipe[:-1])
    assert not tool["solves"](RecipesEnv(3, items=3, distractors=1, size=4, horizon=1), recipe)
    found = tool["tours"](env)
    assert len(found) == len({*found}) == 6
    assert tool["solves"](env, found[0] * 3)
