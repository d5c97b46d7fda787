"""Checkpoints: what is saved comes back, and only where it belongs."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from align_rudder.runs.checkpoint import (  # noqa: E402
    Checkpoint,
    advised,
    digest,
    load_tree,
    save_tree,
)
from align_rudder.runs.claim import OtherConfigurationError  # noqa: E402
from align_rudder.runs.interrupt import Stop  # noqa: E402

CONFIGURATION = {"seed": 1, "ppo": {"gamma": 0.9, "clip": 0.2}}


@pytest.fixture
def tree():
    return {
        "key": jax.random.key(3),
        "keys": jax.random.split(jax.random.key(4), (2, 3)),
        "half": jnp.array([1.5, -2.25], jnp.bfloat16),
        "floats": jnp.array([1e-30, np.inf, -0.0]),
        "ints": (jnp.array([-1, 200]), jnp.array([-40_000, 70_000]), jnp.array([], jnp.int32)),
        "small": jnp.array([-128, 127], jnp.int8),
        "large": jnp.array([2**32 - 1], jnp.uint32),
        "bools": jnp.array([[True], [False]]),
        "scalar": jnp.int32(-5),
        "none": None,
    }


def as_numbers(x):
    is_key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(x) if is_key else x)


def test_what_is_saved_is_loaded(tree, tmp_path):
    save_tree(tmp_path / "a.npz", tree, CONFIGURATION, {"steps": 7})
    like = jax.eval_shape(lambda: tree)
    found, notes = load_tree(tmp_path / "a.npz", like, CONFIGURATION)
    assert notes == {"steps": 7}
    assert jax.tree.structure(found) == jax.tree.structure(tree)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(tree), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(as_numbers(a), as_numbers(b))
    assert jax.random.uniform(found["key"]) == jax.random.uniform(tree["key"])


def test_other_files_are_refused(tree, tmp_path):
    path = tmp_path / "a.npz"
    save_tree(path, tree, CONFIGURATION)
    other = {"seed": 1, "ppo": {"gamma": 0.99, "clip": 0.2}, "new": "x"}
    wrong = r"new is not known there and 'x' here; ppo\.gamma is 0\.9 there and 0\.99 here"
    with pytest.raises(ValueError, match=wrong):
        load_tree(path, tree, other)
    with pytest.raises(ValueError, match=r"it has no array \"\['more'\]\""):
        load_tree(path, {**tree, "more": jnp.zeros(1)}, CONFIGURATION)
    with pytest.raises(ValueError, match=r"\['floats'\]. has shape \(3,\); \(4,\) is needed"):
        load_tree(path, {**tree, "floats": jnp.zeros(4)}, CONFIGURATION)
    with pytest.raises(ValueError, match=r"\['floats'\]. holds numbers; whole numbers are needed"):
        load_tree(path, {**tree, "floats": jnp.zeros(3, int)}, CONFIGURATION)
    whole = path.read_bytes()
    for n in (0, 10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:n])
        with pytest.raises(ValueError, match="truncated"):
            load_tree(path, tree, CONFIGURATION)


def test_a_digest_tells_contents_apart(tree):
    assert digest(tree["ints"]) == digest(tuple(np.asarray(x) for x in tree["ints"]))
    numbers = [np.arange(4), np.arange(4.0), np.arange(4).reshape(2, 2), np.arange(1, 5)]
    assert len({digest(x) for x in [*numbers, {"a": np.arange(4)}]}) == 5


def test_an_advice_is_given_for_damage_but_not_for_another_configuration(tmp_path):
    with pytest.raises(ValueError, match=r"broken\. Delete that file"), advised():
        raise ValueError("broken")
    with pytest.raises(OtherConfigurationError, match=r"\(--out\)$"), advised():
        raise OtherConfigurationError(tmp_path, ["a is 1 there and 2 here"])


def count_to(n, path, stop, every, saved=None, configuration=CONFIGURATION):
    """Count in a tree, as a training would; return the numbers that this call counted."""
    checkpoint = Checkpoint(path, configuration, stop, every, beside=saved)
    kept = checkpoint.load({"n": jnp.int32(0)})
    at = 0 if kept is None else int(kept[0]["n"])
    assert kept is None or kept[1] == {"at": at}
    counted = []
    while at < n:
        at += 1
        counted.append(at)
        checkpoint.offer({"n": jnp.int32(at)}, {"at": at})
    checkpoint.remove()
    return counted


def test_a_training_goes_on_from_its_checkpoint(tmp_path):
    path = tmp_path / "unfinished.npz"
    stop, beside = Stop(), []
    counted = count_to(4, path, stop, every=0, saved=lambda: beside.append(path.is_file()))
    assert counted == [1, 2, 3, 4]
    assert beside == [True] * 4
    assert not path.exists()
    assert count_to(4, path, stop, every=1000) == [1, 2, 3, 4]
    save_tree(path, {"n": jnp.int32(2)}, CONFIGURATION, {"at": 2})
    assert count_to(4, path, stop, every=1000) == [3, 4]


def test_asked_to_stop_it_saves_and_leaves(tmp_path):
    path, stop = tmp_path / "unfinished.npz", Stop()
    stop.asked = True
    with pytest.raises(KeyboardInterrupt):
        count_to(4, path, stop, every=1000)
    assert count_to(4, path, Stop(), every=1000) == [2, 3, 4]


def test_a_checkpoint_of_another_configuration_or_damaged_is_refused(tmp_path):
    path = tmp_path / "unfinished.npz"
    save_tree(path, {"n": jnp.int32(2)}, CONFIGURATION, {"at": 2})
    with pytest.raises(OtherConfigurationError, match="seed is 1 there and 2 here"):
        count_to(4, path, Stop(), 1000, configuration={**CONFIGURATION, "seed": 2})
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match=r"truncated.*Delete that file: the same command"):
        count_to(4, path, Stop(), 1000)
