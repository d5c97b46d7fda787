"""What every encoder does: runs collapse, shapes are checked, what is missing is named."""

import numpy as np
import pytest
from encoders import NO_EVENT, episode_of, streamed
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder import (
    AlignRudder,
    DeltaEvents,
    FeatureEvents,
    FunctionEvents,
    StateEvents,
    SymbolEvents,
)
from align_rudder.events import Encoded, choose_encoder, encoder_from_state
from align_rudder.events.base import EventEncoder

examples = settings(deadline=None, max_examples=40, derandomize=True)


class _Given(EventEncoder):
    """Observations that are events themselves."""

    symbols_ = range(9)

    def __init__(self, collapse):
        self.collapse_runs = collapse

    def fit(self, episodes, random_episodes=()):
        return self

    def start_event(self, obs):
        return int(obs)

    def transition_event(self, obs, action, reward, next_obs, info):
        return int(next_obs)

    def state(self):
        return {}, {}

    @classmethod
    def from_state(cls, header, arrays):
        return cls(True)


@given(st.lists(st.integers(-1, 3), min_size=2, max_size=12))
@examples
def test_runs_collapse_and_no_event_does_not_end_them(raw):
    episode = episode_of(np.array(raw))
    whole = _Given(True).encode(episode)
    assert (whole.start, whole.events.tolist()) == streamed(_Given(True), episode)
    events = [e for e in raw if e != NO_EVENT]
    entered = [e for i, e in enumerate(events) if i == 0 or e != events[i - 1]]
    assert whole.sequence.tolist() == entered
    # An event stands where it is entered.
    assert all(e in (NO_EVENT, raw[t + 1]) for t, e in enumerate(whole.events))
    untouched = _Given(False).encode(episode)
    assert untouched.sequence.tolist() == events


def test_the_sequence_of_an_episode_leaves_out_steps_without_event():
    assert Encoded(-1, np.array([-1, 3, -1, 3])).sequence.tolist() == [3, 3]
    assert Encoded(2, np.array([-1, -1])).sequence.tolist() == [2]
    assert Encoded(-1, np.array([-1])).sequence.tolist() == []


@pytest.mark.parametrize(
    "encoder",
    [StateEvents(), FeatureEvents(), DeltaEvents(), SymbolEvents(), FunctionEvents(lambda *a: 0)],
)
def test_an_encoder_must_be_fitted(encoder):
    name = type(encoder).__name__
    message = rf"{name} is not fitted; call fit"
    for call in (
        lambda: encoder.encode(episode_of([0, 1])),
        lambda: encoder.n_events,
        encoder.state,
        lambda: encoder.transition_event(0, 0, 0.0, 1, {}),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("encoder", [StateEvents(), FeatureEvents(), DeltaEvents()])
def test_episodes_are_needed(encoder):
    with pytest.raises(ValueError, match=r"no (episodes|demonstrations)|at least one (ep|dem)"):
        encoder.fit([])


@pytest.mark.parametrize("encoder", [StateEvents(), FeatureEvents(), DeltaEvents()])
def test_episodes_have_observations_of_the_same_shape(encoder):
    with pytest.raises(ValueError, match=r"episode 1 .*\(3,\).* episode 0 .*\(2,\); give"):
        encoder.fit([episode_of(np.zeros((3, 2), int)), episode_of(np.zeros((3, 3), int))])


@pytest.mark.parametrize(
    "encoder", [StateEvents(keys=["b"]), FeatureEvents(keys=["b"]), DeltaEvents(keys=["b"])]
)
def test_a_key_that_is_not_there_is_named(encoder):
    with pytest.raises(ValueError, match=r"no \['b'\]; it has \['a', 'c'\]"):
        encoder.fit([episode_of({"a": np.arange(3), "c": np.arange(3)})])


def test_an_unknown_kind_of_events_in_a_file():
    with pytest.raises(ValueError, match=r"events is 'DreamEvents'; one of .*'StateEvents'"):
        encoder_from_state("DreamEvents", {}, {})


@pytest.mark.parametrize(
    ("observations", "kind"),
    [
        (np.arange(4), StateEvents),
        (np.array(list("abcd")), StateEvents),
        (np.zeros((4, 2), int), StateEvents),
        (np.zeros((4, 9), int), DeltaEvents),
        (np.zeros((4, 2)), DeltaEvents),
        ({"log": np.arange(4), "plank": np.arange(4)}, DeltaEvents),
    ],
)
def test_the_encoder_that_fits_the_observations(observations, kind):
    assert type(choose_encoder(None, [episode_of(observations)])) is kind


def test_the_encoder_that_is_asked_for():
    given_encoder = SymbolEvents()
    assert choose_encoder(given_encoder, []) is given_encoder

    def function(obs, action, reward, next_obs, info):
        return "x"

    assert choose_encoder(function, []).function is function


@pytest.mark.parametrize("encoder", [DeltaEvents, StateEvents, FeatureEvents])
def test_episodes_of_other_shapes_are_told_so(encoder):
    two, three = (episode_of(np.arange(4 * n).reshape(4, n)) for n in (2, 3))
    said = r"episode 1 has observations of shape \(3,\), episode 0 of shape \(2,\); give"
    with pytest.raises(ValueError, match=said):
        encoder().fit([two, three])
    said = r"episode has observations of shape \(3,\), the events were fitted on shape \(2,\); give"
    with pytest.raises(ValueError, match=said):
        encoder().fit([two, two]).encode(three)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [("delta", r"'delta' is DeltaEvents\(\) here"), ("states", r"is StateEvents\(\)"), (3, "")],
)
def test_what_may_be_given_as_events_is_listed(wrong, hint):
    said = rf"events={wrong!r} is neither an encoder nor a function.*{hint}.* Give StateEvents"
    with pytest.raises(
        ValueError, match=said + r"\(\), DeltaEvents\(\), .* a function \(obs, action, "
    ):
        AlignRudder(wrong).fit([episode_of(np.arange(4))] * 2)
