"""Fitting: demonstrations become strategies, profiles, C and sub-goals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from align_rudder._warnings import warn
from align_rudder.alignment import Alignment, align_ids, pairwise_scores
from align_rudder.chance import beyond_chance
from align_rudder.demonstrations import Demonstrations
from align_rudder.events import DoneEvents, Encoded, Vocabulary
from align_rudder.groups import Part
from align_rudder.null import Null, mixed_background
from align_rudder.profile import Profile
from align_rudder.redistribution import Scorer, skip_costs
from align_rudder.returns import baseline_of, failed, final_scores, scales, weights_of
from align_rudder.scoring import scoring_matrix
from align_rudder.sequences import NO_EVENT
from align_rudder.strategies import align_strategies
from align_rudder.subtasks import SubGoal, find_subgoals
from align_rudder.tracking import TrackerTables, track
from align_rudder.undo import undo_table, without_undone

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["Fit", "Strategy", "fit", "learn", "of_one", "warn_of"]


FEW = 5
"""Demonstrations of which the shortest is paid in order where nothing they share is evident."""


@dataclass(frozen=True, eq=False)
class Strategy:
    """One strategy of the demonstrations.

    Attributes:
        members: Indices of its demonstrations, among those given.
        alignment: Their alignment.
        profile: The profile of that alignment.
        column_rewards: Mean redistributed reward of each profile column over the members.
        subgoals: The sub-goals.
        kept: Columns of the alignment that were kept by evidence; None where a share decided.
    """

    members: np.ndarray
    alignment: Alignment
    profile: Profile
    column_rewards: np.ndarray
    subgoals: list[SubGoal]
    kept: np.ndarray | None = None

    def __repr__(self) -> str:
        return (
            f"Strategy({len(self.members)} demonstrations, {len(self.profile)} columns, "
            f"{len(self.subgoals)} sub-goals)"
        )


@dataclass(frozen=True, eq=False)
class Fit:
    """What was learned from demonstrations; `AlignRudder` says what each of these is."""

    demonstrations: Demonstrations
    background: np.ndarray
    scores: np.ndarray
    tree: np.ndarray
    baseline: float
    failures: np.ndarray
    outliers: np.ndarray
    scale: float
    scorer: Scorer
    tables: TrackerTables
    strategies: list[Strategy]
    random_share: float | None


def fit(model: AlignRudder, demos: Demonstrations) -> Fit:
    """Align the demonstrations with the parameters of a model, and learn from that."""
    encoder, used = demos.encoder, demos.used
    undoes = undo_table(encoder, model.undo)
    # Every good episode ends with "done"; that they share it shows no strategy.
    done = encoder if isinstance(encoder, DoneEvents) else None
    encoded = [without_undone(e, undoes) for e in demos.encoded]
    encoded = encoded if done is None else [done.closed(e) for e in encoded]
    chance = demos.chance.each(lambda e: without_undone(e, undoes))
    n = encoder.n_events
    p = mixed_background([encoded[i].sequence for i in used], chance.counts(n), n)
    sequences = [(done.without(encoded[i]) if done else encoded[i]).sequence for i in used]
    scores = scoring_matrix(model.scoring, p, alpha=model.alpha, epsilon=model.epsilon)
    parts, tree = align_strategies(
        sequences,
        encoder.symbols_,
        scores,
        gap=model.gap,
        n_strategies=model.strategies,
        engine=model.engine,
        refine=model.refine,
        progress=model.progress,
        null=Null.of(sequences, p, chance.sequences(encoder.base.n_events)),
        by_evidence=model.min_conservation is None,
    )
    if not parts and len(sequences) <= FEW and isinstance(encoder.base, Vocabulary):
        parts = _shortest(sequences, encoder.symbols_, scores, model.gap)
    parts = [part._replace(members=used[part.members]) for part in parts]
    if done is not None:
        parts = [_with_last(part, encoded, done.done) for part in parts]
    demos = Demonstrations(encoder, encoded, demos.returns, demos.lengths, used, chance)
    return learn(model, demos, p, scores, parts, tree)


def _shortest(
    sequences: Sequence[np.ndarray], symbols: Sequence[Hashable], scores: np.ndarray, gap: float
) -> list[Part]:
    """Return the shortest sequence as the only strategy, with a column for each event.

    A few sequences cannot show what they share beyond chance. Where a person has named the events,
    to do as the shortest one did is worth more than nothing, if each of the others holds at least
    a third of it in the same order.
    """
    k = min(range(len(sequences)), key=lambda i: len(sequences[i]))
    shared = pairwise_scores(sequences, np.eye(len(scores)), 0.0)[k]
    if shared.min() < max(len(sequences[k]) / 3, 1):
        return []
    alone = align_ids([sequences[k]], symbols, scores, gap=gap)
    return [Part(np.array([k]), alone, np.arange(len(sequences[k])))]


def learn(
    model: AlignRudder,
    demos: Demonstrations,
    p: np.ndarray,
    scores: np.ndarray,
    parts: Sequence[Part],
    tree: np.ndarray,
) -> Fit:
    """Return all that follows from the alignments of the strategies: profiles, C, sub-goals.

    Args:
        model: The model, for its parameters.
        demos: The demonstrations.
        p: Frequencies of the events.
        scores: The scoring matrix.
        parts: The strategies.
        tree: The guide tree over the demonstrations that are used.
    """
    encoder, encoded, returns = demos.encoder, demos.encoded, demos.returns
    gains = np.asarray(returns, float)
    baseline = baseline_of(model.baseline, demos.chance.returns)
    profiles = [
        Profile.from_alignment(
            part.alignment,
            p,
            0.5 if model.min_conservation is None else model.min_conservation,
            columns=part.columns,
            weights=weights_of(gains[part.members], baseline) if model.weigh_returns else None,
        )
        for part in parts
    ]
    members = [part.members for part in parts]
    named = isinstance(encoder.base, Vocabulary)
    skips = [
        skip_costs(profile.conservation, _weight_of(part, named), model.skip)
        for profile, part in zip(profiles, parts, strict=True)
    ]
    inside = np.concatenate([demos.used[:0], *members])
    alike = Scorer([profile.pssm for profile in profiles], model.gap, skips)
    pssms, skips, by_chance = beyond_chance(
        alike.pssms,
        skips,
        model.gap,
        [encoded[i] for i in inside],
        demos.chance.random,
    )
    undoes = undo_table(encoder, model.undo)
    scale, factors = scales(pssms, members, encoded, returns, baseline, model.gap, skips)
    if not np.isfinite(scale):
        raise ValueError(f"the returns are too large to redistribute: their mean is {gains.mean()}")
    scorer = Scorer(
        [pssm * f for pssm, f in zip(pssms, factors, strict=True)],
        model.gap,
        [costs * f for costs, f in zip(skips, factors, strict=True)],
    )
    tables = TrackerTables.of(encoder, scorer, scale, undoes=undoes)  # sub-goals: below
    strategies = []
    before_chance = TrackerTables.of(encoder, alike, 1.0, undoes=undoes)
    for part, profile in zip(parts, profiles, strict=True):
        rewards = _column_rewards(tables, encoded, part, profile)
        worth = (
            _column_rewards(before_chance, encoded, part, profile) if demos.chance.random else None
        )
        goals = find_subgoals(
            profile,
            rewards,
            threshold=model.subgoal_threshold,
            conservation=model.subgoal_conservation,
            value=model.subgoal_value,
            worth=worth,
        )
        kept = None if part.columns is None else profile.columns
        strategies.append(Strategy(part.members, part.alignment, profile, rewards, goals, kept))
    goals = [[goal.column for goal in strategy.subgoals] for strategy in strategies]
    random_share = None
    if demos.chance.random and scale > 0:
        earned = float(final_scores(scorer, demos.chance.random).mean()) * scale
        random_share = max(by_chance, earned / float(gains[inside].mean() - baseline))
    return Fit(
        demos,
        p,
        scores,
        tree,
        baseline,
        failures=np.flatnonzero(failed(returns, baseline)),
        outliers=inside[:0] if of_one(strategies, demos.used) else np.setdiff1d(demos.used, inside),
        scale=scale,
        scorer=scorer,
        tables=TrackerTables.of(encoder, scorer, scale, goals, undoes),
        strategies=strategies,
        random_share=random_share,
    )


def _with_last(part: Part, encoded: Sequence[Encoded], event: int) -> Part:
    """Return a strategy with one more column behind its alignment, of an event that ends it."""
    held = [event in encoded[i].events for i in part.members]
    alignment = part.alignment.appended(held, event)
    columns = part.columns
    if columns is not None:
        columns = np.append(columns, alignment.n_columns - 1)
    return Part(part.members, alignment, columns)


def _column_rewards(
    tables: TrackerTables, encoded: Sequence[Encoded], part: Part, profile: Profile
) -> np.ndarray:
    """Return each column's mean redistributed reward over the members; a gap counts as zero."""
    total = np.zeros(part.alignment.n_columns)
    for row, i in enumerate(part.members):
        rewards = track(tables, encoded[i]).reward
        steps = np.flatnonzero(encoded[i].events != NO_EVENT)
        columns = part.alignment.column_of(row)
        if encoded[i].start != NO_EVENT:
            columns = columns[1:]  # the start state earns nothing
        total[columns] += rewards[steps]
    return total[profile.columns] / len(part.members)


def _weight_of(part: Part, named: bool) -> int:
    """Return as how many demonstrations those of a strategy count when it is skipped.

    One alone shows nothing but its order, and a few with named events little more, so that they
    count as the ten that would show it.
    """
    n = len(part.members)
    return 10 if n == 1 or (named and n <= FEW) else n


def of_one(strategies: Sequence[Strategy], used: np.ndarray) -> bool:
    """Return whether a single one of several demonstrations is paid in order."""
    return len(strategies) == 1 and len(strategies[0].members) == 1 < len(used)


def warn_of(found: Fit) -> None:
    """Warn of demonstrations that failed or belong to no strategy, and where nothing was found."""
    demos = found.demonstrations
    n = len(demos.encoded)
    if len(found.failures):
        warn(
            f"demonstrations {found.failures.tolist()} of {n} failed: their returns are "
            f"{[float(f'{demos.returns[i]:.4g}') for i in found.failures]}, not above the "
            f"baseline {found.baseline:g} or far below the others'. They are not aligned",
            stacklevel=5,
        )
    base = demos.encoder.base
    held = [bool((demos.encoded[i].sequence < base.n_events).any()) for i in demos.used]
    empty = demos.used[~np.array(held, bool)].tolist()
    without = f" (demonstrations {empty} hold no event)" * bool(empty)
    advice = "Other events may help (fewer, or a function)"
    if len(empty) == len(demos.used):
        what, advice = "no demonstration holds an event", base.advice_on_none()
    elif not found.strategies:
        what = f"the demonstrations share no strategy beyond chance{without}"
        advice = "Two or more that hold events are needed: leave these out" if empty else advice
    elif found.scale == 0.0:
        what = f"the demonstrations score zero against their own profile{without}"
    else:
        if of_one(found.strategies, demos.used):
            which = found.strategies[0].members[0]
            warn(
                f"{len(demos.used)} demonstrations are too few to show what they share beyond "
                f"chance, so that the shortest, demonstration {which}, is paid event by event, "
                "with all that is superfluous in it. Give ten or more",
                stacklevel=5,
            )
        elif len(found.outliers):
            warn(
                f"demonstrations {found.outliers.tolist()} of {n} agree with no other one and "
                f"are not part of a strategy{without}",
                stacklevel=5,
            )
        return
    warn(
        f"{what}, so nothing can be redistributed: every episode keeps its episodic reward, "
        f"given at its end as the correction. {advice}",
        stacklevel=5,
    )
