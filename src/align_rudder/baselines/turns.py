"""Models that take turns: where none of an agent's episodes succeeds, the next one pays it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from align_rudder.baselines.protocol import Result, Trial
from align_rudder.baselines.q_tables import Tables

__all__ = ["Turns"]

_FIRST_EVERY = 3  # turns
_EARNED = 0.1  # of the way to the target: an evaluation that earns so much is no failure


@dataclass
class Turns:
    """Learns with one model after another, each with tables of its own.

    What a model has taught is kept for its next turn. The first, which is the best guess, has every
    third: where it is right and the task takes long to learn, the others cost it little.

    Attributes:
        tables: Tables of the models that had a turn, in their order.
        others: Those of the models that had none yet.
        each: Episodes without a success after which the next one has its turn.
        floor: Return of an episode that failed.
        target: Return at which the trial has succeeded.
        turn: Index of the model whose turn it is.
        failed: Its episodes without a success.
        given: Turns so far.
        latest: Index of the model that had the last turn, apart from the first's.
    """

    tables: list[Tables]
    others: Iterator[Tables]
    each: int
    floor: float
    target: float
    turn: int = 0
    failed: int = 0
    given: int = 1
    latest: int = 0

    def train(self, *arguments: Any) -> int:
        """Learn for some more episodes with the model whose turn it is; return the steps taken."""
        if self.failed >= self.each:
            self._go_on()
        self.failed += arguments[2]
        return self.tables[self.turn].train(*arguments)

    def judge(self, *arguments: Any) -> float:
        """Return the mean return of its policy; a success lets it keep its turn."""
        found = self.tables[self.turn].judge(*arguments)
        if found >= self.floor + _EARNED * (self.target - self.floor):
            self.failed = 0
        return found

    def _go_on(self) -> None:
        self.failed, self.turn = 0, 0
        self.given += 1
        if self.given % _FIRST_EVERY != 1:
            following = next(self.others, None)
            if following is not None:
                self.tables.append(following)
            rest = max(len(self.tables) - 1, 1)
            self.turn = self.latest = (self.latest % rest + 1) % len(self.tables)

    def run(self, trial: Trial) -> Result:
        """Run a trial; the result has the values of the model that had the last turn."""
        found = trial.run(np.empty(0), self.train, self.judge)
        return Result(
            found.episodes, found.solved, found.curve, found.steps, self.tables[self.turn].q
        )
