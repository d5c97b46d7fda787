"""The tracker: step by step, alone or in a batch, it says what it says of the whole episode."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder import (
    AlignRudder,
    DeltaEvents,
    Episode,
    FeatureEvents,
    FunctionEvents,
    StateEvents,
    SymbolEvents,
)
from align_rudder.episodes import tree_index
from align_rudder.events import Encoded, EventEncoder
from align_rudder.presets import PAPER
from align_rudder.redistribution import Scorer, match_columns
from align_rudder.sequences import NO_EVENT
from align_rudder.streams import Stream, VectorStream
from align_rudder.tracking import TrackerTables, track

RUNS = [list("KDSC"), list("KADSC"), list("KDBSC"), list("KDSAC")]
BACK = [list("CSDK"), list("CASDK"), list("CSDBK")]


def walks(n=4, seed=0):
    """Return walks along a line of states; some pass through states that others never see."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        states = [int(rng.integers(0, 3))]
        while states[-1] < 14:
            states.append(max(states[-1] + int(rng.choice([1, 1, 1, -1])), 0))
            if seed and rng.random() < 0.1:
                states += [int(rng.integers(50, 60)), states[-1]]
        steps = len(states) - 1
        infos = [{"bell": bool(s % 4 == 0)} for s in states[1:]]
        out.append(Episode(states, rng.integers(0, 2, steps), rng.normal(1, 1, steps), infos=infos))
    return out


def inventories(n=4, seed=0):
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        counts = np.zeros(3, int)
        seen = [counts]
        for change in ([1, 0, 0], [1, 0, 0], [-1, 4, 0], [1, 0, 0], [0, -4, 1]):
            seen += [counts] * int(rng.integers(0, 4))
            if seed and rng.random() < 0.3:
                change = [2, 1, 0]
            counts = counts + change
            seen.append(counts)
        seen = np.array(seen)
        steps = len(seen) - 1
        observations = {"bag": seen[:, :2], "table": seen[:, 2].astype(np.float32)}
        out.append(Episode(observations, np.zeros(steps, int), rng.normal(1, 1, steps)))
    return out


def paths(n=4, seed=0):
    rng = np.random.default_rng(seed)
    return [
        Episode(
            np.column_stack([np.linspace(0, 9, 31) + rng.normal(0, 0.2, 31), np.ones(31)]),
            np.zeros(30, int),
            rng.normal(1, 1, 30),
        )
        for _ in range(n)
    ]


def by_all_it_gets(obs, action, reward, next_obs, info):
    """Return an event that depends on everything a function is given."""
    if info.get("bell"):
        return "bell"
    if next_obs > 45:
        return ("far", int(next_obs))
    return f"{obs}>{action}" if reward > 1.5 and next_obs > obs and obs % 5 == 0 else None


KINDS = {
    "states": (lambda: StateEvents(max_events=6, preference=5.0), walks),
    "deltas": (DeltaEvents, inventories),
    "features": (lambda: FeatureEvents(max_events=5, n_features=8), paths),
    "combined": (lambda: DeltaEvents(4) + FeatureEvents(5, n_features=8), inventories),
    "function": (lambda: FunctionEvents(by_all_it_gets), walks),
    "observations": (lambda: SymbolEvents("observation"), walks),
    "actions": (lambda: SymbolEvents("action"), walks),
}
kinds = pytest.mark.parametrize("kind", KINDS)
gaps = pytest.mark.parametrize("gap", [0.0, 0.02])


@cache
def fitted(kind, gap=0.0):
    make, episodes = KINDS[kind]
    return AlignRudder(make(), strategies=1, gap=gap, **PAPER).fit(episodes())


@cache
def of_symbols(gap):
    return AlignRudder(strategies=2, gap=gap, done=False).fit_events(RUNS + BACK)


def steps_of(model, episode):
    """Return what the tracker says of the steps of an episode, as `run_stream` does."""
    steps = track(model.tables_, model.encode(episode))
    return [steps.reward, *steps[:5]]


def run_stream(stream, episode):
    """Return rewards, events, scores, cells, columns and next sub-goals, step by step."""
    infos = episode.infos if episode.infos is not None else [{}] * len(episode)
    stream.reset(tree_index(episode.observations, 0))
    out = []
    for t in range(len(episode)):
        reward = stream.step(
            tree_index(episode.observations, t),
            tree_index(episode.actions, t),
            float(episode.rewards[t]),
            tree_index(episode.observations, t + 1),
            infos[t],
        )
        standing = (stream.score, stream.cell, stream.column, stream.subgoal)
        out.append((reward, stream.event, *standing))
    return [np.array(column) for column in zip(*out)]


def check_end(rr, ret, given, correction):
    assert ret == pytest.approx(rr.ret)
    assert given == pytest.approx(rr.rewards.sum())
    assert correction == pytest.approx(rr.correction, abs=1e-9)
    assert given + correction == pytest.approx(rr.ret)


@kinds
@gaps
def test_a_stream_gives_what_redistribute_gives(kind, gap):
    model = fitted(kind, gap)
    stream = model.stream()
    rewarded = 0
    for episode in KINDS[kind][1]() + KINDS[kind][1](6, seed=5):
        found = run_stream(stream, episode)
        np.testing.assert_array_equal(found, steps_of(model, episode))
        rr = model.redistribute(episode)
        np.testing.assert_array_equal(found[:4], [rr.rewards, rr.events, rr.scores, rr.cells])
        check_end(rr, stream.ret, stream.given, stream.correction)
        assert stream.strategy == model.scorer_.strategy_of(stream.cell)
        rewarded += np.count_nonzero(rr.rewards)
    assert rewarded > 0


def stack(values):
    if isinstance(values[0], dict):
        return {key: stack([v[key] for v in values]) for key in values[0]}
    return np.array(values)


def run_vector(stream, episodes):
    """Run episodes through the slots of a vector stream; a slot takes the next when it is free.

    A slot without an episode is masked and sees an observation of some other episode. Returns the
    rewards, events, scores, cells, columns and next sub-goals of each episode, and what the stream
    said at its end.
    """
    waiting = list(range(len(episodes)))
    slots, at = [None] * stream.n, [0] * stream.n
    out = [[] for _ in episodes]
    ends = {}
    while True:
        begin = np.zeros(stream.n, bool)
        for slot in range(stream.n):
            if slots[slot] is None and waiting:
                slots[slot], at[slot] = waiting.pop(0), 0
                begin[slot] = True
        if begin.any():
            first = [
                tree_index(episodes[slots[s] if begin[s] else 0].observations, 0)
                for s in range(stream.n)
            ]
            stream.reset(stack(first), begin)
        mask = np.array([s is not None for s in slots])
        if not mask.any():
            return out, ends
        shown = [
            (episodes[s], at[k]) if s is not None else (episodes[0], 1) for k, s in enumerate(slots)
        ]
        given = stream.step(
            stack([tree_index(e.observations, t) for e, t in shown]),
            stack([tree_index(e.actions, t) for e, t in shown]),
            np.array([e.rewards[t] for e, t in shown]),
            stack([tree_index(e.observations, t + 1) for e, t in shown]),
            [e.infos[t] if e.infos is not None else {} for e, t in shown],
            mask,
        )
        assert not given[~mask].any()
        for slot in np.flatnonzero(mask):
            i = slots[slot]
            standing = (stream.events, stream.scores, stream.cells, stream.columns, stream.subgoals)
            out[i].append((given[slot], *(values[slot] for values in standing)))
            at[slot] += 1
            if at[slot] == len(episodes[i]):
                ends[i] = (stream.rets[slot], stream.given[slot], stream.corrections[slot])
                slots[slot] = None


@kinds
@gaps
@pytest.mark.parametrize("n", [1, 3])
def test_a_vector_stream_gives_what_redistribute_gives(kind, gap, n):
    model = fitted(kind, gap)
    episodes = KINDS[kind][1]() + KINDS[kind][1](6, seed=5)
    found, ends = run_vector(model.vector_stream(n), episodes)
    assert len(ends) == len(episodes)
    for i, episode in enumerate(episodes):
        np.testing.assert_array_equal(np.transpose(found[i]), steps_of(model, episode))
        check_end(model.redistribute(episode), *ends[i])


def test_without_masks_all_episodes_begin_and_go_on():
    model = fitted("features")
    episodes = paths(5, seed=2)
    stream = model.vector_stream(5)
    for _ in range(2):
        stream.reset(np.array([e.observations[0] for e in episodes]))
        rewards = []
        for t in range(30):
            now, then = (np.array([e.observations[t + k] for e in episodes]) for k in (0, 1))
            paid = np.array([e.rewards[t] for e in episodes])
            rewards.append(stream.step(now, np.zeros(5, int), paid, then, [{}] * 5))
        for i, episode in enumerate(episodes):
            rr = model.redistribute(episode)
            np.testing.assert_array_equal(np.array(rewards)[:, i], rr.rewards)
            assert stream.corrections[i] == pytest.approx(rr.correction)


def test_a_masked_episode_stands_still():
    model = fitted("states")
    stream = model.vector_stream(2)
    stream.reset(np.array([0, 0]))
    both = np.array([True, True])
    stream.step(np.array([0, 0]), [0, 0], np.ones(2), np.array([6, 6]), [{}] * 2, both)
    before = stream.scores[1], stream.cells[1], stream.rets[1], stream.given[1]
    for state in (9, 12, 14):
        stream.step(
            np.array([6, 6]),
            [0, 0],
            np.ones(2),
            np.array([state, state]),
            [{}] * 2,
            np.array([True, False]),
        )
        assert stream.events[1] == -1
    assert (stream.scores[1], stream.cells[1], stream.rets[1], stream.given[1]) == before
    assert stream.scores[0] > stream.scores[1]
    # And goes on where it stood.
    stream.step(np.array([14, 6]), [0, 0], np.ones(2), np.array([14, 9]), [{}] * 2, ~both | [0, 1])
    episode = Episode([0, 6, 9], [0, 0], [1.0, 1.0])
    assert stream.scores[1] == model.redistribute(episode).scores[-1]


def test_resetting_some_leaves_the_others():
    model = fitted("states")
    stream = model.vector_stream(2)
    stream.reset(np.array([0, 0]))
    stream.step(np.array([0, 0]), [0, 0], np.ones(2), np.array([14, 14]), [{}] * 2)
    scores, cells = stream.scores.copy(), stream.cells.copy()
    assert scores[1] > 0
    stream.reset(np.array([0, 9]), np.array([True, False]))
    assert (stream.scores[0], stream.rets[0], stream.given[0]) == (0.0, 0.0, 0.0)
    assert (stream.scores[1], stream.cells[1], stream.rets[1]) == (scores[1], cells[1], 1.0)


# Symbols


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from([*"KDSCAB", "unseen", None]), st.integers(-8, 8)), max_size=15
    ),
    st.sampled_from([0.0, 0.1]),
)
def test_a_stream_of_symbols_gives_what_redistribute_events_gives(steps, gap):
    model = of_symbols(gap)
    stream = model.stream()
    stream.reset()
    rewards = [stream.step_event(symbol, reward / 4) for symbol, reward in steps]
    ret = sum(reward / 4 for _, reward in steps)
    rr = model.redistribute_events([symbol for symbol, _ in steps], ret)
    np.testing.assert_array_equal(rewards, rr.rewards)
    if steps:
        assert (stream.score, stream.cell) == (rr.scores[-1], rr.cells[-1])
        assert stream.event == rr.events[-1]
    check_end(rr, stream.ret, stream.given, stream.correction)


def test_a_stream_begins_anew_with_every_reset():
    stream = of_symbols(0.0).stream()
    first = [stream.step_event(symbol, 1.0) for symbol in "KDSC"]
    assert stream.ret == 4.0
    stream.reset()
    assert (stream.event, stream.score, stream.cell, stream.ret, stream.given) == (-1, 0, 0, 0, 0)
    assert [stream.step_event(symbol) for symbol in "KDSC"] == first


def test_symbols_are_refused_by_a_stream_of_episodes():
    stream = fitted("states").stream()
    stream.reset(0)
    with pytest.raises(ValueError, match=r"fitted to episodes with StateEvents"):
        stream.step_event("K")


# What the tracker says


class GivenEvents(EventEncoder):
    """Events that an episode's observations name, whatever they are; a region if it collapses."""

    def __init__(self, n, collapse_runs=False):
        self.symbols_, self.collapse_runs = list(range(n)), collapse_runs

    def fit(self, episodes, random_episodes=()):
        return self

    def start_event(self, obs):
        return int(obs) if self.collapse_runs else NO_EVENT

    def transition_event(self, obs, action, reward, next_obs, info):
        return int(next_obs)

    def state(self):
        return {}, {}

    def from_state(self, header, arrays):
        raise NotImplementedError


@st.composite
def tracked(draw, n_strategies=2, events=12):
    """Draw tables of profiles on a grid of quarters, and an episode of ids, hostile ones too."""
    n = draw(st.integers(1, 3))
    pssms, goals = [], []
    for _ in range(draw(st.integers(1, n_strategies))):
        length = draw(st.integers(0, 5))
        values = st.one_of(st.integers(-8, 12).map(lambda x: x / 4), st.just(-np.inf))
        cells = draw(st.lists(values, min_size=n * length, max_size=n * length))
        pssms.append(np.array(cells, float).reshape(n, length))
        goals.append(sorted(draw(st.sets(st.integers(0, 4), max_size=length)) & set(range(length))))
    scorer = Scorer(pssms, draw(st.sampled_from([0.0, 0.25, 1.0])))
    encoder = GivenEvents(n, draw(st.booleans()))
    ids = st.one_of(st.integers(-1, n), st.sampled_from([-7, n + 1, 2**40]))
    seen = draw(st.lists(ids, min_size=3, max_size=events))
    return TrackerTables.of(encoder, scorer, 0.5, goals), pssms, goals, seen


prop = settings(max_examples=150, deadline=None, derandomize=True)


@prop
@given(tracked())
def test_online_is_offline_whatever_an_encoder_returns(drawn):
    tables, _, _, seen = drawn
    model = SimpleNamespace(tables_=tables)
    episode = Episode(seen, [0] * (len(seen) - 1), [1.0] * (len(seen) - 1))
    steps = track(tables, tables.encoder.encode(episode))
    assert np.isfinite(steps.reward).all()
    assert np.abs(steps.score).max() <= 3 * 5 + len(seen)
    assert steps.event.max(initial=-1) <= tables.encoder.n_events
    expected = [steps.reward, *steps[:5]]
    np.testing.assert_array_equal(run_stream(Stream(model), episode), expected)
    for found in run_vector(VectorStream(model, 2), [episode] * 3)[0]:
        np.testing.assert_array_equal(np.transpose(found), expected)


@prop
@given(tracked())
def test_a_step_is_matched_where_the_best_alignment_of_the_episode_so_far_ends_with_it(drawn):
    tables, pssms, _, seen = drawn
    scorer = tables.scorer
    events = scorer.known(np.array(seen))
    steps = track(tables, Encoded(NO_EVENT, events))
    for t in range(len(events)):
        k = tables.strategy_of[steps.cell[t]]
        matched = match_columns(pssms[k], events[: t + 1], scorer.gap)
        assert max(matched, default=-1) == tables.column_of[steps.cell[t]]
        if matched[-1] != steps.column[t]:  # aligned anew to the same column, at some cost
            assert steps.column[t] == -1
            assert scorer.gap > 0
            assert steps.cell[t] == steps.cell[t - 1]
            assert steps.reward[t] <= 0


@prop
@given(tracked())
def test_only_reaching_a_subgoal_moves_an_episode_on(drawn):
    tables, _, goals, seen = drawn
    steps = track(tables, Encoded(NO_EVENT, np.array(seen)))
    at, following = 0, 0
    for cell, column, found in zip(steps.cell, steps.column, steps.subgoal, strict=True):
        k, behind = tables.strategy_of[cell], tables.subgoal_of[cell]
        assert behind == sum(goal <= tables.column_of[cell] for goal in goals[k])
        if column in goals[k] or k != tables.strategy_of[at]:
            following = behind
        elif cell != at:
            following = min(following, behind)
        assert found == following
        at = cell


def goals_on_the_way(*sequences):
    """Return what is next after each event of A b C d E, of which A, C and E are sub-goals."""
    scorer = Scorer([np.where(np.eye(5), [[2, 1, 2, 1, 2]], -np.inf).astype(float)])
    tables = TrackerTables.of(GivenEvents(5), scorer, 1.0, [[0, 2, 4]])
    ids = [np.array(["AbCdE".index(x) for x in sequence]) for sequence in sequences]
    return [track(tables, Encoded(NO_EVENT, events)).subgoal.tolist() for events in ids]


def test_next_is_the_first_subgoal_behind_the_last_one_reached():
    assert goals_on_the_way("AbCdE", "AdCE", "dbACE", "CdAE", "EAbC") == [
        [1, 1, 2, 2, 3],
        [1, 1, 2, 3],  # d, which is late, moves nothing on
        [0, 0, 1, 2, 3],
        [2, 2, 2, 3],  # A is passed by: C and d are worth more
        [3, 1, 1, 2],  # E alone is worth no more than A alone, from where more is to come
    ]


# A model that is aligned again while streams run


def test_a_stream_takes_a_new_alignment_with_the_next_episode():
    model = AlignRudder().fit_events(RUNS)
    sequence = [*"KXYZWVDSC"]
    old = model.redistribute_events(sequence, 1.0)
    stream = model.stream()
    stream.reset()
    rewards = [stream.step_event("K")]
    model.update_events([list("KXYZWVDSC")] * 6)
    rewards += [stream.step_event(symbol) for symbol in sequence[1:]]
    np.testing.assert_array_equal(rewards, old.rewards)
    stream.reset()
    rewards = [stream.step_event(symbol) for symbol in sequence]
    new = model.redistribute_events(sequence, 1.0)
    np.testing.assert_array_equal(rewards, new.rewards)
    assert (new.rewards != old.rewards).any()


def test_a_vector_stream_takes_a_new_alignment_with_the_next_episode():
    def event(obs, action, reward, next_obs, info):
        return int(next_obs)

    demos = [Episode([0, 1, 2, 3], [0] * 3, [0, 0, 1.0]) for _ in range(2)]
    model = AlignRudder(event).fit(demos)
    stream = model.vector_stream(2)
    probe = Episode([0, 3, 2, 1], [0] * 3, [0, 0, 1.0])
    old = model.redistribute(probe)
    rewards, *_ = (np.array(c) for c in zip(*run_vector(stream, [probe] * 2)[0][1]))
    np.testing.assert_array_equal(rewards, old.rewards)
    model.update([probe] * 4)
    new = model.redistribute(probe)
    assert (new.rewards != old.rewards).any()
    rewards, *_ = (np.array(c) for c in zip(*run_vector(stream, [probe] * 2)[0][1]))
    np.testing.assert_array_equal(rewards, new.rewards)
