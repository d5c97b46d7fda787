"""A model that is saved and loaded is the same."""

import numpy as np
import pytest
from small_models import (
    ENCODERS,
    RUNS,
    assert_episodic,
    assert_same_model,
    assert_same_redistribution,
    fitted,
    third,
)

from align_rudder import AlignRudder, AlignRudderWarning


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("gap", [0.0, 0.01])
def test_a_loaded_model_redistributes_identically(kind, gap, tmp_path):
    model = fitted(kind, gap=gap)
    model.save(tmp_path / "model.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]
    loaded = AlignRudder.load(tmp_path / "model.npz", third if kind == "function" else None)
    assert_same_model(model, loaded, ENCODERS[kind][1](seed=7))
    assert loaded.summary() == model.summary()
    assert loaded.gap == gap
    for task, same in zip(model.subtasks(), loaded.subtasks(), strict=True):
        assert task == same
    loaded.save(tmp_path / "again.npz")
    again = AlignRudder.load(tmp_path / "again.npz", third if kind == "function" else None)
    assert_same_model(model, again, ENCODERS[kind][1](seed=8))


def test_a_loaded_model_of_symbols_redistributes_identically(tmp_path):
    things = ["word", 3, ("a", (1, None)), frozenset({1, 2}), b"raw", 2.5, True]
    rng = np.random.default_rng(0)
    sequences = [[things[i] for i in range(7) if rng.random() < 0.9] for _ in range(6)]
    model = AlignRudder(strategies=1).fit_events(sequences, [1, 2, 3, 4, 5, 6])
    model.save(tmp_path / "m.npz")
    loaded = AlignRudder.load(tmp_path / "m.npz")
    assert list(loaded.events_.symbols_) == list(model.events_.symbols_)
    assert list(map(type, loaded.events_.symbols_)) == list(map(type, model.events_.symbols_))
    probe = [*things[::-1], None, "unseen", *things]
    assert_same_redistribution(
        loaded.redistribute_events(probe, -2.0), model.redistribute_events(probe, -2.0)
    )


@pytest.mark.parametrize("scoring", ["log", "karlin-altschul", 4 * np.eye(6) - 1, np.diag])
def test_a_loaded_model_keeps_its_scoring(scoring, tmp_path):
    model = AlignRudder(scoring=scoring).fit_events(RUNS)
    model.save(tmp_path / "m.npz")
    function = scoring if callable(scoring) else None
    loaded = AlignRudder.load(tmp_path / "m.npz", scoring=function)
    assert_same_redistribution(
        loaded.redistribute_events("KADBSC", 1.0), model.redistribute_events("KADBSC", 1.0)
    )
    np.testing.assert_array_equal(loaded.alignment_.scores, model.alignment_.scores)
    more = ["KADSC" + "Q" * callable(scoring)]  # a function gives scores for a new event too
    model.update_events(more)
    loaded.update_events(more)
    np.testing.assert_array_equal(loaded.alignment_.scores, model.alignment_.scores)


def test_a_scoring_function_is_asked_for_when_a_model_is_loaded(tmp_path):
    AlignRudder(scoring=np.diag).fit_events(RUNS).save(tmp_path / "m.npz")
    with pytest.raises(ValueError, match=r"scores come from a function.*scoring=your_function"):
        AlignRudder.load(tmp_path / "m.npz")
    AlignRudder(scoring="log").fit_events(RUNS).save(tmp_path / "m.npz")
    with pytest.raises(ValueError, match="scoring=… was given, but the model's scores are log"):
        AlignRudder.load(tmp_path / "m.npz", scoring=np.diag)


def test_all_parameters_are_kept(tmp_path):
    options = {
        "alpha": -0.5,
        "epsilon": 0.001,
        "gap": 0.02,
        "refine": 2,
        "strategies": 1,
        "top_n": 3,
        "baseline": -1.0,
        "subgoal_conservation": 0.6,
        "scoring": "log",
    }
    AlignRudder(**options).fit_events(RUNS).save(tmp_path / "m.npz")
    loaded = AlignRudder.load(tmp_path / "m.npz")
    assert {k: v for k, v in loaded.get_params().items() if k in options} == options


def test_parameters_that_are_numpy_scalars_are_saved(tmp_path):
    model = AlignRudder(top_n=np.int64(3), baseline=np.float32(0.5), gap=np.float64(0.0))
    model.fit_events(RUNS).save(tmp_path / "m.npz")
    loaded = AlignRudder.load(tmp_path / "m.npz")
    assert (loaded.top_n, loaded.baseline) == (3, 0.5)


def test_a_model_without_a_strategy_is_saved(tmp_path):
    with pytest.warns(AlignRudderWarning, match="share no strategy"):
        model = AlignRudder().fit_events(["ABC", "DEF"])
    model.save(tmp_path / "m.npz")
    loaded = AlignRudder.load(tmp_path / "m.npz")
    assert_episodic(loaded, "ABC")
    assert loaded.outliers_.tolist() == [0, 1]


def test_a_given_matrix_is_kept_where_no_strategy_was_found(tmp_path):
    with pytest.warns(AlignRudderWarning, match="share no strategy"):
        model = AlignRudder(scoring=4 * np.eye(6) - 1).fit_events(["ABC", "DEF"])
    model.save(tmp_path / "m.npz")
    loaded = AlignRudder.load(tmp_path / "m.npz")
    with pytest.warns(AlignRudderWarning, match=r"demonstrations \[1\] of 4"):
        loaded.update_events(["ABC", "ABC"])
    assert loaded.profile_.consensus() == list("ABC")


def test_a_model_of_a_function_needs_it_again(tmp_path):
    fitted("function").save(tmp_path / "m.npz")
    with pytest.raises(ValueError, match=r"AlignRudder.load\(path, function=your_function\)"):
        AlignRudder.load(tmp_path / "m.npz")
    AlignRudder().fit_events(RUNS).save(tmp_path / "s.npz")
    with pytest.raises(ValueError, match=r"but .* SymbolEvents; .* give events= to the wrapper"):
        AlignRudder.load(tmp_path / "s.npz", function=third)


def test_the_score_of_an_alignment_with_gap_costs_is_the_same_after_loading(tmp_path):
    model = AlignRudder(gap=0.1, strategies=1).fit_events(RUNS)
    model.save(tmp_path / "m.npz")
    assert AlignRudder.load(tmp_path / "m.npz").alignment_.score == model.alignment_.score
