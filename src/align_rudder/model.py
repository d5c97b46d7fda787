"""AlignRudder: the five steps behind fit, redistribute, save and load."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np

from align_rudder import storage, summary
from align_rudder._display import RichDisplay
from align_rudder._estimator import Estimator
from align_rudder._warnings import warn
from align_rudder.alignment import Alignment
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
from align_rudder.redistribution import Redistribution, Scorer, skip_costs
from align_rudder.returns import baseline_of, failed, final_scores, scales, weights_of
from align_rudder.scoring import Scoring, scoring_matrix
from align_rudder.sequences import NO_EVENT
from align_rudder.strategies import align_strategies
from align_rudder.subtasks import Progress, SubGoal, SubTask, cut_segments, find_subgoals
from align_rudder.tracking import Stream, TrackerTables, VectorStream, track
from align_rudder.undo import Undo, check_undo, undo_table, with_symbols, without_undone
from align_rudder.validation import (
    check_episodes,
    check_parameters,
    check_returns,
    check_sequences,
)

__all__ = ["AlignRudder", "Strategy"]


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


class AlignRudder(RichDisplay, Estimator):
    """Reward redistribution by aligning a handful of demonstrations.

    Args:
        events: How steps become events: an encoder (`StateEvents`, `DeltaEvents`, …), a function
            `(obs, action, reward, next_obs, info) -> symbol or None`, or None to choose by what
            tells held-out demonstrations from chance (`align_rudder.choice`).
        scoring: "inverse" (1/p), "log" (−ln p), "karlin-altschul", or a matrix over the events.
        alpha: Score of a mismatch.
        epsilon: ε of the Karlin–Altschul scores.
        gap: Cost of each event that matches nothing and of each column skipped; zero, as in the
            paper, makes every redistributed reward at least zero.
        skip: Weight of the cost of columns skipped (`skip_costs`), which pays events in order; 0,
            as in the paper, pays them also where those before were left out.
        done: Whether the step that is paid is an event of its own, so that the last column is
            "done" and success always pays.
        undo: Events that take back others, `{"drop key": "key"}`: then progress can be lost.
        engine: "native" or "clustalw".
        refine: Rounds of refinement of the alignment.
        strategies: Number of strategies in the demonstrations; None to find it.
        min_conservation: None to keep the profile columns that are more than chance
            (`evidence.kept_columns`). A number: those whose event more than this share of a
            strategy's demonstrations holds. What only a minority does (a detour, a step back and
            forth) would otherwise be rewarded too, and can keep a learner walking in circles.
        top_n: Use only the best demonstrations, by return, and the shorter among equals.
        baseline: Return of an episode worth nothing; None for the mean return of the random
            episodes, 0 without any. The redistributed reward of a demonstration is scaled to its
            mean return less this.
        weigh_returns: Whether demonstrations count in the profile by their returns.
        subgoal_threshold: Sub-goals are columns whose mean redistributed reward is above this;
            None for the default of `find_subgoals`.
        subgoal_conservation: Instead: columns that this share of the demonstrations holds.
        subgoal_value: Instead: columns whose mean redistributed reward is this value.
        progress: Whether to show progress bars.

    Attributes:
        strategies_: Members, alignment, profile and sub-goals of each strategy, largest first.
        alignment_: Alignment of the largest strategy (None if the demonstrations share nothing).
        profile_: Its profile.
        subgoals_: Its sub-goals.
        scale_: C, which scales scores to returns; 0 if nothing could be redistributed.
        events_: The fitted encoder.
        used_: Demonstrations that were aligned, by their place among those given: not the
            failures, and with `top_n` only the best.
        failures_: Demonstrations that failed: paid nothing, or far less than the others.
        outliers_: Demonstrations that were aligned and belong to no strategy.
        baseline_: The baseline used.
        random_share_: Share of the reward that a random policy earns: the mean of C·S(τ) over the
            random episodes, over the mean return above the baseline of the demonstrations that
            are part of a strategy. None without random episodes or without a reward.

    Notes:
        R_{t+1} = (S(τ_t) − S(τ_{t−1}))·C with C = (E[G] − baseline) / E[S(τ)] over the
        demonstrations that are part of a strategy, S the best score over the strategies, and S = 0
        after the start state.
        The correction R_{T+2} = G − Σ R makes the return equal for every episode. That is for
        undiscounted returns: with γ < 1 a reward that comes earlier counts for more.

    Example:
        >>> runs = ["key door chest", "key lamp door chest", "key door cat chest"]
        >>> runs = [run.split() for run in runs]
        >>> model = AlignRudder().fit_events(runs, returns=[1, 1, 1])
        >>> [goal.symbol for goal in model.subgoals_]
        ['key', 'door', 'chest']
        >>> rr = model.redistribute_events(["cat", "key", "key", "door"], ret=0.0)
        >>> (rr.rewards > 0).tolist()
        [False, True, False, True]
        >>> bool(rr.rewards.sum() + rr.correction == 0.0)
        True
    """

    def __init__(
        self,
        events: EventEncoder | Callable[..., Any] | None = None,
        *,
        scoring: Scoring = "inverse",
        alpha: float = -1.0,
        epsilon: float = 0.0,
        gap: float = 0.0,
        skip: float = 3.0,
        done: bool = True,
        undo: Undo | None = None,
        engine: str = "native",
        refine: int = 1,
        strategies: int | None = None,
        min_conservation: float | None = None,
        top_n: int | None = None,
        baseline: float | None = None,
        weigh_returns: bool = True,
        subgoal_threshold: float | None = None,
        subgoal_conservation: float | None = None,
        subgoal_value: float | None = None,
        progress: bool = False,
    ) -> None:
        self.events = events
        self.scoring = scoring
        self.alpha = alpha
        self.epsilon = epsilon
        self.gap = gap
        self.skip = skip
        self.done = done
        self.undo = undo
        self.engine = engine
        self.refine = refine
        self.strategies = strategies
        self.min_conservation = min_conservation
        self.top_n = top_n
        self.baseline = baseline
        self.weigh_returns = weigh_returns
        self.subgoal_threshold = subgoal_threshold
        self.subgoal_conservation = subgoal_conservation
        self.subgoal_value = subgoal_value
        self.progress = progress

    # Fitting

    def fit(
        self,
        episodes: Sequence[Episode],
        random_episodes: Sequence[Episode] = (),
        failures: Sequence[Episode] = (),
    ) -> Self:
        """Find the events of the demonstrations, align them and build the profile.

        Args:
            episodes: Two or more demonstrations.
            random_episodes: Episodes of a random policy: what is done by chance, and what that
                is worth. They also serve the successor representation or features.
            failures: Episodes that failed; what they do is no part of a strategy either.
        """
        episodes = check_episodes(episodes)
        random = check_episodes(random_episodes, "random_episodes")
        fails = check_episodes(failures, "failures")
        returns, lengths = [e.ret for e in episodes], [len(e) for e in episodes]
        random_returns = [e.ret for e in random]
        used = self._choose(returns, lengths, random_returns)
        demos = [episodes[i] for i in used]
        encoder = copy.copy(chosen_events(self, demos, random))
        encoder.fit(demos, random)
        encoder = with_symbols(encoder, self.undo)
        played = (episodes, random, fails)
        encoded = [[encoder.encode(e) for e in some] for some in played]
        own = [[e.rewards for e in some] for some in played]
        encoder, (good, by_chance, bad) = self._with_done(encoder, encoded, own, used)
        chance = Chance(by_chance, random_returns, bad)
        return self._fit(encoder, good, returns, lengths, used, chance)

    def fit_events(
        self,
        sequences: Sequence[Iterable[Hashable]],
        returns: Sequence[float] | None = None,
        random_sequences: Sequence[Iterable[Hashable]] = (),
        failures: Sequence[Iterable[Hashable]] = (),
        random_returns: Sequence[float] | None = None,
    ) -> Self:
        """Fit to sequences of any hashable symbols, where there are no observations.

        Args:
            sequences: Two or more sequences.
            returns: The return of each; None for 1 each.
            random_sequences: Sequences of a random policy: what is done by chance.
            failures: Sequences that failed.
            random_returns: The return of each random sequence; None for 0 each.
        """
        listed = check_sequences(sequences)
        returns = check_returns(returns, len(listed))
        random = check_sequences(random_sequences, "random_sequences")
        fails = check_sequences(failures, "failures")
        chance_returns = check_returns(random_returns or [0.0] * len(random), len(random))
        lengths = [len(s) for s in listed]
        used = self._choose(returns, lengths, chance_returns)
        encoder = with_symbols(SymbolEvents().fit_sequences([listed[i] for i in used]), self.undo)
        assert isinstance(encoder, SymbolEvents)
        played = ((listed, returns), (random, chance_returns), (fails, [0.0] * len(fails)))
        encoded = [
            [Encoded(NO_EVENT, encoder.encode_sequence(s)) for s in some] for some, _ in played
        ]
        own = [
            [_paid_at_end(ret, e.events) for ret, e in zip(rets, some, strict=True)]
            for some, (_, rets) in zip(encoded, played, strict=True)
        ]
        known, (good, by_chance, bad) = self._with_done(encoder, encoded, own, used, True)
        chance = Chance(by_chance, chance_returns, bad)
        return self._fit(known, good, returns, lengths, used, chance)

    def update(self, episodes: Sequence[Episode]) -> Self:
        """Let new good episodes join the demonstrations, and align again.

        Events keep their meaning (the encoder is not fitted again); with `top_n`, the best of old
        and new are used. Streams and wrappers use the new alignment from their next episode on.
        """
        self._check_fitted()
        episodes = check_episodes(episodes)
        encoder, base = self.events_, self.events_.base
        if isinstance(base, Vocabulary):
            encoder = self._on(base.extended([base.symbols_of(e) for e in episodes]))
        encoded = [encoder.encode(e) for e in episodes]
        return self._join(encoder, encoded, [e.ret for e in episodes], [len(e) for e in episodes])

    def update_events(
        self, sequences: Sequence[Iterable[Hashable]], returns: Sequence[float] | None = None
    ) -> Self:
        """Let new sequences of symbols join the demonstrations, and align again."""
        listed = check_sequences(sequences)
        symbols = self._symbol_encoder().extended(listed)
        encoder = self._on(symbols)
        returns = check_returns(returns, len(listed))
        encoded = [Encoded(NO_EVENT, symbols.encode_sequence(s)) for s in listed]
        if isinstance(encoder, DoneEvents):
            own = [_paid_at_end(r, e.events) for r, e in zip(returns, encoded, strict=True)]
            encoded = [encoder.add_to(e, r) for e, r in zip(encoded, own, strict=True)]
        return self._join(encoder, encoded, returns, [len(s) for s in listed])

    def _on(self, base: EventEncoder) -> EventEncoder:
        """Return the encoder around one that learned more symbols."""
        return self.events_.on(base) if isinstance(self.events_, DoneEvents) else base

    def _with_done(
        self,
        encoder: EventEncoder,
        encoded: Sequence[list[Encoded]],
        own: Sequence[Sequence[np.ndarray]],
        used: np.ndarray,
        alike: bool = False,
    ) -> tuple[EventEncoder, Sequence[list[Encoded]]]:
        """Return encoder and episodes with the paid step of the demonstrations as an event.

        Args:
            encoder: The encoder without it.
            encoded: Demonstrations, random and failed episodes.
            own: The rewards of their steps.
            used: Which demonstrations are aligned.
            alike: See `with_done`.
        """
        if not self.done:
            return encoder, encoded
        demos = [(encoded[0][int(i)], own[0][int(i)]) for i in used]
        found = with_done(encoder, [e for e, _ in demos], [r for _, r in demos], alike)
        if not isinstance(found, DoneEvents):
            return found, encoded
        return found, [
            [found.add_to(e, rewards) for e, rewards in zip(some, paid, strict=True)]
            for some, paid in zip(encoded, own, strict=True)
        ]

    def _join(
        self,
        encoder: EventEncoder,
        encoded: list[Encoded],
        returns: list[float],
        lengths: list[int],
    ) -> Self:
        # What was unknown in an old demonstration that was not used stays so, and it unused.
        old, n = self.events_.n_events, encoder.n_events
        known, chance = self.encoded_, self.chance_
        if n > old:
            known, chance = [renumbered(e, old, n) for e in known], chance.renumbered(old, n)
            if isinstance(encoder, DoneEvents):  # it comes after all others
                known = [renumbered(e, old - 1, n - 1) for e in known]
                chance = chance.renumbered(old - 1, n - 1)
        encoded = [*known, *encoded]
        returns, lengths = [*self.returns_, *returns], [*self.lengths_, *lengths]
        used = self._choose(returns, lengths, chance.returns)
        used = used[[encoded[i].sequence.max(initial=NO_EVENT) < n for i in used]]
        return self._fit(encoder, encoded, returns, lengths, used, chance)

    def _choose(
        self, returns: Sequence[float], lengths: Sequence[int], random_returns: Sequence[float]
    ) -> np.ndarray:
        """Return the demonstrations to align: those that were paid, of them the best."""
        check_parameters(self.get_params(deep=False))
        check_undo(self.undo)
        baseline = baseline_of(self.baseline, random_returns)
        paid = np.flatnonzero(~failed(returns, baseline)).tolist()
        if len(returns) >= 2 and not len(paid):
            raise ValueError(
                f"the mean return of the demonstrations is {float(np.mean(returns)):g}, which is "
                f"not above the baseline {baseline:g}; a negative C "
                "would punish the demonstrated strategy. Give baseline=… the return of an episode "
                "worth nothing, for example the mean return of random episodes"
            )
        best = select_top([returns[i] for i in paid], [lengths[i] for i in paid], self.top_n)
        chosen = np.array(paid, int)[best]
        if len(chosen) < 2:
            failures = f" that did not fail, of {len(returns)}" * (len(returns) > len(chosen))
            raise ValueError(
                f"got {len(chosen)} demonstration(s){failures}; at least 2 are needed, as an "
                "alignment shows what demonstrations have in common"
            )
        return chosen

    def _fit(
        self,
        encoder: EventEncoder,
        encoded: list[Encoded],
        returns: list[float],
        lengths: list[int],
        used: np.ndarray,
        chance: Chance,
    ) -> Self:
        undoes = undo_table(encoder, self.undo)
        # Every good episode ends with "done"; that they share it shows no strategy.
        done = encoder if isinstance(encoder, DoneEvents) else None
        encoded = [without_undone(e, undoes) for e in encoded]
        encoded = encoded if done is None else [done.closed(e) for e in encoded]
        chance = chance.each(lambda e: without_undone(e, undoes))
        n = encoder.n_events
        p = mixed_background([encoded[i].sequence for i in used], chance.counts(n), n)
        sequences = [(done.without(encoded[i]) if done else encoded[i]).sequence for i in used]
        scores = scoring_matrix(self.scoring, p, alpha=self.alpha, epsilon=self.epsilon)
        parts, tree = align_strategies(
            sequences,
            encoder.symbols_,
            scores,
            gap=self.gap,
            n_strategies=self.strategies,
            engine=self.engine,
            refine=self.refine,
            progress=self.progress,
            null=Null.of(sequences, p, chance.sequences(encoder.base.n_events)),
            by_evidence=self.min_conservation is None,
        )
        parts = [part._replace(members=used[part.members]) for part in parts]
        if done is not None:
            parts = [_with_last(part, encoded, done.done) for part in parts]
        self._set(encoder, encoded, returns, lengths, used, chance, p, parts, tree)
        self.scores_ = scores
        self._report()
        return self

    def _set(
        self,
        encoder: EventEncoder,
        encoded: list[Encoded],
        returns: Sequence[float],
        lengths: Sequence[int],
        used: np.ndarray,
        chance: Chance,
        p: np.ndarray,
        parts: Sequence[Part],
        tree: np.ndarray,
    ) -> None:
        """Make all that follows from the alignments: profiles, C, sub-goals."""
        gains = np.asarray(returns, float)
        self.baseline_ = baseline_of(self.baseline, chance.returns)
        profiles = [
            Profile.from_alignment(
                part.alignment,
                p,
                0.5 if self.min_conservation is None else self.min_conservation,
                columns=part.columns,
                weights=weights_of(gains[part.members], self.baseline_)
                if self.weigh_returns
                else None,
            )
            for part in parts
        ]
        members = [part.members for part in parts]
        pssms = [profile.pssm for profile in profiles]
        skips = [
            skip_costs(profile.conservation, len(part.members), self.skip)
            for profile, part in zip(profiles, parts, strict=True)
        ]
        undoes = undo_table(encoder, self.undo)
        scale, factors = scales(pssms, members, encoded, returns, self.baseline_, self.gap, skips)
        if not np.isfinite(scale):
            raise ValueError(
                f"the returns are too large to redistribute: their mean is {gains.mean()}"
            )
        scorer = Scorer(
            [pssm * f for pssm, f in zip(pssms, factors, strict=True)],
            self.gap,
            [costs * f for costs, f in zip(skips, factors, strict=True)],
        )
        self.scale_ = scale
        self.events_, self.scorer_ = encoder, scorer
        self.tables_ = TrackerTables.of(encoder, scorer, scale, undoes=undoes)  # sub-goals: below
        self.encoded_, self.returns_, self.lengths_ = encoded, list(returns), list(lengths)
        self.used_, self.chance_ = used, chance
        self.failures_ = np.flatnonzero(failed(returns, self.baseline_))
        self.background_, self.tree_ = p, tree
        self.strategies_: list[Strategy] = []
        for part, profile in zip(parts, profiles, strict=True):
            rewards = self._column_rewards(part.members, part.alignment, profile)
            goals = find_subgoals(
                profile,
                rewards,
                threshold=self.subgoal_threshold,
                conservation=self.subgoal_conservation,
                value=self.subgoal_value,
            )
            kept = None if part.columns is None else profile.columns
            self.strategies_.append(
                Strategy(part.members, part.alignment, profile, rewards, goals, kept)
            )
        goals = [[goal.column for goal in strategy.subgoals] for strategy in self.strategies_]
        self.tables_ = TrackerTables.of(encoder, scorer, scale, goals, undoes)
        inside = np.concatenate([used[:0], *members])
        self.outliers_ = np.setdiff1d(used, inside)
        self.random_share_: float | None = None
        if chance.random and scale > 0:
            earned = float(final_scores(scorer, chance.random).mean()) * scale
            self.random_share_ = earned / float(gains[inside].mean() - self.baseline_)

    def _column_rewards(
        self, members: np.ndarray, alignment: Alignment, profile: Profile
    ) -> np.ndarray:
        """Return each column's mean redistributed reward over the members; a gap counts as zero."""
        total = np.zeros(alignment.n_columns)
        for row, i in enumerate(members):
            rewards = track(self.tables_, self.encoded_[i]).reward
            steps = np.flatnonzero(self.encoded_[i].events != NO_EVENT)
            columns = alignment.column_of(row)
            if self.encoded_[i].start != NO_EVENT:
                columns = columns[1:]  # the start state earns nothing
            total[columns] += rewards[steps]
        return total[profile.columns] / len(members)

    def _report(self) -> None:
        n = len(self.encoded_)
        if len(self.failures_):
            warn(
                f"demonstrations {self.failures_.tolist()} of {n} failed: their returns are "
                f"{[float(f'{self.returns_[i]:.4g}') for i in self.failures_]}, not above the "
                f"baseline {self.baseline_:g} or far below the others'. They are not aligned",
                stacklevel=5,
            )
        known = self.events_.base.n_events
        if not any((self.encoded_[i].sequence < known).any() for i in self.used_):
            what = "no demonstration holds an event"
        elif not self.strategies_:
            what = "the demonstrations share no strategy beyond chance"
        elif self.scale_ == 0.0:
            what = "the demonstrations score zero against their own profile"
        else:
            if len(self.outliers_):
                warn(
                    f"demonstrations {self.outliers_.tolist()} of {n} agree with no other one and "
                    "are not part of a strategy",
                    stacklevel=5,
                )
            return
        warn(
            f"{what}, so nothing can be redistributed: every episode keeps its episodic reward, "
            "given at its end as the correction. Other events may help (fewer, or a function)",
            stacklevel=5,
        )

    # What was learned

    @property
    def alignment_(self) -> Alignment | None:
        """Alignment of the largest strategy, None if there is none."""
        self._check_fitted()
        return self.strategies_[0].alignment if self.strategies_ else None

    @property
    def profile_(self) -> Profile | None:
        """Profile of the largest strategy, None if there is none."""
        self._check_fitted()
        return self.strategies_[0].profile if self.strategies_ else None

    @property
    def subgoals_(self) -> list[SubGoal]:
        """Sub-goals of the largest strategy."""
        self._check_fitted()
        return self.strategies_[0].subgoals if self.strategies_ else []

    def _check_fitted(self) -> None:
        if not hasattr(self, "strategies_"):
            raise ValueError("this AlignRudder is not fitted; call fit or fit_events first")

    def _symbol_encoder(self) -> SymbolEvents:
        self._check_fitted()
        base = self.events_.base
        if not isinstance(base, SymbolEvents):
            raise ValueError(
                f"the model was fitted to episodes with {type(base).__name__}; symbols can "
                "be given only to a model fitted with fit_events. Use redistribute(episode)"
            )
        return base

    # Redistribution

    def encode(self, episode: Episode) -> Encoded:
        """Return the events of an episode."""
        self._check_fitted()
        check_episodes([episode])
        return self.events_.encode(episode)

    def encode_events(self, sequence: Iterable[Hashable]) -> np.ndarray:
        """Return the event ids of symbols; None is no event, an unseen symbol is n."""
        return self._symbol_encoder().encode_sequence(sequence)

    def redistribute(self, episode: Episode) -> Redistribution:
        """Return the share of every step in the episode's return."""
        encoded = self.encode(episode)
        steps = track(self.tables_, encoded)
        return Redistribution.from_steps(steps, episode.rewards, episode.terminated)

    def demonstration(self, index: int) -> Redistribution:
        """Return the redistribution of a demonstration, as if its return were paid at its end."""
        self._check_fitted()
        steps = track(self.tables_, self.encoded_[index])
        return Redistribution.at_end(steps, self.returns_[index])

    def redistribute_events(self, sequence: Iterable[Hashable], ret: float) -> Redistribution:
        """Return the share of every symbol of a sequence in the return, which its end is paid."""
        if not isinstance(ret, Real) or not np.isfinite(float(ret)):
            raise ValueError(f"the return is {ret!r}; it must be a finite number")
        events = self._symbol_encoder().encode_sequence(sequence)
        encoded = Encoded(NO_EVENT, events)
        if isinstance(self.events_, DoneEvents):
            encoded = self.events_.add_to(encoded, _paid_at_end(float(ret), events))
        return Redistribution.at_end(track(self.tables_, encoded), float(ret))

    def stream(self) -> Stream:
        """Return a stream for one running episode at a time."""
        self._check_fitted()
        return Stream(self)

    def vector_stream(self, n: int) -> VectorStream:
        """Return a stream for n running episodes at once."""
        self._check_fitted()
        return VectorStream(self, n)

    def kappa(self, episodes: Sequence[Episode]) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of κ̂ at each position on the profiles, and how many steps were there.

        κ̂_t is the redistributed reward still to come after step t. A position is a cell of
        `scorer_`: for one strategy, cell 0 is before the first column, cell j behind column j−1.
        Cells never visited have NaN.
        """
        self._check_fitted()
        total, count = np.zeros(self.scorer_.n_cells), np.zeros(self.scorer_.n_cells, int)
        for episode in check_episodes(episodes):
            rr = self.redistribute(episode)
            np.add.at(total, rr.cells, rr.kappa)
            np.add.at(count, rr.cells, 1)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan), count

    # Sub-tasks

    def progress_of(self, encoded: Encoded | np.ndarray) -> Progress:
        """Return which sub-goals are done and which is next, for the events of an episode so far.

        Args:
            encoded: What `encode` returns, or event ids.
        """
        self._check_fitted()
        if not isinstance(encoded, Encoded):
            encoded = Encoded(NO_EVENT, np.asarray(encoded, np.int64))
        # The start state is taken as a step, so that there is a place before the first one.
        whole = Encoded(NO_EVENT, np.concatenate([[encoded.start], encoded.events]))
        steps = track(self.tables_, whole)
        cell, following = steps.cell[-1], int(steps.subgoal[-1])
        k, column = int(self.tables_.strategy_of[cell]), int(self.tables_.column_of[cell])
        done: list[int] = []
        goals = self.strategies_[k].subgoals if self.strategies_ else []
        if goals:
            matched = set(self.matched_columns(encoded, k).tolist())
            done = [i for i, goal in enumerate(goals) if goal.column in matched]
        left = following if following < len(goals) else None
        return Progress(k, column, tuple(done), left, float(steps.score[-1] - steps.score[0]))

    def matched_columns(self, encoded: Encoded, strategy: int = 0) -> np.ndarray:
        """Return the profile column to which each step of an episode is aligned (T,), -1 for none.

        That is the best alignment of the whole episode, with hindsight: a step that was matched
        when it was made may be given up for a later one.
        """
        self._check_fitted()
        encoded = without_undone(encoded, self.tables_.undoes)
        events = np.concatenate([[encoded.start], encoded.events])
        return self.scorer_.match_columns(events, strategy)[1:]

    def subtasks(
        self, episodes: Sequence[Episode] | None = None, strategy: int = 0
    ) -> list[SubTask]:
        """Return the sub-tasks of a strategy, each with the segments of episodes that did it.

        Args:
            episodes: The episodes to cut; None for the strategy's own demonstrations. A segment
                carries the place of its episode among them, or among the demonstrations given.
            strategy: Which strategy.
        """
        self._check_fitted()
        if not 0 <= strategy < len(self.strategies_):
            raise ValueError(
                f"strategy={strategy}, but there are {len(self.strategies_)} strategies"
            )
        chosen = self.strategies_[strategy]
        if episodes is None:
            encoded = [self.encoded_[i] for i in chosen.members]
        else:
            encoded = [self.encode(e) for e in check_episodes(episodes)]
        columns = [self.matched_columns(e, strategy) for e in encoded]
        after = [-1, *(goal.column for goal in chosen.subgoals)]
        segments = cut_segments(chosen.subgoals, columns)
        if episodes is None:
            place = chosen.members.tolist()
            segments = [tuple(replace(s, episode=place[s.episode]) for s in k) for k in segments]
        return [SubTask(k, goal, after[k], segments[k]) for k, goal in enumerate(chosen.subgoals)]

    def next_subgoal(self, cell: int) -> int:
        """Return the index of the first sub-goal behind a cell; their number if none is left.

        The next sub-goal of an episode (`Stream.subgoal`) may be an earlier one: events between
        sub-goals do not move it on.
        """
        return int(self.subgoal_table()[cell])

    def subgoal_table(self) -> np.ndarray:
        """Return `next_subgoal` for every cell."""
        self._check_fitted()
        return self.tables_.subgoal_of.copy()

    # Files and text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model as one npz file (arrays and JSON; no pickle)."""
        self._check_fitted()
        storage.save_model(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        function: Callable[..., Hashable | None] | None = None,
        scoring: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> Self:
        """Load a saved model.

        Args:
            path: The file.
            function: The event function, for a model whose events come from one.
            scoring: The scoring function, for a model that has one.
        """
        return storage.load_model(cls, path, function, scoring)

    def __repr__(self) -> str:
        text = super().__repr__()
        if not hasattr(self, "strategies_"):
            return text
        columns = " + ".join(str(len(s.profile)) for s in self.strategies_) or "no"
        return (
            f"{text} fitted to {len(self.encoded_)} demonstrations: {self.events_.n_events} "
            f"events, {len(self.strategies_)} strategies, {columns} columns, "
            f"{len(self.subgoals_)} sub-goals"
        )

    def summary(self) -> str:
        """Return events, alignment, consensus and sub-goals of every strategy as text."""
        self._check_fitted()
        return summary.as_text(self)


def _paid_at_end(ret: float, events: np.ndarray) -> np.ndarray:
    """Return rewards (T,) that the last event alone is paid."""
    own, happened = np.zeros(len(events)), np.flatnonzero(events != NO_EVENT)
    own[happened[-1:]] = ret
    return own


def _with_last(part: Part, encoded: Sequence[Encoded], event: int) -> Part:
    """Return a strategy with one more column behind its alignment, of an event that ends it."""
    held = [event in encoded[i].events for i in part.members]
    alignment = part.alignment.appended(held, event)
    columns = part.columns
    if columns is not None:
        columns = np.append(columns, alignment.n_columns - 1)
    return Part(part.members, alignment, columns)
