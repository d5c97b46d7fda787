"""What a summary shows; sub-goals are counted from 1 in it, from 0 and called index elsewhere."""

import re

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
