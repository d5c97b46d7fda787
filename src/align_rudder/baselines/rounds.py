"""Events without their order, round after round: controls for tasks that allow to try orders."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from align_rudder.baselines.model_tables import automaton_of
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.baselines.q_tables import Tables, tables_of, trace_rule
from align_rudder.baselines.turns import Turns
from align_rudder.files import Flag, Number, Whole, check_values
from align_rudder.settlement import Settlement
from align_rudder.tasks.mdp import TabularMDP
from align_rudder.undo import check_undo
from align_rudder.validation import check_sequences

__all__ = ["collecting", "common_symbols", "learn_rounds", "losing", "touring", "visits"]

_MOST = 12  # kinds of which every set is a state


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

    If fewer than two symbols are so common, they are the two that most logs hold.

    Example:
        >>> common_symbols(["cab", "cb", "cbd"])
        ['b', 'c']
    """
    held = [set(log) for log in logs]
    shares = {s: sum(s in log for log in held) / len(held) for s in set().union(*held)}
    least = min([share, *sorted(shares.values(), reverse=True)[1:2]])
    return sorted((s for s, found in shares.items() if found >= least), key=str)


def touring(n_kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which state follows on each kind, and what is paid: a tour in a fixed order.

    State i waits for kind i; both arrays are (states, kinds).

    Example:
        >>> following, paid = touring(2)
        >>> following.tolist(), paid.tolist()
        ([[1, 0], [1, 0]], [[1.0, 0.0], [0.0, 1.0]])
    """
    at = np.arange(n_kinds)
    following = np.tile(at[:, None], (1, n_kinds))
    following[at, at] = (at + 1) % n_kinds
    return following, np.eye(n_kinds)


def collecting(n_kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the same where all kinds are collected in any order, then all again.

    A state is the set of kinds that this round has seen, its bits.

    Example:
        >>> following, paid = collecting(2)
        >>> following.tolist(), paid.tolist()
        ([[1, 2], [1, 0], [0, 2]], [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    """
    every = 2**n_kinds - 1
    state, bit = np.arange(every)[:, None], 2 ** np.arange(n_kinds)
    return (state | bit) % every, ((state & bit) == 0).astype(float)


def losing(n_kinds: int, any_order: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return what follows and is paid where a kind is lost: what it was paid is taken back.

    In any order it is then missing from the set, in a tour it is the next again.

    Example:
        >>> following, paid = losing(2)
        >>> following.tolist(), paid.tolist()
        ([[0, 0], [0, 1], [2, 0]], [[0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]])
    """
    if any_order:
        state, bit = np.arange(2**n_kinds - 1)[:, None], 2 ** np.arange(n_kinds)
        held = (state & bit) > 0
        return state & ~bit, 0.0 - held
    at = np.arange(n_kinds)
    following = np.tile(at[:, None], (1, n_kinds))
    following[at, at - 1] = (at - 1) % n_kinds
    return following, 0.0 - np.eye(n_kinds)[at - 1]


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
    any_order: bool = False,
    undo: Mapping[Hashable, Hashable] | None = None,
    turns: int | None = 300,
    initial_mean: float = 0.02,
    protocol: Protocol | None = None,
) -> Result:
    """Learn to make all common kinds of event happen, round after round.

    Each is paid once in a round, in the order of their names or in any order, and the agent knows
    which are left. Where a wrong one costs nothing and time is long, that does in the end what any
    order asks for. Learner and settlement are those of `learn_align_rudder`; no order is taken from
    the logs.

    Args:
        mdp: The environment, with named events; success returns 1.
        logs: Sequences of events of successful runs.
        seed: Seed of the trial.
        learning_rate: Learning rate.
        trace: λ of the trace.
        gamma: Discount.
        settlement: Where the rest of the return goes (`align_rudder.settlement`); None to learn
            from the shares alone.
        share: A kind counts if this share of the logs holds it.
        any_order: Whether a round may be in any order; then the set of kinds that were seen in it
            is known, else the next one.
        undo: From the symbol of an event to that of the kind that it takes back: what that was paid
            is then taken back, too, and the kind is to be collected again, as `AlignRudder(undo=…)`
            does for ours. Of None only what is collected is known.
        turns: Episodes after which, if no evaluation was a success, it begins anew, with kinds that
            fewer logs hold every other time; None to go on.
        initial_mean: Mean value of an action at first.
        protocol: How the trial is run and judged.
    """
    kind = None if settlement is None else Settlement.of(settlement)
    check_values(
        learning_rate=(learning_rate, Number(0, 1)),
        trace=(trace, Number(0, 1)),
        gamma=(gamma, Number(0, 1)),
        share=(share, Number(above=0, high=1)),
        any_order=(any_order, Flag()),
    )
    if turns is not None:
        check_values(turns=(turns, Whole(1)))
    if isinstance(undo, str):
        raise ValueError(f"undo={undo!r}: rounds must be told by a dict, as in {{'lost A': 'A'}}")
    check_undo(undo)
    lost_by = dict(undo or {})
    logs = _checked(mdp, logs, lost_by)
    trial = Trial(mdp, [], protocol, seed, [1.0] * len(logs))
    initial = trial.cloned(0.0, initial_mean)
    rule = trace_rule(learning_rate, trace, gamma)
    collected = [[symbol for symbol in log if symbol not in lost_by] for log in logs]

    def tables(asked: float) -> Tables:
        kinds = common_symbols(collected, asked)
        if any_order and len(kinds) > _MOST and asked < share:
            kinds = common_symbols(collected, share)
        if any_order and len(kinds) > _MOST:
            raise ValueError(_too_many(collected, kinds, share))
        symbols = [*kinds]
        following, paid = (collecting if any_order else touring)(len(kinds))
        lost = [(symbol, kinds.index(k)) for symbol, k in lost_by.items() if k in kinds]
        if lost:
            back, repaid = losing(len(kinds), any_order)
            symbols += [symbol for symbol, _ in lost]
            columns = [k for _, k in lost]
            following = np.hstack([following, back[:, columns]])
            paid = np.hstack([paid, repaid[:, columns]])
        made = np.mean([_earned(log, symbols, following, paid) for log in logs])
        if made <= 0:
            raise ValueError(
                "what the logs collect they lose again, so that nothing of it is paid; give logs "
                "of successful runs, or another undo"
            )
        profile = automaton_of(mdp, symbols, following, paid / made, kind)
        return tables_of(trial, initial, profile, len(following), rule)

    begun = tables(share)
    if turns is None:
        return trial.run(*begun)
    return Turns([begun], _anew(tables, share), turns, 0.0, trial.target).run(trial)


def _checked(mdp: TabularMDP, logs: Any, undo: Mapping[Hashable, Hashable]) -> list[list[Hashable]]:
    """Return the logs as lists, or say what is wrong with them, the table or undo."""
    if not isinstance(mdp, TabularMDP):
        hint = "; give its mdp" if isinstance(getattr(mdp, "mdp", None), TabularMDP) else ""
        raise ValueError(f"mdp is {type(mdp).__name__}; a TabularMDP is needed{hint}")
    if logs is None:
        raise ValueError("logs is None; a list of sequences of symbols is needed")
    logs = check_sequences(logs, "logs")
    if not any(logs):
        raise ValueError(f"the {len(logs)} logs hold no event; give at least one that does")
    for what, symbols in (("the logs hold", set().union(*logs)), ("undo names", _both(undo))):
        unknown = symbols - set(mdp.symbols)
        if unknown:
            raise ValueError(
                f"{what} {', '.join(map(repr, sorted(unknown, key=str)[:5]))}, which the table "
                f"does not name; it has {', '.join(map(repr, mdp.symbols)) or 'no events'}"
            )
    return logs


def _both(undo: Mapping[Hashable, Hashable]) -> set[Hashable]:
    return {*undo, *undo.values()}


def _too_many(logs: list[list[Any]], kinds: list[Any], share: float) -> str:
    """Return what to say of more kinds than there can be sets of."""
    text = (
        f"{len(kinds)} kinds of event are in {share:.0%} of the logs, and every set of them is a "
        f"table of its own; at most {_MOST} are learned: "
    )
    fewest = len(common_symbols(logs, 1.0))
    if share < 1 and fewest <= _MOST:
        return f"{text}give a larger share (all logs hold {fewest})"
    return (
        f"{text}{fewest} of them are in all logs, so give any_order=False, or logs of fewer kinds"
    )


def _anew(tables: Any, share: float) -> Iterator[Tables]:
    """Yield tables to begin anew with, every other time with kinds that fewer logs hold."""
    for k in range(8):
        yield tables(share if k % 2 == 0 else max(share - 0.1, 0.5))


def _earned(
    log: Sequence[Hashable], kinds: Sequence[Hashable], following: np.ndarray, paid: np.ndarray
) -> float:
    state, earned, at = 0, 0.0, {symbol: i for i, symbol in enumerate(kinds)}
    for symbol in log:
        if symbol in at:
            earned += paid[state, at[symbol]]
            state = following[state, at[symbol]]
    return earned
