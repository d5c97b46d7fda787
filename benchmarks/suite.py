"""Demonstrations generated from a known strategy, and how much of it an alignment recovers.

A strategy is a list of key events in fixed order, the columns of the truth. Each demonstration
holds them in that order, except those it drops or swaps, with noise events before, between and
after them. `truth` marks for each event the key column it stems from, or -1 for noise.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

__all__ = ["DataSet", "Setting", "column_recovery", "fixed_suite", "generate"]

NOISE = -1


def generate(
    rng: np.random.Generator,
    n_sequences: int,
    n_keys: int,
    n_noise_symbols: int,
    noise_per_gap: float,
    *,
    n_key_symbols: int | None = None,
    drop: float = 0.1,
    swap: float = 0.0,
    shared_noise: float = 0.0,
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return demonstrations of one strategy and, for each event, its key column or -1.

    Args:
        rng: Source of all randomness.
        n_sequences: Number of demonstrations.
        n_keys: Number of key events in the strategy.
        n_noise_symbols: Number of symbols that are only noise, the ids after the key symbols.
        noise_per_gap: Mean number of noise events before, between and after key events (Poisson).
        n_key_symbols: Number of symbols that key events are drawn from, each at least once; below
            `n_keys`, symbols occur repeatedly in the strategy. All distinct if None.
        drop: Probability that a demonstration lacks a key event.
        swap: Probability that a demonstration has a key event after its successor.
        shared_noise: Probability that a noise event is drawn from the key symbols.

    Returns:
        The demonstrations as event ids and the key column of each event, -1 for noise.

    Example:
        >>> sequences, truth = generate(np.random.default_rng(0), 2, 3, 1, 0.5, drop=0.0)
        >>> [t[t >= 0].tolist() for t in truth]
        [[0, 1, 2], [0, 1, 2]]
    """
    n_key_symbols = n_keys if n_key_symbols is None else n_key_symbols
    if not 1 <= n_key_symbols <= n_keys:
        raise ValueError(
            f"n_key_symbols={n_key_symbols} must be between 1 and n_keys={n_keys}, so that each "
            "symbol occurs in the strategy"
        )
    if n_noise_symbols == 0 and shared_noise < 1:
        raise ValueError("noise needs symbols: give n_noise_symbols > 0 or shared_noise=1")
    repeats = rng.integers(n_key_symbols, size=n_keys - n_key_symbols)
    strategy = rng.permutation(np.concatenate([np.arange(n_key_symbols), repeats]))
    sequences, truth = [], []
    for _ in range(n_sequences):
        columns = np.arange(n_keys)
        for j in np.flatnonzero(rng.random(n_keys - 1) < swap):
            columns[[j, j + 1]] = columns[[j + 1, j]]
        columns = columns[rng.random(n_keys) >= drop]
        n_noise = rng.poisson(noise_per_gap, size=len(columns) + 1)
        marks = np.insert(columns, np.repeat(np.arange(len(columns) + 1), n_noise), NOISE)
        noise = n_key_symbols + rng.integers(max(n_noise_symbols, 1), size=len(marks))
        shared = rng.random(len(marks)) < shared_noise
        noise[shared] = rng.integers(n_key_symbols, size=shared.sum())
        sequences.append(np.where(marks >= 0, strategy[marks], noise).astype(np.int32))
        truth.append(marks)
    return sequences, truth


@dataclass(frozen=True)
class Setting:
    """Arguments of `generate` that the sets of the suite differ in, besides their size."""

    n_keys: int
    n_noise_symbols: int
    noise_per_gap: float
    n_key_symbols: int | None = None
    drop: float = 0.1
    swap: float = 0.0
    shared_noise: float = 0.0


@dataclass(frozen=True)
class DataSet:
    """Demonstrations with their truth.

    Attributes:
        name: Setting and number of demonstrations.
        sequences: Event ids of each demonstration.
        truth: The key column of each event, -1 for noise.
        n_symbols: Number of symbols, of which some may not occur.
    """

    name: str
    sequences: list[np.ndarray]
    truth: list[np.ndarray]
    n_symbols: int


SETTINGS = {
    "plain": Setting(12, 8, 2.0),
    "dropped": Setting(14, 6, 3.0, drop=0.3),
    "noisy": Setting(10, 10, 4.5),
    "few-noise-symbols": Setting(12, 2, 2.5),
    "repeated": Setting(16, 8, 2.0, n_key_symbols=6),
    "shared": Setting(12, 8, 2.0, shared_noise=0.4),
    "all-shared": Setting(14, 0, 2.0, n_key_symbols=10, drop=0.15, shared_noise=1.0),
    "repeated-shared": Setting(20, 6, 1.5, n_key_symbols=8, shared_noise=0.4),
    "swapped": Setting(14, 6, 2.0, swap=0.15),
    "everything": Setting(18, 6, 2.0, n_key_symbols=9, drop=0.2, swap=0.1, shared_noise=0.3),
}


def fixed_suite() -> list[DataSet]:
    """Return the 40 sets on which engines are compared: each setting with 2, 5, 10, 20 rows.

    At most 20 symbols, 20 to 80 events in a demonstration; always the same data.
    """
    sets = []
    for s, (name, setting) in enumerate(SETTINGS.items()):
        n_symbols = (setting.n_key_symbols or setting.n_keys) + setting.n_noise_symbols
        for n in (2, 5, 10, 20):
            rng = np.random.default_rng([s, n])
            sequences, truth = generate(rng, n, **asdict(setting))
            sets.append(DataSet(f"{name}-{n}", sequences, truth, n_symbols))
    return sets


def column_recovery(matrix: np.ndarray, truth: list[np.ndarray]) -> float:
    """Return the share of true pairs that stand in the same column of an alignment.

    A true pair is an event in each of two sequences that stem from the same key column.

    Args:
        matrix: The alignment (N, L) with gaps -1.
        truth: The key column of each event of each sequence, -1 for noise.

    Example:
        >>> matrix = np.array([[0, 1, -1, 2], [0, -1, 1, 2]])
        >>> column_recovery(matrix, [np.array([0, 1, 2]), np.array([0, 1, 2])])
        0.6666666666666666
    """
    keys = np.concatenate(truth)
    columns = np.concatenate([np.flatnonzero(row >= 0) for row in matrix])
    of_key = keys >= 0
    # n rows in the same key column (and, for pairs found, in the same column) are n(n−1)/2 pairs.
    _, true = np.unique(keys[of_key], return_counts=True)
    _, found = np.unique(np.stack([keys[of_key], columns[of_key]]), axis=1, return_counts=True)
    pairs = (true * (true - 1)).sum()
    return float((found * (found - 1)).sum() / pairs) if pairs else 1.0
