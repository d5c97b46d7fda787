"""Events without aligning: each kind that most demonstrations hold is paid once, in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from align_rudder.baselines.model_tables import account_of, events_of
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.baselines.q_tables import run_tables, trace_rule
from align_rudder.episodes import Episode
from align_rudder.events import StateEvents
from align_rudder.files import Number, Whole, check_values
from align_rudder.model import AlignRudder
from align_rudder.settlement import Settlement
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["common_kinds", "learn_unordered"]


def common_kinds(model: AlignRudder, share: float = 0.8) -> np.ndarray:
    """Return the kinds of events that this share of a model's demonstrations holds, by their ids.

    Example:
        >>> runs = ["key door chest", "key lamp door chest", "key door cat chest"]
        >>> model = AlignRudder(done=False).fit_events([run.split() for run in runs])
        >>> [model.events_.symbols_[kind] for kind in common_kinds(model)]
        ['chest', 'door', 'key']
    """
    n = model.events_.n_events
    held = [
        np.bincount(model.encoded_[i].sequence, minlength=n)[:n] > 0 for i in model.used_.tolist()
    ]
    return np.flatnonzero(np.mean(held, axis=0) >= share)


def learn_unordered(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.2,
    trace: float = 0.8,
    gamma: float = 0.99,
    replays: int = 0,
    settlement: Settlement | str | None = "mean",
    progress: bool = True,
    share: float = 0.8,
    initial_scale: float = 0.3,
    initial_mean: float = 0.02,
    max_events: int = 15,
    model: AlignRudder | None = None,
    events: np.ndarray | None = None,
    options: Mapping[str, Any] | None = None,
    protocol: Protocol | None = None,
) -> Result:
    """Learn on the environment's reward and that of events, without their order.

    The control of what aligning adds: the learner, the events, the settlement and what is observed
    are those of `learn_align_rudder`, but each kind of event that most demonstrations hold is paid
    once in an episode, whenever it comes, all of them alike.

    Args:
        mdp: The environment.
        demonstrations: Demonstrations; observations are states. May be empty, if `model` is given.
        seed: Seed of the trial.
        learning_rate: Learning rate.
        trace: λ of the trace.
        gamma: Discount.
        replays: Episodes drawn after each episode, as in `learn_align_rudder`.
        settlement: Where the rest of the return goes (`align_rudder.settlement`); None to learn
            from the shares alone.
        progress: Whether the agent knows how many of the kinds were seen: a table for each number.
        share: A kind is paid if this share of the demonstrations holds it.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        max_events: Most events, where the model is fitted here.
        model: A fitted model, of which events and demonstrations are taken and no alignment; None
            to fit one to the demonstrations.
        events: The model's event of each outcome of the table (S, A, K), -1 for none, where the
            model sees something else than its states.
        options: Parameters of the model, where it is fitted here.
        protocol: How the trial is run and judged.
    """
    kind = None if settlement is None else Settlement.of(settlement)
    check_values(
        learning_rate=(learning_rate, Number(0, 1)),
        trace=(trace, Number(0, 1)),
        gamma=(gamma, Number(0, 1)),
        replays=(replays, Whole(0)),
        share=(share, Number(above=0, high=1)),
    )
    if model is None:
        Trial(mdp, demonstrations, protocol, seed)  # says what is wrong with the demonstrations
        parameters = {"strategies": 1, **(options or {})}
        model = AlignRudder(StateEvents(max_events=max_events), **parameters).fit(demonstrations)
    happening = events_of(model, mdp, events)  # says so if the model is not fitted
    returns = None if demonstrations else model.returns_
    trial = Trial(mdp, demonstrations, protocol, seed, returns)
    kinds, n = common_kinds(model, share), model.events_.n_events
    paid = np.zeros((n + 1, 1))
    paid[kinds] = 1.0
    no_order = np.empty(0, np.int64)
    scorer = (paid, no_order, 0.0, np.zeros(n + 1), np.zeros((1, 4), np.int64))
    seen = np.arange(len(kinds) + 1)
    offset_of = seen * (mdp.n_observations if progress else 0)
    settled = account_of(model, kind)
    profile = (happening, scorer, offset_of, 0 * seen, _scale(model, kinds), settled)
    initial = trial.cloned(initial_scale, initial_mean)
    n_tables = len(seen) if progress else 1
    rule = trace_rule(learning_rate, trace, gamma, replays)
    return run_tables(trial, initial, profile, n_tables, rule)


def _scale(model: AlignRudder, kinds: np.ndarray) -> float:
    """Return what a kind is paid, so that the demonstrations are paid their return on average."""
    low, high = model.return_range_
    encoded = [model.encoded_[i] for i in model.used_.tolist()]
    seen = [np.isin(kinds, e.sequence).sum() - (e.start in kinds) for e in encoded]
    return (high - low) / float(np.mean(seen)) if np.any(seen) else 0.0
