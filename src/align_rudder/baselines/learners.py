"""Align-RUDDER on tables, Q-learning and the control Q(λ)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from align_rudder.baselines.model_tables import NO_PROFILE, profile_of
from align_rudder.baselines.protocol import Protocol, Result, Trial
from align_rudder.baselines.q_tables import ONE_STEP, TRACE, WINDOW, Tables, run_tables, tables_of
from align_rudder.baselines.turns import Turns
from align_rudder.episodes import Episode
from align_rudder.events import StateEvents
from align_rudder.files import Number, Whole, check_values
from align_rudder.model import AlignRudder
from align_rudder.settlement import Settlement
from align_rudder.tasks.mdp import TabularMDP

__all__ = ["learn_align_rudder", "learn_q"]


def learn_q(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.1,
    trace: float = 0.0,
    gamma: float = 1.0,
    replays: int = 0,
    initial_scale: float = 0.3,
    initial_mean: float = 0.02,
    protocol: Protocol | None = None,
    returns: Sequence[float] | None = None,
) -> Result:
    """Learn by behavioural cloning and Q-learning on the environment's own reward.

    Args:
        mdp: The environment.
        demonstrations: For the initial table and the target; observations are states. May be
            empty, if `returns` are given.
        seed: Seed of the trial.
        learning_rate: Learning rate.
        trace: λ; 0 is one-step Q-learning, above it Q(λ): the control that has the same traces as
            Align-RUDDER but no redistribution.
        gamma: Discount.
        replays: Episodes drawn after each episode, from the demonstrations and the last 150, and
            learned from again; for Q(λ) alone.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        protocol: How the trial is run and judged.
        returns: The returns that set the target; None for those of the demonstrations.
    """
    check_values(
        learning_rate=(learning_rate, Number(0, 1)),
        trace=(trace, Number(0, 1)),
        gamma=(gamma, Number(0, 1)),
        replays=(replays, Whole(0)),
    )
    if replays and not trace:
        raise ValueError("replays go with Q(λ): give a trace above 0, or replays=0")
    trial = Trial(mdp, demonstrations, protocol, seed, returns)
    method = TRACE if trace > 0 else ONE_STEP
    rule = (method, float(learning_rate), float(trace), 1, float(gamma), True, int(replays))
    return run_tables(trial, trial.cloned(initial_scale, initial_mean), NO_PROFILE, 1, rule)


def learn_align_rudder(
    mdp: TabularMDP,
    demonstrations: Sequence[Episode],
    *,
    seed: int = 0,
    learning_rate: float = 0.2,
    method: Literal["trace", "kappa", "direct", "q-learning"] = "trace",
    trace: float = 0.8,
    bootstrap: bool = True,
    gamma: float = 0.99,
    replays: int = 0,
    window: int = 20,
    settlement: Settlement | str | None = "mean",
    progress: bool = True,
    subtasks: bool = False,
    initial_scale: float = 0.3,
    initial_mean: float = 0.02,
    max_events: int = 15,
    model: AlignRudder | Sequence[AlignRudder] | None = None,
    events: np.ndarray | None = None,
    turns: int | None = 300,
    options: Mapping[str, Any] | None = None,
    protocol: Protocol | None = None,
) -> Result:
    """Learn on the environment's reward and its redistribution, settled.

    Args:
        mdp: The environment.
        demonstrations: Demonstrations; observations are states. May be empty, if `model` is given:
            one of event logs from elsewhere, say.
        seed: Seed of the trial.
        learning_rate: Learning rate.
        method: Q(λ) by eligibility "trace"; without `bootstrap` it is the paper's method A, as
            with the rewards of the next `window` steps ("kappa") or the immediate one alone
            ("direct"); "q-learning" is its method C.
        trace: λ of the trace.
        bootstrap: Whether the trace bootstraps from the values of the states on the way.
        gamma: Discount.
        replays: Episodes drawn after each episode, from the demonstrations and the last 150, and
            learned from again; for Q(λ) alone.
        window: Steps of the κ window.
        settlement: Where the rest of the return goes (`align_rudder.settlement`); None to learn
            from the shares alone, as in the paper's tables: not return-equivalent. "kappa" and
            "direct" look a few steps ahead, which is best with "even" or None.
        progress: Whether the agent knows where on the alignment it stands: a table for each
            position, all of them cloned from the demonstrations.
        subtasks: Whether each sub-task has a Q-table of its own instead; a sub-agent takes over
            where the alignment passes a sub-goal, and earns only what it is paid until the next
            one.
        initial_scale: Value of a demonstrated action.
        initial_mean: Mean value of the actions where no demonstration was.
        max_events: Most events, where the model is fitted here.
        model: A model fitted with `StateEvents`, or to sequences of the table's symbols; None to
            fit one to the demonstrations. Where their returns are negative, give one with a
            baseline: `AlignRudder(StateEvents(), baseline=…).fit(demonstrations)`. Several take
            turns.
        events: The model's event of each outcome of the table (S, A, K), -1 for none, where the
            model sees something else than its states: what is held, say.
        turns: Where demonstrations cannot be cloned, the episodes after which, if no evaluation was
            a success, the model gives way to the next: one of the median string of its
            demonstrations, then of each (`AlignRudder.alternatives`), as what they share may lack
            a step; or the next of several that were given. The first has every third turn. None
            to stay with it.
        options: Parameters of the model, where it is fitted here.
        protocol: How the trial is run and judged.
    """
    methods = {"trace": TRACE, "kappa": WINDOW, "direct": WINDOW, "q-learning": ONE_STEP}
    if method not in methods:
        raise ValueError(f"method={method!r} is not known; use one of {sorted(methods)}")
    if subtasks and method in ("kappa", "direct"):
        raise ValueError(
            f"subtasks go with method='trace' or 'q-learning', not {method!r}, whose window would "
            "reach over the end of a sub-task"
        )
    if replays and method != "trace":
        raise ValueError(f"replays go with method='trace', not {method!r}; give replays=0")
    kind = None if settlement is None else Settlement.of(settlement)
    if kind is not None and kind.spreads and method == "q-learning":
        raise ValueError(
            "q-learning learns at every step, before the rest of the return is known; use "
            'settlement="annealed", or a method that learns from whole episodes'
        )
    check_values(
        learning_rate=(learning_rate, Number(0, 1)),
        trace=(trace, Number(0, 1)),
        gamma=(gamma, Number(0, 1)),
        replays=(replays, Whole(0)),
        window=(window, Whole(1)),
    )
    if turns is not None:
        check_values(turns=(turns, Whole(1)))
    if model is None:
        Trial(mdp, demonstrations, protocol, seed)  # says what is wrong with the demonstrations
        parameters = {"strategies": 1, **(options or {})}
        model = AlignRudder(StateEvents(max_events=max_events), **parameters).fit(demonstrations)
    models: list[Any] = [*model] if isinstance(model, list | tuple) else [model]
    if not models:
        raise ValueError("no model was given; give one, several, or None to fit one here")
    for i, one in enumerate(models):
        if not isinstance(one, AlignRudder) or not hasattr(one, "strategies_"):
            raise ValueError(
                f"model {i} of {len(models)} is {type(one).__name__}"
                f"{', which is not fitted' if isinstance(one, AlignRudder) else ''}; fitted "
                "models are needed (AlignRudder.load reads one from a file)"
            )
    first = models[0]
    returns = None if demonstrations else getattr(first, "returns_", None)
    trial = Trial(mdp, demonstrations, protocol, seed, returns)
    seen = 1 if method == "direct" else int(window)
    numbers = (
        float(learning_rate),
        float(trace),
        seen,
        float(gamma),
        bool(bootstrap),
        int(replays),
    )
    initial = trial.cloned(initial_scale, initial_mean)

    def tables(model: AlignRudder) -> Tables:
        profile, n_tables = profile_of(model, mdp, events, kind, progress, subtasks)
        return tables_of(trial, initial, profile, n_tables, (methods[method], *numbers))

    begun = tables(first)  # says what is wrong with the model
    if turns is None or (demonstrations and len(models) == 1):
        return trial.run(*begun)
    others = map(tables, models[1:] if len(models) > 1 else _alternatives(first))
    return Turns([begun], others, turns, first.return_range_[0], trial.target).run(trial)


def _alternatives(model: AlignRudder) -> Iterator[AlignRudder]:
    """Return the alternatives of a model, made once the first of them is asked for."""
    yield from model.alternatives()
