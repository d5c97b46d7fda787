"""Models of every kind of events, fitted to a few episodes; what makes two models the same."""

from functools import cache

import numpy as np

from align_rudder import (
    AlignRudder,
    DeltaEvents,
    Episode,
    FeatureEvents,
    FunctionEvents,
    StateEvents,
    SymbolEvents,
)

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


def assert_episodic(model, sequence, ret=3.0):
    rr = model.redistribute_events(sequence, ret)
    assert model.scale_ == 0.0
    assert not rr.rewards.any()
    assert rr.correction == ret
    return rr
