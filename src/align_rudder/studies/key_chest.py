"""Key-event detection on KeyChest: does the redistributed reward point at key and chest?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from matplotlib.figure import Figure

from align_rudder._warnings import AlignRudderWarning
from align_rudder.episodes import Episode
from align_rudder.events import DeltaEvents, StateEvents
from align_rudder.model import AlignRudder
from align_rudder.studies import paper
from align_rudder.studies.rooms.tables import Table
from align_rudder.tasks import KeyChestEnv
from align_rudder.tasks.mdp import rollout

__all__ = ["DEMOS", "MODELS", "Detection", "detect", "detection_figure", "detection_table"]

DEMOS = (2, 5, 10)
TRIALS = 10
TESTS = 1000
_EXPLORATION = 0.2


class Detection(NamedTuple):
    """A finished trial.

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

    @property
    def key(self) -> tuple[str, int, int, int]:
        """Model, training episodes, seed and test episodes."""
        return self[:4]

    @classmethod
    def columns(cls) -> list[str]:
        """Return the names of the values."""
        return list(cls._fields)

    def row(self) -> list[str]:
        """Return the values as text."""
        return [*map(str, self[:4]), f"{self.detected:.6f}", f"{self.flagged:.6f}"]

    @classmethod
    def parse(cls, row: dict[str, str]) -> Self:
        """Return the trial of a line."""
        return cls(
            row["model"],
            int(row["demos"]),
            int(row["seed"]),
            int(row["tests"]),
            float(row["detected"]),
            float(row["flagged"]),
        )


def _lstm(demos: Sequence[Episode], random: Sequence[Episode], seed: int) -> Any:
    from align_rudder.baselines.lstm import LstmRudder

    return LstmRudder(updates=100, seed=seed).fit(demos, random)


Fit = Callable[[Sequence[Episode], Sequence[Episode], int], Any]

MODELS: dict[str, tuple[str, Fit]] = {
    "alignment": (
        "alignment, state differences, large clusters removed",
        lambda demos, _, __: AlignRudder(DeltaEvents(max_share=0.25), strategies=1).fit(demos),
    ),
    "alignment-all": (
        "alignment, state differences",
        lambda demos, _, __: AlignRudder(DeltaEvents(), strategies=1).fit(demos),
    ),
    "alignment-states": (
        "alignment, clusters of states",
        lambda demos, _, __: AlignRudder(StateEvents(max_events=15), strategies=1).fit(demos),
    ),
    "lstm": ("LSTM (RUDDER)", _lstm),
}


def key_steps(episode: Episode) -> np.ndarray:
    """Return the steps that take the key or open the chest."""
    found = np.diff(np.asarray(episode.observations)[:, 1:], axis=0)
    return np.flatnonzero((found > 0).any(axis=1))


def detect(name: str, demos: int, seed: int, tests: int = TESTS) -> Detection:
    """Train a model on some demonstrations and count what it detects in other episodes.

    Test episodes are those of the policy of the demonstrations, failed ones included. The LSTM,
    which needs a contrast, gets as many random episodes in addition.
    """
    env = KeyChestEnv()
    train = env.demonstrations(demos, seed)
    rng = np.random.default_rng([seed, 1])
    policy, chance = env.optimal_policy(), np.zeros(env.mdp.n_states, int)
    random = [env.observed(rollout(env.mdp, chance, rng, 1.0)) for _ in range(demos)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlignRudderWarning)  # "no strategy" is a result, too
        model = MODELS[name][1](train, random, seed)
    found = others = keys = false = 0
    for _ in range(tests):
        episode = env.observed(rollout(env.mdp, policy, rng, _EXPLORATION))
        rewards = model.redistribute(episode).rewards
        flags = rewards > rewards.mean()
        at = key_steps(episode)
        found, keys = found + int(flags[at].sum()), keys + len(at)
        false += int(flags.sum() - flags[at].sum())
        others += len(flags) - len(at)
    return Detection(name, demos, seed, tests, round(found / keys, 6), round(false / others, 6))


def _means(found: Sequence[Detection], name: str, demos: int) -> tuple[float, float]:
    chosen = [d for d in found if d.model == name and d.demos == demos]
    return (
        float(np.mean([d.detected for d in chosen])),
        float(np.mean([d.flagged for d in chosen])),
    )


def detection_table(found: Sequence[Detection]) -> Table:
    """Return detection rates and false positives by model and training episodes."""
    demos = sorted({d.demos for d in found})
    rows = []
    for name in dict.fromkeys(d.model for d in found):
        values = [_means(found, name, n) for n in demos]
        average = tuple(np.mean(values, axis=0))
        published = paper.DETECTION.get(name)
        rows.append(
            [
                MODELS[name][0],
                *(f"{hit:.2f} / {false:.2f}" for hit, false in (*values, average)),
                f"{published:.2f}" if published else "–",
            ]
        )
    trials = len({d.seed for d in found})
    tests = max((d.tests for d in found), default=0)
    return Table(
        f"Key events detected / other steps flagged ({trials} trials, {tests:,} test episodes)",
        ["training episodes", *map(str, demos), "mean", "paper, detected"],
        rows,
    )


def detection_figure(found: Sequence[Detection]) -> Figure:
    """Return bars of the detection rate and of the false positives."""
    demos = sorted({d.demos for d in found})
    names = list(dict.fromkeys(d.model for d in found))
    colors = dict(zip(MODELS, ("#D55E00", "#E69F00", "#999999", "#56B4E9"), strict=True))
    figure = Figure(figsize=(7.6, 3.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, column, title in (
        (axes[0], 0, "key events detected"),
        (axes[1], 1, "other steps flagged"),
    ):
        for i, name in enumerate(names):
            values = [_means(found, name, n)[column] for n in demos]
            spread = [
                np.std(
                    [
                        (d.detected, d.flagged)[column]
                        for d in found
                        if d.model == name and d.demos == n
                    ]
                )
                for n in demos
            ]
            x = np.arange(len(demos)) + (i - (len(names) - 1) / 2) * 0.8 / len(names)
            ax.bar(
                x,
                values,
                0.8 / len(names),
                yerr=spread,
                color=colors[name],
                error_kw={"lw": 0.8},
                label=MODELS[name][0],
            )
        ax.set_xticks(range(len(demos)), [str(n) for n in demos])
        ax.set(xlabel="training episodes", ylim=(0, 1.05))
        ax.set_title(title, fontsize=10, loc="left")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("share, mean ± deviation")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure
