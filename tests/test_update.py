"""New demonstrations: a model is updated with them and keeps its events."""

import numpy as np
import pytest
from small_models import (
    ENCODERS,
    RUNS,
    assert_same_model,
    assert_same_redistribution,
    last,
    state_episodes,
    third,
)

from align_rudder import AlignRudder, AlignRudderWarning, Episode, FunctionEvents, SymbolEvents


def test_update_joins_the_demonstrations():
    model = AlignRudder().fit_events(RUNS[:2]).update_events(RUNS[2:])
    # KDBSC brings the new symbol B, which goes to the end.
    assert list(model.events_.symbols_) == ["A", "C", "D", "K", "S", "B"]
    together = AlignRudder().fit_events(RUNS)
    assert model.scale_ == pytest.approx(together.scale_)
    for sequence in ["KDSC", "KABDC", "CKD"]:
        np.testing.assert_allclose(
            model.redistribute_events(sequence, 1.0).rewards,
            together.redistribute_events(sequence, 1.0).rewards,
        )


def test_update_keeps_the_ids_of_events():
    model = AlignRudder().fit_events(["BC", "BC"])
    before = model.encode_events("BC").tolist()
    model.update_events(["ABC", "AZBC"])
    assert model.encode_events("BC").tolist() == before == [0, 1]
    assert model.encode_events("AZ?").tolist() == [2, 3, 4]


@pytest.mark.parametrize("kind", ENCODERS)
def test_update_with_episodes_is_a_fit_to_all_with_the_same_events(kind, tmp_path):
    make, episodes = ENCODERS[kind]
    old, new = episodes(), episodes(3, seed=4)
    model = AlignRudder(make(), strategies=1).fit(old)
    events = [model.encode(e) for e in old + new]
    function = third if kind == "function" else None
    model.save(tmp_path / "m.npz")
    loaded = AlignRudder.load(tmp_path / "m.npz", function)
    for m in (model, loaded):
        assert m.update(new) is m
        assert len(m.encoded_) == len(m.returns_) == len(m.lengths_) == 8
        for a, b in zip(m.encoded_, events, strict=True):
            assert a.start == b.start
            np.testing.assert_array_equal(a.events, b.events)
        assert m.strategies_[0].members.tolist() == list(range(8))
        parts = [m.redistribute(e) for e in old + new]
        assert np.mean([rr.correction for rr in parts]) == pytest.approx(0.0, abs=1e-9)
    assert_same_model(model, loaded, old + new)


@pytest.mark.parametrize("encoder", [FunctionEvents(third), SymbolEvents()])
def test_update_with_episodes_that_hold_an_unseen_event(encoder):
    model = AlignRudder(encoder, strategies=1, done=False).fit(state_episodes(4))
    unseen = Episode([0, 3, 6, 300, 9, 12], [0] * 5, last(5))
    symbols = list(model.events_.symbols_)
    before = model.encode(unseen).events[[0, 1, 3, 4]].tolist()
    model.update([unseen, unseen])
    assert len(model.encoded_) == 6
    assert list(model.events_.symbols_)[: len(symbols)] == symbols
    assert model.encode(unseen).events[[0, 1, 3, 4]].tolist() == before
    rr = model.redistribute(unseen)
    assert rr.rewards.sum() + rr.correction == pytest.approx(1.0)


def test_update_keeps_the_best_of_old_and_new():
    model = AlignRudder(top_n=3).fit_events(RUNS[:3], [1, 1, 1])
    with pytest.warns(AlignRudderWarning, match=r"demonstrations \[4\] of 6 failed"):
        model.update_events([list("KDSCX"), list("QRQ"), list("KDSCY")], [2, 0, 3])
    assert [model.returns_[i] for i in model.used_] == [1.0, 2.0, 3.0]
    assert [model.lengths_[i] for i in model.used_] == [4, 5, 5]


def test_an_update_without_episodes_changes_nothing():
    model = AlignRudder().fit_events(RUNS)
    before = model.redistribute_events("KDSC", 1.0)
    assert_same_redistribution(model.update_events([]).redistribute_events("KDSC", 1.0), before)


@pytest.mark.parametrize(
    ("options", "sequences", "returns", "message"),
    [
        ({"scoring": 4 * np.eye(6) - 1}, ["QRSTUVW"], [1.0], r"shape \(6, 6\); for 12 events"),
        ({}, ["KQ"], [np.inf], "every return must be finite"),
        ({}, ["KQ"], [1.0, 2.0], r"1 sequences but returns of shape \(2,\)"),
    ],
)
def test_an_update_that_is_refused_changes_nothing(options, sequences, returns, message):
    model = AlignRudder(**options).fit_events(RUNS)
    symbols, ids = list(model.events_.symbols_), model.encode_events("KQW").tolist()
    before = model.redistribute_events("KDSC", 1.0)
    with pytest.raises(ValueError, match=message):
        model.update_events(sequences, returns)
    assert list(model.events_.symbols_) == symbols
    assert model.encode_events("KQW").tolist() == ids
    assert len(model.encoded_) == 4
    assert_same_redistribution(model.redistribute_events("KDSC", 1.0), before)
