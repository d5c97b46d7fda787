"""Events that take back others: the score is that of what is left, and loops earn nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import align_rudder as ar
from align_rudder.events import Encoded
from align_rudder.tracking import track
from align_rudder.undo import without_undone

prop = settings(max_examples=100, deadline=None, derandomize=True)
RUNS = [list("KDSC"), list("KADSC"), list("KDBSC"), list("KDSAC")]
UNDO = {"drop": "K", "close": "D"}
symbols = st.lists(st.sampled_from([*"KDSCAB", "drop", "close", "unseen", None]), max_size=14)


def fitted(**options):
    return ar.AlignRudder(undo=UNDO, **options).fit_events(RUNS)


def left(sequence):
    """Return what is left of a sequence when what undoes has struck the last of what it undoes."""
    out = []
    for symbol in sequence:
        if symbol in UNDO:
            if UNDO[symbol] in out:
                at = len(out) - 1 - out[::-1].index(UNDO[symbol])
                del out[at]
        else:
            out.append(symbol)
    return out


@prop
@given(symbols)
def test_the_score_is_that_of_what_is_left(sequence):
    model = fitted()
    rr = model.redistribute_events(sequence, 0.0)
    rest = model.redistribute_events(left(sequence), 0.0)
    assert rr.rewards.sum() == pytest.approx(rest.rewards.sum(), abs=1e-12)


@prop
@given(symbols)
def test_streams_say_the_same(sequence):
    model = fitted()
    rr, stream = model.redistribute_events(sequence, 0.0), model.stream()
    stream.reset()
    shares = [stream.step_event(symbol) for symbol in sequence]
    np.testing.assert_allclose(shares, rr.rewards, atol=1e-12)
    if sequence:
        assert (stream.cell, stream.subgoal) == (rr.cells[-1], model_subgoal(model, sequence))


def model_subgoal(model, sequence):
    encoded = Encoded(-1, model.encode_events(sequence))
    return int(track(model.tables_, encoded).subgoal[-1])


def test_taking_and_dropping_in_turn_earns_nothing():
    rr = fitted().redistribute_events(["K", "drop"] * 20, 0.0)
    assert rr.rewards[0] > 0
    np.testing.assert_allclose(rr.rewards[::2], -rr.rewards[1::2])
    assert np.cumsum(rr.rewards).max() == pytest.approx(rr.rewards[0])


def test_what_was_lost_must_be_done_again():
    model = fitted()
    lost = model.redistribute_events(["K", "D", "drop", "S", "C"], 0.0)
    again = model.redistribute_events(["K", "D", "drop", "K", "D", "S", "C"], 0.0)
    assert lost.rewards[3:].sum() < again.rewards[3:].sum()
    assert again.rewards.sum() == pytest.approx(model.demonstration(0).rewards.sum())


def test_many_episodes_at_once():
    def event(obs, action, reward, next_obs, info):
        return info.get("what")

    names = ["K", "D", "close", "drop", "S", "C"]
    demos = [ar.Episode([0] * 5, [0] * 4, [0, 0, 0, 1], infos=[{"what": w} for w in "KDSC"])] * 3
    model = ar.AlignRudder(event, undo=UNDO).fit(demos)
    rng = np.random.default_rng(0)
    played = rng.choice([*names, ""], (4, 30))
    many, alone = model.vector_stream(4), [model.stream() for _ in range(4)]
    many.reset(np.zeros(4))
    for stream in alone:
        stream.reset(0)
    for t in range(30):
        infos = [{"what": w or None} for w in played[:, t]]
        shares = many.step(np.zeros(4), np.zeros(4), np.zeros(4), np.zeros(4), infos)
        for i, stream in enumerate(alone):
            assert shares[i] == pytest.approx(stream.step(0, 0, 0.0, 0, infos[i]))
            assert (many.cells[i], many.subgoals[i]) == (stream.cell, stream.subgoal)
        if t == 15:
            many.reset(np.zeros(4), np.array([True, False, False, False]))
            alone[0].reset(0)


def test_demonstrations_are_aligned_without_what_they_took_back():
    runs = [["K", "drop", *run] for run in RUNS]
    model = ar.AlignRudder(undo=UNDO).fit_events(runs)
    assert [goal.symbol for goal in model.subgoals_] == list("KDSC")
    np.testing.assert_array_equal(
        without_undone(
            Encoded(-1, np.array([0, 1, 2, 0, 3])), np.array([[-1], [-1], [0], [1], [-1]])
        ).events,
        [-1, -1, -1, 0, -1],
    )


def test_saved_and_loaded(tmp_path):
    model = fitted()
    model.save(tmp_path / "m.npz")
    loaded = ar.AlignRudder.load(tmp_path / "m.npz")
    sequence = ["K", "D", "close", "D", "drop", "S"]
    assert loaded.undo == UNDO
    np.testing.assert_array_equal(
        loaded.redistribute_events(sequence, 1.0).rewards,
        model.redistribute_events(sequence, 1.0).rewards,
    )


@pytest.mark.parametrize("options", [{}, {"gap": 0.25}, {"skip": 0.0}], ids=str)
def test_in_jax_it_is_the_same(options):
    tracking_jax = pytest.importorskip("align_rudder.tracking_jax")
    import jax

    model = fitted(**options)
    whole = tracking_jax.on_grid(model.tables_)
    tables = tracking_jax.TrackerTables.of(model.tables_)
    follow = jax.jit(jax.vmap(lambda events: tracking_jax.track(tables, events)))
    rng = np.random.default_rng(0)
    names = [*"KKDDSCAB", "drop", "close", "unseen", None]
    played = [[names[i] for i in rng.integers(len(names), size=25)] for _ in range(100)]
    events = np.array([model.encode_events(sequence) for sequence in played])
    found = follow(events)
    for i, encoded in enumerate(events):
        wanted = track(whole, Encoded(-1, encoded))
        np.testing.assert_array_equal(found.event[i], wanted.event)
        np.testing.assert_array_equal(found.cell[i], wanted.cell)
        np.testing.assert_array_equal(found.column[i], wanted.column)
        np.testing.assert_array_equal(found.subgoal[i], wanted.subgoal)
        np.testing.assert_allclose(found.score[i], wanted.score, atol=1e-5)
        np.testing.assert_allclose(found.reward[i], wanted.reward, atol=1e-5)


def test_in_jax_an_episode_that_remembers_too_little_says_so_and_stays_where_it_is():
    tracking_jax = pytest.importorskip("align_rudder.tracking_jax")
    model = fitted()
    tables = tracking_jax.TrackerTables.of(model.tables_, history=3)
    state, earned = tracking_jax.start(tables), []
    sequence = ["K", "A", "D", "drop", "K", "B", "S", "C", "close", "drop", "K"]
    for event in model.encode_events(sequence):
        state, step = tracking_jax.advance(tables, state, int(event))
        earned.append((float(step.reward), bool(state.full)))
    # What neither scores nor can be taken back needs no room: K, D and S fill it, C is too much.
    wanted = model.redistribute_events(sequence[:7], 0.0).rewards
    np.testing.assert_allclose([reward for reward, _ in earned[:7]], wanted, atol=1e-6)
    assert [full for _, full in earned] == [False] * 7 + [True] * 4
    assert [reward for reward, full in earned if full] == [0.0] * 4


@pytest.mark.parametrize("off", [None, {}])
def test_without_it_nothing_is_lost(off):
    model = ar.AlignRudder(undo=off).fit_events([["K", "drop", *run] for run in RUNS])
    rewards = model.redistribute_events(["K", "drop"], 0.0).rewards
    assert rewards.min() >= 0


@pytest.mark.parametrize(
    ("undo", "message"),
    [
        ("drop", "a dict from the event that undoes"),
        ({"A": "B", "B": "C"}, "'B' both as what undoes and as what is undone"),
    ],
)
def test_wrong_undo_is_named(undo, message):
    with pytest.raises(ValueError, match=message):
        ar.AlignRudder(undo=undo).fit_events(RUNS)


def test_an_event_that_is_none_of_the_demonstrations_is_named():
    demos = [ar.Episode([0, 1, 2, 3], [0] * 3, [0, 0, 1.0])] * 3
    with pytest.raises(ValueError, match="undo names 'drop', which is no event"):
        ar.AlignRudder(ar.StateEvents(), undo={"drop": "state 1"}).fit(demos)
