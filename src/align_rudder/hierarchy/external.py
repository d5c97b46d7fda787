"""Sub-agents for environments outside of JAX: any Gymnasium environment, played step by step.

States cannot be stored there. To begin at a sub-task, a recorded episode that came there is
replayed, same seed and same actions; where there is none, and now and then to see new worlds, the
agents of the sub-tasks before play.
Networks, PPO and the redistributed reward are those of the rest of `hierarchy`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.hierarchy import actions
from align_rudder.hierarchy.aligned import subgoals_to_learn
from align_rudder.hierarchy.replays import Replays
from align_rudder.model import AlignRudder

__all__ = [
    "Choice",
    "Players",
    "StepResult",
    "TrackedEnv",
    "UnreachedError",
    "View",
    "act",
    "begin_at",
    "play_on",
    "play_out",
]


class UnreachedError(ValueError):
    """No episode came to a sub-task."""


class View(Protocol):
    """How an environment is shown to a network, and how the network's choice is done."""

    def begin(self) -> None:
        """Forget what was seen: a new episode begins."""
        ...

    def see(self, obs: Any) -> Any:
        """Return the observation for the network, a tree of arrays."""
        ...

    def do(self, choice: Any) -> Any:
        """Return the environment's action for the choice of each head."""
        ...


class StepResult(NamedTuple):
    """What a step gave.

    Attributes:
        reward: Redistributed reward since the last sub-goal, if the episode came past its own; else
            0. All of a demonstration's together are 1, whatever the environment pays for it.
        goal: The sub-goal that the step reached, -1 for none.
        reached: Whether it brought the episode past its sub-goal, by reaching it or a later one.
        ended: Whether the episode ended.
        solved: Whether the environment paid for it.
    """

    reward: float
    goal: int
    reached: bool
    ended: bool
    solved: bool


class TrackedEnv:
    """An environment whose episodes are tracked along the alignment.

    Args:
        env: The environment.
        model: A fitted model with one strategy.
        view: How networks see the environment.

    Attributes:
        seen: Observation for the network.
        reached: Which sub-goals were reached (K,).
        idle: Steps since the last sub-goal.
        worth: Redistributed reward of each sub-goal (K,), the mean over the demonstrations.
        seed: Seed of the episode.
        done: Choices made so far.
        lost: Whether the environment gave the episode up (`info["lost"]`): its last step was not
            done, and the episode counts neither as a success nor as a failure.
        counts: Steps so far by what they were for, see `counted_as`.
    """

    def __init__(self, env: gym.Env[Any, Any], model: AlignRudder, view: View) -> None:
        self.env, self.view = env, view
        self.stream = model.stream()
        goals = subgoals_to_learn(model)
        self._goal_at = {goal.column: k for k, goal in enumerate(goals)}
        whole = float(np.mean([model.returns_[i] for i in model.used_])) - model.baseline_
        self.scale = 1 / whole if whole > 0 else 1.0
        self.worth = self.scale * np.array([goal.reward for goal in goals])
        self.ended, self.lost = True, False
        self.counts: Counter[str] = Counter()
        self._purpose = "played"

    @contextmanager
    def counted_as(self, purpose: str) -> Iterator[None]:
        """Count the steps that are taken meanwhile as those of a purpose."""
        before, self._purpose = self._purpose, purpose
        try:
            yield
        finally:
            self._purpose = before

    @property
    def n_subtasks(self) -> int:
        """Number of sub-goals K."""
        return len(self.worth)

    @property
    def subtask(self) -> int:
        """The next sub-goal, K if none is left."""
        return self.stream.subgoal

    @property
    def cell(self) -> int:
        """Where on the profile the episode stands."""
        return self.stream.cell

    def begin(self, seed: int) -> None:
        """Begin an episode."""
        self.obs, _ = self.env.reset(seed=seed)
        self.seed, self.done = seed, []
        self.stream.reset(self.obs)
        self.view.begin()
        self.seen = self.view.see(self.obs)
        self.reached = np.zeros(self.n_subtasks, bool)
        self.idle, self.pending, self.ended, self.lost = 0, 0.0, False, False

    def step(self, choice: Any) -> StepResult:
        """Do what the network chose."""
        if self.ended:
            raise ValueError("the episode has ended; call begin()")
        action, before = self.view.do(choice), self.subtask
        obs, reward, terminated, truncated, info = self.env.step(action)
        if info.get("lost"):
            self.lost = self.ended = True
            return StepResult(0.0, -1, False, True, False)
        self.counts[self._purpose] += 1
        gain = self.stream.step(self.obs, action, float(reward), obs, info)
        self.pending += self.scale * gain
        self.obs = obs
        self.done.append(choice)
        self.seen = self.view.see(obs)
        self.ended = terminated or truncated
        goal = self._goal_at.get(self.stream.column, -1)
        if goal >= 0:
            self.reached[goal] = True
        passed = self.subtask > before
        paid = self.pending if passed else 0.0
        self.pending = 0.0 if passed else self.pending
        self.idle = 0 if passed else self.idle + 1
        return StepResult(paid, goal, passed, self.ended, float(reward) > 0)


class Choice(NamedTuple):
    """What an agent chose.

    Attributes:
        observation: What it saw.
        subtask: Its sub-task.
        cell: Its cell of the profile.
        heads: What it chose, a whole number for each head.
        log_probs: The log-probability of each.
        value: V of the state.
    """

    observation: Any
    subtask: np.int32
    cell: np.int32
    heads: Any
    log_probs: Any
    value: np.float32

    def log_prob(self, own: Any) -> np.float32:
        """Return the log-probability of the heads that counted; the others are -1."""
        known = jax.tree.map(lambda x, own: x if own >= 0 else np.float32(0), self.log_probs, own)
        return sum(jax.tree.leaves(known), np.float32(0))


@jax.jit
def _act(agent: Any, seen: Any, subtask: Any, cell: Any, key: jax.Array) -> Any:
    logits, value = agent(None, seen, subtask, cell)
    chosen = actions.sample(key, logits)
    log_probs = jax.tree.map(actions.log_prob, logits, chosen)
    # As one array, as each that is fetched costs as much.
    return jnp.stack([*jax.tree.leaves(chosen), *jax.tree.leaves(log_probs), value]), chosen


def act(agent: Any, env: TrackedEnv, key: jax.Array) -> Choice:
    """Return the choice of an agent."""
    at = np.int32(env.subtask), np.int32(env.cell)
    packed, chosen = _act(agent, env.seen, *at, key)
    tree, numbers = jax.tree.structure(chosen), np.asarray(packed)
    n = tree.num_leaves
    heads = jax.tree.unflatten(tree, numbers[:n].astype(int).tolist())
    return Choice(env.seen, *at, heads, jax.tree.unflatten(tree, [*numbers[n:-1]]), numbers[-1])


class Players(NamedTuple):
    """Who plays: a sub-agent for each sub-task and, if there is one, their manager.

    The manager's head "who" chooses a sub-agent, or K to act itself with its other heads.
    """

    agents: Sequence[Any]
    manager: Any = None

    def choose(self, env: TrackedEnv, key: jax.Array) -> Any:
        """Return what to do."""
        if self.manager is None:
            turn = min(env.subtask, len(self.agents) - 1)
            return act(self.agents[turn], env, key).heads
        k_who, k_act = jax.random.split(key)
        return self.carry_out(env, act(self.manager, env, k_who).heads, k_act)[0]

    def carry_out(self, env: TrackedEnv, choice: Any, key: jax.Array) -> tuple[Any, Any]:
        """Return what to do for the choice of a sub-agent or manager, and what of it counted."""
        who = choice.get("who") if isinstance(choice, dict) else None
        if who is None:
            return choice, choice
        if who == len(self.agents):
            return {head: at for head, at in choice.items() if head != "who"}, choice
        action = act(self.agents[who], env, key).heads
        return action, {head: at if head == "who" else -1 for head, at in choice.items()}


def play_on(
    env: TrackedEnv,
    players: Players,
    rng: np.random.Generator,
    go_on: Callable[[], bool],
    replays: Replays | None = None,
) -> bool:
    """Play on while the episode lasts and `go_on` holds; return whether the task was solved.

    Args:
        env: The environment.
        players: Who plays.
        rng: Source of randomness.
        go_on: Asked before each step.
        replays: The episode is added to them whenever it comes to a sub-task.
    """
    solved = False
    while not env.ended and go_on():
        moved = env.step(players.choose(env, jax.random.key(int(rng.integers(2**31)))))
        solved |= moved.solved
        if moved.reached and replays is not None:
            replays.add(env)
    return solved


def begin_at(
    env: TrackedEnv,
    subtask: int,
    replays: Replays,
    players: Players,
    rng: np.random.Generator,
    patience: int,
    fresh: float = 0.0,
    tries: int = 20,
) -> int:
    """Begin at a sub-task; return the steps that playing there took (replays are not counted).

    Args:
        env: The environment.
        subtask: The sub-task.
        replays: Recordings; what is played is added to them.
        players: Who plays the sub-tasks before where there is no recording.
        rng: Source of randomness.
        patience: Steps without a sub-goal after which a try is given up.
        fresh: Share of the tries that begin at an earlier sub-task, any of them as likely; at the
            first, in a new world. Without such tries fewer and fewer worlds would be left.
        tries: Tries before it is an error.
    """
    played = failed = 0
    while failed < tries:
        new = rng.random() < fresh
        if not new and replays.begin(env, subtask, rng):
            return played
        earlier = [k for k in range(max(subtask, 1)) if k == 0 or replays.kept[k]]
        if not replays.begin(env, int(rng.choice(earlier)) if new else earlier[-1], rng):
            failed += not env.lost
            continue
        replayed = len(env.done)
        with env.counted_as("played on the way"):
            play_on(
                env, players, rng, lambda: env.subtask < subtask and env.idle < patience, replays
            )
        played += len(env.done) - replayed
        if not env.ended and env.subtask == subtask:
            return played
        failed += not env.lost
    raise UnreachedError(
        f"in {tries} tries no episode came to sub-task {subtask + 1}: train the agents of the "
        "sub-tasks before it first, or give them more patience"
    )


def play_out(
    env: TrackedEnv, players: Players, rng: np.random.Generator, max_steps: int
) -> tuple[int, bool, int]:
    """Play an episode from a new start; return its last sub-task, whether solved, and its steps.

    One that the environment loses does not count, and another one is played.
    """
    while True:
        env.begin(int(rng.integers(2**31)))
        solved = play_on(env, players, rng, lambda: len(env.done) < max_steps)
        if not env.lost:
            return env.subtask, solved, len(env.done)
