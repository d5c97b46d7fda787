"""Things that may be done in either order: strategies of their own, or the summary says so."""

import numpy as np
import pytest

import align_rudder as ar
from align_rudder.events import DeltaEvents
from align_rudder.summary import doubts

FIRST = ["ore", "coal", "ingot", "hammer", "sword", "gate"]
SECOND = ["coal", "ore", *FIRST[2:]]


def noisy(log, n, rng):
    log = list(log)
    for _ in range(n):
        log.insert(rng.integers(len(log) + 1), f"noise {rng.integers(6)}")
    return log


@pytest.mark.parametrize("noise", [0, 5])
@pytest.mark.parametrize("share", [2, 3])
def test_either_order_is_paid(noise, share):
    rng = np.random.default_rng(0)
    logs = [noisy(SECOND if i % share == 0 else FIRST, noise, rng) for i in range(12)]
    model = ar.AlignRudder().fit_events(logs)
    assert len(model.strategies_) == 2
    for log in (FIRST, SECOND):
        rewards = model.redistribute_events(log, 1.0).rewards
        assert rewards.min() > 0.1
        assert rewards.sum() == pytest.approx(1.0, abs=0.15)
    if not noise:
        assert not any("same place" in what for what, _ in doubts(model))


def test_where_few_logs_show_it_the_summary_says_what_is_not_paid():
    model = ar.AlignRudder().fit_events([FIRST, SECOND] * 2)
    assert len(model.strategies_) == 1
    unpaid = {"ore", "coal"} - {goal.symbol for goal in model.subgoals_}
    assert f"All demonstrations hold {unpaid.pop()}, but not all at the same place" in (
        model.summary()
    )


def test_one_order_is_one_strategy():
    rng = np.random.default_rng(0)
    for noise in (0, 5, 20):
        model = ar.AlignRudder().fit_events([noisy(FIRST, noise, rng) for _ in range(10)])
        assert len(model.strategies_) == 1
        assert "same place" not in model.summary()


def test_items_beside_a_position_are_events_of_their_own():
    """The position has two numbers; that must not leave two of six kinds of items."""
    rng, demos = np.random.default_rng(0), []
    for _ in range(8):
        place, held = [np.zeros(2)], [np.zeros(6)]
        for item in rng.permutation(6):
            for _ in range(rng.integers(1, 4)):
                place.append(place[-1] + rng.choice([[0, 1], [1, 0], [0, -1], [-1, 0]]))
                held.append(held[-1])
            place.append(place[-1])
            held.append(held[-1] + np.eye(6)[item])
        seen = {"position": np.array(place), "inventory": np.array(held)}
        rewards = np.eye(len(place) - 1)[-1]
        demos.append(ar.Episode(seen, np.zeros(len(rewards), int), rewards))
    encoder = DeltaEvents().fit(demos)
    assert {f"inventory[{i}]+1" for i in range(6)} <= set(encoder.symbols_)
    for demo in demos:
        taken = np.diff(demo.observations["inventory"], axis=0).argmax(axis=1)
        gained = np.diff(demo.observations["inventory"], axis=0).any(axis=1)
        names = [encoder.symbols_[e] for e in encoder.encode(demo).events[gained]]
        assert names == [f"inventory[{i}]+1" for i in taken[gained]]
