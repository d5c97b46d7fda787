"""Symbols and functions as events."""

import numpy as np
import pytest
from encoders import (
    NO_EVENT,
    assert_same_encoder,
    assert_streamed_like_whole,
    episode_of,
    through_file,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import align_rudder as ar
from align_rudder import AlignRudder, AlignRudderWarning, Episode, FunctionEvents, SymbolEvents

examples = settings(deadline=None, max_examples=40, derandomize=True)


def _sequences_of(symbols):
    return st.lists(st.lists(symbols, max_size=6), min_size=1, max_size=4)


_WORDS = st.one_of(
    _sequences_of(st.text("abc", min_size=1, max_size=2)),
    _sequences_of(st.tuples(st.integers(0, 3), st.booleans())),
    _sequences_of(st.one_of(st.integers(0, 3), st.text("ab", max_size=1), st.just(b"c"))),
)


@given(_WORDS)
@examples
def test_symbols_are_told_apart_and_come_back(sequences):
    encoder = SymbolEvents().fit_sequences(sequences)
    assert set(encoder.symbols_) == {s for sequence in sequences for s in sequence}
    assert encoder.n_events == len(encoder.symbols_)
    for sequence in sequences:
        ids = encoder.encode_sequence(sequence)
        assert [encoder.symbols_[i] for i in ids] == sequence


def test_unseen_symbols_and_none():
    encoder = SymbolEvents().fit_sequences([["b", "a"], ["c"]])
    assert encoder.symbols_ == ["a", "b", "c"]
    ids = encoder.encode_sequence(["c", "dragon", None, "a", ("x", 1)])
    assert ids.tolist() == [2, 3, -1, 0, 3]
    assert encoder.encode_sequence([]).tolist() == []
    assert encoder.encode_sequence(np.array(["b", "z"])).tolist() == [1, 3]


def test_none_is_no_symbol():
    encoder = SymbolEvents().fit_sequences([["a", None, "b"]])
    assert encoder.symbols_ == ["a", "b"]


def test_new_symbols_are_added_at_the_end():
    encoder = SymbolEvents("action").fit_sequences([["m", "n"]])
    longer = encoder.extended([["a", "n", "z"], ["a"]])
    assert longer.symbols_ == ["m", "n", "a", "z"]
    assert longer.source == "action"
    assert encoder.symbols_ == ["m", "n"]


def test_symbols_happen_each_time_at_the_step_that_reaches_them(tmp_path):
    observations = np.array(["start", "log", "log", "plank", "log"])
    episode = episode_of(observations, actions=np.array([3, 5, 3, 3]))
    by_observation = SymbolEvents().fit([episode])
    assert by_observation.symbols_ == ["log", "plank"]  # the start is not reached
    assert by_observation.encode(episode).start == NO_EVENT
    assert by_observation.encode(episode).events.tolist() == [0, 0, 1, 0]
    by_action = SymbolEvents("action").fit([episode])
    assert by_action.symbols_ == [3, 5]
    assert by_action.encode(episode).events.tolist() == [0, 1, 0, 0]
    new = episode_of(np.array(["log", "dragon", "log"]), actions=np.array([9, 3]))
    assert by_observation.encode(new).events.tolist() == [2, 0]
    assert by_action.encode(new).events.tolist() == [2, 0]
    for encoder in (by_observation, by_action):
        assert_streamed_like_whole(encoder, episode)
        loaded = through_file(encoder, tmp_path / "e.npz")
        assert_same_encoder(encoder, loaded, [episode, new])


def test_vectors_of_numbers_are_symbols_too(tmp_path):
    episode = episode_of(np.array([[0, 0], [0, 1], [1, 0], [0, 1]]))
    encoder = SymbolEvents().fit([episode])
    assert encoder.symbols_ == [(0, 1), (1, 0)]
    assert encoder.encode(episode).events.tolist() == [0, 1, 0]
    assert_streamed_like_whole(encoder, episode)
    assert_same_encoder(encoder, through_file(encoder, tmp_path / "e.npz"), [episode])


@given(_WORDS)
@examples
def test_symbols_are_the_same_after_a_file(tmp_path_factory, sequences):
    encoder = SymbolEvents("action").fit_sequences(sequences)
    loaded = through_file(encoder, tmp_path_factory.mktemp("symbols") / "e.npz")
    assert loaded.source == "action"
    assert loaded.symbols_ == encoder.symbols_
    for sequence in sequences:
        expected = encoder.encode_sequence(sequence)
        np.testing.assert_array_equal(loaded.encode_sequence(sequence), expected)


def test_sequences_may_be_the_rows_of_an_array():
    encoder = SymbolEvents().fit_sequences(np.array([[2, 7], [7, 9]]))
    assert encoder.symbols_ == [2, 7, 9]


@pytest.mark.parametrize("sequences", [[3, 4], [["a"], None]])
def test_a_sequence_that_is_none_is_named(sequences):
    with pytest.raises(ValueError, match=r"sequence [01] is (3|None); a sequence of hashable"):
        SymbolEvents().fit_sequences(sequences)


def test_wrong_symbols_are_explained():
    with pytest.raises(ValueError, match=r"source is 'reward'; one of 'observation'"):
        SymbolEvents("reward")
    with pytest.raises(ValueError, match=r"got one sequence.*a list of sequences is needed"):
        SymbolEvents().fit_sequences("abc")
    with pytest.raises(ValueError, match=r"sequence 1 holds \[1\] of type list.*not hashable"):
        SymbolEvents().fit_sequences([["a"], [[1]]])
    with pytest.raises(ValueError, match="the observation is a dict, not a symbol"):
        SymbolEvents().fit([episode_of({"a": np.arange(3)})])
    with pytest.raises(ValueError, match=r"\[1\].*hashable"):
        SymbolEvents().fit_sequences([["a"]]).encode_sequence([[1]])


def test_many_symbols_are_warned_of():
    with pytest.warns(AlignRudderWarning, match="21 events"):
        SymbolEvents().fit_sequences([range(21)])
    encoder = SymbolEvents().fit_sequences([range(20)])
    with pytest.warns(AlignRudderWarning, match="22 events"):
        encoder.extended([[20, 21]])


# FunctionEvents


def _what_happened(obs, action, reward, next_obs, info):
    if info.get("lost"):
        return ("lost", int(action))
    if reward > 0:
        return "paid"
    return f"to {next_obs}" if next_obs > obs else None


def test_a_function_says_what_happened(tmp_path):
    infos = [{}, {"lost": True}, {}, {}]
    episode = episode_of(np.array([0, 2, 1, 1, 5]), np.array([7, 8, 9, 9]), infos=infos)
    encoder = FunctionEvents(_what_happened).fit([episode])
    assert encoder.symbols_ == ["to 2", ("lost", 8), "paid"]
    assert encoder.encode(episode).start == NO_EVENT
    assert encoder.encode(episode).events.tolist() == [0, 1, -1, 2]
    new = episode_of(np.array([0, 3, 2]), np.array([1, 1]), infos=[{}, {"lost": True}])
    assert encoder.encode(new).events.tolist() == [3, 3]
    for e in (episode, new):
        assert_streamed_like_whole(encoder, e)
    loaded = through_file(encoder, tmp_path / "e.npz", function=_what_happened)
    assert_same_encoder(encoder, loaded, [episode, new])


def test_an_episode_without_infos_has_empty_ones():
    encoder = FunctionEvents(lambda obs, action, reward, next_obs, info: len(info))
    episode = episode_of([0, 1, 2])
    assert encoder.fit([episode]).symbols_ == [0]


def test_an_error_of_the_function_says_at_which_step():
    good, bad = Episode([2, 3], [0], [1.0]), Episode([0, 1, 2], [0, 0], [0.0, 1.0])
    encoder = FunctionEvents(lambda obs, *rest: 1 // int(1 - obs))
    with pytest.raises(ValueError, match="raised ZeroDivisionError at step 1 of demonstration 1"):
        encoder.fit([good, bad])
    encoder.fit([good])
    with pytest.raises(ValueError, match=r"at step 1 of the episode: .* is called with \(obs, a"):
        encoder.encode(bad)
    with pytest.raises(ValueError, match=r"raised ZeroDivisionError: ") as raised:
        encoder.transition_event(1, 0, 0.0, 2, {})
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("kept", [False, True])
def test_a_function_that_needs_infos_is_told_where_there_are_none(kept):
    infos = [{"did": None}, {"did": None}] if kept else None
    demos = [Episode([0, 1, 2], [0, 0], [0.0, 1.0], infos=infos)] * 2
    hint = "recorded without infos: record with keep_infos=True"
    with pytest.warns(AlignRudderWarning, match="no demonstration holds an event") as caught:
        AlignRudder(lambda obs, action, reward, next_obs, info: info.get("did")).fit(demos)
    assert any(hint in str(w.message) for w in caught) is not kept
    missing = "did" if not kept else "made"
    with pytest.raises(ValueError, match="raised KeyError at step 0 of demonstration 0") as raised:
        AlignRudder(lambda obs, action, reward, next_obs, info: info[missing]).fit(demos)
    assert (hint in str(raised.value)) is not kept
    with pytest.raises(ValueError, match="ZeroDivisionError") as raised:  # infos are not to blame
        AlignRudder(lambda obs, action, reward, next_obs, info: 1 // 0).fit(demos)
    assert hint not in str(raised.value)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"key": 1}, r"\{'key': 1\} \(a dict\)"),
        (["key"], r"\['key'\] \(a list\)"),
        (float("nan"), r"nan \(a float\)"),
        (np.float32("nan"), r"nan \(a float\)"),
        (("key", []), r"\('key', \[\]\) \(a tuple\)"),
    ],
)
def test_what_a_function_returns_that_is_no_event_is_named_with_its_step(wrong, text):
    def what(obs, action, reward, next_obs, info):
        return wrong if obs == 1 else "key"

    good, bad = Episode([2, 3], [0], [1.0]), Episode([0, 1, 2], [0, 0], [0.0, 1.0])
    said = rf"the event function what returned {text} at step 1 of demonstration 1; .* text, a num"
    with pytest.raises(ValueError, match=said):
        AlignRudder(what).fit([good, bad])
    encoder = FunctionEvents(what).fit([good])
    with pytest.raises(ValueError, match=rf"function what returned {text}; an event is"):
        encoder.transition_event(1, 0, 0.0, 2, {})


def test_numpy_symbols_of_a_function_areplain_value_ones():
    episode = episode_of(np.array([0, 1, 2, 1]))
    encoder = FunctionEvents(lambda obs, action, reward, next_obs, info: next_obs).fit([episode])
    assert encoder.symbols_ == [1, 2]
    assert all(type(s) is int for s in encoder.symbols_)
    assert encoder.encode(episode).events.tolist() == [0, 1, 0]


def test_arrays_of_a_function_are_tuples():
    """As they are for SymbolEvents, and as `transition_event` takes them."""
    episode = episode_of(np.array([[0, 0], [0, 1], [1, 0]]))
    encoder = FunctionEvents(lambda obs, action, reward, next_obs, info: next_obs).fit([episode])
    assert encoder.symbols_ == [(0, 1), (1, 0)]


def test_a_function_is_needed_and_is_not_in_the_file(tmp_path):
    with pytest.raises(ValueError, match="'x' is not a function"):
        FunctionEvents("x")
    path = tmp_path / "m.npz"
    AlignRudder(_what_happened).fit([episode_of(np.arange(3))] * 2).save(path)
    with pytest.raises(ValueError, match=r"not stored in the file; load it with .*function="):
        AlignRudder.load(path)
    for wrong in ({"function": "x"}, {"scoring": "x"}):
        with pytest.raises(ValueError, match=r"'x' is not a function; give the one") as raised:
            AlignRudder.load(path, **wrong)
        assert "damaged" not in str(raised.value)


def test_an_event_function_with_a_memory_is_refused():
    """It is called more than once for each step, and not in the order of the steps."""
    episodes = [ar.Episode(np.arange(5), np.zeros(4, int), [0, 0, 0, 1.0]) for _ in range(3)]
    count, seen = iter(range(1000)), set()

    def first_visit(obs, action, reward, next_obs, info):
        new = int(next_obs) not in seen
        seen.add(int(next_obs))
        return int(next_obs) if new else None

    for function in (lambda *step: next(count), first_visit, lambda *step: object()):
        with pytest.raises(ValueError, match="names other events when demonstration 0 is read"):
            ar.AlignRudder(function).fit(episodes)
