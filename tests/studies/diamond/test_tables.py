"""Tables of the diamond task show what was counted."""

import json

import pytest
from diamond_evaluations import OURS, evaluation, with_endings
from scipy.stats import binomtest

pytest.importorskip("jax")
pytest.importorskip("craftax")
from align_rudder.studies.diamond import tables


def test_results_count_seeds_together_and_keep_methods_in_order():
    found = [
        evaluation("ppo-dense", agent=[5000, 4000, 100, 0, 0]),
        evaluation("align-rudder", 1, **{**OURS, "manager": [9000, 9000, 9000, 5000, 2000]}),
        evaluation("align-rudder", 0, **OURS),
        evaluation("align-rudder", 0, 200_000_000, agent=[10_000, 10_000, 10_000, 9000, 8000]),
    ]
    cloned, ours, agents, dense, long = tables.results_rows(found)
    assert [cloned["stage"], ours["stage"], agents["stage"]] == ["cloned", "manager", "agent"]
    assert (ours["solved"], ours["worlds"], ours["share"]) == (3200, 20_000, 0.16)
    assert (ours["low"], ours["high"]) == (0.12, 0.2)
    assert ours["iron_pickaxe"] == pytest.approx(9400 / 20_000)
    assert (cloned["deepest"], ours["deepest"], dense["deepest"]) == (
        "iron pickaxe",
        "diamond",
        "table",
    )
    assert dense["method"] == "ppo-dense"
    assert long["steps"] == 200_000_000
    json.dumps(tables.results_rows(found))
    assert (dense["low"], dense["high"]) == tuple(
        pytest.approx(end) for end in binomtest(0, 10_000).proportion_ci(method="wilson")
    )
    lines = tables.results_table(found).splitlines()
    (line,) = [x for x in lines if x.startswith("Align-RUDDER") and " 8 M " in x]
    expected = ["8", "M", "2", "16.00", "12.00–20.00", "47.00", "diamond"]
    assert line.split()[1:] == expected
    assert "10,000 new worlds for each seed" in lines[-3]
    assert tables.results_table(found, markdown=True).count("\n| ") == 6


def test_what_all_rows_share_is_said_under_the_table():
    text = tables.results_table([evaluation(**OURS)])
    assert {"seeds", "worlds"}.isdisjoint(text.splitlines()[2].split())
    assert "10,000 new worlds" in text
    assert "one seed" in text


def test_the_same_seed_twice_is_not_counted_as_two():
    rows = tables.results_rows([evaluation("no-cloning", agent=OURS["agent"])] * 2)
    assert [row["worlds"] for row in rows] == [10_000, 10_000]


def test_goals_table_has_the_rates_of_each_stage():
    rows = tables.goals_rows(evaluation(**OURS))
    assert [row["fine_tuned"] for row in rows] == [n / 10_000 for n in OURS["manager"]]
    assert [row["cloned"] for row in rows] == [n / 10_000 for n in OURS["cloned"]]
    assert [row["demonstrations"] for row in rows] == [1, 1, 1, 0.9, 1]
    text = tables.goals_table(evaluation(**OURS))
    assert "iron pickaxe             90.00   0.01         44.00" in text
    plain = tables.goals_rows(evaluation("ppo-dense", agent=OURS["agent"]))
    assert {row["cloned"] for row in plain} == {None}


def test_endings_are_counted_together_and_what_is_left_was_given_up():
    found = [
        with_endings(evaluation("align-rudder", 0, agent=OURS["agent"]), lava=2000, arrow=500),
        with_endings(evaluation("align-rudder", 1, agent=OURS["agent"]), lava=4000, arrow=0),
        evaluation("no-cloning", agent=OURS["agent"]),  # of before
    ]
    (row,) = tables.endings_rows(found)
    counted = {"diamond": 2000, "lava": 6000, "time": 0, "arrow": 500, "given up": 11_500}
    assert row["endings"] == counted
    assert sum(counted.values()) == row["worlds"]
    lines = tables.endings_table(found).splitlines()
    assert lines[2].split() == ["method", "diamond", "lava", "arrow", "given", "up"]
    assert lines[4].split() == ["Align-RUDDER", "10.00", "30.00", "2.50", "57.50"]
    assert lines[-2:] == ["in no world: time", "counted before endings were: … without cloning"]
    with pytest.raises(ValueError, match=r"ended was not counted.*delete evaluation\.json"):
        tables.endings_table(found[2:])


def test_endings_after_other_numbers_of_steps_are_told_apart():
    found = [
        with_endings(evaluation("align-rudder", steps=n, agent=OURS["agent"]), time=9000)
        for n in (8_000_000, 240_000_000)
    ]
    text = tables.endings_table(found)
    assert [line.split()[1:3] for line in text.splitlines()[4:6]] == [["8", "M"], ["240", "M"]]
    assert "given up" not in text.splitlines()[2]


def test_an_evaluation_without_an_agent_is_refused():
    with pytest.raises(ValueError, match="neither agent nor manager, only cloned"):
        tables.goals_rows(evaluation(cloned=OURS["cloned"]))


def test_a_part_left_out_is_named_in_full_where_ours_is_not_beside_it():
    other = evaluation("no-cloning", 0, agent=[9000, 9000, 9000, 5000, 2000])
    ours = evaluation("align-rudder", 0, **OURS)
    assert tables.results_rows([other])[0]["label"] == "Align-RUDDER, without cloning"
    assert tables.results_rows([ours, other])[-1]["label"] == "… without cloning"
    assert "Sub-goals reached, Align-RUDDER, without cloning" in tables.goals_table(other)
