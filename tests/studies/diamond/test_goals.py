"""Where sub-goals come from: the alignment of all demonstrations, and what it is compared with."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("craftax")
from diamond_training import setup  # noqa: E402

from align_rudder.hierarchy.aligned import AlignedTask, AlignmentTables  # noqa: E402
from align_rudder.hierarchy.settings import GOALS  # noqa: E402
from align_rudder.hierarchy.unordered import Checklist, UnorderedTask  # noqa: E402
from align_rudder.studies.diamond.goals import subgoals_of  # noqa: E402
from align_rudder.studies.diamond.results import aligned_task, count_demonstrations  # noqa: E402
from align_rudder.tasks.diamond.names import goal_names  # noqa: E402


@pytest.fixture(scope="module")
def goals():
    return {name: subgoals_of(setup(), name) for name in GOALS}


def events_in(encoded):
    """Return the symbols of a demonstration's events."""
    symbols = setup().model.events_.symbols_
    return [str(symbols[e]) for e in encoded.events if 0 <= e < len(symbols)]


@pytest.mark.parametrize("name", GOALS)
def test_the_demonstrations_give_subgoals_of_each_sort(goals, name):
    found = goals[name]
    free = name in ("checklist", "kinds")
    assert isinstance(found.tables, Checklist if free else AlignmentTables)
    assert len(found.symbols) == found.tables.n_subtasks
    assert found.symbols[-1].split()[0] == "diamond+1"
    task = aligned_task(setup(), name)
    assert type(task) is (UnorderedTask if free else AlignedTask)
    assert len({tables.tables.digest for tables in goals.values()}) == len(GOALS)


def test_those_of_the_alignment_are_those_of_the_model(goals):
    assert goals["alignment"].symbols == setup().goals
    assert goals["alignment"].task is setup().task


def test_achievements_are_events_only_where_it_is_said(goals):
    assert any("did_" in symbol for symbol in goals["flags"].symbols)
    assert not any("did_" in s for name in GOALS if name != "flags" for s in goals[name].symbols)
    names = goal_names(goals["alignment"].symbols)
    order = [names.index(f"{kind} pickaxe") for kind in ("wood", "stone", "iron")]
    assert order == sorted(order)


def test_a_checklist_has_the_subgoals_of_the_alignment(goals):
    assert goals["checklist"].symbols == goals["alignment"].symbols
    assert goals["checklist"].tables.ordered
    assert not goals["kinds"].tables.ordered


def test_all_events_of_one_demonstration_are_its_subgoals(goals):
    shortest = min(range(10), key=lambda i: len(setup().demos[i].actions))
    shown = events_in(setup().model.encoded_[shortest])
    assert [sorted(s.split()) for s in goals["one"].symbols] == [sorted(s.split()) for s in shown]
    assert len(goals["one"].symbols) > len(goals["alignment"].symbols)


def test_kinds_are_what_most_demonstrations_hold_and_each_is_there_once(goals):
    symbols = goals["kinds"].symbols
    assert len(set(symbols)) == len(symbols)
    held = [set(events_in(demo)) for demo in setup().model.encoded_]
    for symbol in {*symbols}.union(*held):
        share = np.mean([symbol in events for events in held])
        assert (share >= 0.8) == (symbol in symbols)


@pytest.mark.parametrize("name", ["flags", "checklist", "one", "kinds"])
def test_demonstrations_reach_the_subgoals(name, compiled_quickly):
    counts = count_demonstrations(setup(), name)
    assert counts["reached"][-1] == counts["solved"] == 10
    if name != "one":  # of one demonstration, much is its own
        assert min(counts["reached"]) >= 5
