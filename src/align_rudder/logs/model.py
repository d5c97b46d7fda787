"""LogModel: roads of the successes, what tells failures from them, what every turn is worth."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, Self

import numpy as np

from align_rudder._estimator import Estimator
from align_rudder._warnings import warn
from align_rudder.data.logs import Entry, Run, RunLog, event_chooser
from align_rudder.data.logs.events import check_arguments
from align_rudder.data.logs.outcomes import why_none_succeeded
from align_rudder.logs import storage
from align_rudder.logs.chance import fit_chance, weights
from align_rudder.logs.contrast import contrast
from align_rudder.logs.divergence import Divergence, divergence_of
from align_rudder.logs.marks import Kinds
from align_rudder.logs.roads import Path, Road, best_path, counted, find_roads
from align_rudder.logs.turns import n_slots, outcome_of, settled, turn_shares
from align_rudder.logs.variants import Chosen, Variants, choose, outcomes_of, variants_of

__all__ = ["LogModel", "Reading"]


class Reading(NamedTuple):
    """What a model says of one run.

    Attributes:
        events: Its events and their messages.
        path: How it goes along its road.
        values: The chance of success before its first event, after each, and at its end (T + 2).
        divergence: Where it left the road; None if it did not.
    """

    events: Chosen
    path: Path
    values: np.ndarray
    divergence: Divergence | None


class LogModel(Estimator):
    """What the successful runs of a log have in common, and what tells failures from them.

    Args:
        events: What becomes an event: "tool", "tool:ARGUMENT", "tool+error", "message" … or a
            function of an `Entry`; see `align_rudder.data.logs.event_chooser`.
        per_group: Whether every task has roads of its own, from its successes. Failures of a task
            without any are placed on the road that fits them best and do not count.
        strategies: How many roads there are (of each task); None to find that.

    Attributes:
        symbols_: The symbol of each event id.
        roads_: The roads, the largest first: columns that successes have in common, in order.
        contrast_: What tells successes from failures.
        chance_: The chance of success from that.
        worth_: By how much successes return more than failures.
        variants_: The distinct sequences of the log, equal ones of a task once.
        outcomes_: How many successes and failures each task has.
        within_: Whether runs are compared within tasks: most have another of the same task.
        n_successes_: How many runs succeeded.
        n_failures_: How many failed.
        options_: How the log was read, which a file of the model keeps.

    Example:
        >>> from align_rudder.data.logs import Entry, Run, RunLog
        >>> def run(words, success):
        ...     entries = [Entry("activity", w, i) for i, w in enumerate(words.split())]
        ...     return Run(words, tuple(entries), success=success, ret=float(success))
        >>> good, bad = run("look read edit test", True), run("look edit test", False)
        >>> model = LogModel().fit(RunLog((good,) * 6 + (bad,) * 6))
        >>> [model.symbols_[e] for e in model.roads_[0].events]
        ['look', 'read', 'edit', 'test']
        >>> rewards = model.turn_rewards(bad)
        >>> int(np.argmin(rewards)), abs(round(sum(rewards), 9))
        (1, 0.0)
    """

    def __init__(
        self,
        events: str | Callable[[Entry], Hashable | None] = "tool",
        *,
        per_group: bool = False,
        strategies: int | None = None,
    ) -> None:
        self.events = events
        self.per_group = per_group
        self.strategies = strategies

    def fit(self, log: RunLog) -> Self:
        """Find roads, what tells, and the chance of success.

        Runs without outcome are left out.
        """
        good, bad = len(log.successes), len(log.failures)
        if not good:
            known = f"{bad} failed, of {len(log.unknown)} it is not known"
            why = why_none_succeeded(log) or "say which did: success='reward >= 1' (--success)"
            raise ValueError(
                f"no run succeeded ({known}); successes are needed to see what they have in "
                f"common: {why}"
            )
        check_arguments(self.events, log.runs)
        self.n_successes_, self.n_failures_, self.options_ = good, bad, log.options
        runs = [run for run in log.runs if run.success is not None]
        chooser = event_chooser(self.events)
        found = {symbol for run in runs for symbol in run.events(chooser)[0]}
        self.symbols_ = sorted(found, key=lambda symbol: (str(symbol), repr(symbol)))
        self._ids = {symbol: i for i, symbol in enumerate(self.symbols_)}
        chosen = [choose(run, chooser, self._ids).ids for run in runs]
        if not any(len(ids) for ids, run in zip(chosen, runs, strict=True) if run.success):
            raise ValueError(
                f"events={self.events!r} makes no event of any run that succeeded; choose others, "
                "such as 'tool+message' (--events)"
            )
        self.outcomes_ = outcomes_of(runs)
        self.within_ = _several(self.outcomes_)
        self.variants_ = variants = variants_of(runs, chosen, self.per_group or self.within_)
        self.roads_ = self._roads(variants)
        self.roads_ = roads = counted(self.roads_, self._paths(variants), variants.successes)
        paths = self._paths(variants)  # as they will be read: shares decide between columns
        numbers = variants.successes, variants.failures
        # A task without successes has no road of its own to compare its failures on.
        own = np.array(
            [
                not self.per_group or roads[p.road].group == g
                for p, g in zip(paths, variants.groups, strict=True)
            ]
        )
        good_own, bad_own = (n * own for n in numbers)
        tasks = variants.tasks if self.within_ else np.zeros(len(variants), int)
        kinds = Kinds(variants.events, paths, roads, good_own, bad_own, tasks)
        self.contrast_ = contrast(kinds)
        sums = [
            self._weights(path, ids, group)[0].sum()
            for path, ids, group in zip(paths, variants.events, variants.groups, strict=True)
        ]
        self.chance_ = fit_chance(np.array(sums), *numbers, tasks)
        returns = [
            np.mean([outcome_of(run) for run in some])
            for some in (log.successes, log.failures)
            if some
        ]
        self.worth_ = float(returns[0] - returns[1]) if bad else float(returns[0])
        if not self.worth_:
            warn(
                f"successes return as much as failures ({returns[0]:g}), so that all turns of a "
                "run have the same reward; mend the field reward, return or score of the runs, or "
                "take it out: without one, a success returns 1"
            )
        return self

    def _roads(self, variants: Variants) -> list[Road]:
        found: dict[str | None, dict[bytes, list[np.ndarray]]] = {}
        for ids, n, group in zip(variants.events, variants.successes, variants.groups, strict=True):
            runs = found.setdefault(group if self.per_group else None, {})
            runs.setdefault(ids.tobytes(), []).extend([ids] * int(n))  # equal ones side by side
        roads = []
        for group, kinds in found.items():
            if runs := [ids for some in kinds.values() for ids in some]:
                roads += find_roads(runs, self.symbols_, self.strategies, group)
        return roads

    def _path(self, ids: np.ndarray, group: str | None) -> Path:
        return best_path(self.roads_, ids, group if self.per_group else None)

    def _paths(self, variants: Variants) -> list[Path]:
        known: dict[tuple[bytes, str | None], Path] = {}
        for ids, group in zip(variants.events, variants.groups, strict=True):
            key = ids.tobytes(), group if self.per_group else None
            if key not in known:
                known[key] = self._path(ids, group)
        groups = variants.groups if self.per_group else (None,) * len(variants)
        pairs = zip(variants.events, groups, strict=True)
        return [known[ids.tobytes(), group] for ids, group in pairs]

    def _weights(
        self, path: Path, ids: np.ndarray, group: str | None
    ) -> tuple[np.ndarray, Divergence | None]:
        """Return what is known with each event of a run, and where it left its road."""
        left = divergence_of(path, ids, self.roads_, self.contrast_)
        good, bad = self.outcomes_.get(group, (1, 1))
        # Where all runs of a task fail, only what tells within other tasks is held against them.
        rest = not self.within_ or bool(good and bad)
        known = weights(path, ids, self.roads_, self.contrast_, left, rest)
        if left is not None and self.within_ and not good:
            left = left._replace(telling=False)
        return known, left

    def _check_fitted(self) -> None:
        if not hasattr(self, "chance_"):
            raise ValueError("this LogModel is not fitted; call fit with a log first")

    def choose(self, runs: Iterable[Run]) -> list[Chosen]:
        """Return the events of runs, as ids, and the messages that they are part of."""
        self._check_fitted()
        chooser = event_chooser(self.events)
        return [choose(run, chooser, self._ids) for run in runs]

    def unknown_symbols(self, runs: Iterable[Run]) -> tuple[int, int]:
        """Return how many different symbols runs have that the model does not know, of how many."""
        chooser = event_chooser(self.events)
        found = {symbol for run in runs for symbol in run.events(chooser)[0]}
        return len(found - self._ids.keys()), len(found)

    def read(self, run: Run) -> Reading:
        """Return how a run goes along its road, where it leaves it, and its chance of success."""
        return self.read_events(self.choose([run])[0], run.group)

    def read_events(self, events: Chosen, group: str | None = None) -> Reading:
        """Return the same from the events of a run and its task."""
        self._check_fitted()
        path = self._path(events.ids, group)
        known, left = self._weights(path, events.ids, group)
        return Reading(events, path, self.chance_.values(known), left)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a JSON file; events must have been chosen by a text."""
        self._check_fitted()
        storage.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the model that a file holds."""
        return storage.load(cls, path)

    def score(self, run: Run) -> float:
        """Return the estimated chance that a run succeeds, 0 to 1, from all its events."""
        return float(self.read(run).values[-1])

    def turn_rewards(self, run: Run) -> list[float | None]:
        """Return the reward of each turn: a number for every assistant's message, else None.

        The list is as long as the run's messages; of a process, as its entries. The sum of the
        numbers is the run's return. `ValueError` for a run without outcome.

        Notes:
            See `align_rudder.logs.turns.settled`: differences of the chance of success, and what
            they leave of the return given to all turns alike.
        """
        self._check_fitted()
        ret, reading = outcome_of(run), self.read(run)
        shares = turn_shares(run, reading.events.messages, reading.values)
        out: list[float | None] = [None] * n_slots(run)
        for i, reward in zip(run.turns, settled(shares, ret, self.worth_, run.name), strict=True):
            out[i] = float(reward)
        return out


def _several(outcomes: dict[str | None, tuple[int, int]]) -> bool:
    """Return whether most runs share their task with another, and there are several tasks.

    Example:
        >>> _several({"a": (2, 1), "b": (0, 2)}), _several({"a": (1, 0), "b": (0, 1)})
        (True, False)
    """
    runs = [sum(one) for one in outcomes.values()]
    return len(runs) > 1 and 2 * sum(n for n in runs if n > 1) >= sum(runs)
