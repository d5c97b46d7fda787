"""Events without their order, round and round: the control for tasks that allow to try orders."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from align_rudder._warnings import AlignRudderWarning
from align_rudder.baselines.model_tables import account_of, profile_of
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.baselines.q_tables import run_tables, trace_rule
from align_rudder.baselines.unordered import common_kinds
from align_rudder.episodes import Episode
from align_rudder.events import SymbolEvents
from align_rudder.files import Number, check_values
from align_rudder.model import AlignRudder
from align_rudder.presets import IN_ORDER
from align_rudder.settlement import Settlement
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["learn_rounds", "visits"]


def visits(sequence: Sequence[Hashable], kinds: Sequence[Hashable]) -> int:
    """Return how many visits of a tour through the kinds, round and round, a sequence holds.

    Example:
        >>> visits("cabcbad", "abc")  # a, b, c and a again
        4
    """
    n = 0
    for symbol in sequence:
        n += bool(kinds) and symbol == kinds[n % len(kinds)]
    return n


def learn_rounds(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.2,
    trace: float = 0.8,
    gamma: float = 0.99,
    settlement: Settlement | str | None = "mean",
    share: float = 0.8,
    initial_mean: float = 0.02,
    model: AlignRudder,
    protocol: Protocol | None = None,
) -> Result:
    """Learn to visit the common kinds of event one after the other, in the order of their names.

    After the last kind comes the first again, and the agent knows which is next. Where a wrong one
    costs nothing and time is long, such a tour does in the end what any order asks for. Learner and
    settlement are those of `learn_align_rudder`; no order is taken from the logs.

    Args:
        mdp: The environment.
        demonstrations: Must be empty: what is learned from are the logs of `model`.
        seed: Seed of the trial.
        learning_rate: Learning rate.
        trace: λ of the trace.
        gamma: Discount.
        settlement: Where the rest of the return goes (`align_rudder.settlement`); None to learn
            from the shares alone.
        share: A kind is on the tour if this share of the logs holds it.
        initial_mean: Mean value of an action at first.
        model: A model of event logs (`fit_events`), of which logs and losses are taken and no
            alignment.
        protocol: How the trial is run and judged.
    """
    kind = None if settlement is None else Settlement.of(settlement)
    check_values(
        learning_rate=(learning_rate, Number(0, 1)),
        trace=(trace, Number(0, 1)),
        gamma=(gamma, Number(0, 1)),
        share=(share, Number(above=0, high=1)),
    )
    encoder = model.events_.base
    if not isinstance(encoder, SymbolEvents):
        raise ValueError(
            f"rounds are of named events; the model was fitted with {type(encoder).__name__}, give "
            "one of fit_events"
        )
    common = [k for k in common_kinds(model, share).tolist() if k < encoder.n_events]  # not "done"
    ids = sorted(common, key=lambda k: str(encoder.symbols_[k]))
    if not ids:
        raise ValueError(f"no kind of event is in {share:.0%} of the logs; give a smaller share")
    rounds = -(-mdp.horizon // (2 * len(ids)))  # more than fit into an episode
    tour = _in_order([encoder.symbols_[k] for k in ids] * rounds, model)
    (events, scorer, cells, part_of, scale, _), _ = profile_of(tour, mdp, None, kind, True, False)
    offset_of = np.arange(len(cells)) % len(ids) * mdp.n_observations
    # A visit is worth so much that the logs are paid their return on average.
    logs = [model.encoded_[i].sequence.tolist() for i in model.used_.tolist()]
    low, high = model.return_range_
    made = float(np.mean([visits(log, ids) for log in logs]))
    scale *= (high - low) * len(ids) * rounds / made if made else 0.0
    profile = (events, scorer, offset_of, part_of, scale, account_of(model, kind))
    trial = Trial(mdp, demonstrations, protocol, seed, model.returns_)
    initial = trial.cloned(0.0, initial_mean)
    return run_tables(trial, initial, profile, len(ids), trace_rule(learning_rate, trace, gamma))


def _in_order(sequence: list[Any], model: AlignRudder) -> AlignRudder:
    """Return a model that pays 1 in all for the events of a sequence, each in its turn."""
    with warnings.catch_warnings(action="ignore", category=AlignRudderWarning):
        return AlignRudder(undo=model.undo, done=False, **IN_ORDER).fit_events([sequence] * 2)
