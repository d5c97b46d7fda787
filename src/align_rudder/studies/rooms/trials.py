"""One trial of a learner, and what is kept of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, ClassVar, Self

from align_rudder._warnings import AlignRudderWarning
from align_rudder.baselines.protocol import Protocol
from align_rudder.files import Kind, Number, Text, Whole
from align_rudder.studies.rooms.methods import METHODS
from align_rudder.studies.rooms.settings import Setting, demonstrations, environment
from align_rudder.studies.trials import episodes_fault, values_in

__all__ = ["CURVES", "TrialRecord", "curve_points", "run_trial"]

CURVES = 10
"""Of so many trials of a setting the learning curve is kept."""


@dataclass(frozen=True)
class TrialRecord:
    """A finished trial of a learner.

    Attributes:
        setting: Its setting.
        seed: Its seed.
        episodes: Episodes to the target, or the cap.
        solved: Whether the target was reached.
        steps: Environment steps of learning.
        curve: Mean return at some evaluations, kept for some trials only.
    """

    setting: Setting
    seed: int
    episodes: int
    solved: bool
    steps: int
    curve: tuple[float, ...] = ()

    COLUMNS: ClassVar[Mapping[str, Kind]] = {
        **Setting.COLUMNS,
        "seed": Whole(0, 2**53),
        "episodes": Whole(0, 2**53),
        "solved": Whole(0, 1),
        "steps": Whole(0, 2**53),
        "curve": Text(),
    }

    @property
    def key(self) -> tuple[Setting, int]:
        """Setting and seed."""
        return self.setting, self.seed

    def row(self) -> list[str]:
        """Return the values as text."""
        numbers = (self.seed, self.episodes, int(self.solved), self.steps)
        curve = " ".join(f"{x:g}" for x in self.curve)
        return [*map(str, (*astuple(self.setting), *numbers)), curve]

    def fault(self, config: Mapping[str, Any]) -> str:
        """Return why no trial of a configuration ends like this; "" if one may."""
        return episodes_fault(self.episodes, self.solved, self.steps, config.get("protocol"))

    @classmethod
    def parse(cls, row: dict[str, str]) -> Self:
        """Return the trial of a row."""
        *setting, seed, episodes, solved, steps, points = values_in(row, cls.COLUMNS)
        curve = tuple(Number().check(float(x), "curve") for x in points.split())
        return cls(Setting(*setting), seed, episodes, solved == 1, steps, curve)


def run_trial(
    setting: Setting,
    seed: int,
    parameters: Mapping[str, Any],
    protocol: Protocol,
    network: Any = None,
) -> TrialRecord:
    """Run one trial; everything in it follows from setting, seed and parameters.

    Args:
        setting: The setting.
        seed: The seed of demonstrations and learner.
        parameters: Arguments of the learner.
        protocol: How the trial is run and judged.
        network: The trained network, for a method that has one.
    """
    method = METHODS[setting.method]
    options = {**parameters}
    if method.network is not None:
        options = {k: v for k, v in options.items() if k not in method.network}
        options["model"] = network
    if method.learner in ("learn_align_rudder", "learn_unordered"):
        options["max_events"] = setting.max_events
    mdp = environment(setting.rooms, setting.slip).mdp
    demos = demonstrations(setting, seed)
    # Many events were asked for, so that no warning of them is needed.
    with warnings.catch_warnings(action="ignore", category=AlignRudderWarning):
        result = method.learn(mdp, demos, seed=seed, protocol=protocol, **options)
    kept = curve_points(len(result.curve)) if seed < CURVES else []
    curve = tuple(round(float(result.curve[i]), 3) for i in kept)
    return TrialRecord(setting, seed, result.episodes, result.solved, result.steps, curve)


def curve_points(n: int) -> list[int]:
    """Return which of n evaluations are kept: the first 50, then every 10th, and the last."""
    return sorted({*range(min(n, 50)), *range(59, n, 10), n - 1})
