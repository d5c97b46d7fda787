"""The verdict: is there a shared strategy, how much is redistributed, what could be better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from align_rudder.alignment import pairwise_scores
from align_rudder.events.base import MAX_SENSIBLE_EVENTS
from align_rudder.show.report.numbers import rounded
from align_rudder.strategies import agreement
from align_rudder.summary import delayed, doubts, last_step_share, random_policy

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["verdict_data"]

_LOOKED_AT = 12  # demonstrations of a strategy whose agreement is measured
_LARGE_CORRECTION = 0.25


def verdict_data(model: AlignRudder, shown: list[dict[str, Any]], left_out: int) -> dict[str, Any]:
    """Return headline, numbers and warnings.

    Args:
        model: A fitted model.
        shown: The data of the episodes that are shown.
        left_out: How many episodes are not.
    """
    found = [model.demonstration(i) for i in model.used_]
    returns = np.array([model.returns_[i] for i in model.used_])
    given = np.array([rr.rewards.sum() for rr in found])
    corrections = np.array([abs(rr.correction) for rr in found])
    whole = float(np.abs(returns).mean()) or 1.0
    share = float(given.sum() / returns.sum()) if returns.sum() else 0.0
    conservation = [s.profile.conservation for s in model.strategies_]
    numbers = {
        "demonstrations": len(model.encoded_),
        "events": model.events_.n_events,
        "mean_length": rounded(np.mean([len(model.encoded_[i].sequence) for i in model.used_]), 4),
        "mean_return": rounded(returns.mean()),
        "strategies": len(model.strategies_),
        "columns": [len(s.profile) for s in model.strategies_],
        "subgoals": [len(s.subgoals) for s in model.strategies_],
        "conservation": [rounded(c.mean(), 4) if len(c) else 0 for c in conservation],
        "agreement": [rounded(_agreement(model, s.members), 4) for s in model.strategies_],
        "redistributed": rounded(share, 4),
        "last_step": rounded(last_step_share(model), 4),
        "correction": rounded(corrections.mean() / whole, 4),
    }
    if model.random_share_ is not None:
        numbers["random"] = rounded(model.random_share_, 4)
    troubles = doubts(model) or len(model.outliers_) or model.events_.n_events > MAX_SENSIBLE_EVENTS
    first = random_policy(model) or delayed(model)
    return {
        "state": "bad" if not share else ("fair" if troubles else "good"),
        "headline": ". ".join(filter(None, [_said(first), _headline(model, share)])),
        "numbers": numbers,
        "warnings": _warnings(model, numbers, shown, left_out),
    }


def _agreement(model: AlignRudder, members: np.ndarray) -> float:
    """Return how far demonstrations of a strategy agree beyond chance: 0 random, 1 identical."""
    if len(members) < 2:
        return 1.0
    spread = np.linspace(0, len(members) - 1, min(len(members), _LOOKED_AT)).astype(int)
    sequences = [model.encoded_[i].sequence for i in members[spread]]
    scores = pairwise_scores(sequences, model.scores_, model.gap)
    pairs = np.column_stack(np.triu_indices(len(sequences), 1))
    return agreement(sequences, pairs, scores, model.scores_, model.gap)[0]


def _said(sentence: str | None) -> str | None:
    return sentence and sentence[0].upper() + sentence[1:]


def _headline(model: AlignRudder, share: float) -> str:
    n = len(model.encoded_)
    if not model.strategies_:
        return "The demonstrations share no strategy: the reward stays at the end of the episode"
    if not share:
        return "The demonstrations line up, but nothing of their return can be redistributed"
    if len(model.strategies_) > 1:
        sizes = [len(s.members) for s in model.strategies_]
        listed = " and ".join([", ".join(map(str, sizes[:-1])), str(sizes[-1])])
        return f"The demonstrations follow {len(sizes)} strategies, of {listed} demonstrations"
    strategy = model.strategies_[0]
    everyone = "Both" if n == 2 else f"All {n}"
    who = everyone if len(strategy.members) == n else f"{len(strategy.members)} of {n}"
    columns = len(strategy.profile)
    return f"{who} demonstrations share one strategy of {columns} event{'s' * (columns != 1)}"


def _warnings(
    model: AlignRudder, numbers: dict[str, Any], shown: list[dict[str, Any]], left_out: int
) -> list[dict[str, str]]:
    """Return what is wrong, each with what to do about it."""
    n, n_events, shared = len(model.encoded_), model.events_.n_events, bool(model.strategies_)
    known = model.events_.base.n_events  # not "done", which every good episode holds
    empty = not any((e.sequence < known).any() for e in model.encoded_)
    alone = model.outliers_.tolist() if shared else []
    strange = [e["name"] for e in shown if e["e"] and not any(x < n_events for x in e["e"])]
    still = [e["name"] for e in shown if not e["e"]]
    checks = (
        (empty, "No demonstration holds an event.", "Choose other events, or a function."),
        (
            not empty and not shared,
            "No common strategy: the demonstrations agree no more than by chance.",
            "Try other events (fewer with max_events, other keys, a function), or give "
            "demonstrations that solve the task in the same way.",
        ),
        (
            n_events > MAX_SENSIBLE_EVENTS,
            f"Too many events: {n_events} kinds. With more than about {MAX_SENSIBLE_EVENTS}, good "
            "alignments can no longer be told from random ones.",
            "Merge events, for example with max_events.",
        ),
        (
            alone,
            f"{len(alone)} of {n} demonstrations agree with no other one: "
            f"{', '.join(map(str, alone))}.",
            "Look at them: they may have failed, or be the only ones of their kind. More "
            "demonstrations like them would form a strategy.",
        ),
        (
            any(len(s.members) == 2 for s in model.strategies_),
            "A strategy has only two demonstrations; what two have in common may be chance.",
            "Three or more show what matters.",
        ),
        (
            shared and not all(numbers["subgoals"]),
            "A strategy has no sub-goal.",
            "Lower subgoal_threshold.",
        ),
        (
            model.scale_ and numbers["correction"] > _LARGE_CORRECTION,
            f"The correction at the end is {numbers['correction']:.0%} of a demonstration's "
            "return on average: the events do not explain how the returns differ.",
            "Use demonstrations of similar return (top_n), set baseline, or choose events that "
            "show why some earn more.",
        ),
        (
            strange,
            f"{', '.join(strange)}: no event that the model knows.",
            f"{'Are they' if len(strange) > 1 else 'Is it'} of the same task?",
        ),
        (
            still,
            f"{', '.join(still)}: no event at all.",
            "That may be so where nothing was done; if something was, the events do not show it.",
        ),
        (
            left_out,
            f"{left_out} more episode{'s were' if left_out > 1 else ' was'} given and not shown.",
            "Raise max_episodes (--max-episodes).",
        ),
    )
    found = [(what, do) for wrong, what, do in checks if wrong]
    return [{"what": what, "do": do} for what, do in [*doubts(model), *found]]
