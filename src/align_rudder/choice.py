"""(I) Which events: the encoder that tells held-out demonstrations best from chance."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from align_rudder._warnings import AlignRudderWarning, warn
from align_rudder.episodes import Episode, tree_index
from align_rudder.events import (
    DoneEvents,
    Encoded,
    EventEncoder,
    NoEvents,
    candidates,
    choose_encoder,
)
from align_rudder.events.candidates import is_continuous
from align_rudder.events.observations import NoNumberError, common_shapes
from align_rudder.returns import baseline_of, final_scores

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["Trial", "chosen_events", "forth_and_back", "held_out"]

_MOST_BY_CHANCE = 0.2  # of the reward
_SURE = 2.0  # standard errors
_LEAST_WORTH = 0.6  # of the reward before "done", that held-out demonstrations earn beyond chance
_MOST_SUBGOALS = 15
_BEGINNING = 0.5
_MOST_EPISODES = 20  # of each kind, when encoders are tried


@dataclass(frozen=True)
class Trial:
    """What an encoder is worth, by demonstrations that it was not fitted to.

    That demonstrations are paid at their end shows nothing of the encoder, so the first two are
    shares of the reward without "done".

    Attributes:
        held_out: Share that these demonstrations earn, each at most 1.
        by_chance: Share that random episodes earn.
        unpaid: The longest part of a held-out demonstration in which nothing is paid, on average.
        subgoals: The most sub-goals of a strategy.
        at_most: What a random policy surely earns at most of the whole reward, with "done": the
            mean over random episodes and two standard errors. Without random episodes nothing is
            sure, and `by_chance` stands for it.
    """

    held_out: float
    by_chance: float
    unpaid: float
    subgoals: float
    at_most: float

    @property
    def good(self) -> bool:
        """Whether there is a reward of which chance earns little."""
        worth = self.held_out - self.by_chance
        return self.at_most <= _MOST_BY_CHANCE and worth >= _LEAST_WORTH

    @property
    def value(self) -> float:
        """How much of the reward tells demonstrations from chance, and how well it leads.

        An agent has to find by chance what lies between two steps that are paid, so that the
        longest of these stretches says how hard that is. More sub-goals than a person could name
        are worth less.
        """
        few = min(1.0, _MOST_SUBGOALS / max(self.subgoals, 1.0))
        return (self.held_out - self.by_chance) * (1 - self.unpaid) * few


def chosen_events(
    model: AlignRudder, episodes: Sequence[Episode], random_episodes: Sequence[Episode]
) -> EventEncoder:
    """Return the encoder that a model was given, or the best of those that come into question.

    Args:
        model: The model, not fitted yet.
        episodes: The demonstrations to align.
        random_episodes: Episodes of a random policy, which may be none.

    Notes:
        Each candidate is fitted to one half of the demonstrations and random episodes and tried on
        the other half, and the other way round (`held_out`). Without random episodes, the
        first half of each held-out demonstration, played forth and back, stands for chance.
        What the type suggests stays where it is good: for observations whose changes repeat
        (inventories, grids), always if there are no random episodes, else if those earn at most
        20 % of the reward. Of the others, the best one is taken that is good with all of the
        demonstrations as well. If there is none, there are no events.
    """
    if model.events is not None:
        return choose_encoder(model.events, episodes)
    common_shapes(episodes, None, random_episodes)
    found = candidates(episodes, bool(random_episodes))
    counted = not is_continuous(episodes)
    if len(found) == 1 or (counted and not random_episodes):
        return found[0]
    try:
        return _best(model, found, counted, episodes, random_episodes)
    except NoNumberError:
        return found[-1]  # which says of which of all episodes


def _best(
    model: AlignRudder,
    found: Sequence[EventEncoder],
    counted: bool,
    episodes: Sequence[Episode],
    random_episodes: Sequence[Episode],
) -> EventEncoder:
    """Return the best of several encoders, none if all are bad and the first is not for counts."""
    trials = [held_out(model, found[0], episodes, random_episodes)]
    if counted and trials[0].good:
        return found[0]
    trials += [held_out(model, one, episodes, random_episodes) for one in found[1:]]
    for i in sorted(range(len(found)), key=lambda i: -trials[i].value):
        if trials[i].good and held_out(model, found[i], episodes, random_episodes, whole=True).good:
            return found[i]
    if counted:
        return found[0]
    best = max(trials, key=lambda trial: trial.held_out - trial.by_chance)
    warn(
        f"no events were found that held-out demonstrations share and chance does not: of the "
        f"best of {len(trials)} encoders tried they earn {best.held_out:.0%} and chance "
        f"{best.by_chance:.0%}. Say what matters with events=… (a function, keys, an encoder)",
        stacklevel=5,
    )
    return NoEvents()


def held_out(
    model: AlignRudder,
    encoder: EventEncoder,
    episodes: Sequence[Episode],
    random_episodes: Sequence[Episode] = (),
    whole: bool = False,
) -> Trial:
    """Return what an encoder is worth on demonstrations that it was not fitted to.

    Args:
        model: The model, not fitted yet.
        encoder: The encoder.
        episodes: The demonstrations; less than four are not split.
        random_episodes: Episodes of a random policy.
        whole: Whether not to split the demonstrations. Random episodes are split all the same: what
            those earn that regions were fitted to is less than what others do.
    """
    demos, random = (_spread(some, _MOST_EPISODES) for some in (episodes, random_episodes))
    split = len(demos) >= 4 and not whole
    halves = [(0, 1), (1, 0)] if split or len(random) > 1 else [(0, 0)]
    baseline = baseline_of(model.baseline, [e.ret for e in random_episodes])
    found, shares = [], []
    for fitted, tried in halves:
        train, test = (_half(demos, part, split) for part in (fitted, tried))
        chance, contrast = (_half(random, part, len(random) > 1) for part in (fitted, tried))
        numbers, of_all = _trial(model, encoder, train, test, chance, contrast, baseline)
        found.append(numbers)
        shares.append(of_all)
    earned, by_chance, unpaid, subgoals = np.mean(found, axis=0).tolist()
    at_most = _surely(np.concatenate(shares)) if random else by_chance
    return Trial(earned, by_chance, unpaid, subgoals, at_most)


def _surely(shares: np.ndarray) -> float:
    """Return what the mean of the shares that episodes earn is at most, nearly surely."""
    error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
    return float(shares.mean() + _SURE * error)


def _trial(
    model: AlignRudder,
    encoder: EventEncoder,
    train: Sequence[Episode],
    test: Sequence[Episode],
    chance: Sequence[Episode],
    contrast: Sequence[Episode],
    baseline: float,
) -> tuple[tuple[float, float, float, float], np.ndarray]:
    """Return the first numbers of a `Trial`, and the share of the whole that chance earns."""
    options = {**model.get_params(deep=False), "undo": None, "progress": False}
    options |= {"events": copy.copy(encoder), "top_n": None, "baseline": baseline}
    trial = type(model)(**options)
    lost = contrast or [forth_and_back(e) for e in test]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlignRudderWarning)
        trial.fit(train, chance)
        if trial.scale_ <= 0:
            return (0.0, 0.0, 1.0, 0.0), np.zeros(len(lost))
        mine, theirs = ([trial.encode(e) for e in some] for some in (test, lost))
    used = [trial.encoded_[i] for i in trial.used_]
    earned = np.minimum(_scores(trial, mine) / _scores(trial, used).mean(), 1.0)
    by_chance = _scores(trial, theirs) / _scores(trial, used).mean()
    of_all = final_scores(trial.scorer_, theirs) / final_scores(trial.scorer_, used).mean()
    unpaid = float(np.mean([_longest_unpaid(trial, one) for one in mine]))
    subgoals = max(len(strategy.subgoals) for strategy in trial.strategies_)
    return (float(earned.mean()), float(by_chance.mean()), unpaid, float(subgoals)), of_all


def _longest_unpaid(trial: AlignRudder, encoded: Encoded) -> float:
    """Return the longest stretch between steps that are paid, as a part of the episode."""
    scores, _ = trial.scorer_.prefix_scores(encoded.events, encoded.start)
    paid = np.flatnonzero(np.diff(scores, prepend=0.0) > 0)
    n = len(scores)
    marks = np.concatenate([[-1], paid, [n - 1]])
    return float(np.diff(marks).max() / n) if n else 1.0


def _scores(trial: AlignRudder, encoded: Sequence[Encoded]) -> np.ndarray:
    """Return the scores of episodes without "done"."""
    done = trial.events_
    if isinstance(done, DoneEvents):
        encoded = [done.without(e) for e in encoded]
    return np.maximum(final_scores(trial.scorer_, encoded), 1e-12)


def forth_and_back(episode: Episode, part: float = _BEGINNING) -> Episode:
    """Return an episode as long that goes forth and back in the first part of this one.

    That is what getting nowhere looks like, as far as a demonstration can tell. Each step is paid
    what the worst one of the demonstration was, or nothing: where steps cost, one that costs
    nothing would be "done".
    """
    n = len(episode)
    k = max(1, int(part * n))
    at = k - np.abs(np.arange(n + 1) % (2 * k) - k)
    actions = tree_index(episode.actions, np.minimum(at[:-1], n - 1))
    paid = float(np.min(episode.rewards, initial=0.0))
    return Episode(tree_index(episode.observations, at), actions, np.full(n, paid))


def _spread(episodes: Sequence[Episode], most: int) -> list[Episode]:
    """Return at most so many of the episodes, from all over them."""
    at = np.unique(np.linspace(0, len(episodes) - 1, min(len(episodes), most)).astype(int))
    return [episodes[i] for i in at]


def _half(episodes: Sequence[Episode], part: int, split: bool) -> list[Episode]:
    """Return every second episode, or all where they are not split."""
    return list(episodes[part::2] if split else episodes)
