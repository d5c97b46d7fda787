"""What a step of each tabular learner costs, the environment's own included, beside Q-learning."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from align_rudder import AlignRudder, StateEvents
from align_rudder.baselines import Protocol
from align_rudder.baselines.lstm import LstmRudder
from align_rudder.baselines.rudder import random_episodes_of
from align_rudder.studies.rooms.methods import COMPARED, METHODS, chosen_parameters
from align_rudder.tasks import RoomsEnv

__all__ = ["measure"]

EPISODES, DEMOS = 2000, 10


def measure() -> list[dict[str, Any]]:
    """Return nanoseconds per step on EightRooms, one core, and how many times Q-learning's.

    Models are fitted before; the alignment of the running episode is in the step.
    """
    env = RoomsEnv(8)
    demos = env.demonstrations(DEMOS, seed=0)
    # One evaluation of one episode at the end, and a target that is out of reach.
    protocol = Protocol(
        evaluate_every=EPISODES, max_episodes=EPISODES, evaluation_episodes=1, target=10.0
    )
    parameters = chosen_parameters()
    network = LstmRudder(updates=5).fit(demos, random_episodes_of(env.mdp, 10, 0))
    runs = {}
    for name in COMPARED:
        method = METHODS[name]
        options = {k: v for k, v in parameters[name].items() if k not in (method.network or ())}
        if method.network is not None:
            options["model"] = network
        elif name == "align-rudder":
            options["model"] = AlignRudder(StateEvents(max_events=15), strategies=1).fit(demos)
        runs[name] = (method.learn, options)
    best = dict.fromkeys(runs, np.inf)
    for repeat in range(4):  # the methods take turns; the first round compiles
        for name, (learn, options) in runs.items():
            start = time.perf_counter()
            result = learn(env.mdp, demos, seed=repeat, protocol=protocol, **options)
            spent = (time.perf_counter() - start) / result.steps
            if repeat:
                best[name] = min(best[name], spent)
    return [
        {"method": name, "ns_per_step": s * 1e9, "times_q_learning": s / best["bc-q"]}
        for name, s in best.items()
    ]
