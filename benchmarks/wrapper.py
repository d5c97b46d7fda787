"""What the wrappers add to a step of the environment, at 100 columns.

For numbered states, a vector and a dict: what is observed decides how long a step takes.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

import align_rudder as ar
from align_rudder.demonstrations import Demonstrations
from align_rudder.episodes import tree_index
from align_rudder.events import DoneEvents
from align_rudder.fitting import fit
from align_rudder.null import Chance

__all__ = ["measure"]

STATES, COLUMNS, ENVS = 400, 100, 1024
ITEMS = 8


class Line(gym.Env):
    """Walks along a line of states for ever: the cheapest environment with events."""

    observation_space = spaces.Discrete(STATES)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.state = 0
        return 0, {}

    def step(self, action):
        self.state = (self.state + 1) % STATES
        return self.state, 0.0, False, False, {}


class Lines(VectorEnv):
    """Many of them."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012
    num_envs = ENVS
    single_observation_space = spaces.Discrete(STATES)
    single_action_space = spaces.Discrete(2)
    observation_space = spaces.MultiDiscrete([STATES] * ENVS)
    action_space = spaces.MultiDiscrete([2] * ENVS)

    def reset(self, *, seed=None, options=None):
        self.state = np.arange(ENVS) % STATES
        return self.state, {}

    def step(self, actions):
        self.state = (self.state + 1) % STATES
        nothing = np.zeros(ENVS)
        return self.state, nothing, nothing > 0, nothing > 0, {}


class Bag(Line):
    """Picks something up at every fourth step, one of eight kinds, and shows what it holds."""

    def __init__(self, dicts: bool):
        gained = np.zeros((STATES, ITEMS), np.float32)
        gained[np.arange(4, STATES, 4), np.arange(1, STATES // 4) * 7 % ITEMS] = 1
        held = gained.cumsum(axis=0)
        one = spaces.Box(0, STATES, (1,), np.float32)
        if dicts:
            self.held = {f"item{k}": held[:, [k]] for k in range(ITEMS)}
            self.observation_space = spaces.Dict(dict.fromkeys(self.held, one))
        else:
            self.held = held
            self.observation_space = spaces.Box(0, STATES, (ITEMS,), np.float32)
        self.seen = [tree_index(self.held, t) for t in range(STATES)]

    def reset(self, *, seed=None, options=None):
        super().reset()
        return self.seen[0], {}

    def step(self, action):
        _, *rest = super().step(action)
        return self.seen[self.state], *rest

    def model(self) -> ar.AlignRudder:
        """Return a model of 100 columns: 99 things that are picked up, and "done"."""
        demos = [ar.Episode(self.held, [0] * (STATES - 1), np.eye(STATES - 1)[-1])] * 3
        model = ar.AlignRudder(ar.DeltaEvents(max_share=1), strategies=1, undo=None).fit(demos)
        assert model.scorer_.n_cells == COLUMNS + 1, model
        return model


def _model() -> ar.AlignRudder:
    """Return a model of exactly 100 columns over 15 events that are entered every few steps.

    The last column is "done", and skipping columns costs, as by default.
    """
    path, paid = np.arange(STATES), np.append(np.zeros(STATES - 2), 1.0)
    demos = [ar.Episode(path, path[1:] * 0, paid) for _ in range(3)]
    base = ar.StateEvents().fit(demos)
    regions = np.minimum(np.arange(STATES) // (STATES // COLUMNS), COLUMNS - 2)
    base._set(path[:, None], regions * 7 % 15, np.ones(STATES), {"": []})
    events = DoneEvents(base, 0.1)
    model = ar.AlignRudder(base, strategies=1)
    encoded = [events.encode(demo) for demo in demos]
    given = [1.0] * 3, [STATES] * 3, np.arange(3), Chance.none()
    model._take(fit(model, Demonstrations(events, encoded, *given)))
    assert len(model.scorer_.bounds) == 2, model
    assert model.scorer_.n_cells == COLUMNS + 1, model
    return model


def _per_step(env: Any, steps: int, action: Any) -> float:
    env.reset(seed=0)
    best = np.inf
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(steps):
            env.step(action)
        best = min(best, (time.perf_counter() - start) / steps)
    return best


def measure() -> dict[str, Any]:
    """Return the overhead of a step, in microseconds, for one environment and for 1024.

    "box_us" and "dict_us" are of one environment with a vector of eight numbers, and with a dict of
    eight entries; the others have numbered states.
    """
    model = _model()
    plain, wrapped = Line(), ar.RedistributeReward(Line(), model)
    one = _per_step(wrapped, 20_000, 0) - _per_step(plain, 20_000, 0)
    actions = np.zeros(ENVS, int)
    many = _per_step(ar.vector.RedistributeReward(Lines(), model), 500, actions)
    many = (many - _per_step(Lines(), 500, actions)) / ENVS
    found = {"columns": COLUMNS, "single_us": one * 1e6, "vector_us": many * 1e6, "envs": ENVS}
    for name, env in (("box_us", Bag(dicts=False)), ("dict_us", Bag(dicts=True))):
        more = _per_step(ar.RedistributeReward(env, env.model()), 5_000, 0)
        found[name] = (more - _per_step(env, 5_000, 0)) * 1e6
    return found
