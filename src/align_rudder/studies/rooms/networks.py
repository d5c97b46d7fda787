"""The networks of RUDDER: trained for ten trials of a setting at once, stored until used."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from align_rudder._warnings import AlignRudderWarning
from align_rudder.baselines.lstm import LstmRudder
from align_rudder.baselines.rudder import random_episodes_of
from align_rudder.episodes import Episode
from align_rudder.studies.rooms.methods import METHODS
from align_rudder.studies.rooms.settings import NOISE, Setting, demonstrations, environment
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["BATCH", "load", "missing", "require_jax", "save", "small", "train"]

BATCH = 10
"""Trials whose networks are trained together: always seeds 0–9, 10–19 and so on, so that what a
trial gets does not depend on which other trials are still missing."""

Batch = tuple[Setting, int, Mapping[str, Any]]
Parameters = Callable[[Setting], Mapping[str, Any]]


def _network_parameters(setting: Setting, parameters: Mapping[str, Any]) -> dict[str, Any]:
    names = METHODS[setting.method].network or ()
    return {name: parameters[name] for name in names if name in parameters}


def _path(folder: Path, setting: Setting, seed: int, chosen: Mapping[str, Any]) -> Path:
    what = [setting.rooms, setting.slip, setting.demos, dict(chosen), seed]
    what += [setting.noise] * (setting.noise != NOISE)
    return folder / f"{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:24]}.npz"


def missing(
    todo: Sequence[tuple[Setting, int]],
    parameters: Parameters,
    folder: Path,
    others: Sequence[str] = (),
) -> list[Batch]:
    """Return the batches of networks that these trials need and that are not in the folder.

    Args:
        todo: The trials.
        parameters: Gives the learner's arguments for a setting.
        folder: Where networks are stored.
        others: Methods that would do without, for the message where they cannot be trained.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; a folder for networks is needed there. Move it away")
    out: dict[Path, Batch] = {}
    for setting, seed in todo:
        if METHODS[setting.method].network is None:
            continue
        chosen = _network_parameters(setting, parameters(setting))
        if not _path(folder, setting, seed, chosen).exists():
            first = seed - seed % BATCH
            out[_path(folder, setting, first, chosen)] = (setting, first, chosen)
    if out:
        require_jax(others)
    return list(out.values())


def require_jax(others: Sequence[str] = ()) -> None:
    """Raise an `ImportError` if networks cannot be trained, before any work is done.

    Args:
        others: Methods that do without.
    """
    if any(find_spec(name) is None for name in ("jax", "equinox", "optax")):
        instead = f", or leave RUDDER out: --methods {' '.join(others)}" if others else ""
        raise ImportError(
            "RUDDER's networks need JAX, Equinox and Optax, the extra jax; in a clone: pip install "
            f"'.[jax]'{instead}"
        )


def train(
    setting: Setting, first: int, chosen: Mapping[str, Any]
) -> tuple[Batch, list[LstmRudder]]:
    """Train the networks of ten trials."""
    mdp = environment(setting.rooms, setting.slip).mdp
    options = dict(chosen)
    n_random = options.pop("random_episodes", 20)
    seeds = range(first, first + BATCH)
    data = [
        (demonstrations(setting, seed), random_episodes_of(mdp, n_random, seed)) for seed in seeds
    ]
    model = LstmRudder(max_steps=mdp.horizon, **options)
    return (setting, first, chosen), model.fit_many(data, list(seeds))


def small(mdp: TabularMDP, demos: Sequence[Episode]) -> LstmRudder:
    """Return a network after a single update, to compile the learner that uses it."""
    with warnings.catch_warnings(action="ignore", category=AlignRudderWarning):
        return LstmRudder(updates=1).fit(demos, random_episodes_of(mdp, 2, 0))


def save(folder: Path, batch: Batch, models: Sequence[LstmRudder]) -> None:
    """Store the networks of a batch."""
    folder.mkdir(exist_ok=True)
    setting, first, chosen = batch
    for i, model in enumerate(models):
        model.save(_path(folder, setting, first + i, chosen))


def load(
    folder: Path, setting: Setting, seed: int, parameters: Mapping[str, Any]
) -> LstmRudder | None:
    """Return the network of a trial, None for a method that has none."""
    if METHODS[setting.method].network is None:
        return None
    path = _path(folder, setting, seed, _network_parameters(setting, parameters))
    try:
        return LstmRudder.load(path)
    except ValueError as error:
        raise ValueError(f"{error}. Delete the file, and the network is trained again") from error
