"""What agents practise in environments outside of JAX: where episodes begin, and what is paid.

Several environments play at the same time, each in a thread of its own with random numbers of its
own; what they record is put together in their order. So the result is that of one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.hierarchy.external import (
    Players,
    StepResult,
    TrackedEnv,
    act,
    begin_at,
    play_on,
)
from align_rudder.hierarchy.ppo import PPO, Transition
from align_rudder.hierarchy.replays import Replays
from align_rudder.runs.together import together

if TYPE_CHECKING:
    from align_rudder.hierarchy.fine_tuning import FineTuning

__all__ = [
    "ManagerPractice",
    "Practice",
    "SubtaskPractice",
    "begin_all",
    "play_batch",
    "rollout",
    "scout",
    "success_rate",
]

T = TypeVar("T")


@dataclass
class SubtaskPractice:
    """A sub-agent practises its sub-task, begun at states that recordings or other agents reach.

    Attributes:
        subtask: The sub-task.
        agents: The sub-agents; that of the sub-task is trained, those before it play to it.
        replays: Recordings; successes are added, so that the next sub-task can begin there.
    """

    subtask: int
    agents: Sequence[Any]
    replays: Replays

    @property
    def agent(self) -> Any:
        """The sub-agent as it is before."""
        return self.agents[self.subtask]

    def branch(self) -> Self:
        """Return the same for one of several environments, with recordings of its own."""
        return replace(self, replays=self.replays.branch())

    def join(self, branches: Sequence[Self]) -> None:
        """Take over what was recorded."""
        self.replays.join(branch.replays for branch in branches)

    def begin(self, env: TrackedEnv, rng: np.random.Generator, tuning: FineTuning) -> None:
        """Begin at the sub-task."""
        players = Players(self.agents)
        begin_at(env, self.subtask, self.replays, players, rng, tuning.patience, tuning.fresh)

    def pay(self, env: TrackedEnv, moved: StepResult) -> tuple[float, bool]:
        """Return the worth of the sub-goal once it is reached.

        Paid for its sub-goal alone, not for all on the way, it leaves to others their work.
        """
        if not moved.reached:
            return 0.0, moved.ended
        self.replays.add(env)
        own = moved.goal == self.subtask  # not passed by with a later one
        return float(env.worth[self.subtask]) if own else 0.0, True

    def rate(
        self, agent: Any, envs: Sequence[TrackedEnv], rng: np.random.Generator, tuning: FineTuning
    ) -> float:
        """Return the success rate of the sub-task."""
        agents = [agent if k == self.subtask else other for k, other in enumerate(self.agents)]
        return success_rate(envs, self.subtask, self.replays, Players(agents), rng, tuning)


@dataclass
class ManagerPractice:
    """A manager practises whole episodes with sub-agents that stay as they are.

    Attributes:
        agent: The manager; see `Players`.
        agents: The sub-agents.
    """

    agent: Any
    agents: Sequence[Any]

    def branch(self) -> Self:
        """Return the same: nothing is recorded."""
        return self

    def join(self, branches: Sequence[Self]) -> None:
        """Do nothing: nothing was recorded."""

    def begin(self, env: TrackedEnv, rng: np.random.Generator, tuning: FineTuning) -> None:
        """Begin in a new world."""
        env.begin(int(rng.integers(2**31)))

    def pay(self, env: TrackedEnv, moved: StepResult) -> tuple[float, bool]:
        """Return the redistributed reward."""
        return moved.reward, moved.ended

    def rate(
        self, agent: Any, envs: Sequence[TrackedEnv], rng: np.random.Generator, tuning: FineTuning
    ) -> float:
        """Return the mean share of the sub-goals that whole episodes reach."""
        players = Players(self.agents, agent)

        def share(practice: ManagerPractice, env: TrackedEnv, rng: np.random.Generator) -> float:
            while True:
                practice.begin(env, rng, tuning)
                with env.counted_as("judged"):
                    play_on(env, players, rng, lambda: env.idle < tuning.patience)
                if not env.lost:
                    return env.subtask / env.n_subtasks

        return float(np.mean(_dealt(self, envs, rng.spawn(tuning.trials), share)))


Practice = SubtaskPractice | ManagerPractice
"""Either of them."""


def success_rate(
    envs: Sequence[TrackedEnv],
    subtask: int,
    replays: Replays,
    players: Players,
    rng: np.random.Generator,
    tuning: FineTuning,
) -> float:
    """Return how often a sub-task is solved when it is begun."""

    def solves(replays: Replays, env: TrackedEnv, rng: np.random.Generator) -> bool:
        def open_still() -> bool:
            return env.subtask <= subtask and env.idle < tuning.patience

        while True:
            begin_at(env, subtask, replays, players, rng, tuning.patience, tuning.fresh)
            with env.counted_as("judged"):
                play_on(env, players, rng, open_still, replays)
            if not env.lost:
                return env.subtask > subtask

    return float(np.mean(_dealt(replays, envs, rng.spawn(tuning.trials), solves)))


def scout(
    agents: Sequence[Any],
    envs: Sequence[TrackedEnv],
    replays: Replays,
    tuning: FineTuning,
    rng: np.random.Generator,
    over: Callable[[], bool],
    enough: int = 6,
) -> None:
    """Record where sub-tasks begin, one after the other, as far as the agents come.

    To each they play from the one before, until there are enough recordings or they have tried four
    times as often.

    Args:
        agents: The sub-agents, which play.
        envs: Environments.
        replays: Where that is recorded.
        tuning: How long they try.
        rng: Source of randomness.
        over: Asked now and then whether to end early.
        enough: How many recordings each sub-task should have.
    """
    players, patience = Players(agents), tuning.patience

    def come(k: int, replays: Replays, env: TrackedEnv, rng: np.random.Generator) -> None:
        begin_at(env, k - 1, replays, players, rng, patience, tuning.fresh)
        with env.counted_as("played on the way"):
            play_on(env, players, rng, lambda: env.subtask < k and env.idle < patience, replays)

    for k in range(1, len(agents)):
        for _ in range(4):
            missing = max(enough - len(replays.kept[k]), 0)
            _dealt(replays, envs, rng.spawn(missing), partial(come, k))
        if not replays.kept[k] or over():
            return


def begin_all(
    practice: Practice, envs: Sequence[TrackedEnv], tuning: FineTuning, rng: np.random.Generator
) -> None:
    """Begin in all environments."""

    def begin(practice: Practice, env: TrackedEnv, rng: np.random.Generator) -> None:
        practice.begin(env, rng, tuning)

    _dealt(practice, envs, rng.spawn(len(envs)), begin)


def play_batch(
    practice: Practice,
    agent: Any,
    envs: Sequence[TrackedEnv],
    tuning: FineTuning,
    ppo: PPO,
    rng: np.random.Generator,
) -> tuple[Transition, jax.Array]:
    """Return the steps of a batch (T, N, …), and the values of the states after them (N,)."""

    def play(practice: Practice, env: TrackedEnv, rng: np.random.Generator) -> Any:
        return rollout(practice, agent, env, tuning, ppo, rng)

    played, last = zip(*_dealt(practice, envs, rng.spawn(len(envs)), play), strict=True)
    return jax.tree.map(lambda *x: jnp.asarray(np.stack(x, 1)), *played), jnp.asarray(last)


def _dealt(
    recorded: Any,
    envs: Sequence[TrackedEnv],
    rngs: Sequence[np.random.Generator],
    trial: Callable[[Any, TrackedEnv, np.random.Generator], T],
) -> list[T]:
    """Return what trials come to, dealt out to environments that play at the same time.

    Args:
        recorded: What records them, with `branch` and `join`; recordings are kept also where a
            trial fails.
        envs: Environments.
        rngs: A source of randomness for each trial.
        trial: Plays one.
    """
    branches, n = [recorded.branch() for _ in envs], len(envs)

    def play(i: int) -> list[T]:
        return [trial(branches[i], envs[i], rng) for rng in rngs[i::n]]

    try:
        return [one for found in together([partial(play, i) for i in range(n)]) for one in found]
    finally:
        recorded.join(branches)


def rollout(
    practice: Practice,
    agent: Any,
    env: TrackedEnv,
    tuning: FineTuning,
    ppo: PPO,
    rng: np.random.Generator,
) -> tuple[Transition, Any]:
    """Return the steps of one environment (T, …), and the value of the state after them.

    A step that the environment lost is not among them: what was played before it ends there, as
    where an episode is cut off, and another one is begun.
    """
    players = Players(practice.agents)
    steps: list[Any] = []
    reward, done = [], []
    k_last, *keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), ppo.n_steps + 1)
    for k in keys:
        while True:
            k_act, k_own, k = jax.random.split(k, 3)
            choice = act(agent, env, k_act)
            action, own = players.carry_out(env, choice.heads, k_own)
            with env.counted_as("practised"):
                moved = env.step(action)
            if not env.lost:
                break
            if done and not done[-1]:
                reward[-1] += np.float32(ppo.gamma * steps[-1].value)
                done[-1] = True
            practice.begin(env, rng, tuning)
        paid, ended = practice.pay(env, moved)
        cut = not ended and env.idle >= tuning.patience
        # A cut-off episode would have gone on: the value stands for what would have come.
        reward.append(np.float32(paid * ppo.reward_scale + cut * ppo.gamma * choice.value))
        done.append(ended or cut)
        log_prob = choice.log_prob(own)
        steps.append(Transition(*choice[:3], own, log_prob, choice.value, 0, 0))  # pyright: ignore
        if done[-1]:
            practice.begin(env, rng, tuning)
    rows = jax.tree.map(lambda *x: np.stack(x), *steps)
    return rows._replace(reward=np.array(reward), done=np.array(done)), act(
        agent, env, k_last
    ).value
