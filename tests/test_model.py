"""AlignRudder: the five steps together, other demonstrations, files, and what is refused."""

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder import (
    AlignRudder,
    AlignRudderWarning,
    DeltaEvents,
    Episode,
    FeatureEvents,
    FunctionEvents,
    StateEvents,
    SymbolEvents,
    save_episodes,
)
from align_rudder.episodes import select_top

RUNS = [list("KDSC"), list("KADSC"), list("KDBSC"), list("KDSAC")]


def last(n, value=1.0):
    rewards = np.zeros(n)
    rewards[-1] = value
    return rewards


def walk(rng, goal=14):
    """Return a walk along a line of states, with steps back."""
    states = [0]
    while states[-1] < goal:
        states.append(max(states[-1] + int(rng.choice([1, 1, 1, -1])), 0))
    return states


def state_episodes(n=5, seed=0):
    rng = np.random.default_rng(seed)
    walks = [walk(rng) for _ in range(n)]
    return [Episode(w, np.zeros(len(w) - 1, int), last(len(w) - 1)) for w in walks]


def inventory_episodes(n=5, seed=0):
    """Logs, then planks, then a table, with idle steps between."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        counts = np.zeros(3, int)
        seen = [counts.copy()]
        for change in ([1, 0, 0], [1, 0, 0], [-1, 4, 0], [1, 0, 0], [0, -4, 1]):
            seen += [counts.copy()] * int(rng.integers(0, 4))
            counts = counts + change
            seen.append(counts.copy())
        seen = np.array(seen)
        observations = {"log": seen[:, 0], "plank": seen[:, 1], "table": seen[:, 2]}
        out.append(Episode(observations, np.zeros(len(seen) - 1, int), last(len(seen) - 1)))
    return out


def feature_episodes(n=5, seed=0):
    rng = np.random.default_rng(seed)
    return [
        Episode(
            np.column_stack([np.linspace(0, 9, 31) + rng.normal(0, 0.1, 31), np.ones(31)]),
            np.zeros(30, int),
            last(30),
        )
        for _ in range(n)
    ]


def third(obs, action, reward, next_obs, info):
    """Return every third state as an event."""
    return f"state {next_obs}" if next_obs != obs and next_obs % 3 == 0 else None


ENCODERS = {
    "states": (lambda: StateEvents(max_events=6, preference=5.0), state_episodes),
    "deltas": (DeltaEvents, inventory_episodes),
    "delta keys": (lambda: DeltaEvents(keys=["log", "table"]), inventory_episodes),
    "features": (lambda: FeatureEvents(max_events=5, n_features=8), feature_episodes),
    "combined": (
        lambda: DeltaEvents(keys=["log"]) + DeltaEvents(keys=["table"]),
        inventory_episodes,
    ),
    "observations": (lambda: SymbolEvents("observation"), state_episodes),
    "function": (lambda: FunctionEvents(third), state_episodes),
}


@cache
def fitted(kind, **options):
    make, episodes = ENCODERS[kind]
    return AlignRudder(make(), strategies=1, **options).fit(episodes())


def assert_same_redistribution(a, b):
    np.testing.assert_array_equal(a.rewards, b.rewards)
    np.testing.assert_array_equal(a.scores, b.scores)
    np.testing.assert_array_equal(a.events, b.events)
    np.testing.assert_array_equal(a.cells, b.cells)
    assert (a.correction, a.ret) == (b.correction, b.ret)


def assert_same_model(a, b, episodes):
    assert list(a.events_.symbols_) == list(b.events_.symbols_)
    assert a.scale_ == b.scale_
    for x, y in zip(a.strategies_, b.strategies_, strict=True):
        np.testing.assert_array_equal(x.members, y.members)
        np.testing.assert_array_equal(x.alignment.matrix, y.alignment.matrix)
        np.testing.assert_array_equal(x.profile.pssm, y.profile.pssm)
        np.testing.assert_array_equal(x.column_rewards, y.column_rewards)
        assert x.subgoals == y.subgoals
    for episode in episodes:
        assert_same_redistribution(a.redistribute(episode), b.redistribute(episode))


# The five steps together


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


# Kappa


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


# Which demonstrations


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


@pytest.mark.parametrize(
    ("options", "sequences", "returns", "message"),
    [
        ({}, [], None, r"got 0 demonstration\(s\); at least 2"),
        ({}, ["AB"], None, r"got 1 demonstration\(s\); at least 2"),
        ({"top_n": 1}, ["AB", "AB"], None, r"top_n is 1; a whole number of at least 2"),
        ({}, "AB", None, r"got one sequence \('AB'\); a list"),
        ({}, [1, 2], None, r"sequences\[0\].* 1.*sequence.*needed"),
        ({}, [["A"], [["B"]]], None, r"sequence 1 holds \['B'\] of type list.*not hashable"),
        ({}, ["AB", "AB"], [1.0], r"2 sequences but returns of shape \(1,\)"),
        ({}, ["AB", "AB"], [1.0, np.nan], r"a return is nan; every return must be finite"),
        ({}, ["AB", "AB"], [0, 0], r"mean return .* is 0, which is not above the baseline 0"),
        ({}, ["AB", "AB"], [-3, -1], r"mean return .* is -2, .* baseline 0; .*baseline=…"),
        ({"baseline": 5.0}, ["AB", "AB"], [5, 5], r"is 5, which is not above the baseline 5"),
        ({"scoring": "pam"}, ["AB", "AB"], None, r"scoring='pam' is not known"),
        ({"scoring": np.eye(3)}, ["AB", "AB"], None, r"shape \(3, 3\); for 2 events"),
        ({"engine": "pam"}, ["AB", "AB"], None, r"engine is 'pam'; one of 'native', 'clustalw'"),
        ({"engine": "pam"}, ["AB", "CD"], None, r"engine is 'pam'; one of 'native', 'clustalw'"),
        ({"gap": -1.0}, ["AB", "AB"], None, r"gap is -1.0; a number at least 0"),
        ({"gap": -1.0}, ["AB", "CD"], None, r"gap is -1.0; a number at least 0"),
    ],
)
def test_bad_demonstrations_and_parameters_are_refused(options, sequences, returns, message):
    with pytest.raises(ValueError, match=message):
        AlignRudder(**options).fit_events(sequences, returns)


def test_what_is_no_list_of_episodes_is_refused():
    episode = state_episodes(1)[0]
    with pytest.raises(ValueError, match=r"episodes is a single Episode; a list"):
        AlignRudder().fit(episode)
    with pytest.raises(ValueError, match=r"episodes\[0\] is a str; an Episode is needed"):
        AlignRudder().fit(["KD", "KD"])
    with pytest.raises(ValueError, match=r"random_episodes\[0\] is a int"):
        AlignRudder().fit([episode, episode], [3])
    with pytest.raises(ValueError, match=r"sequences\[0\] is an Episode; use fit"):
        AlignRudder().fit_events([episode, episode])
    with pytest.raises(ValueError, match=r"got 1 demonstration"):
        AlignRudder().fit([episode])


def test_what_is_no_episode_is_not_redistributed():
    with pytest.raises(ValueError, match=r"str.*Episode"):
        fitted("states").redistribute("KD")


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.redistribute(state_episodes(1)[0]),
        lambda m: m.redistribute_events("KD", 1.0),
        lambda m: m.encode(state_episodes(1)[0]),
        lambda m: m.update(state_episodes(2)),
        lambda m: m.update_events(RUNS),
        lambda m: m.stream(),
        lambda m: m.vector_stream(2),
        lambda m: m.save("nowhere.npz"),
        lambda m: m.kappa(state_episodes(1)),
        lambda m: m.progress_of(np.array([0])),
        lambda m: m.subtasks(),
        lambda m: m.subgoal_table(),
        lambda m: m.next_subgoal(0),
        lambda m: m.summary(),
        lambda m: m.alignment_,
        lambda m: m.profile_,
        lambda m: m.subgoals_,
    ],
)
def test_an_unfitted_model_says_so(use):
    with pytest.raises(ValueError, match="not fitted; call fit or fit_events first"):
        use(AlignRudder())


def test_symbols_are_refused_by_a_model_of_episodes():
    with pytest.raises(ValueError, match=r"fitted to episodes with StateEvents.*Use redistribute"):
        fitted("states").redistribute_events([1, 2], 1.0)


def test_a_model_of_logs_says_that_it_knows_nothing_of_an_episode():
    model = AlignRudder().fit_events([["key", "door", "chest"], ["key", "lamp", "door", "chest"]])
    with pytest.warns(AlignRudderWarning, match="no step has a symbol"):
        model.redistribute(Episode(np.arange(4), np.zeros(3, int), [0.0, 0.0, 1.0]))
    played = Episode(np.array(["", "key", "lamp", "door"]), np.zeros(3, int), [0.0, 0.0, 0.0])
    assert model.redistribute(played).rewards.tolist()[1] == 0.0
    assert model.redistribute(played).rewards.sum() > 0.5


@pytest.mark.parametrize("baseline", [-100.0, 0.5])
def test_baseline(baseline):
    model = AlignRudder(baseline=baseline).fit_events(RUNS, [1, 2, 3, 4])
    parts = [model.redistribute_events(s, r) for s, r in zip(RUNS, [1, 2, 3, 4])]
    assert np.mean([rr.rewards.sum() for rr in parts]) == pytest.approx(2.5 - baseline)
    assert np.mean([rr.correction for rr in parts]) == pytest.approx(baseline)


# Demonstrations that give nothing to redistribute


def episodic(model, sequence, ret=3.0):
    rr = model.redistribute_events(sequence, ret)
    assert model.scale_ == 0.0
    assert not rr.rewards.any()
    assert rr.correction == ret
    return rr


def test_demonstrations_that_share_nothing_keep_the_episodic_reward():
    with pytest.warns(AlignRudderWarning, match="share no strategy beyond chance.*episodic"):
        model = AlignRudder().fit_events(["ABC", "DEF", "GHI"])
    assert model.strategies_ == []
    assert (model.alignment_, model.profile_, model.subgoals_) == (None, None, [])
    assert model.outliers_.tolist() == [0, 1, 2]
    rr = episodic(model, "ABC")
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
    episodic(model, ["A", "B"])
    with pytest.warns(AlignRudderWarning, match="no demonstration holds an event"):
        model = AlignRudder(strategies=1).fit_events([[], []])
    episodic(model, ["A"])
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


# New demonstrations


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


# Files


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
    episodic(loaded, "ABC")
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
    with pytest.raises(ValueError, match=r"function=… was given, but .* SymbolEvents"):
        AlignRudder.load(tmp_path / "s.npz", function=third)


def test_symbols_that_no_file_can_hold_are_refused(tmp_path):
    class Thing:
        pass

    a, b = Thing(), Thing()
    model = AlignRudder().fit_events([[a, b], [a, b]])
    with pytest.raises(ValueError, match=r"of type Thing cannot be stored in a file; use strings"):
        model.save(tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
def test_a_truncated_file_is_refused(share, tmp_path):
    path = tmp_path / "m.npz"
    AlignRudder().fit_events(RUNS).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"m\.npz cannot be read as an npz file: it is truncated"):
        AlignRudder.load(path)


def test_damaged_bytes_are_refused(tmp_path):
    path = tmp_path / "m.npz"
    AlignRudder().fit_events(RUNS).save(path)
    content = bytearray(path.read_bytes())
    content[60:200] = bytes(140)
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"m\.npz cannot be read"):
        AlignRudder.load(path)


def change_file(path, change):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(arrays["header"].tobytes().decode())
    change(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(version=99), r"has version 99 of format .*reads version \d+"),
        (
            lambda h, a: h.update(format="cake"),
            r"of kind 'cake'; one of kind 'model'",
        ),
        (lambda h, a: a.pop("returns"), r"damaged .*: it has no array 'returns'"),
        (
            lambda h, a: a.pop("strategy/0/matrix"),
            r"it has no array 'strategy/0/matrix'",
        ),
        (lambda h, a: h.pop("events"), r"damaged .*: its header has no 'events'"),
        (
            lambda h, a: a.update(returns=a["returns"][1:]),
            r"'returns' has shape .* is needed",
        ),
        (
            lambda h, a: a.update(starts=a["starts"][1:]),
            r"'steps' has shape .* is needed",
        ),
        (
            lambda h, a: h["events"].update(kind="Oracle"),
            r"events is 'Oracle'; one of .*'State",
        ),
    ],
)
def test_a_changed_file_is_refused(change, message, tmp_path):
    AlignRudder().fit_events(RUNS).save(tmp_path / "m.npz")
    change_file(tmp_path / "m.npz", change)
    with pytest.raises(ValueError, match=message):
        AlignRudder.load(tmp_path / "m.npz")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*m\.npz"):
        AlignRudder.load(tmp_path / "m.npz")
    save_episodes(tmp_path / "e.npz", state_episodes(2))
    with pytest.raises(ValueError, match="of kind 'episodes'; one of kind 'model' is needed"):
        AlignRudder.load(tmp_path / "e.npz")
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match="not one of format 'align-rudder-model': no header"):
        AlignRudder.load(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"the folder .*none does not exist; create it"):
        AlignRudder().fit_events(RUNS).save(tmp_path / "none" / "m.npz")


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.npz"
    AlignRudder().fit_events(RUNS).save(path)
    before = path.read_bytes()
    model = AlignRudder().fit_events([[object, "a"], [object, "a"]])
    with pytest.raises(ValueError, match="cannot be stored"):
        model.save(path)
    assert path.read_bytes() == before


def test_a_model_can_be_cloned_and_set_by_its_parameters():
    from sklearn.base import clone

    model = AlignRudder(gap=0.5, top_n=3).fit_events(RUNS)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "strategies_")
    assert copy.set_params(gap=0.0).gap == 0.0


def test_the_summary_shows_alignment_consensus_and_subgoals():
    model = AlignRudder().fit_events(RUNS)
    text = model.summary()
    assert str(model.alignment_) in text
    assert "consensus (80 %): KDSC" in text
    for goal in model.subgoals_:
        assert f"{goal.reward:.4f}" in text
    assert f"C = {model.scale_:.4g}" in text
    assert "4 demonstrations" in repr(model)


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


def test_the_score_of_an_alignment_with_gap_costs_is_the_same_after_loading(tmp_path):
    model = AlignRudder(gap=0.1, strategies=1).fit_events(RUNS)
    model.save(tmp_path / "m.npz")
    assert AlignRudder.load(tmp_path / "m.npz").alignment_.score == model.alignment_.score


def test_the_consensus_of_a_summary_tells_kinds_of_the_same_name_apart():
    """1 and 1.0 are one symbol to Python, two kinds of event to an encoder of numbers."""

    class Twin(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            return isinstance(other, str) and str(self) == str(other)

    model = AlignRudder(strategies=1).fit_events([["b", "a", "c"]] * 3)
    model.events_.symbols_ = [Twin("a"), Twin("a"), Twin("c")]
    for strategy in model.strategies_:
        object.__setattr__(strategy.profile, "symbols", model.events_.symbols_)
        object.__setattr__(strategy.alignment, "symbols", model.events_.symbols_)
    from align_rudder.text import letters_for

    letters = letters_for(model.events_.symbols_)
    assert f"consensus (80 %): {letters[1]}{letters[0]}{letters[2]}" in model.summary()
    assert "Different kinds of event have the same name: a." in model.summary()
