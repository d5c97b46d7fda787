"""Returns: failures, weights, and a C that is never negative."""

import numpy as np
import pytest

import align_rudder as ar
from align_rudder import AlignRudder, AlignRudderWarning
from align_rudder.returns import failed, weights_of
from align_rudder.storage import check_tree

FIRST, SECOND = list("ABCDEFGH"), list("STUVWXYZ")


def test_who_is_not_paid_failed():
    assert failed([1.0, 0.0, 0.9, -1.0], 0.0).tolist() == [False, True, False, True]
    assert failed([100.0, 99.0, 1.0], 0.0).tolist() == [False, False, True]
    assert failed([-90.0, -100.0, -200.0], -200.0).tolist() == [False, False, True]
    assert failed([0.2, 1.0, 4.0], 0.0).tolist() == [False] * 3
    assert failed([0.01, 0.5], 0.0).tolist() == [False] * 2  # which of them is the rule?
    assert failed([0.01, 0.5, 0.0], 0.0).tolist() == [False, False, True]


def test_failures_are_named_and_not_aligned():
    with pytest.warns(
        AlignRudderWarning, match=r"demonstrations \[1, 4\] of 5 failed.*0\.0, 0\.01"
    ):
        model = AlignRudder().fit_events(
            [FIRST, ["Q"], FIRST, FIRST, FIRST[:3]], [1, 0, 1, 1, 0.01]
        )
    assert model.failures_.tolist() == [1, 4]
    assert model.used_.tolist() == [0, 2, 3]
    assert model.strategies_[0].members.tolist() == [0, 2, 3]
    assert "Q" not in model.events_.symbols_
    assert "take care: 2 of 5 demonstrations were not paid" in model.summary()


@pytest.mark.filterwarnings("ignore:the demonstrations share no strategy")
def test_c_is_not_negative_where_a_strategy_is_worse_than_the_outliers():
    with pytest.warns(AlignRudderWarning, match=r"\[0, 1, 2\] of 5 failed"):
        model = AlignRudder().fit_events(
            ["ABCDE", "ABCDE", "ABCDE", "VWXYZ", "ZYXWV"], [-1, -1, -1, 10, 10]
        )
    assert model.scale_ >= 0
    assert (model.redistribute_events("ABCDE", -1.0).rewards >= 0).all()


def test_each_strategy_is_paid_by_its_own_returns():
    runs, returns = [FIRST] * 4 + [SECOND] * 3, [10.0] * 4 + [1.0] * 3
    model = AlignRudder().fit_events(runs, returns)
    assert len(model.strategies_) == 2
    for run, ret in ((FIRST, 10.0), (SECOND, 1.0)):
        assert model.redistribute_events(run, ret).rewards.sum() == pytest.approx(ret)
    equal = AlignRudder().fit_events(runs, [2.0] * 7)
    for run in (FIRST, SECOND):
        assert equal.redistribute_events(run, 2.0).rewards.sum() == pytest.approx(2.0, rel=0.2)


def test_better_demonstrations_weigh_more():
    runs = [list("ABXCD")] * 3 + [list("ABYCD")] * 3
    good = AlignRudder(strategies=1, min_conservation=0.4).fit_events(runs, [5, 5, 5, 1, 1, 1])
    same = AlignRudder(strategies=1, min_conservation=0.4).fit_events(runs)

    def paid(model, event):
        rr = model.redistribute_events(["A", "B", event, "C", "D"], 1.0)
        return rr.rewards[2] / rr.rewards.sum()

    assert paid(good, "X") > paid(same, "X") >= paid(same, "Y") > paid(good, "Y")
    off = AlignRudder(strategies=1, min_conservation=0.4, weigh_returns=False)
    off.fit_events(runs, [5, 5, 5, 1, 1, 1])
    assert paid(off, "X") == pytest.approx(paid(same, "X"))


def test_weights_are_the_returns_above_the_baseline():
    np.testing.assert_allclose(weights_of(np.array([2.0, 4.0]), 1.0), [0.5, 1.5])
    assert weights_of(np.array([3.0, 3.0]), 1.0) is None


def test_the_best_keep_their_places():
    """Members, outliers and segments are of the demonstrations given, not of the best of them."""
    runs = [list("QRSQR"), FIRST, list("QQRRS"), FIRST, ["lamp", *FIRST], list("MNOPL")]
    returns = [0.5, 1.0, 0.5, 1.0, 1.0, 1.0]
    with pytest.warns(AlignRudderWarning, match=r"demonstrations \[5\] of 6 agree with no other"):
        model = AlignRudder(top_n=4).fit_events(runs, returns)
    assert model.used_.tolist() == [1, 3, 4, 5]
    assert model.strategies_[0].members.tolist() == [1, 3, 4]
    assert model.outliers_.tolist() == [5]
    episodes = [
        ar.Episode(np.array([-1, *map(ord, "".join(run)[-len(run) :])]), np.zeros(len(run)), paid)
        for run, paid in ((r, [0.0] * (len(r) - 1) + [g]) for r, g in zip(runs, returns))
    ]
    fitted = AlignRudder(lambda o, a, r, n, i: int(n), top_n=3, strategies=1).fit(episodes)
    for task in fitted.subtasks():
        for segment in task.segments:
            assert segment.episode in fitted.used_
            reached = episodes[segment.episode].observations[segment.stop]
            assert reached == task.goal.symbol


def test_ten_thousand_sequences_are_fitted_by_a_sample():
    """All of them are members, each spelled by its row, and the tree has every one."""
    rng = np.random.default_rng(0)
    runs = []
    for _ in range(10_000):
        run = rng.integers(0, 8, 44).tolist()
        for key in "FEDCBA":
            at = int(rng.integers(len(run) // 6 + 1)) if key == "A" else int(rng.integers(8))
            run.insert(min(at + "ABCDEF".index(key) * 8, len(run)), key)
        runs.append(run)
    model = AlignRudder(strategies=1).fit_events(runs)
    (strategy,) = model.strategies_
    assert len(strategy.members) > 9_900
    ids = {i: model.encoded_[i].sequence for i in strategy.members[::500].tolist()}
    for row, i in list(enumerate(strategy.members.tolist()))[::500]:
        np.testing.assert_array_equal(strategy.alignment.sequences[row], ids[i])
    assert [g.symbol for g in strategy.subgoals] == list("ABCDEF")
    assert model.tree_.shape == (9_999, 4)
    check_tree(model.tree_, "the tree")
