"""Videos of the diamond task show a run that was played."""

import json
from dataclasses import asdict
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from diamond_evaluations import GOALS
from PIL import Image

jax = pytest.importorskip("jax")
pytest.importorskip("craftax")
import equinox as eqx  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from diamond_training import setup  # noqa: E402
from workshop import BROKEN, GEM, WHOLE, known  # noqa: E402

from align_rudder.hierarchy.evaluation import evaluate, new_worlds  # noqa: E402
from align_rudder.hierarchy.manager import managed  # noqa: E402
from align_rudder.studies.diamond import video  # noqa: E402
from align_rudder.studies.diamond.methods import training_of  # noqa: E402


class Foreman(eqx.Module):
    """A manager that follows the alignment."""

    def __call__(self, task, seen, subtask, cell):
        turn = jnp.minimum(subtask, task.n_subtasks - 1)
        return 100.0 * jax.nn.one_hot(turn, task.n_choices), jnp.float32(0)


@pytest.fixture(scope="module")
def run():
    return video.record(known().task, WHOLE, jax.random.key(3), n_worlds=8, max_steps=60)


def test_the_shortest_run_that_solves_the_task_is_recorded(run):
    workshop = known().task
    worlds = new_worlds(workshop, jax.random.split(jax.random.key(3))[0], 8)
    judged = evaluate(workshop, WHOLE, worlds, jax.random.key(0), 60)
    steps = np.asarray(judged.steps)
    assert len(set(steps)) > 1
    assert len(run.actions) == steps[np.asarray(judged.solved)].min()
    assert len(run.subtasks) == len(run.reached) == len(run.actions) + 1
    solved = run.states.items[:, GEM] > 0
    assert solved[-1]
    assert not solved[:-1].any()
    before = jax.tree.map(lambda x: x[:-1], run.states)
    keys = jax.random.split(jax.random.key(0), len(run.actions))
    after = jax.vmap(workshop.task.step)(keys, before, run.actions)
    np.testing.assert_array_equal(after.place, run.states.place[1:])
    np.testing.assert_array_equal(after.items, run.states.items[1:])
    assert run.subtasks[0] == 0
    assert run.subtasks[-1] == workshop.n_subtasks
    assert (np.diff(run.subtasks) >= 0).all()
    assert run.reached[-1].all()
    assert not run.reached[0].any()


def test_a_manager_is_recorded_with_its_choices(run):
    whole = managed(known().task, WHOLE)
    same = video.record(whole, Foreman(), jax.random.key(3), n_worlds=8, max_steps=60)
    np.testing.assert_array_equal(same.states.place, run.states.place)
    np.testing.assert_array_equal(same.actions, same.subtasks[:-1])


def test_no_run_is_recorded_where_none_solves_the_task():
    assert video.record(known().task, BROKEN, jax.random.key(3), 8, 70) is None
    assert video.record(known().task, WHOLE, jax.random.key(3), 8, 3) is None
    with pytest.raises(ValueError, match="n_worlds=0"):
        video.record(known().task, WHOLE, jax.random.key(0), 0)


def tell(told, step, goal):
    told.append((step, goal))


def test_a_single_world_is_played_to_its_end_and_sub_goals_are_told():
    task = known().task
    for seed in range(20):
        told = []
        key, note = jax.random.key(seed), partial(tell, told)
        found = video.record(task, WHOLE, key, 1, 70, note)
        if not found.failed:
            break
    first = {goal: step for step, goal in reversed(told)}
    assert sorted(first) == list(range(task.n_subtasks))
    for goal, step in first.items():
        assert not found.reached[step - 1, goal]
        assert found.reached[step, goal]
    # One that fails says how.
    lost = video.record(task, BROKEN, jax.random.key(3), 1, 3)
    assert lost.failed == "given up"
    assert len(lost.actions) == 3
    limit = task.task.max_steps
    over = video.record(task, BROKEN, jax.random.key(3), 1, limit + 10)
    assert over.failed in task.task.endings
    assert len(over.actions) <= limit


def test_a_run_that_fails_fades_and_has_no_gold(ending, tmp_path):
    path = tmp_path / "lost.gif"
    video.save_video(path, ending._replace(failed="lava"), GOALS, scale=2, hold_ms=700)
    with Image.open(path) as gif:
        assert gif.n_frames == 6 + 1
        frames = []
        for i in (5, 6):
            gif.seek(i)
            frames.append(np.asarray(gif.convert("RGB")).astype(int)[: 9 * 16, : 9 * 16 * 2])
        assert gif.info["duration"] == 700
    assert frames[1].mean() < 0.75 * frames[0].mean()
    assert frames[1].max() > 200  # the word


def test_the_agents_of_a_folder_are_recorded_if_they_find_a_diamond(tmp_path, monkeypatch):
    saved = []
    configuration = {**asdict(training_of("align-rudder")), "alignment": "none"}
    (tmp_path / "training.json").write_text(json.dumps(configuration))
    monkeypatch.setattr(video, "save_video", lambda path, run, goals: saved.append((path, goals)))
    for agent, found in ((BROKEN, 0), (WHOLE, 1)):
        monkeypatch.setattr(video, "load_stage", lambda *args, agent=agent: (known().task, agent))
        run = video.record_folder(tmp_path, setup(), tmp_path / "run.gif")
        assert (run is not None) == bool(saved) == bool(found)
    assert saved == [(tmp_path / "run.gif", setup().goals)]


@pytest.fixture(scope="module")
def ending():
    """The last steps of a demonstration, with made-up sub-goals."""
    demo = min(setup().demos, key=lambda demo: len(demo.actions))  # it ends by day
    states = jax.tree.map(lambda x: x[-6:], demo.states)
    reached = np.arange(5) < np.array([2, 2, 3, 3, 4, 5])[:, None]
    return video.Run(states, demo.actions[-5:], reached.sum(axis=1), reached)


def test_the_video_has_a_frame_for_each_state_and_ends_in_gold(ending, tmp_path):
    path = tmp_path / "run.gif"
    video.save_video(path, ending, GOALS, scale=2, step_ms=50, hold_ms=2000)
    assert [p.name for p in tmp_path.iterdir()] == ["run.gif"]
    with Image.open(path) as gif:
        assert gif.n_frames == 6 + 6
        frames, durations = [], []
        for i in range(gif.n_frames):
            gif.seek(i)
            frames.append(np.asarray(gif.convert("RGB")).astype(int))
            durations.append(gif.info["duration"])
    assert durations == [50] * 6 + [150] * 5 + [2000]
    assert frames[0].shape == (9 * 16 * 2, 9 * 16 * 2 + 168, 3)
    for before, after in pairwise(frames):
        assert (before != after).any()
    np.testing.assert_allclose(frames[-1][1, 1], [240, 228, 66], atol=25)
    assert np.abs(frames[0][1, 1] - [240, 228, 66]).sum() > 100

    def bar(frame):
        """Return where the bar of the current sub-goal is, None if there is none."""
        rows = (np.abs(frame[:, -10] - [230, 159, 0]).sum(axis=1) < 60).nonzero()[0]
        return rows.mean() if len(rows) else None

    places = [bar(frame) for frame in frames[:6]]
    assert places[0] == places[1] < places[2] == places[3] < places[4]
    assert places[5] is None  # nothing is left to do


def test_videos_that_cannot_be_written_are_refused(ending, tmp_path):
    with pytest.raises(ValueError, match=r"end its name in \.gif"):
        video.save_video(tmp_path / "run.mp4", ending, GOALS)
    with pytest.raises(ValueError, match="5 sub-goals; 2 were given"):
        video.save_video(tmp_path / "run.gif", ending, GOALS[:2])
    assert not list(tmp_path.iterdir())
