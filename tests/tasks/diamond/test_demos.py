"""Demonstrations of the diamond task: what they share, what is kept of the expert's runs, files."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("craftax")
import jax.numpy as jnp  # noqa: E402
from diamond_training import Replay, at, setup  # noqa: E402

from align_rudder.tasks.diamond.demos import (  # noqa: E402
    chosen_runs,
    fit_demonstrations,
    load_demonstrations,
    play_expert,
    prepare,
    save_chosen,
    save_demonstrations,
)
from align_rudder.tasks.diamond.task import DiamondTask  # noqa: E402

task = DiamondTask()


def test_ten_demonstrations_share_one_strategy():
    demos, model = setup().demos, setup().model
    assert len(demos) == 10
    symbols = setup().goals
    order = [
        "wood+1",
        "wood-2",
        "wood_pickaxe+1",
        "stone_pickaxe+1",
        "coal+1",
        "iron+1",
        "iron_pickaxe+1",
        "diamond+1",
    ]
    found = [next(i for i, s in enumerate(symbols) if s.startswith(name)) for name in order]
    assert found == sorted(found)
    assert found[-1] == len(symbols) - 1
    for demo in demos:
        rr = model.redistribute(demo.episode(task))
        assert rr.rewards.sum() + rr.correction == pytest.approx(1.0)
    paid = [model.redistribute(demo.episode(task)).rewards[-1] > 0 for demo in demos]
    assert sum(paid) >= 9  # what one of them lacks costs more than the diamond's column is worth


def test_demonstrations_without_a_diamond_are_refused():
    one, other, *_ = setup().demos
    with pytest.raises(ValueError, match=r"\[1\] found no diamond"):
        fit_demonstrations(task, [one, other._replace(solved=False)])


def test_more_runs_are_learned_from_and_not_aligned(tmp_path):
    alone = setup()
    save_demonstrations(tmp_path / "more.npz", alone.demos[:2])
    both = prepare(more=tmp_path / "more.npz")
    assert both.goals == alone.goals
    assert str(both.model.alignment_) == str(alone.model.alignment_)
    assert len(both.runs) == 12
    for (_, actions), demo in zip(both.runs, [*alone.demos, *alone.demos[:2]], strict=True):
        np.testing.assert_array_equal(actions, demo.actions)
    save_demonstrations(tmp_path / "poor.npz", [cut(alone.demos[0])])
    with pytest.raises(ValueError, match=r"\[0\] found no diamond"):
        prepare(more=tmp_path / "poor.npz")


def cut(demo, steps=20):
    """Return the first steps of a demonstration."""
    states = jax.tree.map(lambda x: x[: steps + 1], demo.states)
    return demo._replace(states=states, actions=demo.actions[:steps], solved=False)


# The expert's runs


@pytest.mark.slow
def test_the_expert_finds_diamonds_in_most_new_worlds(compiled_quickly):
    runs = play_expert(task, 8, seed=3, max_steps=800, keep=300, progress=False)
    assert np.mean([run.solved for run in runs]) >= 0.6
    kept = [run for run in runs if run.states is not None]
    assert kept
    for run in kept:
        assert len(run.actions) <= 300
        last = jax.tree.map(jnp.asarray, at(run, -1))
        assert bool(task.solved(last)) == run.solved
        times = np.asarray(run.states.world.timestep)
        np.testing.assert_array_equal(times, np.arange(len(run.actions) + 1))


def test_the_shortest_runs_with_a_diamond_are_saved(tmp_path):
    runs = setup().demos[::-1]
    runs = [runs[0]._replace(solved=False), *runs[1:], runs[0]._replace(states=None)]
    chosen = save_chosen(tmp_path / "demos.npz", runs, 3, "shortest")
    lengths = sorted(len(run.actions) for run in runs[1:-1])[:3]
    assert [len(demo.actions) for demo in chosen] == lengths
    saved = load_demonstrations(tmp_path / "demos.npz", task)
    assert [len(demo.actions) for demo in saved] == lengths


def test_the_runs_of_the_first_worlds_are_chosen_however_long():
    runs = setup().demos[::-1]
    runs = [runs[0]._replace(solved=False), runs[1]._replace(states=None), *runs[2:]]
    lengths = [len(run.actions) for run in runs]
    first = [len(run.actions) for run in chosen_runs(runs, 3)]
    assert first == lengths[2:5] != sorted(lengths[2:5])
    assert [len(run.actions) for run in chosen_runs(runs, 3, "shortest")] == sorted(lengths[2:])[:3]
    with pytest.raises(ValueError, match="choose is 'longest'; one of 'first', 'shortest'"):
        chosen_runs(runs, 3, "longest")


@pytest.mark.slow
def test_a_share_of_the_actions_is_random(compiled_quickly):
    """In copies of one world the expert begins everywhere in the same way."""

    def first(noise, seed=0):
        options = {"max_steps": 1, "keep": 1, "progress": False}
        runs = play_expert(Replay(), 256, seed, noise=noise, **options)
        return np.array([run.actions[0] for run in runs])

    without, noisy = first(0.0), first(0.5)
    assert len(set(without.tolist())) == 1
    share = np.mean(noisy != without)
    assert abs(share - 0.5 * 16 / 17) < 0.1
    assert len(set(noisy.tolist())) > 10
    np.testing.assert_array_equal(noisy, first(0.5))
    assert (noisy != first(0.5, seed=1)).any()


def test_a_noise_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"noise is 1\.0; a number at least 0 and below 1"):
        play_expert(task, 2, noise=1.0)


def test_too_few_runs_are_kept_all_the_same(tmp_path):
    runs, path = setup().demos[:3], tmp_path / "demos.npz"
    says = r"3 of 3 runs found a diamond, 3 of them short enough to be kept \(in .*demos.npz\); 10"
    with pytest.raises(ValueError, match=says):
        save_chosen(path, runs)
    with pytest.raises(ValueError, match=r"demos-2\.npz"):  # what is there is not replaced by less
        save_chosen(path, runs[:2])
    assert len(load_demonstrations(path, task)) == 3
    assert len(load_demonstrations(tmp_path / "demos-2.npz", task)) == 2
    with pytest.raises(ValueError, match="0 of 1 runs found a diamond, 0 of them short enough to"):
        save_chosen(tmp_path / "none.npz", [runs[0]._replace(solved=False)])
    assert not (tmp_path / "none.npz").exists()


# Files of demonstrations


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("demos") / "two.npz"
    save_demonstrations(path, setup().demos[:2])
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def test_demonstrations_are_saved_and_loaded(saved, tmp_path):
    np.savez(tmp_path / "again.npz", **saved)
    for one, other in zip(load_demonstrations(tmp_path / "again.npz", task), setup().demos):
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
        (".world.player_position", "99", r"'1/\.world\.player_position' holds 99; at most 63"),
        (".world.inventory.wood", "99", r"'1/\.world\.inventory\.wood' holds 99; at most 9"),
        (".world.map", "99", r"'1/\.world\.map' holds 99; at most 16 is allowed"),
        ("actions", "99", "'1/actions' holds 99; at most 16 is allowed"),
        ("actions", "float", "'1/actions' holds numbers; whole numbers are needed"),
        ("actions", "short", r"'1/\.world\.map' has shape .* is needed"),
        (".world.map", "narrow", r"'1/\.world\.map' has shape \(\d+, 32, 32\); \(\d+, 64, 64\)"),
        (".world.map", None, r"no array '1/\.world\.map'; .*: align-rudder diamond demos"),
    ],
)
def test_damaged_demonstrations_are_named(saved, tmp_path, name, kind, message):
    arrays = dict(saved)
    array = arrays.pop(f"1/{name}")
    if kind is not None:
        arrays[f"1/{name}"] = wrong(array, kind)
    np.savez(tmp_path / "wrong.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load_demonstrations(tmp_path / "wrong.npz", task)


def test_a_demonstration_cut_before_its_diamond_is_noticed(saved, tmp_path):
    cut = {name: a[:-1] if name.startswith("1/") else a for name, a in saved.items()}
    np.savez(tmp_path / "cut.npz", **cut)
    demos = load_demonstrations(tmp_path / "cut.npz", task)
    assert [demo.solved for demo in demos] == [True, False]
    with pytest.raises(ValueError, match=r"demonstrations \[1\] found no diamond"):
        fit_demonstrations(task, demos)
