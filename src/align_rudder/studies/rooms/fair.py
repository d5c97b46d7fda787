"""The methods of the fair comparison: discount and initial values are in the grid of each.

Every method has as many configurations as every other, drawn from values so wide that a choice is
seldom at an end; `Method.edges` says where one is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from align_rudder.studies.rooms.method import RoomsMethod

__all__ = ["FAIR_METHODS", "REPLAYED_METHODS", "SAMPLE"]

# Wide enough that a choice inside is one; the product is sampled.
_INITIAL = {
    "initial_mean": (0.0, 0.01, 0.02, 0.05, 0.1, 0.2),
    "initial_scale": (0.03, 0.1, 0.3, 0.6, 1.0),
}
_GAMMA = {"gamma": (0.8, 0.9, 0.95, 0.97, 0.99, 1.0)}
_BELOW_1 = {"gamma": (0.8, 0.9, 0.95, 0.97, 0.99)}
_TRACES = {
    **_INITIAL,
    **_GAMMA,
    "learning_rate": (0.05, 0.1, 0.2, 0.4, 0.7),
    "trace": (0.0, 0.5, 0.7, 0.8, 0.9, 0.95),
}
_REPLAYED = {**_TRACES, "trace": (0.0, 0.3, 0.5, 0.7, 0.8, 0.9)}


def _fair(
    label: str, learner: str, color: str, marker: str, grid: Any, **fixed: Any
) -> RoomsMethod:
    """Return a method with a discount and wide initial values in its grid."""
    return RoomsMethod(label, color, marker, grid, learner=learner, fixed=fixed, sample=SAMPLE)


def _variant(label: str, color: str, marker: str, **fixed: Any) -> RoomsMethod:
    """Return Align-RUDDER with other arguments of its learner; `options` are those of its model."""
    learner = "learn_align_rudder"
    return RoomsMethod(label, color, marker, {}, learner=learner, fixed=fixed, base="default")


SAMPLE = 40
"""Configurations of each method of the fair comparison, drawn from its grid."""

FAIR_METHODS: dict[str, RoomsMethod] = {
    "default": _fair(
        "Align-RUDDER",
        "learn_align_rudder",
        "vermillion",
        "o",
        {**_TRACES, "trace": (0.5, 0.7, 0.8, 0.9, 0.95)},
    ),
    "unordered": _fair(
        "events without aligning",
        "learn_unordered",
        "orange",
        "^",
        {**_TRACES, "trace": (0.5, 0.7, 0.8, 0.9, 0.95)},
    ),
    "q-lambda": _fair("BC+Q(λ), the control", "learn_q", "green", "D", _TRACES),
    "dqfd-discounted": _fair(
        "DQfD",
        "learn_dqfd",
        "blue",
        "s",
        {
            **_INITIAL,
            **_GAMMA,
            "learning_rate": (0.005, 0.01, 0.02, 0.05, 0.1),
            "n_step": (1, 3, 5, 10, 20),
            "pretraining_steps": (0, 30, 100, 300),
        },
    ),
    "sqil-discounted": _fair(
        "SQIL, told the goal's value",
        "learn_sqil",
        "purple",
        "v",
        {
            **_INITIAL,
            **_BELOW_1,
            "learning_rate": (0.05, 0.1, 0.2, 0.4, 0.7),
            "temperature": (1e-2, 1e-3, 1e-4, 1e-5),
        },
        absorbing=True,
    ),
    "gail-discounted": _fair(
        "GAIL, absorbing end",
        "learn_gail",
        "#333333",
        "*",
        {
            **_BELOW_1,
            "discriminator_rate": (0.03, 0.1, 0.3, 1.0),
            "entropy": (0.0, 0.001, 0.01, 0.1),
            "policy_rate": (0.03, 0.1, 0.3, 1.0),
            "reward": ("positive", "negative", "difference"),
            "trace": (0.8, 0.9, 0.95, 0.99),
            "value_rate": (0.03, 0.1, 0.3, 0.6),
        },
        absorbing=True,
    ),
    "ircr": _fair(
        "IRCR, absorbing end",
        "learn_ircr",
        "#8C7A00",
        "p",
        {**_REPLAYED, **_BELOW_1},
        absorbing=True,
    ),
    "rrd": _fair("RRD", "learn_rrd", "#7A4A2B", "h", {**_REPLAYED, "updates": (1, 2, 4, 8)}),
    "rudder-discounted": replace(
        _fair(
            "RUDDER (LSTM)",
            "learn_rudder",
            "sky",
            "P",
            {**_TRACES, "random_episodes": (5, 20, 50)},
        ),
        network=("random_episodes",),
    ),
    "conserved-50": _variant(
        "columns of half of them", "gray", "X", options={"min_conservation": 0.5}
    ),
    "conserved-80": _variant(
        "columns of 80 % of them", "#8F4E73", "<", options={"min_conservation": 0.8}
    ),
    "top-5": _variant("the best five alone", "yellow", ">", options={"top_n": 5}),
    "even": _variant('settlement "even"', "#555555", "1", settlement="even"),
    "untuned": replace(_variant("with the library's defaults", "#D1495B", "2"), base=""),
    "undiscounted": RoomsMethod(
        "BC+Q(λ), γ = 1, as in the paper's protocol",
        "gray",
        "X",
        {},
        learner="learn_q",
        base="control",
    ),
}

_AGAIN = {**_TRACES, "trace": (0.3, 0.5, 0.7, 0.8, 0.9)}
REPLAYED_METHODS: dict[str, RoomsMethod] = {
    "replayed": _fair(
        "Align-RUDDER, replayed", "learn_align_rudder", "#A03A00", "d", _AGAIN, replays=10
    ),
    "unordered-replayed": _fair(
        "events without aligning, replayed", "learn_unordered", "#B37A00", "3", _AGAIN, replays=10
    ),
    "q-lambda-replayed": _fair(
        "BC+Q(λ), the control, replayed", "learn_q", "#005C40", "4", _AGAIN, replays=10
    ),
}
"""Learners that go back to episodes as IRCR, RRD, DQfD and SQIL do: what replay alone is worth."""
