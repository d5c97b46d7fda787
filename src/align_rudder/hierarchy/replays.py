"""Recorded episodes that came to a sub-task, to begin there again where states cannot be stored."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from align_rudder.files import Array, Format, Many, Maybe, Text, Whole

if TYPE_CHECKING:
    from align_rudder.hierarchy.external import TrackedEnv

__all__ = ["Recording", "Replays"]

Recording = tuple[int, list[Any]]
"""The seed of an episode and the choices that were made."""

_REPLAYS = Format(
    "align-rudder-replays",
    1,
    header={
        "seeds": Many(Many(Whole(0, 2**63 - 1))),
        "lengths": Many(Many(Whole())),
        "heads": Maybe(Many(Text())),
    },
    groups=("choices",),
    remedy="put back a copy, or delete it: recordings are then made anew",
)


class Replays:
    """Episodes that came to a sub-task, to begin there again.

    Most successes begin at a recording, so that one world could soon crowd out the others: all
    worlds are as likely, and those with many recordings lose them first.

    Args:
        n_subtasks: Number of sub-tasks.
        size: How many are kept for each.
    """

    def __init__(self, n_subtasks: int, size: int = 50) -> None:
        self.size = size
        self.kept: list[list[Recording]] = [[] for _ in range(n_subtasks)]
        self._news: list[tuple[int, Recording, bool]] = []

    def add(self, env: TrackedEnv) -> None:
        """Keep an episode that has just come to a sub-task."""
        if env.subtask < len(self.kept) and not env.ended:
            self._add(env.subtask, (env.seed, list(env.done)))

    def _add(self, subtask: int, recording: Recording) -> None:
        kept = self.kept[subtask]
        kept.append(recording)
        self._news.append((subtask, recording, True))
        if len(kept) > self.size:
            seeds = [seed for seed, _ in kept]
            del kept[seeds.index(max(seeds, key=seeds.count))]  # the oldest of that world

    def branch(self) -> Replays:
        """Return a copy, for one of several environments that play at the same time."""
        other = Replays(len(self.kept), self.size)
        other.kept = [list(kept) for kept in self.kept]
        return other

    def take(self, other: Replays) -> None:
        """Add the recordings of another training that are not among these."""
        for subtask, kept in enumerate(other.kept):
            for recording in kept:
                if recording not in self.kept[subtask]:
                    self._add(subtask, recording)

    def join(self, branches: Iterable[Replays]) -> None:
        """Take over what copies learned, in their order, whichever of them was first."""
        for branch in branches:
            for subtask, recording, added in branch._news:
                if added:
                    self._add(subtask, recording)
                elif recording in self.kept[subtask]:
                    self.kept[subtask].remove(recording)
            branch._news.clear()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as one npz file; choices must be whole numbers, or dicts of such."""
        seeds = [[seed for seed, _ in kept] for kept in self.kept]
        lengths = [[len(done) for _, done in kept] for kept in self.kept]
        choices = [choice for kept in self.kept for _, done in kept for choice in done]
        first = choices[0] if choices else {}
        heads = list(first) if isinstance(first, dict) else None
        rows = choices if heads is None else [[c[head] for head in heads] for c in choices]
        header = {"seeds": seeds, "lengths": lengths, "heads": heads}
        _REPLAYS.save(path, header, {"choices": np.array(rows, np.int16)})

    @classmethod
    def load(cls, path: str | os.PathLike[str], n_subtasks: int, size: int = 50) -> Replays:
        """Load what `save` wrote."""
        with _REPLAYS.open(path) as contents:
            header = contents.header
            heads, seeds, lengths = (header[name] for name in ("heads", "seeds", "lengths"))
            if len(seeds) != n_subtasks:
                raise ValueError(
                    f"{path} has recordings of {len(seeds)} sub-tasks; {n_subtasks} are needed: it "
                    "belongs to another model"
                )
            if [len(of) for of in seeds] != [len(of) for of in lengths]:
                raise ValueError("its recordings have not one seed and one length each")
            steps = sum(length for of in lengths for length in of)
            # Of no recordings at all, nobody knows how many heads there are.
            shape = (steps,) if heads is None or not steps else (steps, len(heads))
            kind = Array(*shape, kinds="iuf" if not steps else "iu")
            rows = contents.checked("", {"choices": kind})["choices"].tolist()
        choices = rows if heads is None else [dict(zip(heads, row, strict=True)) for row in rows]
        replays, rest = cls(n_subtasks, size), iter(choices)
        for kept, *its in zip(replays.kept, seeds, lengths, strict=True):
            kept += [(seed, list(islice(rest, n))) for seed, n in zip(*its, strict=True)]
        return replays

    def begin(self, env: TrackedEnv, subtask: int, rng: np.random.Generator) -> bool:
        """Begin at a sub-task by replaying; return whether that worked."""
        if subtask == 0:
            env.begin(int(rng.integers(2**31)))
            return True
        if not self.kept[subtask]:
            return False
        seeds = [seed for seed, _ in self.kept[subtask]]
        world = rng.choice(sorted(set(seeds)))
        index = int(rng.choice(np.flatnonzero(np.array(seeds) == world)))
        seed, choices = self.kept[subtask][index]
        env.begin(seed)
        with env.counted_as("replayed"):
            for choice in choices:
                env.step(choice)
                if env.ended:
                    break
        if env.lost:
            return False  # nothing is said of the recording
        if env.ended or env.subtask != subtask:
            # The environment is not as repeatable as it should be: this recording is of no use.
            self._news.append((subtask, self.kept[subtask].pop(index), False))
            return False
        env.idle = 0
        return True
