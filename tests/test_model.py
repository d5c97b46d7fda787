"""AlignRudder: the five steps together, and which demonstrations are taken."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import (
    ENCODERS,
    RUNS,
    assert_same_model,
    assert_same_redistribution,
    fitted,
    last,
    state_episodes,
    third,
)

from align_rudder import (
    AlignRudder,
    AlignRudderWarning,
    Episode,
    FunctionEvents,
    StateEvents,
    SymbolEvents,
)
from align_rudder.episodes import select_top


def test_the_planted_strategy_is_found_and_paid_for():
    model = AlignRudder().fit_events(RUNS)
    assert model.profile_.consensus() == list("KDSC")
    assert [goal.symbol for goal in model.subgoals_] == list("KDSC")
    rr = model.redistribute_events(list("KDSC"), 1.0)
    assert (rr.rewards > 0.1).all()
    assert abs(rr.correction) < 0.2


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("gap", [0.0, 0.01])
def test_scale_brings_the_demonstrations_to_their_mean_return(kind, gap):
    model = fitted(kind, gap=gap)
    episodes = ENCODERS[kind][1]()
    parts = [model.redistribute(e) for e in episodes]
    assert np.mean([rr.rewards.sum() for rr in parts]) == pytest.approx(1.0, rel=1e-9)
    assert np.mean([rr.correction for rr in parts]) == pytest.approx(0.0, abs=1e-9)
    assert model.scale_ == pytest.approx(1.0 / np.mean([rr.scores[-1] for rr in parts]))
    for rr, episode in zip(parts, episodes):
        assert rr.rewards.sum() + rr.correction == pytest.approx(episode.ret, rel=1e-9)
        assert not rr.rewards[rr.events == -1].any()
        assert gap > 0 or (rr.rewards >= 0).all()


def test_the_start_state_earns_nothing():
    model = fitted("states")
    for episode in state_episodes():
        encoded = model.encode(episode)
        assert encoded.start >= 0
        whole = model.scorer_.prefix_scores(np.concatenate([[encoded.start], encoded.events]))[0]
        rr = model.redistribute(episode)
        np.testing.assert_allclose(rr.scores, whole[1:] - whole[0], atol=1e-12)


def test_standing_still_and_going_to_and_fro_earn_nothing_more():
    model = fitted("states")
    still = Episode([0] * 20, [0] * 19, last(19, 0.0))
    assert not model.redistribute(still).rewards.any()
    pacing = Episode([0, *[1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1, 0] * 60], [0] * 720, last(720, 0.0))
    rr = model.redistribute(pacing)
    assert rr.rewards.any()
    assert not rr.rewards[360:].any()


@pytest.mark.parametrize("kind", ENCODERS)
def test_same_demonstrations_same_model(kind):
    make, episodes = ENCODERS[kind]
    again = AlignRudder(make(), strategies=1).fit(episodes())
    assert_same_model(fitted(kind), again, episodes(seed=9))


def test_fitting_leaves_the_given_encoder_and_episodes_alone():
    encoder = StateEvents(max_events=6, preference=5.0)
    episodes = state_episodes()
    AlignRudder(encoder, strategies=1).fit(episodes)
    assert not hasattr(encoder, "symbols_")
    with pytest.raises(ValueError, match="StateEvents is not fitted"):
        encoder.encode(episodes[0])


def test_symbols_and_states_that_are_symbols_give_the_same_model():
    """`fit` with SymbolEvents and `fit_events` see the same sequences."""
    episodes = state_episodes()
    by_episode = AlignRudder(SymbolEvents(), strategies=1).fit(episodes)
    sequences = [e.observations[1:].tolist() for e in episodes]
    by_symbols = AlignRudder(strategies=1).fit_events(sequences)
    for episode, sequence in zip(episodes, sequences):
        assert_same_redistribution(
            by_episode.redistribute(episode), by_symbols.redistribute_events(sequence, 1.0)
        )


def test_none_is_no_event_when_fitting_too():
    with_none = [["K", None, "D"], [None, "K", "A", "D"], ["K", "D", None]]
    without = [[s for s in sequence if s is not None] for sequence in with_none]
    a, b = AlignRudder().fit_events(with_none), AlignRudder().fit_events(without)
    assert list(a.events_.symbols_) == list(b.events_.symbols_) == ["A", "D", "K"]
    assert_same_redistribution(a.redistribute_events("KAD", 1.0), b.redistribute_events("KAD", 1.0))


def test_larger_returns_scale_the_rewards():
    one = AlignRudder().fit_events(RUNS)
    many = AlignRudder().fit_events(RUNS, [8.0] * 4)
    assert many.scale_ == 8 * one.scale_
    rewards = one.redistribute_events("KDSC", 1.0).rewards
    np.testing.assert_allclose(many.redistribute_events("KDSC", 8.0).rewards, 8 * rewards)


@pytest.mark.parametrize("baseline", [-100.0, 0.5])
def test_baseline(baseline):
    model = AlignRudder(baseline=baseline).fit_events(RUNS, [1, 2, 3, 4])
    parts = [model.redistribute_events(s, r) for s, r in zip(RUNS, [1, 2, 3, 4])]
    assert np.mean([rr.rewards.sum() for rr in parts]) == pytest.approx(2.5 - baseline)
    assert np.mean([rr.correction for rr in parts]) == pytest.approx(baseline)


def test_a_detour_of_one_demonstration_earns_nothing():
    runs = ["KxDC", "KDC", "KDC"]
    rewards = AlignRudder().fit_events(runs).redistribute_events("KxDC", 1.0).rewards
    assert (rewards > 0).tolist() == [True, False, True, True]
    everything = AlignRudder(min_conservation=0.0).fit_events(runs)
    assert (everything.redistribute_events("KxDC", 1.0).rewards > 0).all()
    with pytest.raises(ValueError, match=r"min_conservation is 1.5; a number at least 0 and below"):
        AlignRudder(min_conservation=1.5).fit_events(runs)


def test_demonstrations_of_no_strategy_do_not_change_what_is_paid():
    alone = AlignRudder().fit_events([["k", "d", "c"]] * 6)
    others = [["x", "y"], ["p"], ["q", "r", "s"]]
    with pytest.warns(AlignRudderWarning, match="not part of a strategy"):
        model = AlignRudder().fit_events([["k", "d", "c"]] * 6 + others)
    assert model.outliers_.tolist() == [6, 7, 8]
    for one in (alone, model):
        rr = one.redistribute_events(["k", "d", "c"], 1.0)
        np.testing.assert_allclose(rr.rewards, [1 / 3] * 3)
        assert rr.correction == pytest.approx(0)


def test_kappa_is_the_mean_of_what_is_still_to_come_at_each_cell():
    model = fitted("states")
    episodes = state_episodes(seed=3)
    mean, count = model.kappa(episodes)
    by_cell = {}
    for episode in episodes:
        rr = model.redistribute(episode)
        for t, cell in enumerate(rr.cells):
            by_cell.setdefault(int(cell), []).append(rr.rewards[t + 1 :].sum() + rr.correction)
    assert count.sum() == sum(len(e) for e in episodes)
    for cell in range(model.scorer_.n_cells):
        assert count[cell] == len(by_cell.get(cell, []))
        if cell in by_cell:
            assert mean[cell] == pytest.approx(np.mean(by_cell[cell]), abs=1e-9)
        else:
            assert np.isnan(mean[cell])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=8),
    st.integers(1, 9),
)
def test_the_best_by_return_and_the_shorter_among_equals_are_chosen(pairs, top_n):
    chosen = select_top([r for r, _ in pairs], [n for _, n in pairs], top_n).tolist()
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(top_n, len(pairs))
    rest = [i for i in range(len(pairs)) if i not in chosen]
    for i in chosen:
        for j in rest:
            (ret_i, len_i), (ret_j, len_j) = pairs[i], pairs[j]
            assert (ret_i, -len_i) >= (ret_j, -len_j)


def test_the_model_takes_the_top_n():
    noise = [list("QRQR"), list("RQXX")]
    model = AlignRudder(top_n=4).fit_events([*RUNS, *noise], [1, 1, 1, 1, 0.5, 0.9])
    same = AlignRudder().fit_events(RUNS)
    assert list(model.events_.symbols_) == list(same.events_.symbols_)
    np.testing.assert_array_equal(model.alignment_.matrix, same.alignment_.matrix)
    # Of equal return, the two shortest are taken: KDSC and one of five.
    short = AlignRudder(top_n=2).fit_events(RUNS)
    assert [len(short.encoded_[i].events) for i in short.used_] == [4, 5]


def test_the_top_n_of_episodes_are_those_of_highest_return():
    episodes = state_episodes(6)
    good = [0, 2, 5]
    paid = [
        Episode(e.observations, e.actions, last(len(e), 2.0 if i in good else 1.0))
        for i, e in enumerate(episodes)
    ]
    model = AlignRudder(FunctionEvents(third), top_n=3, strategies=1).fit(paid)
    assert model.used_.tolist() == good
    assert model.returns_ == [e.ret for e in paid]
