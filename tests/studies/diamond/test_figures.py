"""Figures, tables and videos of the diamond task show what was counted."""

import csv
import json
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image
from scipy.stats import binomtest

from align_rudder.events.names import short_goal_names

jax = pytest.importorskip("jax")
pytest.importorskip("craftax")
import equinox as eqx  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from workshop import GEM, TABLE, TREE, USE, Workshop, demonstrations, fitted  # noqa: E402

from align_rudder.hierarchy.aligned import AlignedTask, tables_of  # noqa: E402
from align_rudder.hierarchy.evaluation import evaluate, new_worlds  # noqa: E402
from align_rudder.hierarchy.manager import managed  # noqa: E402
from align_rudder.studies.diamond import figures, tables, video  # noqa: E402
from align_rudder.tasks.diamond.demos import load_demonstrations  # noqa: E402
from align_rudder.tasks.diamond.task import DiamondTask  # noqa: E402

GOALS = [
    "did_collect_wood+1 wood+1",
    "wood+1",
    "did_place_table+1 wood-2",
    "iron_pickaxe+1 did_make_iron_pickaxe+1 coal-1 …",
    "diamond+1 did_collect_diamond+1",
]


def stage(reached, worlds=10_000):
    wood, _, table, tool, solved = reached
    deepest = {
        "nothing": worlds - wood,
        "wood": wood - table,
        "table": table - tool,
        "iron pickaxe": tool - solved,
        "diamond": solved,
    }
    return {"worlds": worlds, "solved": solved, "reached": reached, "deepest": deepest}


def evaluation(method="align-rudder", seed=0, steps=8_000_000, **stages):
    return {
        "method": method,
        "steps": steps,
        "seed": seed,
        "max_steps": 10_000,
        "goals": GOALS,
        "demonstrations": {"worlds": 10, "solved": 10, "reached": [10, 10, 10, 9, 10]},
        "stages": {name: stage(reached) for name, reached in stages.items()},
    }


OURS = {
    "cloned": [9000, 8000, 5000, 1, 0],
    "agent": [10_000, 9990, 9900, 4000, 1000],
    "manager": [10_000, 9995, 9950, 4400, 1200],
}


# Tables


@pytest.mark.parametrize(("k", "n"), [(0, 10), (1, 10_000), (500, 1000), (7, 7)])
def test_wilson_interval_is_that_of_scipy(k, n):
    expected = binomtest(k, n).proportion_ci(method="wilson")
    found = tables.wilson_interval(k, n)
    np.testing.assert_allclose(found, [expected.low, expected.high], atol=1e-12)
    low, high = tables.wilson_interval(np.array([k, 0]), np.array([n, n]))
    assert (low[0], high[0]) == found
    assert low[1] == 0 < high[1]


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="3 successes of 2"):
        tables.wilson_interval(3, 2)


def test_results_count_seeds_together_and_keep_methods_in_order():
    found = [
        evaluation("ppo-dense", agent=[5000, 4000, 100, 0, 0]),
        evaluation("align-rudder", 1, **{**OURS, "manager": [9000, 9000, 9000, 5000, 2000]}),
        evaluation("align-rudder", 0, **OURS),
        evaluation("align-rudder", 0, 200_000_000, agent=[10_000, 10_000, 10_000, 9000, 8000]),
    ]
    cloned, ours, agents, dense, long = tables.results_rows(found)
    assert [cloned["stage"], ours["stage"], agents["stage"]] == ["cloned", "manager", "agent"]
    assert (ours["solved"], ours["worlds"], ours["share"]) == (3200, 20_000, 0.16)
    assert (ours["low"], ours["high"]) == (0.12, 0.2)
    assert ours["iron_pickaxe"] == pytest.approx(9400 / 20_000)
    assert (cloned["deepest"], ours["deepest"], dense["deepest"]) == (
        "iron pickaxe",
        "diamond",
        "table",
    )
    assert dense["method"] == "ppo-dense"
    assert long["steps"] == 200_000_000
    json.dumps(tables.results_rows(found))
    assert (dense["low"], dense["high"]) == tuple(
        pytest.approx(end) for end in binomtest(0, 10_000).proportion_ci(method="wilson")
    )
    lines = tables.results_table(found).splitlines()
    (line,) = [x for x in lines if x.startswith("Align-RUDDER") and " 8 M " in x]
    expected = ["8", "M", "2", "16.00", "12.00–20.00", "47.00", "diamond"]
    assert line.split()[1:] == expected
    assert "10,000 new worlds for each seed" in lines[-3]
    assert tables.results_table(found, markdown=True).count("\n| ") == 6


def test_what_all_rows_share_is_said_under_the_table():
    text = tables.results_table([evaluation(**OURS)])
    assert {"seeds", "worlds"}.isdisjoint(text.splitlines()[2].split())
    assert "10,000 new worlds" in text
    assert "one seed" in text


def test_the_same_seed_twice_is_not_counted_as_two():
    rows = tables.results_rows([evaluation("no-cloning", agent=OURS["agent"])] * 2)
    assert [row["worlds"] for row in rows] == [10_000, 10_000]


def test_goals_table_has_the_rates_of_each_stage():
    rows = tables.goals_rows(evaluation(**OURS))
    assert [row["fine_tuned"] for row in rows] == [n / 10_000 for n in OURS["manager"]]
    assert [row["cloned"] for row in rows] == [n / 10_000 for n in OURS["cloned"]]
    assert [row["demonstrations"] for row in rows] == [1, 1, 1, 0.9, 1]
    text = tables.goals_table(evaluation(**OURS))
    assert "iron pickaxe             90.00   0.01         44.00" in text
    plain = tables.goals_rows(evaluation("ppo-dense", agent=OURS["agent"]))
    assert {row["cloned"] for row in plain} == {None}


def test_an_evaluation_without_an_agent_is_refused():
    with pytest.raises(ValueError, match="neither agent nor manager, only cloned"):
        tables.goals_rows(evaluation(cloned=OURS["cloned"]))


# Figures


def test_bars_are_as_high_as_the_rates():
    figure = figures.subgoal_bars(evaluation(**OURS))
    ax = figure.axes[0]
    heights = [[bar.get_height() for bar in bars] for bars in ax.containers]
    expected = [[100, 100, 100, 90, 100], *(np.array(OURS[s]) / 100 for s in ("cloned", "manager"))]
    np.testing.assert_allclose(heights, expected)
    assert [t.get_text() for t in ax.get_xticklabels()] == short_goal_names(GOALS)
    assert len(ax.texts) == 1  # the only zero: cloning finds no diamond
    bottom, one_world = ax.transData.transform([[0, 0], [0, 0.01]])[:, 1]
    assert one_world - bottom > 0.1 * ax.bbox.height
    labels = [t.get_text() for t in figure.legends[0].get_texts()]
    assert labels[0].startswith("demonstrations (10")
    assert "fine-tuned, 8 M steps (10,000 worlds)" in labels


def test_bars_of_plain_ppo_have_no_cloning():
    figure = figures.subgoal_bars(evaluation("ppo-dense", agent=OURS["agent"]))
    assert len(figure.axes[0].containers) == 2
    assert figure.legends[0].get_texts()[1].get_text().startswith("PPO, paid for each achievement")


def training_folder(path, name="align-rudder", seed=0, solved=(0, 10, 30), manager=(40,)):
    path.mkdir()
    (path / "training.json").write_text(json.dumps({"name": name, "seed": seed, "steps": 4000}))
    rows = [("agents", 1000 * (i + 1), n) for i, n in enumerate(solved)]
    rows += [("manager", 1000 * (len(rows) + i + 1) + seed, n) for i, n in enumerate(manager)]
    with (path / "evaluations.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["phase", "updates", "steps", "worlds", "solved"])
        writer.writerows((phase, i, steps, 100, n) for i, (phase, steps, n) in enumerate(rows))
    return path


def lines_of(ax):
    """Return the curves by label; those of the main agent have none."""
    return [line for line in ax.lines if line.get_marker() not in ("", "None")]


def test_learning_curves_are_means_over_seeds(tmp_path):
    folders = [
        training_folder(tmp_path / "dense", "ppo-dense", 0, (0, 2, 4), ()),
        training_folder(tmp_path / "one", seed=0),
        training_folder(tmp_path / "two", seed=2, solved=(0, 20, 40), manager=(60,)),
    ]
    figure = figures.learning_curves(folders)
    ours, manager, dense = lines_of(figure.axes[0])
    assert (ours.get_label(), dense.get_label()) == (
        "Align-RUDDER",
        "PPO, paid for each achievement",
    )
    np.testing.assert_allclose(ours.get_xydata(), [[1000, 0], [2000, 15], [3000, 35]])
    np.testing.assert_allclose(manager.get_xydata(), [[4001, 50]])
    assert manager.get_linestyle() == "--"
    np.testing.assert_allclose(dense.get_ydata(), [0, 2, 4])
    band, _, interval = figure.axes[0].collections
    assert band.get_paths()[0].get_extents().y1 == pytest.approx(40)
    assert interval.get_paths()[0].get_extents().y1 == pytest.approx(
        100 * tables.wilson_interval(4, 100)[1]
    )
    assert figure.axes[0].get_xscale() == "log"
    assert 0 < figure.axes[0].get_xlim()[0] <= 1000


def test_budgets_have_panels_of_their_own(tmp_path):
    short = training_folder(tmp_path / "short", manager=())
    long = training_folder(tmp_path / "long", solved=(0, 50, 90), manager=())
    found = json.loads((long / "training.json").read_text())
    (long / "training.json").write_text(json.dumps({**found, "steps": 240_000_000}))
    figure = figures.learning_curves([long, short])
    assert [ax.get_title(loc="left") for ax in figure.axes][1] == "240 M steps in all"
    ends = [lines_of(ax)[0].get_ydata()[-1] for ax in figure.axes]
    assert ends == [pytest.approx(30), pytest.approx(90)]
    assert len({ax.get_ylim() for ax in figure.axes}) == 1
    assert len({lines_of(ax)[0].get_color() for ax in figure.axes}) == 1


def test_a_part_left_out_is_named_in_full_where_ours_is_not_beside_it():
    other = evaluation("no-cloning", 0, agent=[9000, 9000, 9000, 5000, 2000])
    ours = evaluation("align-rudder", 0, **OURS)
    assert tables.results_rows([other])[0]["label"] == "Align-RUDDER, without cloning"
    assert tables.results_rows([ours, other])[-1]["label"] == "… without cloning"
    assert "Sub-goals reached, Align-RUDDER, without cloning" in tables.goals_table(other)


def test_a_training_without_evaluation_is_named(tmp_path):
    folder = training_folder(tmp_path / "one", manager=())
    empty = training_folder(tmp_path / "two", "ppo-dense", solved=(), manager=())
    figure = figures.learning_curves([folder, empty])
    assert [line.get_label() for line in lines_of(figure.axes[0])] == [
        "Align-RUDDER",
        "PPO, paid for each achievement (no evaluation yet)",
    ]
    with pytest.raises(ValueError, match="no training has an evaluation yet"):
        figures.learning_curves([empty])
    with pytest.raises(ValueError, match="is not the folder of a training"):
        figures.learning_curves([tmp_path])


def write_csv(path, header, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def test_each_subtask_has_its_accuracy_and_its_success(tmp_path, rng):
    counts = rng.integers(0, 9, (12, 4))
    counts[0] = 0  # nothing was tried yet
    head = ["phase", "steps", "reached_0", "reached_1", "failed_0", "failed_1"]
    rows = [
        ["agents" if i < 8 else "manager", 1000 * (i + 1), *map(int, c)]
        for i, c in enumerate(counts)
    ]
    write_csv(tmp_path / "updates.csv", head, rows)
    shown = [[50, 0.9, 0.8, 0.5, 0.25], [100, 0.1, 0.1, 1.0, 0.75]]
    write_csv(
        tmp_path / "cloning.csv",
        ["updates", "loss_0", "loss_1", "accuracy_0", "accuracy_1"],
        shown,
    )
    figure = figures.sub_agent_curves(tmp_path, GOALS[:2], window=3)
    left, right = figure.axes[2:]
    assert left.get_title(loc="left") == "wood 2"
    np.testing.assert_allclose(left.lines[0].get_xydata(), [[50, 25], [100, 75]])
    [agents] = right.lines  # without the main agent, whose tries begin elsewhere
    rates = agents.get_ydata()
    assert len(rates) == 8
    for t, rate in enumerate(rates):
        part = counts[max(0, t - 2) : t + 1]
        reached, failed = part[:, 1].sum(), part[:, 3].sum()
        expected = 100 * reached / (reached + failed) if reached + failed else np.nan
        np.testing.assert_allclose(rate, expected)
    assert np.isnan(rates[0])
    with pytest.raises(ValueError, match="2 sub-tasks; 5 goals"):
        figures.sub_agent_curves(tmp_path, GOALS)


# Video


class Planner(eqx.Module):
    """Plays the workshop as its demonstrations do; or, told to, always does the same."""

    always: int | None = eqx.field(static=True, default=None)

    def __call__(self, task, seen, subtask, cell):
        wood, tool, _ = seen["items"]
        thing = jnp.where(tool > 0, GEM, jnp.where(wood >= 2, TABLE, TREE))
        dy, dx = seen["away"][thing]
        action = jnp.where(
            (dy == 0) & (dx == 0), USE, jnp.where(dx != 0, (dx > 0) * 1, 2 + (dy > 0))
        )
        if self.always is not None:
            action = jnp.int32(self.always)
        return 100.0 * jax.nn.one_hot(action, task.task.n_actions), jnp.float32(0)


class Foreman(eqx.Module):
    """A main agent that follows the alignment."""

    def __call__(self, task, seen, subtask, cell):
        turn = jnp.minimum(subtask, task.n_subtasks - 1)
        return 100.0 * jax.nn.one_hot(turn, task.n_choices), jnp.float32(0)


@pytest.fixture(scope="module")
def workshop():
    task = Workshop()
    return AlignedTask(task, tables_of(fitted(demonstrations(task, 4))))


@pytest.fixture(scope="module")
def run(workshop):
    return video.record(workshop, Planner(), jax.random.key(3), n_worlds=8, max_steps=60)


def test_the_shortest_run_that_solves_the_task_is_recorded(workshop, run):
    worlds = new_worlds(workshop, jax.random.split(jax.random.key(3))[0], 8)
    judged = evaluate(workshop, Planner(), worlds, jax.random.key(0), 60)
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


def test_a_main_agent_is_recorded_with_its_choices(workshop, run):
    whole = managed(workshop, Planner())
    same = video.record(whole, Foreman(), jax.random.key(3), n_worlds=8, max_steps=60)
    np.testing.assert_array_equal(same.states.place, run.states.place)
    np.testing.assert_array_equal(same.actions, same.subtasks[:-1])


def test_no_run_is_recorded_where_none_solves_the_task(workshop):
    assert video.record(workshop, Planner(always=0), jax.random.key(0), 2, 70) is None
    assert video.record(workshop, Planner(), jax.random.key(3), 8, 3) is None
    with pytest.raises(ValueError, match="n_worlds=0"):
        video.record(workshop, Planner(), jax.random.key(0), 0)


@pytest.fixture(scope="module")
def ending():
    """The last steps of a demonstration, with made-up sub-goals."""
    own = files("align_rudder.tasks.diamond") / "demonstrations.npz"
    demo = load_demonstrations(str(own), DiamondTask())[0]
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


def test_nights_can_be_seen(ending):
    """Below half light Craftax draws noise; the video does not go that far."""

    def picture(light):
        world = ending.states.world.replace(light_level=np.full(6, light, np.float32))
        states = ending.states._replace(world=world)
        run = ending._replace(states=states)
        frame = video._frames(run, short_goal_names(GOALS), 1)[0]
        return np.asarray(frame)[: 7 * 16, : 9 * 16]

    day, dusk, night = picture(1.0), picture(0.5), picture(0.0)
    np.testing.assert_array_equal(dusk, night)
    assert 0.3 * day.mean() < dusk.mean() < 0.9 * day.mean()


def test_videos_that_cannot_be_written_are_refused(ending, tmp_path):
    with pytest.raises(ValueError, match=r"end its name in \.gif"):
        video.save_video(tmp_path / "run.mp4", ending, GOALS)
    with pytest.raises(ValueError, match="5 sub-goals; 2 were given"):
        video.save_video(tmp_path / "run.gif", ending, GOALS[:2])
    assert not list(tmp_path.iterdir())
