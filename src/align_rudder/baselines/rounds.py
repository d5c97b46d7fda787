"""Events without their order, round and round: the control for tasks that allow to try orders."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from align_rudder._warnings import AlignRudderWarning
from align_rudder.baselines.model_tables import account_of, profile_of
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.baselines.q_tables import run_tables, trace_rule
from align_rudder.files import Number, check_values
from align_rudder.model import AlignRudder
from align_rudder.presets import IN_ORDER
from align_rudder.settlement import Settlement
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["common_symbols", "learn_rounds", "visits"]


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


def common_symbols(logs: Sequence[Sequence[Hashable]], share: float = 0.8) -> list[Any]:
    """Return the symbols that this share of the logs holds, in the order of their names.

    Example:
        >>> common_symbols(["cab", "cb", "cbd"])
        ['b', 'c']
    """
    held = [set(log) for log in logs]
    symbols = set().union(*held)
    common = (s for s in symbols if np.mean([s in log for log in held]) >= share)
    return sorted(common, key=str)


def learn_rounds(
    mdp: TabularMDP,
    logs: Sequence[Sequence[Hashable]],
    *,
    seed: int = 0,
    learning_rate: float = 0.2,
    trace: float = 0.8,
    gamma: float = 0.99,
    settlement: Settlement | str | None = "mean",
    share: float = 0.8,
    initial_mean: float = 0.02,
    undo: Mapping[Hashable, Hashable] | None = None,
    protocol: Protocol | None = None,
) -> Result:
    """Learn to visit the common kinds of event one after the other, in the order of their names.

    After the last kind comes the first again, and the agent knows which is next. Where a wrong one
    costs nothing and time is long, such a tour does in the end what any order asks for. Learner and
    settlement are those of `learn_align_rudder`; no order is taken from the logs.

    Args:
        mdp: The environment, with named events; success returns 1.
        logs: Sequences of events of successful runs.
        seed: Seed of the trial.
        learning_rate: Learning rate.
        trace: λ of the trace.
        gamma: Discount.
        settlement: Where the rest of the return goes (`align_rudder.settlement`); None to learn
            from the shares alone.
        share: A kind is on the tour if this share of the logs holds it.
        initial_mean: Mean value of an action at first.
        undo: Which event takes back which, as in `AlignRudder`.
        protocol: How the trial is run and judged.
    """
    kind = None if settlement is None else Settlement.of(settlement)
    check_values(
        learning_rate=(learning_rate, Number(0, 1)),
        trace=(trace, Number(0, 1)),
        gamma=(gamma, Number(0, 1)),
        share=(share, Number(above=0, high=1)),
    )
    kinds = common_symbols(logs, share)
    if not kinds:
        raise ValueError(
            f"no kind of event is in {share:.0%} of the {len(logs)} logs; give a smaller share, or "
            "logs that have events in common"
        )
    rounds = -(-mdp.horizon // len(kinds))  # as many as fit into an episode
    with warnings.catch_warnings(action="ignore", category=AlignRudderWarning):
        model = AlignRudder(undo=undo, done=False, **IN_ORDER).fit_events([kinds * rounds] * 2)
    # The agent knows its place in a round, not the round; a log's visits are worth 1 on average.
    (events, scorer, cells, part_of, scale, _), _ = profile_of(model, mdp, None, kind, True, False)
    offset_of = np.arange(len(cells)) % len(kinds) * mdp.n_observations
    made = float(np.mean([visits(log, kinds) for log in logs]))
    scale *= len(kinds) * rounds / made if made else 0.0
    profile = (events, scorer, offset_of, part_of, scale, account_of(model, kind))
    trial = Trial(mdp, [], protocol, seed, [1.0] * len(logs))
    rule = trace_rule(learning_rate, trace, gamma)
    return run_tables(trial, trial.cloned(0.0, initial_mean), profile, len(kinds), rule)
