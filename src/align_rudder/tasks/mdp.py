"""TabularMDP: an environment as tables, shared by Gymnasium classes and compiled learners."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from align_rudder._compile import njit
from align_rudder.episodes import Episode
from align_rudder.files import Flags, Floats, Ints, check_arrays

__all__ = [
    "Outcome",
    "TabularMDP",
    "best_return",
    "optimal_policy",
    "remembering",
    "rollout",
    "slippery",
]

Outcome = tuple[float, int, float, bool]
"""Probability, next state, reward, and whether the episode ends."""

_OUTCOMES = ("states", "actions", "outcomes")
_TABLES = {
    "next_states": Ints(*_OUTCOMES, high="states"),
    "cumulative": Floats(*_OUTCOMES),
    "rewards": Floats(*_OUTCOMES),
    "terminal": Flags(*_OUTCOMES),
    "starts": Floats("states", low=0),
    "time_factor": Floats("horizon+1"),
}


@dataclass(frozen=True, eq=False, repr=False)
class TabularMDP:
    """A finite environment with a time limit; transitions branch into at most K outcomes.

    Attributes:
        next_states: State reached (S, A, K).
        cumulative: Probability of this outcome or one before it (S, A, K); the last is 1.
        rewards: Reward (S, A, K).
        terminal: Whether the episode ends (S, A, K).
        starts: Probability of each start state (S,).
        horizon: Steps after which an episode is cut off.
        time_factor: What a reward at step t = 1…horizon is multiplied with (horizon + 1,); all 1
            where rewards do not depend on time.
        observed: What an agent sees of each state (S,), as a number; each state itself, if not
            given.
        labels: What happens with each outcome (S, A, K), an index of `symbols`, -1 for nothing;
            empty where no events are named.
        symbols: Names of what may happen.
    """

    next_states: np.ndarray
    cumulative: np.ndarray
    rewards: np.ndarray
    terminal: np.ndarray
    starts: np.ndarray
    horizon: int
    time_factor: np.ndarray
    observed: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    labels: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 0), np.int64))
    symbols: Sequence[Hashable] = ()

    def __post_init__(self) -> None:
        shape = self.next_states.shape
        if self.next_states.ndim != 3 or 0 in shape:
            raise ValueError(
                f"next_states has shape {shape}; needed is (states, actions, outcomes)"
            )
        if self.horizon < 1:
            raise ValueError(f"horizon={self.horizon} must be at least 1")
        tables = {name: getattr(self, name) for name in _TABLES}
        check_arrays(tables, _TABLES, {"horizon": self.horizon})
        if not np.allclose(self.cumulative[..., -1], 1.0):
            raise ValueError(
                "the probabilities of the outcomes of a state and action must sum to 1"
            )
        if (self.probabilities < -1e-12).any():
            raise ValueError("a probability is negative")
        if not len(self.observed):
            object.__setattr__(self, "observed", np.arange(shape[0]))
        if self.observed.shape != (shape[0],) or self.observed.min() < 0:
            raise ValueError(
                f"observed has shape {self.observed.shape}; a number per state: {shape[0]}"
            )
        if self.labels.size and (
            self.labels.shape != shape
            or self.labels.min() < -1
            or self.labels.max() >= len(self.symbols)
        ):
            raise ValueError(
                f"labels have shape {self.labels.shape} up to {self.labels.max()}; needed are "
                f"{shape}, below {len(self.symbols)}, the number of symbols"
            )
        if not np.isclose(self.starts.sum(), 1.0):
            raise ValueError(f"starts must hold {shape[0]} probabilities that sum to 1")

    @property
    def n_states(self) -> int:
        """Number of states S."""
        return self.next_states.shape[0]

    @property
    def n_observations(self) -> int:
        """How many states an agent can tell apart."""
        return int(self.observed.max()) + 1

    @property
    def n_actions(self) -> int:
        """Number of actions A."""
        return self.next_states.shape[1]

    @property
    def probabilities(self) -> np.ndarray:
        """Probability of each outcome (S, A, K)."""
        return np.diff(self.cumulative, axis=2, prepend=0.0)

    def step(self, state: int, action: int, t: int, u: float) -> tuple[int, float, bool]:
        """Return next state, reward and whether it ends the episode, for an action as step t.

        Args:
            state: The state.
            action: The action.
            t: Which step of the episode it is, from 1.
            u: A random number in [0, 1), which decides among the outcomes.
        """
        k = np.searchsorted(self.cumulative[state, action], u, side="right")
        outcome = state, action, k
        reward = self.rewards[outcome] * self.time_factor[min(t, self.horizon)]
        return int(self.next_states[outcome]), float(reward), bool(self.terminal[outcome])

    def __repr__(self) -> str:
        return (
            f"TabularMDP({self.n_states} states, {self.n_actions} actions, "
            f"{int((self.starts > 0).sum())} start states, horizon {self.horizon})"
        )

    @classmethod
    def from_outcomes(
        cls,
        outcomes: Any,
        starts: np.ndarray,
        horizon: int,
        time_factor: np.ndarray | None = None,
    ) -> Self:
        """Build the tables from lists of outcomes.

        Args:
            outcomes: outcomes[s][a] is a list of (probability, next state, reward, terminal), as
                in Gymnasium's toy-text environments.
            starts: Probability of each start state.
            horizon: Time limit.
            time_factor: What a reward at step t is multiplied with (horizon + 1,).
        """
        n_states = len(outcomes)
        n_actions = len(outcomes[0])
        if any(len(outcomes[s]) != n_actions for s in range(n_states)):
            raise ValueError("every state needs the same number of actions")
        cells = [[list(outcomes[s][a]) for a in range(n_actions)] for s in range(n_states)]
        k = max(len(cell) for row in cells for cell in row)
        padded = [[cell + [(0.0, 0, 0.0, True)] * (k - len(cell)) for cell in row] for row in cells]
        probabilities, next_states, rewards, terminal = (
            np.ascontiguousarray(part) for part in np.moveaxis(np.array(padded, float), 3, 0)
        )
        mdp = cls(
            next_states.astype(np.int32),
            np.cumsum(probabilities, axis=2),
            rewards,
            terminal.astype(bool),
            np.asarray(starts, float),
            int(horizon),
            np.asarray(np.ones(horizon + 1) if time_factor is None else time_factor, float),
        )
        mdp.cumulative[..., -1] = 1.0  # without the rounding of the sum
        return mdp

    @classmethod
    def from_gymnasium(cls, env: Any, horizon: int | None = None) -> Self:
        """Take the tables of a toy-text environment (Taxi, FrozenLake, CliffWalking, …).

        Args:
            env: An environment with `P[s][a] = [(probability, next state, reward, terminal), …]`
                and `initial_state_distrib`.
            horizon: Time limit; None for that of the environment's specification.
        """
        inner = env.unwrapped
        if not hasattr(inner, "P") or not hasattr(inner, "initial_state_distrib"):
            raise ValueError(
                f"{inner} has no tables P and initial_state_distrib; only environments such as "
                "Gymnasium's toy-text ones can be taken"
            )
        if horizon is None:
            horizon = env.spec.max_episode_steps if env.spec is not None else None
            if horizon is None:
                raise ValueError(f"{inner} has no time limit of its own; give horizon=…")
        return cls.from_outcomes(inner.P, inner.initial_state_distrib, horizon)


def slippery(reached: Sequence[tuple[int, float, bool]], slip: float) -> list[list[Outcome]]:
    """Return the outcomes of each action where with probability `slip` a random one is taken.

    Args:
        reached: Next state, reward and whether it is the end, of each action without slipping.
        slip: The probability.

    Example:
        >>> for outcomes in slippery([(4, 0.0, False), (5, 1.0, True)], 0.5):
        ...     print(outcomes)
        [(0.75, 4, 0.0, False), (0.25, 5, 1.0, True)]
        [(0.25, 4, 0.0, False), (0.75, 5, 1.0, True)]
    """
    if not 0 <= slip < 1:
        raise ValueError(f"slip={slip} must be a probability below 1")
    n = len(reached)
    chances = (1 - slip) * np.eye(n) + slip / n
    return [[(float(p), *end) for p, end in zip(row, reached, strict=True)] for row in chances]


def remembering(mdp: TabularMDP) -> TabularMDP:
    """Return the same task for an agent that remembers what happened last, and nothing else.

    Args:
        mdp: A table that names what happens (`labels` and `symbols`).

    Returns:
        A table whose state m · S + s is state s of the given one with memory m: 0 where nothing
        happened yet, else 1 + the index of the symbol. What is seen of it is m · O + o, for what is
        seen of s, o of O.

    Example:
        >>> from align_rudder.tasks import RecipesEnv
        >>> remembering(RecipesEnv(length=3).mdp)
        TabularMDP(2112 states, 4 actions, 1 start states, horizon 75)
    """
    if not mdp.labels.size:
        raise ValueError("this table names nothing that happens; give one with labels and symbols")
    n, states = len(mdp.symbols) + 1, mdp.n_states
    memory = np.arange(n)[:, None, None, None]
    after = np.where(mdp.labels >= 0, mdp.labels + 1, memory)
    starts = np.zeros(n * states)
    starts[:states] = mdp.starts

    def repeated(table: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.tile(table, (n, 1, 1)))

    return TabularMDP(
        (after * states + mdp.next_states)
        .reshape(n * states, *mdp.labels.shape[1:])
        .astype(np.int32),
        repeated(mdp.cumulative),
        repeated(mdp.rewards),
        repeated(mdp.terminal),
        starts,
        mdp.horizon,
        mdp.time_factor,
        observed=(np.arange(n)[:, None] * mdp.n_observations + mdp.observed).ravel(),
        labels=repeated(mdp.labels),
        symbols=mdp.symbols,
    )


@njit(cache=True)
def _sweep(values, next_states, probabilities, rewards, terminal, gamma):
    change = 0.0
    for s in range(next_states.shape[0]):
        best = -np.inf
        for a in range(next_states.shape[1]):
            total = 0.0
            for k in range(next_states.shape[2]):
                future = 0.0 if terminal[s, a, k] else gamma * values[next_states[s, a, k]]
                total += probabilities[s, a, k] * (rewards[s, a, k] + future)
            best = max(best, total)
        change = max(change, abs(best - values[s]))
        values[s] = best
    return change


def optimal_policy(mdp: TabularMDP, gamma: float = 0.99, tolerance: float = 1e-12) -> np.ndarray:
    """Return an optimal action for each state, by value iteration.

    Discounting prefers the quicker way. Among equally good actions, the first is taken.

    Returns:
        Actions (S,).
    """
    if not 0 <= gamma < 1:
        raise ValueError(f"gamma={gamma} must be at least 0 and below 1")
    values = np.zeros(mdp.n_states)
    probabilities = mdp.probabilities
    tables = (mdp.next_states, probabilities, mdp.rewards, mdp.terminal, gamma)
    while _sweep(values, *tables) > tolerance:
        pass
    future = np.where(mdp.terminal, 0.0, gamma * values[mdp.next_states])
    q = (probabilities * (mdp.rewards + future)).sum(axis=2)
    return (q >= q.max(axis=1, keepdims=True) - 1e-9).argmax(axis=1)


def best_return(mdp: TabularMDP) -> float:
    """Return what the best policy earns on average, by going back from the last step."""
    value = np.zeros(mdp.n_states)
    probabilities = mdp.probabilities
    for t in range(mdp.horizon, 0, -1):
        future = np.where(mdp.terminal, 0.0, value[mdp.next_states])
        gain = mdp.rewards * mdp.time_factor[t] + future
        value = (probabilities * gain).sum(axis=2).max(axis=1)
    return float(mdp.starts @ value)


def rollout(
    mdp: TabularMDP,
    policy: np.ndarray,
    rng: np.random.Generator,
    exploration: float = 0.0,
    start: int | None = None,
) -> Episode:
    """Return one episode of a policy that takes a random action with probability `exploration`."""
    state = int(rng.choice(mdp.n_states, p=mdp.starts)) if start is None else int(start)
    observations, actions, rewards = [state], [], []
    terminated = False
    for t in range(1, mdp.horizon + 1):
        explore = rng.random() < exploration
        action = int(rng.integers(mdp.n_actions)) if explore else int(policy[state])
        state, reward, terminated = mdp.step(state, action, t, rng.random())
        observations.append(state)
        actions.append(action)
        rewards.append(reward)
        if terminated:
            break
    return Episode(observations, actions, np.array(rewards), terminated, not terminated)
