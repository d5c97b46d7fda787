"""Rewards of turns: their sum, whose they are, and that no turn has one for its place."""

import numpy as np
import pytest
from hypothesis import given, settings
from logs.planted import conversation
from logs.small import case, log_of, logs

from align_rudder import AlignRudderWarning
from align_rudder.data.logs import Entry, Message, Run, RunLog
from align_rudder.logs import LogModel, TurnTable


@pytest.mark.filterwarnings("ignore:successes return as much as failures")
@settings(max_examples=60, deadline=None)
@given(logs())
def test_the_sum_is_the_outcome_and_every_turn_has_a_number(log):
    model = LogModel("tool+message").fit(log)
    for run in log.runs:
        rewards = model.turn_rewards(run)
        assert len(rewards) == len(run.messages)
        for message, reward in zip(run.messages, rewards, strict=True):
            assert (reward is not None) == (message.role == "assistant")
        ret = float(run.success) if run.ret is None else run.ret
        total = sum(r for r in rewards if r is not None)
        assert total == pytest.approx(ret, abs=1e-9)


def test_where_nothing_tells_all_turns_have_the_same():
    log = log_of(("a b c d", True, 10), ("a b c d", False, 10))
    model = LogModel().fit(log)
    assert model.turn_rewards(case("a b c d", True)) == pytest.approx([0.25] * 4)
    assert model.turn_rewards(case("a b c d", False)) == pytest.approx([0.0] * 4)


def test_the_same_events_at_another_index_have_the_same_rewards():
    """Turns that say nothing move the others: only what is given to all alike changes."""
    good, bad = ["look", "read", "edit"], ["look", "edit"]
    log = RunLog((*(conversation("g", good, True),) * 10, *(conversation("b", bad, False),) * 10))
    model = LogModel().fit(log)
    run = conversation("b", bad, False)
    talk = tuple(Message("assistant", "hm") for _ in range(7))
    later = Run(
        "later",
        tuple(Entry(e.kind, e.name, e.message + 7) for e in run.entries),
        (run.messages[0], *talk, *run.messages[1:]),
        success=False,
    )
    short = np.array([r for r in model.turn_rewards(run) if r is not None])
    long = np.array([r for r in model.turn_rewards(later) if r is not None])
    np.testing.assert_allclose(long[7:] - long[-1], short - short[-1], atol=1e-12)
    np.testing.assert_allclose(long[:7], long[0], atol=1e-12)


def test_what_others_say_belongs_to_the_turn_before():
    def run(success):
        entries = (
            Entry("call", "ask", 1),
            Entry("message", "thanks" if success else "complaint", 2),
            Entry("call", "close", 3),
        )
        roles = ("user", "assistant", "user", "assistant")
        return Run("r", entries, tuple(Message(r, "") for r in roles), success=success)

    log = RunLog((run(True),) * 15 + (run(False),) * 15)
    model = LogModel("tool+message").fit(log)
    first, last = (r for r in model.turn_rewards(run(False)) if r is not None)
    assert first < last


def test_the_turn_that_ends_a_run_too_early_has_the_lowest_reward():
    log = log_of(("a b c d", True, 15), ("a b", False, 15))
    rewards = LogModel().fit(log).turn_rewards(case("a b", False))
    assert rewards[1] < rewards[0]


def test_returns_are_those_of_the_file():
    log = RunLog(
        tuple(case("a b c", True, ret=5.0) for _ in range(9))
        + tuple(case("a c", False, ret=-1.0) for _ in range(9))
    )
    model = LogModel().fit(log)
    assert model.worth_ == 6.0
    assert sum(model.turn_rewards(log.runs[-1])) == pytest.approx(-1.0)
    assert sum(model.turn_rewards(case("a c", None, ret=0.5))) == pytest.approx(0.5)


def test_a_run_without_outcome_or_turns_is_refused_by_name():
    model = LogModel().fit(log_of(("a b", True, 5), ("a", False, 5)))
    with pytest.raises(ValueError, match="mine has no outcome"):
        model.turn_rewards(case("a b", None, name="mine"))
    silent = Run("silent", (), (Message("user", "hi"),), success=True, ret=1.0)
    with pytest.raises(ValueError, match="silent returns 1 and has no turn"):
        model.turn_rewards(silent)
    with pytest.raises(ValueError, match="odd: the return"):
        model.turn_rewards(case("a", False, name="odd", ret=1e300))
    table = TurnTable.of(model, RunLog((silent, case("a b", True))))
    assert len(table.rows) == len(table.faults) == 1
    with pytest.raises(ValueError, match="no run has turn rewards: silent"):
        TurnTable.of(model, RunLog((silent,)))


def test_returns_that_tell_nothing_are_warned_of():
    runs = [case("a b c", True, ret=0.0)] * 9 + [case("a c", False, ret=0.0)] * 9
    with pytest.warns(AlignRudderWarning, match=r"return as much as failures \(0\)"):
        model = LogModel().fit(RunLog(tuple(runs)))
    assert model.turn_rewards(runs[-1]) == [0.0, 0.0]
