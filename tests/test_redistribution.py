"""(V) Redistribution: prefix scores against brute force, and the return that must not change."""

import tracemalloc
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder import AlignRudder, Episode, Redistribution
from align_rudder.presets import PAPER
from align_rudder.redistribution import Scorer, Step, match_columns, prefix_scores_numpy

prop = settings(max_examples=80, deadline=None, derandomize=True)
GAPS = st.sampled_from([0.0, 0.25, 1.0])


@st.composite
def scored(draw, n_strategies=1, columns=4, events=6):
    """Draw PSSMs on a grid of quarters with −∞ among them, and a sequence with -1 and unknowns."""
    n = draw(st.integers(1, 3))
    pssms = []
    for _ in range(n_strategies):
        length = draw(st.integers(0, columns))
        values = st.one_of(st.integers(-8, 12).map(lambda x: x / 4), st.just(-np.inf))
        cells = draw(st.lists(values, min_size=n * length, max_size=n * length))
        pssms.append(np.array(cells, float).reshape(n, length))
    sequence = draw(st.lists(st.integers(-1, n), max_size=events))
    return pssms, np.array(sequence, np.int64)


def brute_force(pssm, events, gap):
    """Return the best score over all monotone matchings of events with columns, one by one."""
    n, length = pssm.shape
    events = [e for e in events if e != -1]
    best = -gap * len(events)
    for size in range(1, min(len(events), length) + 1):
        for steps in combinations(range(len(events)), size):
            for columns in combinations(range(length), size):
                if any(events[t] >= n for t in steps):
                    continue
                value = sum(pssm[events[t], c] for t, c in zip(steps, columns))
                skipped = len(events) - size + columns[-1] + 1 - size
                best = max(best, value - gap * skipped)
    return best


def brute_force_prefixes(pssms, events, gap):
    return np.array(
        [max(brute_force(p, events[: t + 1], gap) for p in pssms) for t in range(len(events))]
    )


# Prefix scores


@prop
@given(scored(), GAPS)
def test_prefix_scores_are_those_of_a_new_alignment_of_every_prefix(drawn, gap):
    (pssm,), events = drawn
    expected = brute_force_prefixes([pssm], events, gap)
    np.testing.assert_array_equal(prefix_scores_numpy(pssm, events, gap), expected)
    np.testing.assert_array_equal(Scorer([pssm], gap).prefix_scores(events)[0], expected)


@prop
@given(st.integers(2, 3).flatmap(lambda k: scored(n_strategies=k, columns=3, events=5)), GAPS)
def test_with_several_strategies_the_best_one_counts(drawn, gap):
    pssms, events = drawn
    expected = brute_force_prefixes(pssms, events, gap)
    np.testing.assert_array_equal(Scorer(pssms, gap).prefix_scores(events)[0], expected)


@prop
@given(scored(n_strategies=2, columns=3, events=5), GAPS, st.integers(-1, 3))
def test_the_score_after_the_start_state_is_the_zero_point(drawn, gap, start):
    pssms, events = drawn
    start = min(start, len(pssms[0]))
    whole = brute_force_prefixes(pssms, np.concatenate([[start], events]), gap)
    found, _ = Scorer(pssms, gap).prefix_scores(events, start)
    np.testing.assert_array_equal(found, whole[1:] - whole[0])


@prop
@given(scored(n_strategies=2, columns=4, events=5), GAPS)
def test_a_cell_is_where_a_best_alignment_ends(drawn, gap):
    pssms, events = drawn
    scorer = Scorer(pssms, gap)
    scores, cells = scorer.prefix_scores(events)
    before = 0.0
    for t, (score, cell) in enumerate(zip(scores, cells)):
        k, column = scorer.strategy_of(cell), scorer.column_of(cell)
        prefix = events[: t + 1]
        assert brute_force(pssms[k][:, : column + 1], prefix, gap) == score
        if score != before and column >= 0:  # a new score is first reached there
            assert brute_force(pssms[k][:, :column], prefix, gap) < score
        before = score


def test_ids_beyond_the_known_ones_are_the_unknown_event():
    scorer = Scorer([np.array([[1.0, 2.0]])])
    assert scorer.known(np.array([-1, 0, 1, 7])).tolist() == [-1, 0, 1, 1]
    assert scorer.prefix_scores(np.array([9, 0, 9]))[0].tolist() == [0.0, 2.0, 2.0]


@prop
@given(scored(n_strategies=2, columns=6, events=20))
def test_without_gap_costs_scores_never_fall(drawn):
    pssms, events = drawn
    scores, _ = Scorer(pssms).prefix_scores(events)
    assert (np.diff(scores, prepend=0.0) >= 0).all()


@prop
@given(scored(columns=6, events=12))
def test_scores_are_bounded_by_what_the_columns_hold_for_the_events_seen(drawn):
    (pssm,), events = drawn
    scores, _ = Scorer([pssm]).prefix_scores(events)
    known = [e for e in events if 0 <= e < len(pssm)]
    bound = np.maximum(pssm[known].max(axis=0, initial=0.0), 0.0).sum()
    assert (scores <= bound).all()


@prop
@given(scored(columns=5, events=0), st.integers(0, 2))
def test_an_event_earns_as_often_as_the_profile_holds_it_and_no_more(drawn, event):
    (pssm,), _ = drawn
    event = min(event, len(pssm) - 1)
    held = np.sort(pssm[event][pssm[event] > 0])[::-1]
    scores, _ = Scorer([pssm]).prefix_scores(np.full(9, event))
    # m matches at best pay the m largest scores of the event.
    expected = [held[: m + 1].sum() for m in range(9)]
    np.testing.assert_array_equal(scores, expected)


@prop
@given(scored(columns=4, events=4))
def test_repeating_a_cycle_stops_earning(drawn):
    (pssm,), cycle = drawn
    rounds = pssm.shape[1]
    events = np.tile(cycle, rounds + 5)
    scores, _ = Scorer([pssm]).prefix_scores(events)
    known = [e for e in cycle if 0 <= e < len(pssm)]
    most = np.maximum(pssm[known].max(axis=0, initial=0.0), 0.0).sum() if known else 0.0
    # Each round can match one more column; after as many rounds as columns nothing is left.
    assert (scores[rounds * len(cycle) :] == most).all()


@prop
@given(scored(columns=5, events=7), GAPS)
def test_matched_columns_give_the_score(drawn, gap):
    (pssm,), events = drawn
    matched = match_columns(pssm, events, gap)
    steps = np.flatnonzero(matched >= 0)
    columns = matched[steps]
    assert (np.diff(columns) > 0).all()
    assert (events[steps] >= 0).all()
    last = columns[-1] + 1 if len(columns) else 0
    skipped = np.count_nonzero(events != -1) - len(steps) + last - len(steps)
    total = sum(pssm[events[t], matched[t]] for t in steps) - gap * skipped
    expected = prefix_scores_numpy(pssm, events, gap)
    assert total == (expected[-1] if len(events) else 0.0)


@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_matched_columns_give_the_score_of_long_sequences(gap):
    rng = np.random.default_rng(0)
    for _ in range(50):
        pssm = rng.normal(size=(6, 40))
        pssm[rng.random(pssm.shape) < 0.5] = -np.inf
        events = rng.integers(-1, 7, 60)
        matched = match_columns(pssm, events, gap)
        steps = np.flatnonzero(matched >= 0)
        skipped = np.count_nonzero(events != -1) + matched[steps[-1]] + 1 - 2 * len(steps)
        total = pssm[events[steps], matched[steps]].sum() - gap * skipped
        assert total == pytest.approx(prefix_scores_numpy(pssm, events, gap)[-1], rel=1e-12)
        assert Scorer([pssm], gap).prefix_scores(events)[0][-1] == pytest.approx(total, rel=1e-12)


def test_of_equal_matches_the_first_event_and_column_are_taken():
    pssm = np.array([[1.0, 1.0, 1.0]])
    assert match_columns(pssm, np.array([0, -1, 0, -1])).tolist() == [0, -1, 1, -1]
    assert match_columns(np.array([[2.0]]), np.array([0, 0, 0])).tolist() == [0, -1, -1]


# Redistribution


def redistribution(scores, ret, scale):
    n = len(scores)
    rewards = np.diff(np.array(scores, float), prepend=0.0) * scale
    nothing = np.zeros(n, int)
    return Redistribution.at_end(
        Step(nothing, np.array(scores, float), nothing, nothing, nothing, rewards), ret
    )


def test_rewards_are_scaled_differences_of_scores():
    rr = redistribution([1.0, 1.0, 4.0, 2.0], ret=10.0, scale=2.0)
    assert rr.rewards.tolist() == [2.0, 0.0, 6.0, -4.0]
    assert rr.correction == 6.0
    assert rr.with_correction().tolist() == [2.0, 0.0, 6.0, 2.0]
    assert rr.rewards.tolist() == [2.0, 0.0, 6.0, -4.0]


def test_kappa_is_the_reward_still_to_come():
    rr = redistribution([1.0, 1.0, 4.0, 2.0], ret=10.0, scale=2.0)
    to_come = [rr.rewards[t + 1 :].sum() + rr.correction for t in range(4)]
    assert rr.kappa.tolist() == to_come
    assert rr.kappa[-1] == rr.correction


def test_without_steps_there_is_no_last_one_for_the_correction():
    rr = redistribution([], ret=2.0, scale=1.0)
    assert (rr.rewards.sum(), rr.correction) == (0.0, 2.0)
    with pytest.raises(ValueError, match=r"no step"):
        rr.with_correction()


RUNS = [list("KDSC"), list("KADSC"), list("KDBSC"), list("KDSAC")]
BACK = [list("CSDKA"), list("CSBDK"), list("CSDK")]
MODELS = {
    "plain": (RUNS, None, {}),
    "gap": (RUNS, None, {"gap": 0.05}),
    "two strategies": (RUNS + BACK, None, {"strategies": 2, "done": False}),
    "large": (RUNS, [1e9, 3e9, 2e9, 1e9], {}),
    "baseline": (RUNS, [-1, -2, -3, -4], {"baseline": -50.0}),
    "log": (RUNS + BACK, None, {"scoring": "log", "gap": 0.1, "strategies": 2, "done": False}),
}


@cache
def fitted(name):
    sequences, returns, options = MODELS[name]
    return AlignRudder(**options).fit_events(sequences, returns)


def test_the_models_are_as_their_names_say():
    assert [len(fitted(name).strategies_) for name in MODELS] == [1, 1, 2, 1, 1, 2]


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from([*"KDSCAB", "unseen", None]), max_size=15),
    st.one_of(st.just(0.0), st.floats(-10, 10), st.floats(-1e12, 1e12), st.floats(-1e-6, 1e-6)),
)
def test_the_return_is_unchanged_for_every_sequence(name, sequence, ret):
    rr = fitted(name).redistribute_events(sequence, ret)
    size = max(abs(ret), np.abs(rr.rewards).sum())
    assert abs(rr.rewards.sum() + rr.correction - ret) <= 1e-9 * size
    if sequence:
        assert abs(rr.with_correction().sum() - ret) <= 1e-9 * size
        assert abs(rr.kappa[-1] - rr.correction) <= 1e-9 * size


@pytest.mark.parametrize(
    ("sequence", "earning"),
    [
        (list("KDSC"), [True] * 4),
        (list("KKDDSSCC"), [True, False] * 4),
        (["K", None, "D", None], [True, False, True, False]),
        (["unseen", "K", "other"], [False, True, False]),
        ([None] * 3, [False] * 3),
        (["unseen"] * 3, [False] * 3),
        (list("KKKKKK"), [True] + [False] * 5),
    ],
)
def test_new_events_of_the_strategy_earn_and_nothing_else(sequence, earning):
    """Standing still, no event, an unknown event and a repeated one earn nothing."""
    rr = fitted("plain").redistribute_events(sequence, 1.0)
    assert (rr.rewards > 0).tolist() == earning
    assert (rr.rewards[~np.array(earning)] == 0).all()


def test_going_round_in_circles_stops_earning():
    rr = fitted("plain").redistribute_events(list("KDSC") * 6, 0.0)
    once = fitted("plain").redistribute_events(list("KDSC"), 0.0)
    np.testing.assert_array_equal(rr.rewards[:4], once.rewards)
    assert not rr.rewards[4:].any()


def test_with_gap_costs_an_event_that_does_not_fit_costs():
    rr = fitted("gap").redistribute_events(["K", "unseen", "D"], 1.0)
    assert rr.rewards[1] < 0 < rr.rewards[2]


def _walk(states, reward, **end):
    rewards = np.zeros(len(states) - 1)
    rewards[-1] = reward
    return Episode(states, np.zeros(len(rewards), int), rewards, **end)


@pytest.mark.parametrize("gap", [0.0, 0.02])
@pytest.mark.parametrize(
    "episode",
    [
        _walk([0, 1, 2, 3, 4, 5], 1.0),
        _walk([0, 1, 2, 1, 0], 0.0),
        _walk([0, 1, 2, 3], 0.0, terminated=False, truncated=True),
        _walk([77, 78, 79], -3.0),
        _walk([0, 0, 0, 0], 2.0),
        _walk([0, 1, 99, 2, 3, 98, 97], 1e9),
        _walk([5, 4, 3, 2, 1, 0], -1e9),
        Episode([0, 1, 2, 3], [0, 0, 0], [0.5, -0.25, 7.0]),
    ],
    ids=["success", "failed", "truncated", "unseen", "still", "large", "negative", "dense"],
)
def test_the_return_is_unchanged_for_every_kind_of_episode(episode, gap):
    demos = [_walk([0, *[1] * k, 2, 3, *[4] * k, 5], 1.0) for k in range(1, 5)]
    model = AlignRudder(lambda o, a, r, n, i: int(n) if n != o else None, gap=gap).fit(demos)
    rr = model.redistribute(episode)
    assert len(rr.rewards) == len(episode)
    assert rr.ret == episode.ret
    assert rr.rewards.sum() + rr.correction == pytest.approx(episode.ret, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["plain", "gap", "two strategies", "large", "log"])
def test_the_correction_is_zero_on_average_over_demonstrations(name):
    model, demos = fitted(name), MODELS[name][0]
    corrections = [
        model.redistribute_events(s, ret).correction for s, ret in zip(demos, model.returns_)
    ]
    assert len(demos) == len(model.returns_)
    assert np.mean(corrections) == pytest.approx(0.0, abs=1e-9 * np.mean(model.returns_))


def test_with_a_baseline_the_correction_is_the_baseline_on_average():
    model = fitted("baseline")
    parts = [model.redistribute_events(s, ret) for s, ret in zip(RUNS, [-1, -2, -3, -4])]
    assert np.mean([rr.correction for rr in parts]) == pytest.approx(-50.0)
    assert np.mean([rr.rewards.sum() for rr in parts]) == pytest.approx(47.5)
    assert all((rr.rewards >= 0).all() for rr in parts)


def test_scores_do_not_depend_on_what_comes_later():
    model = fitted("log")
    long = ["K", "B", "D", None, "C", "S", "unseen", "D", "K"]
    whole = model.redistribute_events(long, 1.0)
    for t in range(1, len(long)):
        part = model.redistribute_events(long[:t], 1.0)
        np.testing.assert_array_equal(part.rewards, whole.rewards[:t])
        np.testing.assert_array_equal(part.cells, whole.cells[:t])


@pytest.mark.parametrize("ret", [float("nan"), float("inf")])
def test_a_return_that_is_not_finite_is_refused(ret):
    with pytest.raises(ValueError, match=rf"the return is {ret}; it must be a finite number"):
        fitted("plain").redistribute_events(["K"], ret)


def test_symbols_that_cannot_be_events_are_refused():
    with pytest.raises(ValueError, match=r"\['K'\].*hashable"):
        fitted("plain").redistribute_events([["K"]], 1.0)


def test_matching_a_long_episode_takes_little_memory():
    """A row for each step would take 40 MB."""
    rng = np.random.default_rng(0)
    pssm = np.where(rng.random((5, 100)) < 0.2, 1.0, -np.inf)
    events = rng.integers(0, 5, 50_000)
    match_columns(pssm, events[:9])  # compiled
    tracemalloc.start()
    columns = match_columns(pssm, events)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8e6
    assert (np.diff(columns[columns >= 0]) > 0).all()


# The cost of columns skipped


def best_score(pssm, events, skips):
    """Return the best score by trying every way to match events to columns in order."""
    n, length = pssm.shape
    best = 0.0
    known = [e for e in events if 0 <= e < n]
    for m in range(1, min(len(known), length) + 1):
        for columns in combinations(range(length), m):
            skipped = sum(skips[j] for j in range(columns[-1]) if j not in columns)
            for chosen in combinations(known, m):
                score = sum(pssm[e, j] for e, j in zip(chosen, columns)) - skipped
                best = max(best, score)
    return best


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_scores_with_skipped_columns_are_those_of_brute_force(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    n, length = 3, data.draw(st.integers(1, 4))
    pssm = np.where(rng.random((n, length)) < 0.7, rng.normal(1, 1, (n, length)), -np.inf)
    skips = rng.uniform(0, 3, length)
    events = np.array(data.draw(st.lists(st.integers(-1, n), max_size=6)), np.int64)
    scores, _ = Scorer([pssm], 0.0, [skips]).prefix_scores(events)
    plain = prefix_scores_numpy(pssm, events, 0.0, skips)
    for t in range(len(events)):
        expected = best_score(pssm, events[: t + 1], skips)
        assert scores[t] == pytest.approx(expected, abs=1e-9)
        assert plain[t] == pytest.approx(expected, abs=1e-9)
    matched = match_columns(pssm, events, 0.0, skips)
    used = matched[matched >= 0]
    if len(events):
        got = sum(pssm[e, j] for e, j in zip(events, matched) if j >= 0)
        got -= sum(skips[j] for j in range(used[-1] if len(used) else 0) if j not in used)
        assert got == pytest.approx(scores[-1], abs=1e-9)


def test_what_is_done_out_of_place_is_not_paid_and_extra_events_cost_nothing():
    model = fitted("plain")
    early = model.redistribute_events(list("C"), 0.0)
    assert early.rewards.sum() == 0.0
    assert AlignRudder(**PAPER).fit_events(RUNS).redistribute_events(list("C"), 0.0).rewards[0] > 0
    whole, busy = (model.redistribute_events(list(s), 1.0) for s in ("KDSC", "KABADBSABC"))
    assert busy.rewards.sum() == pytest.approx(whole.rewards.sum())


def test_a_column_that_a_world_lacks_is_passed_by_what_comes_later():
    """Its cost is finite: an agent that cannot do it is paid again after some later columns."""
    sequence = list("ABCDEFGHIJ")
    model = AlignRudder().fit_events([sequence] * 5)
    without = model.redistribute_events(sequence[:1] + sequence[2:], 1.0)
    assert without.rewards[0] > 0 == without.rewards[1]
    assert without.rewards[-1] > 0
    assert 0 < without.rewards.sum() < model.redistribute_events(sequence, 1.0).rewards.sum()


@pytest.mark.parametrize("gap", np.linspace(0, 1, 41).round(3).tolist())
def test_what_a_perfect_episode_is_paid_is_bounded(gap):
    """Whatever the gap cost does to the demonstrations' own scores."""
    runs = [["K", *"AB" * k, "D", *"BA" * k, "S", "C"] for k in range(1, 5)]
    model = AlignRudder(gap=gap, strategies=1).fit_events(runs)
    assert model.redistribute_events(list("KDSC"), 1.0).rewards.sum() <= 4.0 + 1e-9
