"""One trial, and the networks that trials of RUDDER need."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from align_rudder._warnings import AlignRudderWarning
from align_rudder.baselines.protocol import Protocol
from align_rudder.studies.rooms.methods import all_methods
from align_rudder.studies.rooms.settings import Setting, demonstrations, environment
from align_rudder.studies.rooms.store import TrialRecord

__all__ = ["CURVES", "curve_points", "run_trial"]

CURVES = 10
"""Of so many trials of a setting the learning curve is kept."""


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
    method = all_methods()[setting.method]
    options = {**parameters}
    if method.network is not None:
        options = {k: v for k, v in options.items() if k not in method.network}
        options["model"] = network
    if method.learn.__name__ == "learn_align_rudder":
        options["max_events"] = setting.max_events
    mdp = environment(setting.rooms, setting.slip).mdp
    demos = demonstrations(setting, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlignRudderWarning)  # of many events, which were asked for
        result = method.learn(mdp, demos, seed=seed, protocol=protocol, **options)
    kept = curve_points(len(result.curve)) if seed < CURVES else []
    curve = tuple(round(float(result.curve[i]), 3) for i in kept)
    return TrialRecord(setting, seed, result.episodes, result.solved, result.steps, curve)


def curve_points(n: int) -> list[int]:
    """Return which of n evaluations are kept: the first 50, then every 10th, and the last."""
    return sorted({*range(min(n, 50)), *range(59, n, 10), n - 1})
