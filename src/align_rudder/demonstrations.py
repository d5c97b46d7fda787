"""Demonstrations as events: which are aligned, and what chance and failures do."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from align_rudder.alignment import pairwise_scores
from align_rudder.choice import chosen_events
from align_rudder.episodes import Episode, select_top
from align_rudder.events import (
    DoneEvents,
    Encoded,
    EventEncoder,
    SymbolEvents,
    Vocabulary,
    given_encoder,
    with_done,
)
from align_rudder.null import Chance, renumbered
from align_rudder.returns import baseline_of, failed
from align_rudder.sampling import sample_of
from align_rudder.sequences import NO_EVENT
from align_rudder.subsequence import central_subsequence
from align_rudder.undo import check_undo, with_undo
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
    "central_first",
    "from_episodes",
    "from_sequences",
    "paid_at_end",
    "with_episodes",
    "with_sequences",
]


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


def central_first(demos: Demonstrations) -> list[Demonstrations]:
    """Return each demonstration that is used alone, those that share most with the others first.

    Each stands twice, as an alignment needs two. Of equal ones the first is returned, of many a
    sample.
    """
    used = demos.used[sample_of(len(demos.used))]
    sequences = [demos.encoded[i].sequence for i in used]
    shared = pairwise_scores(sequences, np.eye(demos.encoder.n_events + 1), 0.0)
    lengths = np.array([len(sequence) for sequence in sequences])
    distance = (lengths[:, None] + lengths - 2 * shared).sum(axis=1)
    out: dict[tuple[int, ...], Demonstrations] = {}
    for k in np.argsort(distance, kind="stable").tolist():
        i, events = int(used[k]), tuple(sequences[k].tolist())
        if events and events not in out:
            one, ret, n = demos.encoded[i], demos.returns[i], demos.lengths[i]
            twice = ([one] * 2, [ret] * 2, [n] * 2, np.arange(2))
            out[events] = Demonstrations(demos.encoder, *twice, Chance.none())
    return [*out.values()]


def median_first(demos: Demonstrations, consensuses: Sequence[list[int]]) -> list[Demonstrations]:
    """Return the median string of the demonstrations, then each of them as `central_first` does.

    It is what half of them hold in order, and is left out if it is a consensus already.
    """
    alone = central_first(demos)
    used = demos.used[sample_of(len(demos.used))]
    sequences = [s for i in used if len(s := demos.encoded[i].sequence)]
    if len(sequences) < 3:
        return alone
    places = central_subsequence(sequences, demos.encoder.n_events + 1, 0.5)
    holders = (places >= 0).argmax(axis=0).tolist()
    events = [int(sequences[i][places[i, k]]) for k, i in enumerate(holders)]
    if not events or events in consensuses:
        return alone
    one = Encoded(NO_EVENT, np.array(events))
    ret = float(np.mean([demos.returns[i] for i in used]))
    twice = ([one] * 2, [ret] * 2, [len(events)] * 2, np.arange(2))
    others = [d for d in alone if d.encoded[0].sequence.tolist() != events]
    return [Demonstrations(demos.encoder, *twice, Chance.none()), *others]


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
    given_encoder(model.events)  # not used here, but a mistake all the same
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
