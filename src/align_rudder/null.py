"""(II) The null: what sequences look like where nobody follows a strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from align_rudder._compile import njit
from align_rudder.events import Encoded
from align_rudder.scoring import background

__all__ = ["Chance", "Null", "directedness", "mixed_background", "renumbered"]

_MOST_KINDS = 64  # with more kinds of event, transitions are too rare to be counted
_SHARE_OF_DEMONSTRATIONS = 0.1


def mixed_background(
    sequences: Sequence[np.ndarray], random_counts: np.ndarray | None, n_events: int
) -> np.ndarray:
    """Return p: how often events are in the demonstrations, or where nobody knows the task.

    Args:
        sequences: Event ids of the demonstrations.
        random_counts: How often each event occurs in random and failed episodes (n,); None if
            there are none.
        n_events: Number of events.

    Notes:
        p = (1 − w) p_random + w p_demonstrations with w = 0.1: what a random policy does all the
        time scores little, and what it never does scores much, but not without bounds.
    """
    p = background(sequences, n_events)
    if random_counts is None or not random_counts.sum():
        return p
    w = _SHARE_OF_DEMONSTRATIONS
    return (1 - w) * random_counts / random_counts.sum() + w * p


def directedness(sequences: Sequence[np.ndarray]) -> float:
    """Return how far sequences never go back: Σ |n_ij − n_ji| / Σ n_ij over each one's transitions.

    A random walk goes back as often as forth and has a small value; where each event follows the
    one before with a purpose, or all are drawn at random from many kinds, it is near 1.
    """
    net, moves = _net_moves(*_chained(sequences))
    return net / moves if moves else 1.0


@njit(cache=True)
def _net_moves(flat, ends):
    """Return Σ |n_ij − n_ji| and Σ n_ij over the transitions i ≠ j of each sequence."""
    net = moves = begin = 0
    kinds = flat.max() + 1 if len(flat) else 1
    for end in ends:
        a, b = flat[begin:end], flat[begin + 1 : end + 1]
        ways = np.sort((np.minimum(a, b) * kinds + np.maximum(a, b)) * 2 + (a < b))
        begin, balance = end + 1, 0
        for k in range(len(ways)):
            pair = ways[k] // 2
            if pair // kinds == pair % kinds:
                continue
            moves += 1
            balance += 1 if ways[k] % 2 else -1
            if k + 1 == len(ways) or ways[k + 1] // 2 != pair:
                net += abs(balance)
                balance = 0
    return net, moves


def _chained(sequences: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return sequences one behind the other, and where each ends; empty ones are left out."""
    lengths = np.array([len(s) for s in sequences if len(s)], int)
    return np.concatenate([np.empty(0, np.int64), *sequences]), np.cumsum(lengths) - 1


@njit(cache=True)
def _counts(flat, ends, n):
    """Return how often each event comes first, and how often each comes after each other one."""
    first, counts, begin = np.zeros(n), np.zeros((n, n)), 0
    for end in ends:
        first[flat[begin]] += 1
        for t in range(begin, end):
            counts[flat[t], flat[t + 1]] += 1
        begin = end + 1
    return first, counts


def renumbered(encoded: Encoded, old: int, new: int) -> Encoded:
    """Return an episode whose events `old`, the unknown one say, are numbered `new`."""
    start = new if encoded.start == old else encoded.start
    return Encoded(start, np.where(encoded.events == old, new, encoded.events))


@dataclass(frozen=True, eq=False)
class Chance:
    """Episodes that show what is done without knowing the task.

    Attributes:
        random: Episodes of a random policy.
        returns: Their returns.
        failures: Episodes that failed.
    """

    random: list[Encoded]
    returns: list[float]
    failures: list[Encoded]

    @classmethod
    def none(cls) -> Chance:
        """Return what there is where no such episode was given."""
        return cls([], [], [])

    def sequences(self, n_events: int) -> list[np.ndarray]:
        """Return the events of all of them that are in the demonstrations too."""
        found = [one.sequence for one in (*self.random, *self.failures)]
        return [sequence[sequence < n_events] for sequence in found]

    def counts(self, n_events: int) -> np.ndarray | None:
        """Return how often each event occurs in them, None if there are none."""
        if not self.random and not self.failures:
            return None
        found = np.concatenate([np.empty(0, np.int32), *self.sequences(n_events)])
        return np.bincount(found, minlength=n_events)

    def each(self, change: Callable[[Encoded], Encoded]) -> Chance:
        """Return the same with every episode changed."""
        random, failures = ([change(one) for one in some] for some in (self.random, self.failures))
        return Chance(random, self.returns, failures)

    def renumbered(self, old: int, new: int) -> Chance:
        """Return the same with the event `old` numbered `new`."""
        return self.each(lambda one: renumbered(one, old, new))


@dataclass(frozen=True, eq=False)
class Null:
    """A Markov chain over events, from which sequences without a strategy come.

    Attributes:
        start: Probability of each event to be the first (n,).
        transition: Probability of each event after each other one (n, n).
        p: Its frequency of each event (n,).
        recorded: Sequences of random episodes, where there are some; `sample` takes these.

    Notes:
        From random episodes, it is their chain. From the demonstrations alone, it is the chain
        that goes every way as often back as forth, with transition counts n_ij + n_ji: it has the
        local order of a random walk and its events, but no direction. Shuffles, which have no
        local order, take any two random walks for a strategy.
    """

    start: np.ndarray
    transition: np.ndarray
    p: np.ndarray
    recorded: Sequence[np.ndarray] = ()

    @classmethod
    def of(
        cls,
        sequences: Sequence[np.ndarray],
        p: np.ndarray,
        recorded: Sequence[np.ndarray] = (),
    ) -> Null:
        """Return the null of demonstrations.

        Args:
            sequences: Event ids of the demonstrations.
            p: Frequencies of the events, mixed in with the weight of one observation.
            recorded: Event ids of random and failed episodes.
        """
        recorded = [one for one in recorded if len(one)]
        n = len(p)
        p = np.where(p > 0, p, 0.0) + 1e-9
        p = p / p.sum()
        if n > _MOST_KINDS:
            return cls(p, np.tile(p, (n, 1)), p, recorded)
        first, counts = _counts(*_chained(recorded or sequences), n)
        first, counts = first + p, p + (counts if recorded else counts + counts.T)
        return cls(first / first.sum(), counts / counts.sum(axis=1, keepdims=True), p, recorded)

    def sample(self, lengths: Sequence[int], rng: np.random.Generator) -> list[np.ndarray]:
        """Return a sequence of each length, a recorded one at most so long where there are any."""
        if self.recorded:
            chosen = rng.integers(len(self.recorded), size=len(lengths))
            return [
                np.asarray(self.recorded[k][:length], np.int32)
                for k, length in zip(chosen, lengths, strict=True)
            ]
        first, steps = np.cumsum(self.start), np.cumsum(self.transition, axis=1)
        longest, last = max(lengths, default=0), len(self.p) - 1
        draws = rng.random((longest, len(lengths)))
        out = np.empty((longest, len(lengths)), np.int32)
        for t in range(longest):
            limits = first[None] if t == 0 else steps[out[t - 1]]
            out[t] = np.minimum((limits < draws[t, :, None]).sum(axis=1), last)
        return [out[:length, i].copy() for i, length in enumerate(lengths)]
