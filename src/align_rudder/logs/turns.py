"""What each turn of a run is worth: differences of the chance of success, settled to its return."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from align_rudder.data.logs import Run
from align_rudder.files import Number

__all__ = ["n_slots", "outcome_of", "settled", "turn_shares"]


def n_slots(run: Run) -> int:
    """Return how long the list of turn rewards is: as the messages; of a process as its entries."""
    return len(run.messages) or len(run.entries)


def outcome_of(run: Run) -> float:
    """Return the return of a run; `ValueError` if it is not known how it ended."""
    ret = run.ret if run.ret is not None or run.success is None else float(run.success)
    if ret is None:
        raise ValueError(
            f"{run.name} has no outcome, so that its turns have no reward; read the log with "
            "success='reward >= 1' or another condition, or leave the run out"
        )
    return float(Number().check(ret, f"{run.name}: the return"))


def turn_shares(run: Run, messages: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return by how much the chance of success changes with each turn (one for each of `turns`).

    What an event tells belongs to the turn whose message it is part of; what comes from others (a
    user's message) to the turn before. What only the end of the run tells belongs to its last turn,
    which ended it. What is known before the first turn belongs to none.

    Args:
        run: The run.
        messages: The message of each event (T,).
        values: The chance before the first event, after each, and at the end (T + 2).
    """
    turns = np.array(run.turns, int)
    out = np.zeros(len(turns))
    if not len(turns):
        return out
    place = np.append(np.searchsorted(turns, messages, side="right") - 1, len(turns) - 1)
    known = place >= 0
    np.add.at(out, place[known], np.diff(values)[known])
    return out


def settled(
    shares: Sequence[float] | np.ndarray, ret: float, worth: float, name: str
) -> np.ndarray:
    """Return rewards of turns whose sum is a run's return.

    Args:
        shares: By how much the chance of success changes with each turn (K,).
        ret: The run's return.
        worth: By how much successes return more than failures.
        name: What the run is called.

    Notes:
        r_k = w ΔV_k + (G − w Σ_j ΔV_j) / K. What the chance of success does not tell is given to
        all turns alike, so that none has it for its place; turns differ by w ΔV alone.

    Example:
        >>> settled([0.25, -0.75, 0.0], 0.0, 1.0, "a run").round(3).tolist()
        [0.417, -0.583, 0.167]
    """
    shares = worth * np.asarray(shares, float)
    if not len(shares):
        if ret:
            raise ValueError(
                f"{name} returns {ret:g} and has no turn that could have it; an assistant's "
                "message is needed"
            )
        return shares
    return shares + (ret - shares.sum()) / len(shares)
