"""Demonstrations that give nothing to redistribute keep the episodic reward."""

import numpy as np
import pytest
from small_models import RUNS, assert_episodic, last

from align_rudder import AlignRudder, AlignRudderWarning, DeltaEvents, Episode, StateEvents


def test_demonstrations_that_share_nothing_keep_the_episodic_reward():
    with pytest.warns(AlignRudderWarning, match="share no strategy beyond chance.*episodic"):
        model = AlignRudder().fit_events(["ABC", "DEF", "GHI"])
    assert model.strategies_ == []
    assert (model.alignment_, model.profile_, model.subgoals_) == (None, None, [])
    assert model.outliers_.tolist() == [0, 1, 2]
    rr = assert_episodic(model, "ABC")
    assert rr.kappa.tolist() == [3.0] * 3
    assert "share no strategy" in model.summary()
    assert model.progress_of(model.encode_events("AB")).next is None
    stream = model.stream()
    stream.reset()
    assert stream.step_event("A", 2.0) == 0.0
    assert stream.correction == 2.0


def test_demonstrations_without_events_keep_the_episodic_reward():
    with pytest.warns(AlignRudderWarning, match="no demonstration holds an event"):
        model = AlignRudder().fit_events([[], [], []])
    assert_episodic(model, ["A", "B"])
    with pytest.warns(AlignRudderWarning, match="no demonstration holds an event"):
        model = AlignRudder(strategies=1).fit_events([[], []])
    assert_episodic(model, ["A"])
    still = [Episode(np.ones((4, 2)), [0] * 3, last(3)) for _ in range(2)]
    with pytest.warns(AlignRudderWarning, match="no demonstration holds an event"):
        model = AlignRudder(DeltaEvents()).fit(still)
    rr = model.redistribute(Episode(np.arange(8.0).reshape(4, 2), [0] * 3, last(3)))
    assert (rr.rewards.any(), rr.correction) == (False, 1.0)


def test_one_demonstration_without_events_is_an_outlier():
    with pytest.warns(AlignRudderWarning, match=r"demonstrations \[4\] of 5"):
        model = AlignRudder().fit_events([*RUNS, []])
    assert model.profile_.consensus() == list("KDSC")


def test_demonstrations_that_score_zero_keep_the_episodic_reward():
    """They never leave the event of the start state, which earns nothing."""
    still = [Episode([3] * 5, [0] * 4, last(4)) for _ in range(3)]
    with pytest.warns(AlignRudderWarning, match="score zero against their own profile"):
        model = AlignRudder(StateEvents(), done=False).fit(still)
    rr = model.redistribute(Episode([3, 3, 4], [0, 0], [0.0, 5.0]))
    assert model.scale_ == 0.0
    assert (rr.rewards.any(), rr.correction) == (False, 5.0)


def test_one_event_only():
    model = AlignRudder(done=False).fit_events([["a"] * 3] * 2)
    rr = model.redistribute_events(["a"] * 5, 1.0)
    np.testing.assert_allclose(rr.rewards, [1 / 3] * 3 + [0, 0])


def test_an_empty_log_is_named():
    with pytest.warns(AlignRudderWarning, match=r"demonstrations \[1\] hold no event.*Two or more"):
        AlignRudder().fit_events([["a", "b"], []])
    with pytest.warns(AlignRudderWarning, match=r"demonstrations \[0\] hold no event"):
        AlignRudder().fit_events([[None], *RUNS])
    with pytest.warns(AlignRudderWarning) as caught:
        AlignRudder().fit_events(["ab", "cd"])
    assert not any("hold no event" in str(w.message) for w in caught)


def test_a_count_that_rises_with_each_step_is_named_and_the_advice_works():
    wood = [Episode({"wood": np.arange(9)}, [0] * 8, last(8)) for _ in range(4)]
    with pytest.warns(AlignRudderWarning, match="no demonstration holds an event") as caught:
        AlignRudder().fit(wood)
    (said,) = [str(w.message) for w in caught]
    assert "'wood+1', at 100% of the steps" in said
    assert "DeltaEvents(max_share=1)" in said
    assert "fewer" not in said
    model = AlignRudder(DeltaEvents(max_share=1)).fit(wood)
    rewards = model.redistribute(wood[0]).rewards
    assert (rewards[:-1] > 0).all()


def test_observations_that_never_change_are_told_from_those_that_always_do():
    still = [Episode({"wood": np.zeros(9)}, [0] * 8, last(8)) for _ in range(4)]
    with pytest.warns(AlignRudderWarning, match="Nothing that is looked at ever changes"):
        AlignRudder(DeltaEvents()).fit(still)
