"""Figures of the diamond task show what was counted."""

import csv
import json
from dataclasses import asdict

import numpy as np
import pytest
from diamond_evaluations import GOALS, OURS, evaluation, with_endings

pytest.importorskip("jax")
pytest.importorskip("craftax")
from align_rudder.studies.diamond import figures
from align_rudder.studies.diamond.methods import training_of
from align_rudder.studies.statistics import wilson_interval
from align_rudder.tasks.diamond.names import goal_names
from align_rudder.tasks.diamond.task import ENDINGS


def test_bars_are_as_high_as_the_rates():
    figure = figures.subgoal_bars(evaluation(**OURS))
    ax = figure.axes[0]
    heights = [[bar.get_height() for bar in bars] for bars in ax.containers]
    expected = [[100, 100, 100, 90, 100], *(np.array(OURS[s]) / 100 for s in ("cloned", "manager"))]
    np.testing.assert_allclose(heights, expected)
    assert [t.get_text() for t in ax.get_xticklabels()] == goal_names(GOALS)
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


def test_endings_are_stacked_to_all_worlds():
    ours = with_endings(evaluation(agent=OURS["agent"]), lava=3000, fatigue=100)
    plain = with_endings(evaluation("ppo-dense", agent=OURS["cloned"]), lava=500, time=9500)
    figure = figures.endings_bars([plain, ours, evaluation("separate", agent=OURS["agent"])])
    (ax,) = figure.axes
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert names == ["Align-RUDDER", "PPO, paid for each achievement"]
    widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in ax.containers}
    assert [*widths] == ["diamond", "lava", "fatigue", "time", "given up"]
    expected = [[10, 0], [30, 5], [1, 0], [0, 95], [59, 0]]
    np.testing.assert_allclose([*widths.values()], expected, atol=1e-9)
    parts = np.array([[bar.get_x() for bar in bars] for bars in ax.containers])
    before = np.cumsum([[0, 0], *expected[:-1]], axis=0)
    np.testing.assert_allclose(parts, before, atol=1e-9)  # each begins where the last ends
    assert [t.get_text() for t in ax.texts] == ["10", "30", "5", "95", "59"]
    with pytest.raises(ValueError, match="how episodes ended was not counted"):
        figures.endings_bars([evaluation(agent=OURS["agent"])])


def test_each_ending_has_a_color_of_its_own():
    assert [*figures._ENDINGS] == [*ENDINGS, "given up"]
    assert len(set(figures._ENDINGS.values())) == len(ENDINGS) + 1


def write_training(path, name="align-rudder", seed=0, steps=4000):
    configuration = {**asdict(training_of(name, steps, seed)), "alignment": "none"}
    (path / "training.json").write_text(json.dumps(configuration))


def training_folder(path, name="align-rudder", seed=0, solved=(0, 10, 30), manager=(40,)):
    path.mkdir()
    write_training(path, name, seed)
    rows = [("agents", 1000 * (i + 1), n) for i, n in enumerate(solved)]
    rows += [("manager", 1000 * (len(rows) + i + 1) + seed, n) for i, n in enumerate(manager)]
    with (path / "evaluations.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["phase", "updates", "steps", "worlds", "solved"])
        writer.writerows((phase, i, steps, 100, n) for i, (phase, steps, n) in enumerate(rows))
    return path


def lines_of(ax):
    """Return the curves by label; those of the manager have none."""
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
        100 * wilson_interval(4, 100)[1]
    )
    assert figure.axes[0].get_xscale() == "log"
    assert 0 < figure.axes[0].get_xlim()[0] <= 1000


def test_budgets_have_panels_of_their_own(tmp_path):
    short = training_folder(tmp_path / "short", manager=())
    long = training_folder(tmp_path / "long", solved=(0, 50, 90), manager=())
    write_training(long, steps=240_000_000)
    figure = figures.learning_curves([long, short])
    assert [ax.get_title(loc="left") for ax in figure.axes][1] == "240 M steps in all"
    ends = [lines_of(ax)[0].get_ydata()[-1] for ax in figure.axes]
    assert ends == [pytest.approx(30), pytest.approx(90)]
    assert len({ax.get_ylim() for ax in figure.axes}) == 1
    assert len({lines_of(ax)[0].get_color() for ax in figure.axes}) == 1


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
    [agents] = right.lines  # without the manager, whose tries begin elsewhere
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


@pytest.mark.parametrize(
    ("method", "names"), [("kinds", ["kind 1", "kind 2"]), ("flags", GOALS[:2])]
)
def test_where_kinds_are_paid_agents_are_called_by_how_many_there_were(tmp_path, method, names):
    write_training(tmp_path, method)
    assert figures._agent_names(tmp_path, GOALS[:2]) == names
    assert method == "flags" or goal_names(names) == names
