"""How well the score of a run tells success from failure, on runs of τ-bench.

python benchmarks/logs.py gpt-4o-airline.json

The file is `historical_trajectories/gpt-4o-airline.json` of sierra-research/tau-bench.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from align_rudder.data.logs import Run, RunLog, event_chooser, read_log
from align_rudder.files import write_json
from align_rudder.logs import LogModel

__all__ = ["auc_table", "main", "recovered"]

FOLDS, REPEATS = 10, 10
EVENTS = "tool"


def sequences_of(runs: tuple[Run, ...]) -> list[list[Any]]:
    """Return the symbols of each run."""
    chooser = event_chooser(EVENTS)
    return [run.events(chooser)[0] for run in runs]


def counts(sequences: list[list[Any]], width: int) -> list[Counter[Any]]:
    """Return how often each run of `width` symbols comes, with the ends of a run as symbols."""
    out = []
    for symbols in sequences:
        padded = symbols if width == 1 else ["(begin)", *symbols, "(end)"]
        out.append(Counter(tuple(padded[i : i + width]) for i in range(len(padded) - width + 1)))
    return out


def logistic(features: list[Counter[Any]], y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return the scores that a logistic regression on counts gives all runs."""
    names = {n: i for i, n in enumerate(sorted({n for t in train for n in features[t]}, key=str))}
    rows = [(i, names[n], c) for i, f in enumerate(features) for n, c in f.items() if n in names]
    i, j, c = (np.array(column) for column in zip(*rows, strict=True))
    x = csr_matrix((c, (i, j)), (len(features), len(names)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(max_iter=2000).fit(x[train], y[train])
    return model.decision_function(x)


def auc_table(log: RunLog, repeats: int = REPEATS) -> dict[str, dict[str, float]]:
    """Return the AUC of each score on runs of tasks that it was not fitted to.

    Tasks are dealt into ten folds, ten times over; of each dealing all runs have one score.
    """
    runs = tuple(run for run in log.runs if run.success is not None)
    y = np.array([run.success for run in runs], int)
    groups = np.array([str(run.group) for run in runs])
    sequences = sequences_of(runs)
    bags, pairs = counts(sequences, 1), counts(sequences, 2)
    length = -np.array([len(s) for s in sequences], float)
    found: dict[str, list[float]] = {}
    for seed in range(repeats):
        scores = {"length": length.copy(), "bag": np.empty(len(y)), "bigrams": np.empty(len(y))}
        scores["align-rudder"] = np.empty(len(y))
        folds = GroupKFold(FOLDS, shuffle=True, random_state=seed)
        for train, test in folds.split(sequences, y, groups):
            scores["bag"][test] = logistic(bags, y, train)[test]
            scores["bigrams"][test] = logistic(pairs, y, train)[test]
            model = LogModel(EVENTS).fit(RunLog(tuple(runs[i] for i in train)))
            scores["align-rudder"][test] = [model.score(runs[i]) for i in test]
        for name, values in scores.items():
            found.setdefault(name, []).append(float(roc_auc_score(y, values)))
    return {
        name: {"auc": float(np.mean(v)), "least": min(v), "most": max(v)}
        for name, v in found.items()
    }


def recovered(path: Path, log: RunLog) -> dict[str, Any]:
    """Return how many actions of the right solution are among the sub-goals of a task's roads.

    The road is the largest of a task alone, from its successes; names of tools are compared, each
    as often as it comes. Runs of the same task as the solution are looked at, so nothing is held
    out: it says what a road shows of the solution, not what it predicts.
    """
    raw = json.loads(path.read_text("utf-8"))
    right = {
        str(one["task_id"]): Counter(a["name"] for a in one["info"]["task"]["actions"])
        for one in raw
    }
    out: dict[str, Any] = {}
    for least in (1, 2):
        good, found, wanted, tasks = 0, 0, 0, 0
        for task, actions in right.items():
            runs = tuple(run for run in log.runs if run.group == task)
            if sum(run.success is True for run in runs) < least or not actions:
                continue
            try:
                model = LogModel(EVENTS).fit(RunLog(runs))
            except ValueError:  # its successes call no tool
                continue
            road = model.roads_[0]
            goals = Counter(
                model.symbols_[e] for e, s in zip(road.events, road.shares, strict=True) if s >= 0.5
            )
            good += (goals & actions).total()
            found += goals.total()
            wanted += actions.total()
            tasks += 1
        out[f"tasks with {least} or more successes"] = {
            "tasks": tasks,
            "subgoals": found,
            "actions": wanted,
            "both": good,
            "precision": good / found if found else None,
            "recall": good / wanted if wanted else None,
        }
    return out


def main() -> None:
    """Measure, show, and write."""
    parser = argparse.ArgumentParser(description="AUC on runs of tau-bench")
    parser.add_argument("path", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    given = parser.parse_args()
    log = read_log(given.path)
    table = auc_table(log, given.repeats)
    subgoals = recovered(given.path, log)
    print(f"{'score':14} {'AUC':>6} {'least':>6} {'most':>6}")
    for name, row in table.items():
        print(f"{name:14} {row['auc']:6.3f} {row['least']:6.3f} {row['most']:6.3f}")
    for name, row in subgoals.items():
        print(
            f"{name} ({row['tasks']}): precision {row['precision']:.2f}, recall {row['recall']:.2f}"
        )
    write_json(given.json, {"log": repr(log), "auc": table, "subgoals": subgoals})


if __name__ == "__main__":
    main()
