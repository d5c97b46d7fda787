"""Fitting: demonstrations become events, strategies, profiles, C and sub-goals."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from align_rudder._warnings import warn
from align_rudder.alignment import Alignment, align_ids, pairwise_scores
from align_rudder.chance import beyond_chance
from align_rudder.choice import chosen_events
from align_rudder.episodes import Episode, select_top
from align_rudder.events import (
    DoneEvents,
    Encoded,
    EventEncoder,
    SymbolEvents,
    Vocabulary,
    with_done,
)
from align_rudder.groups import Part
from align_rudder.null import Chance, Null, mixed_background, renumbered
from align_rudder.profile import Profile
from align_rudder.redistribution import Scorer, skip_costs
from align_rudder.returns import baseline_of, failed, final_scores, scales, weights_of
from align_rudder.scoring import scoring_matrix
from align_rudder.sequences import NO_EVENT
from align_rudder.strategies import align_strategies
from align_rudder.subtasks import SubGoal, find_subgoals
from align_rudder.tracking import TrackerTables, track
from align_rudder.undo import check_undo, undo_table, with_undo, without_undone
from align_rudder.validation import (
    check_episodes,
    check_parameters,
    check_returns,
    check_sequences,
)

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = [
    "Demonstrations",
    "Fit",
    "Strategy",
    "fit",
    "from_episodes",
    "from_sequences",
    "learn",
    "paid_at_end",
    "warn_of",
    "with_episodes",
    "with_sequences",
]


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
class Demonstrations:
    """What a model is fitted to, as events.

    Attributes:
        encoder: The fitted encoder, which knows the events.
        encoded: The events of each demonstration.
        returns: Their returns.
        lengths: Their numbers of steps.
        used: Which of them are aligned.
        chance: Random and failed episodes.
    """

    encoder: EventEncoder
    encoded: list[Encoded]
    returns: list[float]
    lengths: list[int]
    used: np.ndarray
    chance: Chance


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


# Demonstrations


def from_episodes(
    model: AlignRudder,
    episodes: Sequence[Episode],
    random_episodes: Sequence[Episode],
    failures: Sequence[Episode],
) -> Demonstrations:
    """Return demonstrations, random and failed episodes as events of a new encoder."""
    episodes = check_episodes(episodes)
    random = check_episodes(random_episodes, "random_episodes")
    fails = check_episodes(failures, "failures")
    returns, lengths = [e.ret for e in episodes], [len(e) for e in episodes]
    random_returns = [e.ret for e in random]
    used = _choose(model, returns, lengths, random_returns)
    demos = [episodes[i] for i in used]
    encoder = copy.copy(chosen_events(model, demos, random))
    encoder.fit(demos, random)
    encoder = with_undo(encoder, model.undo, demos)
    played = (episodes, random, fails)
    encoded = [[encoder.encode(e) for e in some] for some in played]
    own = [[e.rewards for e in some] for some in played]
    if model.done:
        encoder, encoded = _with_done(encoder, encoded, own, used)
    good, by_chance, bad = encoded
    chance = Chance(by_chance, random_returns, bad)
    return Demonstrations(encoder, good, returns, lengths, used, chance)


def from_sequences(
    model: AlignRudder,
    sequences: Sequence[Iterable[Hashable]],
    returns: Sequence[float] | None,
    random_sequences: Sequence[Iterable[Hashable]],
    failures: Sequence[Iterable[Hashable]],
    random_returns: Sequence[float] | None,
) -> Demonstrations:
    """Return sequences of symbols as events, whose returns their ends are paid."""
    listed = check_sequences(sequences)
    returns = check_returns(returns, len(listed))
    random = check_sequences(random_sequences, "random_sequences")
    fails = check_sequences(failures, "failures")
    chance_returns = check_returns(random_returns or [0.0] * len(random), len(random))
    lengths = [len(s) for s in listed]
    used = _choose(model, returns, lengths, chance_returns)
    encoder = with_undo(SymbolEvents().fit_sequences([listed[i] for i in used]), model.undo)
    assert isinstance(encoder, SymbolEvents)
    played = ((listed, returns), (random, chance_returns), (fails, [0.0] * len(fails)))
    encoded = [[Encoded(NO_EVENT, encoder.encode_sequence(s)) for s in some] for some, _ in played]
    own = [
        [paid_at_end(ret, e.events) for ret, e in zip(rets, some, strict=True)]
        for some, (_, rets) in zip(encoded, played, strict=True)
    ]
    known: EventEncoder = encoder
    if model.done:
        known, encoded = _with_done(encoder, encoded, own, used, alike=True)
    good, by_chance, bad = encoded
    chance = Chance(by_chance, chance_returns, bad)
    return Demonstrations(known, good, returns, lengths, used, chance)


def with_episodes(model: AlignRudder, episodes: Sequence[Episode]) -> Demonstrations:
    """Return the demonstrations of a fitted model and new episodes."""
    episodes = check_episodes(episodes)
    encoder, base = model.events_, model.events_.base
    if isinstance(base, Vocabulary):
        encoder = _on(model, base.extended([base.symbols_of(e) for e in episodes]))
    encoded = [encoder.encode(e) for e in episodes]
    return _join(model, encoder, encoded, [e.ret for e in episodes], [len(e) for e in episodes])


def with_sequences(
    model: AlignRudder,
    base: SymbolEvents,
    sequences: Sequence[Iterable[Hashable]],
    returns: Sequence[float] | None,
) -> Demonstrations:
    """Return the demonstrations of a fitted model, whose symbols `base` knows, and new ones."""
    listed = check_sequences(sequences)
    symbols = base.extended(listed)
    encoder = _on(model, symbols)
    returns = check_returns(returns, len(listed))
    encoded = [Encoded(NO_EVENT, symbols.encode_sequence(s)) for s in listed]
    if isinstance(encoder, DoneEvents):
        own = [paid_at_end(r, e.events) for r, e in zip(returns, encoded, strict=True)]
        encoded = [encoder.add_to(e, r) for e, r in zip(encoded, own, strict=True)]
    return _join(model, encoder, encoded, returns, [len(s) for s in listed])


def paid_at_end(ret: float, events: np.ndarray) -> np.ndarray:
    """Return rewards (T,) that the last event alone is paid."""
    own, happened = np.zeros(len(events)), np.flatnonzero(events != NO_EVENT)
    own[happened[-1:]] = ret
    return own


def _on(model: AlignRudder, base: EventEncoder) -> EventEncoder:
    """Return the model's encoder around one that learned more symbols."""
    return model.events_.on(base) if isinstance(model.events_, DoneEvents) else base


def _with_done(
    encoder: EventEncoder,
    encoded: list[list[Encoded]],
    own: Sequence[Sequence[np.ndarray]],
    used: np.ndarray,
    alike: bool = False,
) -> tuple[EventEncoder, list[list[Encoded]]]:
    """Return encoder and episodes with the paid step of the demonstrations as an event.

    Args:
        encoder: The encoder without it.
        encoded: Demonstrations, random and failed episodes.
        own: The rewards of their steps.
        used: Which demonstrations are aligned.
        alike: See `with_done`.
    """
    demos = [(encoded[0][int(i)], own[0][int(i)]) for i in used]
    found = with_done(encoder, [e for e, _ in demos], [r for _, r in demos], alike)
    if not isinstance(found, DoneEvents):
        return found, encoded
    return found, [
        [found.add_to(e, rewards) for e, rewards in zip(some, paid, strict=True)]
        for some, paid in zip(encoded, own, strict=True)
    ]


def _join(
    model: AlignRudder,
    encoder: EventEncoder,
    encoded: list[Encoded],
    returns: list[float],
    lengths: list[int],
) -> Demonstrations:
    """Return the model's demonstrations and new ones, of which an encoder may know more events."""
    # What was unknown in an old demonstration that was not used stays so, and it unused.
    old, n = model.events_.n_events, encoder.n_events
    known, chance = model.encoded_, model.chance_
    if n > old:
        known, chance = [renumbered(e, old, n) for e in known], chance.renumbered(old, n)
        if isinstance(encoder, DoneEvents):  # it comes after all others
            known = [renumbered(e, old - 1, n - 1) for e in known]
            chance = chance.renumbered(old - 1, n - 1)
    encoded = [*known, *encoded]
    returns, lengths = [*model.returns_, *returns], [*model.lengths_, *lengths]
    used = _choose(model, returns, lengths, chance.returns)
    used = used[[encoded[i].sequence.max(initial=NO_EVENT) < n for i in used]]
    return Demonstrations(encoder, encoded, returns, lengths, used, chance)


def _choose(
    model: AlignRudder,
    returns: Sequence[float],
    lengths: Sequence[int],
    random_returns: Sequence[float],
) -> np.ndarray:
    """Return the demonstrations to align: those that were paid, of them the best."""
    check_parameters(model.get_params(deep=False))
    check_undo(model.undo)
    baseline = baseline_of(model.baseline, random_returns)
    paid = np.flatnonzero(~failed(returns, baseline)).tolist()
    if len(returns) >= 2 and not len(paid):
        raise ValueError(
            f"the mean return of the demonstrations is {float(np.mean(returns)):g}, which is "
            f"not above the baseline {baseline:g}; a negative C "
            "would punish the demonstrated strategy. Give baseline=… the return of an episode "
            "worth nothing, for example the mean return of random episodes"
        )
    best = select_top([returns[i] for i in paid], [lengths[i] for i in paid], model.top_n)
    chosen = np.array(paid, int)[best]
    if len(chosen) < 2:
        failures = f" that did not fail, of {len(returns)}" * (len(returns) > len(chosen))
        raise ValueError(
            f"got {len(chosen)} demonstration(s){failures}; at least 2 are needed, as an "
            "alignment shows what demonstrations have in common"
        )
    return chosen


# What is learned from them


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
    known = demos.encoder.base.n_events
    if not any((demos.encoded[i].sequence < known).any() for i in demos.used):
        what = "no demonstration holds an event"
    elif not found.strategies:
        what = "the demonstrations share no strategy beyond chance"
    elif found.scale == 0.0:
        what = "the demonstrations score zero against their own profile"
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
                "are not part of a strategy",
                stacklevel=5,
            )
        return
    warn(
        f"{what}, so nothing can be redistributed: every episode keeps its episodic reward, "
        "given at its end as the correction. Other events may help (fewer, or a function)",
        stacklevel=5,
    )
