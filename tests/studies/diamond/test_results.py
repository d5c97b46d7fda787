"""Counts belong to the agents that were counted, and damaged files are named."""

import json
from contextlib import nullcontext

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("craftax")

from diamond_training import setup

from align_rudder.hierarchy.evaluation import Evaluation
from align_rudder.runs.checkpoint import save_tree
from align_rudder.studies.diamond import results
from align_rudder.studies.diamond.methods import training_of
from align_rudder.studies.diamond.tables import results_rows
from align_rudder.tasks.diamond.task import FEATURES

TRAINING = training_of("align-rudder")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A training whose agents "find" as many diamonds as their files have bytes."""
    configuration = TRAINING.configuration(results.aligned_task(setup()).tables)
    (tmp_path / "training.json").write_text(json.dumps(configuration))
    played = []

    def count(task, agent, worlds, *rest):
        played.append(agent)
        solved = (tmp_path / f"{agent}.npz").stat().st_size
        nothing = {"nothing": worlds - solved, "diamond": solved}
        counts = {"worlds": worlds, "solved": solved, "reached": [solved], "episode_steps": 9}
        return {**counts, "deepest": nothing}

    monkeypatch.setattr(results, "count_demonstrations", lambda *_: {})
    monkeypatch.setattr(results, "load_stage", lambda folder, setup, stage: (None, stage))
    monkeypatch.setattr(results, "count_worlds", count)
    return tmp_path, played


def evaluated(folder, worlds=50, last=False):
    found = results.evaluate_folder(folder, setup(), worlds, last=last, progress=False)
    return {name: stage["solved"] for name, stage in found["stages"].items()}


def test_other_agents_are_counted_anew_and_the_same_are_not(folder):
    path, played = folder
    for name, text in (("cloned", "x"), ("agent", "xx"), ("manager", "xxx")):
        (path / f"{name}.npz").write_text(text)
    assert evaluated(path, last=True) == {"manager": 3}
    assert evaluated(path) == {"cloned": 1, "agent": 2, "manager": 3}
    assert played == ["manager", "cloned", "agent"]
    (path / "manager.npz").write_text("yyyy")
    assert evaluated(path) == {"cloned": 1, "agent": 2, "manager": 4}
    (path / "agent.npz").write_text("yyyyy")  # the manager runs it: both are others now
    assert evaluated(path) == {"cloned": 1, "agent": 5, "manager": 4}
    assert played[3:] == ["manager", "agent", "manager"]
    (path / "manager.npz").unlink()  # trained again, and not so far yet
    assert evaluated(path) == {"cloned": 1, "agent": 5}
    assert evaluated(path, worlds=60) == {"cloned": 1, "agent": 5}
    assert played[6:] == ["cloned", "agent"]


def test_published_counts_are_taken_as_they_are_but_no_others(folder):
    path, played = folder
    (path / "agent.npz").write_text("x")
    evaluated(path)
    (path / "agent.npz").unlink()
    assert evaluated(path) == {"agent": 1}
    assert played == ["agent"]
    with pytest.raises(ValueError, match=f"{path} has no agent.npz, nor counts of 60 worlds"):
        evaluated(path, worlds=60)


def test_a_training_that_goes_on_is_said_to(folder, caplog):
    path, _ = folder
    (path / "agent.npz").write_text("x")
    configuration = json.loads((path / "training.json").read_text())
    for phase, told in (("agents", 1), ("done", 0)):
        caplog.clear()
        notes = {"phase": phase, "steps": 1234}
        save_tree(path / "checkpoint.npz", (), configuration, notes)
        evaluated(path)
        assert len(caplog.messages) == told
        assert all("after 1,234 of 8,000,000 steps" in message for message in caplog.messages)
        found = json.loads((path / "evaluation.json").read_text())
        row = results_rows([found])[0]
        assert row["steps"] == (1234 if told else 8_000_000)


@pytest.mark.parametrize(
    "text",
    ["x", "[]", '{"worlds": 1', '{"stages": 3}', '{"stages": {"a": {}}}', '{"stages": "solved"}'],
)
def test_damaged_counts_are_named(folder, text):
    path, _ = folder
    (path / "agent.npz").write_text("x")
    evaluated(path)
    whole = json.loads((path / "evaluation.json").read_text())
    if text == '{"stages": "solved"}':  # more successes than worlds
        whole["stages"]["agent"]["solved"] = 51
        text = json.dumps(whole)
    elif text.startswith('{"stages"'):
        text = json.dumps({**whole, **json.loads(text)})
    (path / "evaluation.json").write_text(text)
    with pytest.raises(ValueError, match=r"evaluation\.json is damaged .*; delete it"):
        evaluated(path)


def test_a_training_is_read_as_it_was_configured(folder):
    training, alignment = results.read_training(folder[0])
    assert training == TRAINING
    assert training.configuration(results.aligned_task(setup()).tables)["alignment"] == alignment


def test_endings_and_those_given_up_are_all_worlds():
    ending = np.array([0, 1, 1, 3, 8, -1, -1])
    report = np.zeros((7, len(FEATURES)), int)
    report[:, FEATURES.index("did_collect_wood")] = np.arange(7) < 5
    solved, reached = ending == 0, np.ones((7, 2), bool)
    found = Evaluation(np.zeros(7), reached, solved, np.full(7, 9), ending, report)
    counts = results.counts_of(found)
    assert sum(counts["endings"].values()) == 7 - 2
    assert counts["endings"]["diamond"] == counts["solved"] == 1
    named = {name: n for name, n in counts["endings"].items() if n}
    assert named == {"diamond": 1, "lava": 2, "zombie, asleep": 1, "time": 1}
    assert (counts["deepest"]["nothing"], counts["deepest"]["wood"]) == (2, 5)


def test_more_endings_than_worlds_are_damage(folder):
    path, _ = folder
    (path / "agent.npz").write_text("x")
    evaluated(path)
    found = json.loads((path / "evaluation.json").read_text())
    for lava, damaged in ((30, False), (31, True)):
        found["stages"]["agent"]["endings"] = {"lava": lava, "time": 20}
        (path / "evaluation.json").write_text(json.dumps(found))
        with pytest.raises(ValueError, match="delete it") if damaged else nullcontext():
            evaluated(path)


@pytest.mark.parametrize("text", ["", "[]", '{"ppo": 1}', "{"])
def test_a_damaged_configuration_is_named(tmp_path, text):
    (tmp_path / "training.json").write_text(text)
    with pytest.raises(ValueError, match=r"training\.json is damaged .*put back a copy"):
        results.read_training(tmp_path)
