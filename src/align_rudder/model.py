"""AlignRudder: the five steps behind fit, redistribute, save and load."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np

from align_rudder import demonstrations, fitting, storage, summary
from align_rudder._display import RichDisplay
from align_rudder._estimator import Estimator
from align_rudder._warnings import warn
from align_rudder.alignment import Alignment
from align_rudder.demonstrations import central_first, median_first
from align_rudder.episodes import Episode
from align_rudder.events import DoneEvents, Encoded, EventEncoder, SymbolEvents
from align_rudder.fitting import Strategy
from align_rudder.presets import IN_ORDER
from align_rudder.profile import Profile
from align_rudder.redistribution import Redistribution
from align_rudder.scoring import Scoring
from align_rudder.sequences import NO_EVENT
from align_rudder.streams import Stream, VectorStream
from align_rudder.subtasks import Progress, SubGoal, SubTask, cut_segments
from align_rudder.tracking import track
from align_rudder.undo import Undo, without_undone
from align_rudder.validation import check_episodes

__all__ = ["AlignRudder", "Strategy"]


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
        undo: Events that take back others: then progress can be lost. "auto" finds them where
            events see what is held (`DeltaEvents`): the reverse of a gain, unless demonstrations
            spend it so. `{"drop key": "key"}` says it by hand; None for none.
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
        undo: Undo | None = "auto",
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
        return self._fit(demonstrations.from_episodes(self, episodes, random_episodes, failures))

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
        return self._fit(
            demonstrations.from_sequences(
                self, sequences, returns, random_sequences, failures, random_returns
            )
        )

    def update(self, episodes: Sequence[Episode]) -> Self:
        """Let new good episodes join the demonstrations, and align again.

        Events keep their meaning (the encoder is not fitted again); with `top_n`, the best of old
        and new are used. Streams and wrappers use the new alignment from their next episode on.
        """
        self._check_fitted()
        return self._fit(demonstrations.with_episodes(self, episodes))

    def update_events(
        self, sequences: Sequence[Iterable[Hashable]], returns: Sequence[float] | None = None
    ) -> Self:
        """Let new sequences of symbols join the demonstrations, and align again."""
        base = self._symbol_encoder()
        return self._fit(demonstrations.with_sequences(self, base, sequences, returns))

    def _fit(self, demos: demonstrations.Demonstrations) -> Self:
        found = fitting.fit(self, demos)
        self._take(found)
        fitting.warn_of(found)
        return self

    def _take(self, found: fitting.Fit) -> None:
        """Keep what was learned."""
        demos = found.demonstrations
        self.events_, self.encoded_ = demos.encoder, demos.encoded
        self.returns_, self.lengths_ = demos.returns, demos.lengths
        self.used_, self.chance_ = demos.used, demos.chance
        self.background_, self.scores_, self.tree_ = found.background, found.scores, found.tree
        self.baseline_, self.random_share_ = found.baseline, found.random_share
        self.failures_, self.outliers_ = found.failures, found.outliers
        self.scale_, self.scorer_, self.tables_ = found.scale, found.scorer, found.tables
        self.strategies_ = found.strategies

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

    @property
    def return_range_(self) -> tuple[float, float]:
        """What an episode returns that fails, and one that is as good as the demonstrations."""
        self._check_fitted()
        used = [self.returns_[i] for i in self.used_]
        return float(self.baseline_), float(np.mean(used)) if used else float(self.baseline_)

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

    def alternatives(self, median: bool = True) -> list[Self]:
        """Return a model of the median string, then of each demonstration alone.

        The median string is what half of the demonstrations hold in order, more than what is
        certain; those that share most with the others are first. Such a model pays the next event
        of its sequence and no other. An agent that never succeeds with what the demonstrations
        share may do so with one of them: what they share may lack a step, and then an agent comes
        to its end and is not paid.

        Args:
            median: Whether the median string is one of them.

        Example:
            >>> model = AlignRudder().fit_events([["key", "door"], ["cat", "key", "door"]])
            >>> for other in model.alternatives():
            ...     rr = other.redistribute_events(["door", "cat", "key", "door"], ret=1.0)
            ...     print((rr.rewards > 0).tolist())
            [False, False, True, True]
            [False, True, True, True]
        """
        self._check_fitted()
        held = (self.events_, self.encoded_, self.returns_, self.lengths_, self.used_)
        out = []
        demos = demonstrations.Demonstrations(*held, self.chance_)
        own = [s.profile.frequencies.argmax(axis=0).tolist() for s in self.strategies_]
        for one in median_first(demos, own) if median else central_first(demos):
            other = type(self)(**{**self.get_params(deep=False), **IN_ORDER, "top_n": None})
            other._take(fitting.fit(other, one))
            out.append(other)
        return out

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
        self._warn_of_unknown(encoded)
        steps = track(self.tables_, encoded)
        return Redistribution.from_steps(steps, episode.rewards, episode.terminated)

    def _warn_of_unknown(self, encoded: Encoded) -> None:
        """Warn where a model of symbols is given an episode in which it knows none."""
        base = self.events_.base
        if not isinstance(base, SymbolEvents):
            return
        done = self.events_.done if isinstance(self.events_, DoneEvents) else NO_EVENT
        other = encoded.events[(encoded.events != NO_EVENT) & (encoded.events != done)]
        if len(other) and (other >= self.events_.n_events).all():
            warn(
                f"no step has a symbol that the model knows (such as {base.symbols_[0]!r}), so "
                "that nothing is redistributed; was it fitted to event logs? Give it logs "
                "(redistribute_events), or a function: RedistributeReward(env, model, events=…)",
                stacklevel=4,
            )

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
            encoded = self.events_.add_to(encoded, demonstrations.paid_at_end(float(ret), events))
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
