"""The diamond task: what is seen, its symmetries, and the committed demonstrations."""

from importlib.resources import files

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("craftax")
import jax.numpy as jnp  # noqa: E402

from align_rudder.tasks.diamond.demos import (  # noqa: E402
    fit_demonstrations,
    load_demonstrations,
    save_demonstrations,
)
from align_rudder.tasks.diamond.task import DiamondTask  # noqa: E402


@pytest.fixture(scope="module")
def task():
    return DiamondTask()


@pytest.fixture(scope="module")
def demos(task):
    return load_demonstrations(files("align_rudder.tasks.diamond") / "demonstrations.npz", task)


def test_ten_demonstrations_share_one_strategy(task, demos):
    assert len(demos) == 10
    model = fit_demonstrations(task, demos)
    symbols = [str(goal.symbol) for goal in model.subgoals_]
    order = [
        "did_collect_wood+1",
        "did_place_table+1",
        "wood_pickaxe+1",
        "stone_pickaxe+1",
        "did_place_furnace+1",
        "iron_pickaxe+1",
        "diamond+1",
    ]
    found = [next(i for i, s in enumerate(symbols) if s.startswith(name)) for name in order]
    assert found == sorted(found)
    assert found[-1] == len(symbols) - 1
    for demo in demos:
        rr = model.redistribute(demo.episode(task))
        assert rr.rewards.sum() + rr.correction == pytest.approx(1.0)
        assert rr.rewards[-1] > 0


def test_the_memory_holds_what_was_in_view(task, demos):
    """Every state's memory agrees with the map wherever the player can see."""
    states = jax.tree.map(jnp.asarray, demos[0].states)
    seen = jax.vmap(task.observe)(states)
    for t in (0, 30, len(demos[0].actions)):
        y, x = np.asarray(states.world.player_position[t])
        world = np.pad(np.asarray(states.world.map[t]), 9, constant_values=1)
        view = world[y + 9 - 3 : y + 9 + 4, x + 9 - 4 : x + 9 + 5]
        np.testing.assert_array_equal(seen.blocks[t], view)
        memory = np.pad(np.asarray(states.seen[t]), 9, constant_values=1)
        np.testing.assert_array_equal(memory[y + 6 : y + 13, x + 5 : x + 14], view)
    known = (np.asarray(states.seen) > 0).sum(axis=(1, 2))
    assert (np.diff(known) >= 0).all()
    assert known[-1] > known[0]


def test_the_nearest_block_is_the_nearest_of_the_memory(task, demos):
    states = jax.tree.map(jnp.asarray, demos[1].states)
    nearest = np.asarray(jax.vmap(task.observe)(states).nearest)
    for t in (0, 40):
        y, x = np.asarray(states.world.player_position[t])
        memory = np.asarray(states.seen[t])
        for kind, offset in ((5, nearest[t, 4]), (10, nearest[t, 8])):
            at = np.argwhere(memory == kind)
            if not len(at):
                assert (offset == 127).all()
                continue
            distance = np.abs(at - [y, x]).sum(axis=1).min()
            assert np.abs(offset.astype(int)).sum() == distance
            assert memory[y + offset[0], x + offset[1]] == kind


@pytest.mark.parametrize("which", range(4))
def test_mirroring_twice_is_nothing(task, demos, which):
    states = jax.tree.map(jnp.asarray, demos[2].states)
    seen = jax.vmap(task.observe)(states)
    once = jax.vmap(lambda o: task.mirror(o, jnp.int32(which)))(seen)
    twice = jax.vmap(lambda o: task.mirror(o, jnp.int32(which)))(once)
    for a, b in zip(seen, twice):
        np.testing.assert_array_equal(a, b)
    actions = np.asarray(task.mirrored_actions)[which]
    np.testing.assert_array_equal(actions[actions], np.arange(17))
    if which:
        assert (np.asarray(once.blocks) != np.asarray(seen.blocks)).any()


# Files of demonstrations


@pytest.fixture(scope="module")
def saved(task, demos, tmp_path_factory):
    path = tmp_path_factory.mktemp("demos") / "two.npz"
    save_demonstrations(path, demos[:2])
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def test_demonstrations_are_saved_and_loaded(task, demos, saved, tmp_path):
    np.savez(tmp_path / "again.npz", **saved)
    for one, other in zip(load_demonstrations(tmp_path / "again.npz", task), demos[:2]):
        np.testing.assert_array_equal(one.actions, other.actions)
        for a, b in zip(jax.tree.leaves(one.states), jax.tree.leaves(other.states), strict=True):
            np.testing.assert_array_equal(a, b)


def wrong(array, kind):
    if kind == "nan":
        array = array.astype(np.float32)
        array[3] = np.nan
    elif kind == "99":
        array = array.copy()
        array[5] = 99
    elif kind == "float":
        array = array.astype(np.float32)
    elif kind == "short":
        array = array[:-1]
    elif kind == "narrow":
        array = array[:, :32, :32]
    return array


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        (".world.player_hunger", "nan", r"'1/\.world\.player_hunger' holds nan; finite"),
        ("actions", "99", "'1/actions' holds 99; at most 16 is needed"),
        ("actions", "float", "'1/actions' holds numbers; whole numbers are needed"),
        ("actions", "short", r"'1/\.world\.map' has shape .* is needed"),
        (".world.map", "narrow", r"'1/\.world\.map' has shape \(\d+, 32, 32\); \(\d+, 64, 64\)"),
        (".world.map", "99", r"'1/\.world\.map' holds 99; at most 16 is needed"),
        (".world.map", None, r"no array '1/\.world\.map'; .*: align-rudder diamond demos"),
    ],
)
def test_damaged_demonstrations_are_named(task, saved, tmp_path, name, kind, message):
    arrays = dict(saved)
    array = arrays.pop(f"1/{name}")
    if kind is not None:
        arrays[f"1/{name}"] = wrong(array, kind)
    np.savez(tmp_path / "wrong.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load_demonstrations(tmp_path / "wrong.npz", task)


def test_a_demonstration_cut_before_its_diamond_is_noticed(task, saved, tmp_path):
    cut = {name: a[:-1] if name.startswith("1/") else a for name, a in saved.items()}
    np.savez(tmp_path / "cut.npz", **cut)
    demos = load_demonstrations(tmp_path / "cut.npz", task)
    assert [demo.solved for demo in demos] == [True, False]
    with pytest.raises(ValueError, match=r"demonstrations \[1\] found no diamond"):
        fit_demonstrations(task, demos)
