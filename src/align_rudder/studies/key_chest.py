"""Key-event detection on KeyChest: does the redistributed reward point at key and chest?"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from matplotlib.figure import Figure

from align_rudder import events
from align_rudder._warnings import AlignRudderWarning
from align_rudder.baselines.lstm import LstmRudder
from align_rudder.episodes import Episode
from align_rudder.files import Kind, Number, Text, Whole
from align_rudder.model import AlignRudder
from align_rudder.presets import PAPER
from align_rudder.show.figures.colors import OKABE_ITO, legend_outside
from align_rudder.studies import paper
from align_rudder.studies.method import check_methods
from align_rudder.studies.report import Report
from align_rudder.studies.rooms.methods import KEY_CHEST, MODELS
from align_rudder.studies.rooms.networks import require_jax
from align_rudder.studies.tables import Table
from align_rudder.studies.trials import FORMAT, Scope, open_trials, values_in
from align_rudder.tasks import KeyChestEnv
from align_rudder.tasks.mdp import rollout

__all__ = [
    "CONFIG",
    "Detection",
    "detect",
    "detection_figure",
    "detection_table",
    "key_steps",
    "run_key_chest",
]

DEMOS = (2, 5, 10)
TRIALS = 10
TESTS = 1000
CONFIG = {"format": FORMAT, "study": KEY_CHEST}
_EXPLORATION = 0.2


@dataclass(frozen=True)
class Detection:
    """A finished trial of key-event detection.

    Attributes:
        model: Name of the model.
        demos: Training episodes.
        seed: Seed.
        tests: Test episodes.
        detected: Share of key events whose reward is above the episode's average.
        flagged: Share of the other steps whose reward is.
    """

    model: str
    demos: int
    seed: int
    tests: int
    detected: float
    flagged: float

    COLUMNS: ClassVar[Mapping[str, Kind]] = {
        "model": Text(),
        **dict.fromkeys(("demos", "seed", "tests"), Whole()),
        **dict.fromkeys(("detected", "flagged"), Number(0, 1)),
    }

    @property
    def key(self) -> tuple[str, int, int, int]:
        """Model, training episodes, seed and test episodes."""
        return self.model, self.demos, self.seed, self.tests

    def row(self) -> list[str]:
        """Return the values as text."""
        return [*map(str, self.key), f"{self.detected:.6f}", f"{self.flagged:.6f}"]

    def fault(self, config: Mapping[str, Any]) -> str:
        """Return why no trial of a configuration ends like this; here each one may."""
        return ""

    @classmethod
    def parse(cls, row: dict[str, str]) -> Self:
        """Return the trial of a line."""
        return cls(*values_in(row, cls.COLUMNS))


def _fitted(
    name: str, demos: Sequence[Episode], random: Sequence[Episode], seed: int
) -> AlignRudder | LstmRudder:
    """Return a model of demonstrations; the LSTM needs random episodes as well, for contrast."""
    if (chosen := MODELS[name].events) is None:
        return LstmRudder(updates=100, seed=seed).fit(demos, random)
    kind, options = chosen
    return AlignRudder(getattr(events, kind)(**options), strategies=1, **PAPER).fit(demos)


def key_steps(episode: Episode) -> np.ndarray:
    """Return the steps that take the key or open the chest."""
    found = np.diff(np.asarray(episode.observations)[:, 1:], axis=0)
    return np.flatnonzero((found > 0).any(axis=1))


def detect(name: str, demos: int, seed: int, tests: int = TESTS) -> Detection:
    """Train a model on some demonstrations and count what it detects in other episodes.

    Test episodes are those of the policy of the demonstrations, failed ones included.
    """
    env = KeyChestEnv()
    train = env.demonstrations(demos, seed)
    rng = np.random.default_rng([seed, 1])
    policy, chance = env.optimal_policy(), np.zeros(env.mdp.n_states, int)
    random = [env.observed(rollout(env.mdp, chance, rng, 1.0)) for _ in range(demos)]
    # "No strategy" is a result, too.
    with warnings.catch_warnings(action="ignore", category=AlignRudderWarning):
        model = _fitted(name, train, random, seed)
    counts = np.zeros(4, int)
    for _ in range(tests):
        episode = env.observed(rollout(env.mdp, policy, rng, _EXPLORATION))
        rewards = model.redistribute(episode).rewards
        flags = rewards > rewards.mean()
        at = key_steps(episode)
        counts += flags[at].sum(), len(at), flags.sum(), len(flags)
    found, keys, flagged, steps = counts.tolist()
    detected, false = found / keys, (flagged - found) / (steps - keys)
    return Detection(name, demos, seed, tests, round(detected, 6), round(false, 6))


def _cells(found: Sequence[Detection], name: str, demos: int) -> np.ndarray:
    """Return detected and flagged shares of the trials of a model, a row for each."""
    return np.array(
        [(d.detected, d.flagged) for d in found if d.model == name and d.demos == demos]
    )


def detection_table(found: Sequence[Detection]) -> Table:
    """Return detection rates and false positives by model and training episodes."""
    demos = sorted({d.demos for d in found})
    rows = []
    for name in dict.fromkeys(d.model for d in found):
        means = [_cells(found, name, n).mean(axis=0) for n in demos]
        shares = [f"{hit:.2f} / {false:.2f}" for hit, false in (*means, np.mean(means, axis=0))]
        published = paper.DETECTION.get(name)
        rows.append([MODELS[name].label, *shares, f"{published:.2f}" if published else "–"])
    trials = len({d.seed for d in found})
    tests = max((d.tests for d in found), default=0)
    size = f"{trials} trial{'s' * (trials != 1)}, {tests:,} test episodes"
    return Table(
        f"Key events detected / other steps flagged ({size})",
        ["training episodes", *map(str, demos), "mean", "paper, detected"],
        rows,
    )


def detection_figure(found: Sequence[Detection]) -> Figure:
    """Return bars of the detection rate and of the false positives."""
    demos = sorted({d.demos for d in found})
    names = list(dict.fromkeys(d.model for d in found))
    figure = Figure(figsize=(7.6, 3.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for column, title in enumerate(("key events detected", "other steps flagged")):
        ax = axes[column]
        for i, name in enumerate(names):
            cells = [_cells(found, name, n)[:, column] for n in demos]
            ax.bar(
                np.arange(len(demos)) + (i - (len(names) - 1) / 2) * 0.8 / len(names),
                [values.mean() for values in cells],
                0.8 / len(names),
                yerr=[values.std() for values in cells],
                color=OKABE_ITO[MODELS[name].color],
                error_kw={"lw": 0.8},
                label=MODELS[name].label,
            )
        ax.set_xticks(range(len(demos)), [str(n) for n in demos])
        ax.set(xlabel="training episodes", ylim=(0, 1.05))
        ax.set_title(title, fontsize=10, loc="left")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("share, mean ± deviation")
    legend_outside(figure, axes[0], 2)
    return figure


def run_key_chest(
    out: str | os.PathLike[str], scope: Scope | None = None, tests: int = TESTS
) -> Report:
    """Measure key-event detection of alignment and LSTM.

    Args:
        out: Folder of results; the study has a folder of its own in it.
        scope: How much of it is run, and where.
        tests: Test episodes of a trial.
    """
    scope = scope or Scope()
    models, demos = scope.methods or tuple(MODELS), tuple(dict.fromkeys(scope.demos or DEMOS))
    check_methods(models, MODELS)
    if min(demos) < 2:
        raise ValueError(f"{min(demos)} training episodes; an alignment needs at least 2")
    keys = [
        (m, n, seed, tests) for m in models for n in demos for seed in range(scope.trials or TRIALS)
    ]

    def check(todo: list[tuple[str, int, int, int]]) -> None:
        if any(MODELS[key[0]].events is None for key in todo):
            require_jax([name for name in models if MODELS[name].events is not None])

    with open_trials(Path(out) / KEY_CHEST, CONFIG, Detection) as store:
        store.complete(keys, lambda *key: (detect, key), scope.workers, scope.progress, check=check)
        shown = [store.found[key] for key in keys]
        tables, figures = [detection_table(shown)], {"detection": detection_figure(shown)}
        report = Report(tables, figures, [asdict(d) for d in shown])
        report.write(store.folder, partial=len(shown) < len(store.found))
    return report
