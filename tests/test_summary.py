"""What a summary shows; sub-goals are counted from 1 in it, from 0 and called index elsewhere."""

import re

import numpy as np
import pytest
from small_models import RUNS

import align_rudder as ar
from align_rudder.gym.live import LiveCurves
from align_rudder.summary import as_data
from align_rudder.text import letters_for


def model_of(*groups):
    runs = [run.split() for group in groups for run in group]
    return ar.AlignRudder(strategies=len(groups)).fit_events(runs)


ONE = ["key door chest", "key lamp door chest", "key door cat chest"]
TWO = ["wood tool gem", "wood fire tool gem", "wood tool rain gem"]


def in_text(text):
    """Return number and event of each sub-goal in a summary."""
    return re.findall(r"^ +(\d+) +\d+ +\d+% +\S+  \w = (\w+)$", text, flags=re.MULTILINE)


def test_people_read_from_one_and_programs_from_zero():
    model = model_of(ONE)
    named = [(str(k), goal.symbol) for k, goal in enumerate(model.subgoals_, 1)]
    assert named == [("1", "key"), ("2", "door"), ("3", "chest")]
    assert in_text(model.summary()) == named
    html = model._repr_html_()
    assert re.findall(r"<tr><td>(\d+)</td><td[^>]*>(\w+)<", html) == named
    assert re.findall(r'title="sub-goal (\d+)"', html) == ["1", "2", "3"]
    curves = LiveCurves(model)
    curves.add({"redistributed": 0.5, "subgoal": 2, "strategy": 0, "correction": 0.0})
    numbers = {k: v for k, v in curves.numbers().items() if k.startswith("subgoals/")}
    assert numbers == {"subgoals/1_key": 1.0, "subgoals/2_door": 1.0, "subgoals/3_chest": 0.0}
    (data,) = as_data(model)["strategies"]
    assert [(g["index"], g["event"]) for g in data["subgoals"]] == [
        (int(k) - 1, event) for k, event in named
    ]
    assert [task.index for task in model.subtasks()] == [0, 1, 2]
    stream = model.stream()
    stream.reset()
    assert stream.subgoal == 0
    stream.step_event("key")
    assert (stream.subgoal, model.progress_of(model.events_.encode_sequence(["key"])).next) == (
        1,
        1,
    )


def test_strategies_are_counted_the_same_way():
    model = model_of(ONE, TWO)
    text = model.summary()
    assert re.findall(r"^Strategy (\d+): demonstrations", text, flags=re.MULTILINE) == ["1", "2"]
    assert [k for k, _ in in_text(text)] == ["1", "2", "3"] * 2
    curves = LiveCurves(model)
    curves.add({"redistributed": 0.5, "subgoal": 1, "strategy": 1, "correction": 0.0})
    places = [k.split("/")[1].split("_")[0] for k in curves.numbers() if k.startswith("subgoals/")]
    assert places == ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3"]


def test_the_summary_shows_alignment_consensus_and_subgoals():
    model = ar.AlignRudder().fit_events(RUNS)
    text = model.summary()
    assert str(model.alignment_) in text
    assert "consensus (80 %): KDSC" in text
    for goal in model.subgoals_:
        assert f"{goal.reward:.4f}" in text
    assert f"C = {model.scale_:.4g}" in text
    assert "4 demonstrations" in repr(model)


def test_the_consensus_of_a_summary_tells_kinds_of_the_same_name_apart():
    """1 and 1.0 are one symbol to Python, two kinds of event to an encoder of numbers."""

    class Twin(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            return isinstance(other, str) and str(self) == str(other)

    model = ar.AlignRudder(strategies=1).fit_events([["b", "a", "c"]] * 3)
    model.events_.symbols_ = [Twin("a"), Twin("a"), Twin("c")]
    for strategy in model.strategies_:
        object.__setattr__(strategy.profile, "symbols", model.events_.symbols_)
        object.__setattr__(strategy.alignment, "symbols", model.events_.symbols_)
    letters = letters_for(model.events_.symbols_)
    assert f"consensus (80 %): {letters[1]}{letters[0]}{letters[2]}" in model.summary()
    assert "Different kinds of event have the same name: a." in model.summary()


def cautions(model):
    return [line for line in model.summary().splitlines() if line.startswith("take care")]


def test_a_few_logs_of_which_one_lacks_something_say_which_and_what():
    (caution,) = cautions(model_of(["key door chest", "key chest"]))
    assert "demonstration 1 lacks door" in caution
    assert "More demonstrations" in caution
    (caution,) = cautions(model_of(["wood axe iron gem", "axe iron gem", "wood axe iron gem"]))
    assert "demonstration 1 lacks wood" in caution
    (caution,) = cautions(model_of(["a b c d e", "a c d e", "a b c d e", "a c d e"]))
    assert "demonstrations 1, 3 lack b" in caution


@pytest.mark.parametrize(
    "runs",
    [
        ["key door chest"] * 2,
        ONE,  # what one of three does beside the others is noise
        ["key door chest"] * 8 + ["key chest"] * 2,  # ten show it
    ],
)
def test_logs_that_leave_nothing_open_get_no_caution(runs):
    assert cautions(model_of(runs)) == []


def walks(*ways):
    return [ar.Episode(way, [0] * (len(way) - 1), np.eye(len(way) - 1)[-1]) for way in ways]


def lost(*ways):
    return [ar.Episode(way, [0] * (len(way) - 1), [0.0] * (len(way) - 1)) for way in ways]


def test_numbered_states_say_that_chance_is_not_known_until_it_is():
    demos = walks(*[[0, 1, 2, 3, 4, 5, 6]] * 5)
    model = ar.AlignRudder().fit(demos)
    assert any("What a random policy earns is not known" in line for line in cautions(model))
    model = ar.AlignRudder().fit(demos, lost(*[[0, 1, 0, 1, 2, 1]] * 10))
    assert not any("is not known" in line for line in cautions(model))


def test_a_subgoal_that_is_paid_nothing_is_marked():
    demos = walks(*[[0, 1, 2, 3, 4, 5, 6]] * 5)
    chance = lost(*[[0, 1, 0, 1, 2, 3, 2, 1]] * 60)
    model = ar.AlignRudder(subgoal_conservation=0.5).fit(demos, chance)
    lines = [line for line in model.summary().splitlines() if re.search(r"  \w = \d", line)]
    assert len(lines) == len(model.subgoals_)
    marked = ["unpaid: chance gets there" in line for line in lines]
    whole = sum(goal.reward for goal in model.subgoals_)
    assert marked == [goal.reward < 1e-3 * whole for goal in model.subgoals_]
    assert any(marked)
    assert not all(marked)
    assert "unpaid" not in ar.AlignRudder().fit(demos).summary()


def test_what_all_share_and_the_threshold_leaves_out_is_named():
    # "step" is frequent and so worth little, but each run begins with it.
    runs = [["step", *run.split(), "step", "step"] for run in ONE]
    model = ar.AlignRudder(subgoal_threshold=0.15).fit_events(runs)
    left = {"step"} - {goal.symbol for goal in model.subgoals_}
    assert left == {"step"}
    (line,) = [x for x in model.summary().splitlines() if x.startswith("no sub-goals")]
    assert "= step (0." in line
    assert "= key" not in line
    lower = float(re.search(r"subgoal_threshold=(\S+)$", line)[1])
    mended = ar.AlignRudder(subgoal_threshold=lower).fit_events(runs)
    assert "step" in {goal.symbol for goal in mended.subgoals_}
    assert "no sub-goals" not in mended.summary()


def test_nothing_is_named_where_all_that_is_shared_is_a_sub_goal():
    assert "no sub-goals" not in model_of(ONE).summary()


@pytest.mark.parametrize(("often", "said"), [(0.0, False), (0.1, False), (1 / 3, True)])
def test_what_is_needed_but_cheap_is_said(rng, often, said):
    """A random policy gets the egg as well, so that it earns little of the cake."""
    cake = ["flour", "egg", "milk", "whisk", "oven"]
    alone = ["look", "sit"]
    demos = [
        [s for kind in cake for s in (*rng.choice(alone, rng.integers(2)), kind)] for _ in range(10)
    ]
    chance = [rng.choice([*alone, "egg"], 3, p=[(1 - often) / 2] * 2 + [often]) for _ in range(100)]
    model = ar.AlignRudder().fit_events(demos, random_sequences=[map(str, one) for one in chance])
    (line,) = [x for x in model.summary().splitlines() if "earns little" in x] or [None]
    assert (line is not None) == said
    if line is not None:
        assert "hold egg," in line
