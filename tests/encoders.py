"""Events one step at a time, as of whole episodes, and after a file: for the tests of encoders."""

import numpy as np

from align_rudder import Episode
from align_rudder.episodes import tree_index
from align_rudder.events import encoder_from_state
from align_rudder.files import load_npz, save_npz

NO_EVENT = -1


def episode_of(observations, actions=None, **fields):
    """Make an episode of these observations that pays 1 at its end."""
    tree = observations
    while isinstance(tree, (dict, tuple)):
        tree = next(iter(tree.values())) if isinstance(tree, dict) else tree[0]
    steps = len(tree) - 1
    rewards = np.zeros(steps)
    rewards[-1] = 1.0
    return Episode(observations, np.zeros(steps) if actions is None else actions, rewards, **fields)


def plain_value(value):
    """Return an observation as an environment might: Python numbers and strings, no NumPy."""
    if isinstance(value, dict):
        return {k: plain_value(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(plain_value(v) for v in value)
    return value.item() if np.ndim(value) == 0 else value


def streamed(encoder, episode, plain=False):
    """Encode an episode one step at a time, as a running environment does."""
    view = plain_value if plain else (lambda value: value)
    infos = episode.infos if episode.infos is not None else [{}] * len(episode)
    last = start = encoder.start_event(view(tree_index(episode.observations, 0)))
    events = []
    for t in range(len(episode)):
        event = encoder.transition_event(
            view(tree_index(episode.observations, t)),
            view(tree_index(episode.actions, t)),
            float(episode.rewards[t]),
            view(tree_index(episode.observations, t + 1)),
            infos[t],
        )
        assert isinstance(event, int)
        if encoder.collapse_runs and event != NO_EVENT:
            if event == last:
                event = NO_EVENT
            else:
                last = event
        events.append(event)
    return start, events


def assert_streamed_like_whole(encoder, episode):
    whole = encoder.encode(episode)
    expected = (whole.start, whole.events.tolist())
    assert streamed(encoder, episode) == expected
    assert streamed(encoder, episode, plain=True) == expected


def through_file(encoder, path, **extra):
    header, arrays = encoder.state()
    save_npz(path, "test", 1, {"encoder": header}, arrays)
    header, arrays = load_npz(path, "test", 1)
    return encoder_from_state(type(encoder).__name__, {**header["encoder"], **extra}, arrays)


def assert_same_encoder(a, b, episodes):
    assert repr(a) == repr(b)
    assert list(a.symbols_) == list(b.symbols_)
    assert a.observation_shapes() == b.observation_shapes()
    for episode in episodes:
        one, other = a.encode(episode), b.encode(episode)
        assert one.start == other.start
        np.testing.assert_array_equal(one.events, other.events)
        assert streamed(b, episode) == (one.start, one.events.tolist())
