"""A single observation as a row of numbers: the same as a batch of one, or left to that."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import align_rudder as ar
from align_rudder.episodes import tree_index
from align_rudder.events.observations import flat, leaf_names, numbers
from align_rudder.events.rows import SingleRows

KINDS = st.sampled_from(
    [np.bool_, np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32, np.float64]
)
ODD = st.sampled_from([None, "3", 1j, 2**63, 10**400, -(2**63) - 1, [1.0], np.array("a"), {"z": 1}])


@st.composite
def leaves(draw):
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    array = draw(hnp.arrays(draw(KINDS), shape))
    if array.ndim == 0 and draw(st.booleans()):
        return draw(st.sampled_from([array[()], array.item()]))
    return array[::-1] if array.ndim and draw(st.booleans()) else array


def trees():
    names = st.sampled_from(["a", "b", "c.d", "0"])
    inner = st.dictionaries(names, leaves(), min_size=1, max_size=3)
    nested = st.dictionaries(names, leaves() | inner, min_size=1, max_size=3)
    return (
        leaves() | nested | st.tuples(leaves(), leaves()) | st.dictionaries(names, ODD | leaves())
    )


def shapes(tree, keys):
    """Return the shapes of an observation, as an encoder knows them from episodes."""
    names = leaf_names(tree, keys)
    from align_rudder.events.observations import leaves as parts

    return dict(zip(names, [list(np.shape(p)) for p in parts(tree, keys)], strict=True))


def slowly(tree, keys):
    try:
        return numbers(flat(tree, keys, 1), "it")[0]
    except (ValueError, TypeError, OverflowError):
        return None


@settings(max_examples=400, deadline=None)
@given(trees(), trees(), st.data())
def test_rows_are_those_of_a_batch_of_one(known, seen, data):
    """Whatever was fitted to: what is read is what `flat` and `numbers` make of it."""
    keys = None
    if isinstance(known, dict) and known and data.draw(st.booleans()):
        keys = data.draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=3))
    rows = SingleRows(shapes(known, keys), keys)
    for tree in (known, seen):
        row = rows.read(tree)
        if row is not None:
            np.testing.assert_array_equal(row, slowly(tree, keys))
            assert row.dtype == np.float64


@pytest.mark.parametrize(
    ("tree", "keys"),
    [
        (np.array([1.0, 2.0], np.float32), None),
        (np.arange(6).reshape(2, 3), None),
        ({"b": np.array([1, 2]), "a": 7}, None),
        ({"b": np.array([1, 2]), "a": np.float32(0.1), "c": "text"}, ["b", "a"]),
    ],
)
def test_what_is_plain_is_read(tree, keys):
    row = SingleRows(shapes(tree, keys), keys).read(tree)
    np.testing.assert_array_equal(row, slowly(tree, keys))
    unusable = (
        np.full(np.shape(tree), np.nan) if not isinstance(tree, dict) else {**tree, "a": 1e60}
    )
    assert SingleRows(shapes(tree, keys), keys).read(unusable) is None


def episodes(rng, kind):
    found = []
    for n in (12, 9, 14, 11):
        held = np.cumsum(rng.integers(0, 2, (n + 1, 3)), axis=0)
        held[n // 2 :, 2] -= held[n // 2, 2]  # something is lost
        held = np.abs(held)
        place = np.cumsum(rng.normal(size=(n + 1, 2)).astype(np.float32), axis=0)
        obs = {
            "vector": np.hstack([held, held[:, ::-1]]),
            "float": place,
            "dict": {"held": held, "axe": held[:, 0] > 3, "place": place.round(1)},
        }[kind]
        found.append(ar.Episode(obs, [0] * n, np.eye(n)[-1]))
    return found


@pytest.mark.parametrize("kind", ["vector", "float", "dict"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: ar.DeltaEvents(max_share=1),
        lambda: ar.FeatureEvents(4, gamma=0.9),
        lambda: ar.DeltaEvents(max_share=1) + ar.FeatureEvents(4, gamma=0.9),
        lambda: ar.FeatureEvents(4, gamma=0.9) + ar.DeltaEvents(),
    ],
)
def test_one_step_after_the_other_is_the_whole_episode(kind, make, rng):
    """Online like offline, for demonstrations, other episodes, and after fitting anew."""
    for again in range(2):
        demos, others = episodes(rng, kind), episodes(rng, kind)
        encoder = make() if not again else encoder  # noqa: F821
        encoder = encoder.fit(demos)
        if isinstance(encoder, ar.DeltaEvents):
            encoder = encoder.with_losses(demos)
        for episode in [*demos, *others]:
            obs = [tree_index(episode.observations, t) for t in range(len(episode) + 1)]
            steps = [
                encoder.transition_event(obs[t], 0, 0.0, obs[t + 1], {})
                for t in range(len(episode))
            ]
            after = tree_index(episode.observations, np.s_[1:])
            before = tree_index(episode.observations, np.s_[:-1])
            whole = encoder.transition_events(before, episode.actions, episode.rewards, after, [])
            assert steps == whole.tolist()
            assert encoder.start_event(obs[0]) == encoder.start_events(episode.observations)[0]
