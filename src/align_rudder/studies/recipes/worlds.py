"""Layouts, logs and models of recipes; kept for a while, as every method needs the same ones."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from align_rudder._warnings import AlignRudderWarning
from align_rudder.baselines.gail_events import remembered_pairs
from align_rudder.model import AlignRudder
from align_rudder.presets import IN_ORDER
from align_rudder.sequences import index_symbols
from align_rudder.studies.recipes.settings import Setting
from align_rudder.subsequence import central_subsequence, common_subsequence
from align_rudder.tasks import RecipesEnv
from align_rudder.tasks.mdp import TabularMDP, remembering
from align_rudder.undo import Undo

__all__ = [
    "environment",
    "in_common",
    "in_order",
    "logs_of",
    "median_of",
    "model_of",
    "recall",
    "stage_pairs",
]


@lru_cache(maxsize=256)
def _layout(
    length: int, wrong: str, seed: int, log: int = -1, hidden: bool = True, pace: int = 25
) -> RecipesEnv:
    """Return the layout that is learned, or that of a log of the same recipe."""
    return RecipesEnv(
        length,
        seed=seed if log < 0 else [seed, log],
        recipe_seed=seed,
        wrong=wrong,
        hidden=hidden,
        horizon=pace * length,
    )


def environment(setting: Setting, seed: int, hidden: bool = True) -> RecipesEnv:
    """Return the layout that is learned."""
    return _layout(setting.length, setting.wrong, seed, hidden=hidden, pace=setting.pace)


@lru_cache(maxsize=4096)
def _log(length: int, wrong: str, seed: int, log: int, detours: float) -> tuple[str, ...]:
    return tuple(_layout(length, wrong, seed, log).log(log, detours))


def logs_of(setting: Setting, seed: int) -> list[tuple[str, ...]]:
    """Return the logs of a task, each of another layout; the first of more are those of fewer.

    Each event of a log is lost with the probability `missing`; the last `foreign` logs hold their
    events in random order.
    """
    task, logs = (setting.length, setting.wrong, seed), []
    for j in range(setting.logs):
        log = _log(*task, j, setting.detours)
        rng = np.random.default_rng([seed, j, 1])
        log = tuple(event for event, x in zip(log, rng.random(len(log))) if x >= setting.missing)
        if j >= setting.logs - setting.foreign:
            log = tuple(log[t] for t in rng.permutation(len(log)))
        logs.append(log)
    return logs


@lru_cache(maxsize=128)
def _model(logs: tuple[tuple[str, ...], ...], undo: tuple[tuple[str, str], ...]) -> AlignRudder:
    with warnings.catch_warnings(action="ignore", category=AlignRudderWarning):
        return AlignRudder(undo=dict(undo) or None).fit_events(logs)


def model_of(setting: Setting, seed: int) -> AlignRudder:
    """Return the library's model of the logs of a task."""
    undo = environment(setting, seed).undo
    return _model(tuple(logs_of(setting, seed)), tuple(undo.items()))


def in_common(logs: Sequence[Sequence[str]]) -> list[str]:
    """Return a long sequence that every log holds in this order.

    Example:
        >>> in_common([["key", "cat", "door"], ["lamp", "key", "door"]])
        ['key', 'door']
    """
    ids, symbols = index_symbols(logs)
    return [logs[0][int(t)] for t in common_subsequence(ids, len(symbols))[0]]


def median_of(logs: Sequence[Sequence[str]], share: float = 0.5) -> list[str]:
    """Return a sequence that half of the logs hold in this order: their median string.

    Example:
        >>> median_of([["key", "door"], ["lamp", "key", "door"], ["key", "cat", "door"]])
        ['key', 'door']
    """
    ids, symbols = index_symbols(logs)
    places = central_subsequence(ids, len(symbols), share)
    holders = (places >= 0).argmax(axis=0)
    return [logs[int(i)][int(places[i, k])] for k, i in enumerate(holders)]


def in_order(log: Sequence[str], undo: Undo | None = None) -> AlignRudder:
    """Return a model of a single log, which pays the next event of it and no other.

    Example:
        >>> model = in_order(["key", "door", "chest"])
        >>> rr = model.redistribute_events(["door", "key", "chest", "door", "chest"], ret=1.0)
        >>> (rr.rewards > 0).tolist()
        [False, True, False, True, True]
    """
    model = AlignRudder(undo=undo, **IN_ORDER)
    with warnings.catch_warnings(action="ignore", category=AlignRudderWarning):
        return model.fit_events([log, log])


@lru_cache(maxsize=64)
def _recall(length: int, wrong: str, seed: int, pace: int) -> TabularMDP:
    return remembering(_layout(length, wrong, seed, pace=pace).mdp)


def recall(setting: Setting, seed: int) -> TabularMDP:
    """Return the table of a task for an agent that remembers the last event."""
    return _recall(setting.length, setting.wrong, seed, setting.pace)


def stage_pairs(env: RecipesEnv, log: Sequence[str]) -> np.ndarray:
    """Return each event of a log with how many items were right before it (T, 2)."""
    events = remembered_pairs(log, env.symbols)[:, 1]
    return np.stack([env.stages(log)[:-1], events], axis=1)
