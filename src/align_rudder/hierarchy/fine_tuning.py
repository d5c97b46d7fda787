"""PPO for environments outside of JAX: one sub-agent at a time, then their manager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from align_rudder.files import Number, Whole
from align_rudder.hierarchy import actions
from align_rudder.hierarchy.external import (
    Choices,
    Players,
    Replays,
    StepResult,
    TrackedEnv,
    UnreachedError,
    act,
    begin_at,
    play_on,
)
from align_rudder.hierarchy.ppo import (
    PPO,
    Losses,
    Transition,
    new_train_state,
    update_agent,
)
from align_rudder.runs.checkpoint import Checkpoint

__all__ = [
    "FineTuning",
    "ManagerPractice",
    "SubtaskPractice",
    "TunedAgent",
    "fine_tune",
    "rollout",
    "success_rate",
]


@dataclass(frozen=True)
class FineTuning:
    """How an agent is trained in an environment outside of JAX.

    Attributes:
        steps: Steps of training at most.
        burn_in: Steps in which only the value is learned.
        patience: Steps without a sub-goal after which an episode is cut off.
        evaluate_every: Steps between evaluations.
        trials: Episodes of an evaluation; the best agent is kept.
        enough: Success rate of an evaluation with which the training ends early (above 1: never),
        least_steps: but not before so many steps.
        fresh: Share of the tries to begin that are played to the sub-task by earlier agents, from
            a new world or an earlier sub-task; the others go back to a recording.
        ppo: Hyper-parameters; `n_envs` is given by the environments, its `burn_in` by the above.
    """

    steps: int = 500_000
    burn_in: int = 50_000
    patience: int = 1000
    evaluate_every: int = 50_000
    trials: int = 12
    enough: float = 1.0
    least_steps: int = 50_000
    fresh: float = 0.5
    ppo: PPO = field(
        default_factory=lambda: PPO(
            n_envs=1, n_steps=256, n_minibatches=4, bc_coef=0.0, ent_coef=0.005, clip_value=True
        )
    )

    def __post_init__(self) -> None:
        least = {"steps": 1, "patience": 1, "evaluate_every": 1, "trials": 1}
        for name, n in {**least, "burn_in": 0, "least_steps": 0}.items():
            Whole(n).check(getattr(self, name), name)
        if not self.enough >= 0:
            raise ValueError(f"enough is {self.enough}; a share is needed, or above 1 for never")
        Number(0, below=1).check(self.fresh, "fresh")


class TunedAgent(NamedTuple):
    """What a training came to.

    Attributes:
        agent: The best agent there was.
        curve: The success rate at each evaluation (steps, rate).
        steps: Steps of training.
        unreached: Why the training was broken off, where its episodes could not be begun; it is in
            the checkpoint and can go on. None for one that came to its end.
    """

    agent: Any
    curve: list[tuple[int, float]]
    steps: int = 0
    unreached: str | None = None


def success_rate(
    env: TrackedEnv,
    subtask: int,
    replays: Replays,
    players: Players,
    rng: np.random.Generator,
    tuning: FineTuning,
) -> float:
    """Return how often a sub-task is solved when it is begun."""
    solved, played, patience = 0, 0, tuning.patience
    while played < tuning.trials:
        begin_at(env, subtask, replays, players, rng, patience, tuning.fresh)
        play_on(env, players, rng, lambda: env.subtask <= subtask and env.idle < patience, replays)
        solved += env.subtask > subtask and not env.lost
        played += not env.lost
    return solved / tuning.trials


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
        self, agent: Any, env: TrackedEnv, rng: np.random.Generator, tuning: FineTuning
    ) -> float:
        """Return the success rate of the sub-task."""
        agents = [agent if k == self.subtask else other for k, other in enumerate(self.agents)]
        return success_rate(env, self.subtask, self.replays, Players(agents), rng, tuning)


@dataclass
class ManagerPractice:
    """A manager practises whole episodes with sub-agents that stay as they are.

    Attributes:
        agent: The manager; see `Players`.
        agents: The sub-agents.
    """

    agent: Any
    agents: Sequence[Any]

    def begin(self, env: TrackedEnv, rng: np.random.Generator, tuning: FineTuning) -> None:
        """Begin in a new world."""
        env.begin(int(rng.integers(2**31)))

    def pay(self, env: TrackedEnv, moved: StepResult) -> tuple[float, bool]:
        """Return the redistributed reward."""
        return moved.reward, moved.ended

    def rate(
        self, agent: Any, env: TrackedEnv, rng: np.random.Generator, tuning: FineTuning
    ) -> float:
        """Return the mean share of the sub-goals that whole episodes reach."""
        shares: list[float] = []
        while len(shares) < tuning.trials:
            self.begin(env, rng, tuning)
            players = Players(self.agents, agent)
            play_on(env, players, rng, lambda: env.idle < tuning.patience)
            shares += [] if env.lost else [env.subtask / env.n_subtasks]
        return float(np.mean(shares))


def fine_tune(
    practice: SubtaskPractice | ManagerPractice,
    envs: Sequence[TrackedEnv],
    tuning: FineTuning,
    seed: int = 0,
    log: Callable[[int, Losses, float], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> TunedAgent:
    """Train an agent, and return the best there was.

    Args:
        practice: What is practised: where episodes begin, what is paid, how it is judged.
        envs: Environments.
        tuning: How to train.
        seed: Seed.
        log: Called after each update with the steps so far, the losses and the mean reward.
        checkpoint: Where the training is kept while it lasts; it goes on with what is there.
            Whatever breaks it off, the last update is in it.
    """
    batch_size = len(envs) * tuning.ppo.n_steps
    if 0 < tuning.steps < batch_size:
        raise ValueError(
            f"steps={tuning.steps} are fewer than a batch of PPO, {len(envs)} environments × "
            f"{tuning.ppo.n_steps} steps; give more, or 0 for none"
        )
    ppo = replace(tuning.ppo, n_envs=len(envs), burn_in=-(-tuning.burn_in // batch_size))
    total, rng = max(tuning.steps // batch_size, 1), np.random.default_rng(seed)
    state = new_train_state(practice.agent, ppo, total, jax.random.key(seed))
    best, curve, steps = practice.agent, [], 0
    saved = None if checkpoint is None else checkpoint.load((state, best))
    if saved is not None:
        (state, best), notes = saved
        steps, curve = notes["steps"], [(at, rate) for at, rate in notes["curve"]]

    def evaluate() -> None:
        nonlocal best
        rate = practice.rate(state.agent, envs[0], rng, tuning)
        if rate >= max((r for _, r in curve), default=0.0):
            best = state.agent
        curve.append((steps, rate))

    def is_due() -> bool:
        since = steps - (curve[-1][0] if curve else -tuning.evaluate_every)
        return since >= tuning.evaluate_every or (since > 0 and steps + batch_size > tuning.steps)

    try:
        for env in envs:
            practice.begin(env, rng, tuning)
        while True:
            if is_due():
                evaluate()
                practice.begin(envs[0], rng, tuning)
            if checkpoint is not None and steps:
                checkpoint.offer((state, best), {"steps": steps, "curve": curve})
            if steps + batch_size > tuning.steps or _good_enough(curve, tuning):
                return TunedAgent(best, curve, steps)
            key = jax.random.fold_in(jax.random.key(seed), steps)
            traj_batch, last_value = rollout(practice, state.agent, envs, tuning, ppo, rng, key)
            state, losses = _update(ppo, total, state, traj_batch, last_value)
            steps += batch_size
            if log is not None:
                log(steps, losses, float(traj_batch.reward.mean()))
    except Exception as error:
        if checkpoint is not None:
            checkpoint.save((state, best), {"steps": steps, "curve": curve})
        if isinstance(error, UnreachedError):
            return TunedAgent(best, curve, steps, str(error))
        raise


def rollout(
    practice: SubtaskPractice | ManagerPractice,
    agent: Any,
    envs: Sequence[TrackedEnv],
    tuning: FineTuning,
    ppo: PPO,
    rng: np.random.Generator,
    key: jax.Array,
) -> tuple[Transition, jax.Array]:
    """Return the steps of a batch (T, N, …), and the value of the states after them (N,).

    A step that the environment lost is not among them: what was played before it ends there, as
    where an episode is cut off, and another one is begun.
    """
    k_play, k_last = jax.random.split(key)
    rows: list[Transition] = []
    for k in jax.random.split(k_play, ppo.n_steps):
        k_act, *keys = jax.random.split(k, len(envs) + 1)
        choices = act(agent, envs, k_act)
        n = len(envs)
        reward, done, counted = np.zeros(n, np.float32), np.zeros(n, bool), []
        for i, env in enumerate(envs):
            action, own = Players(practice.agents).carry_out(env, choices.of(i), keys[i])
            moved = env.step(action)
            while env.lost:
                if rows:
                    rows[-1] = _cut_off(rows[-1], i, ppo.gamma)
                practice.begin(env, rng, tuning)
                keys[i], k_again = jax.random.split(keys[i])
                choices = _replaced(choices, i, act(agent, [env], k_again))
                action, own = Players(practice.agents).carry_out(env, choices.of(i), keys[i])
                moved = env.step(action)
            counted.append(own)
            paid, ended = practice.pay(env, moved)
            cut = not ended and env.idle >= tuning.patience
            # A cut-off episode would have gone on: the value stands for what would have come.
            reward[i] = paid * ppo.reward_scale + cut * ppo.gamma * float(choices.value[i])
            done[i] = ended or cut
            if done[i]:
                practice.begin(env, rng, tuning)
        own, reward, done = _stack(counted), jnp.asarray(reward), jnp.asarray(done)
        log_prob = actions.log_prob(choices.logits, own)
        rows.append(Transition(*choices[:3], own, log_prob, choices.value, reward, done))
    return _stack(rows), act(agent, envs, k_last).value


def _cut_off(row: Transition, i: int, gamma: float) -> Transition:
    """Return a row of steps in which an episode ends, unless it did; its value stands for more."""
    if row.done[i]:
        return row
    reward, done = np.array(row.reward), np.array(row.done)
    reward[i] += gamma * float(row.value[i])
    done[i] = True
    return row._replace(reward=jnp.asarray(reward), done=jnp.asarray(done))


def _replaced(choices: Choices, i: int, other: Choices) -> Choices:
    """Return choices with the i-th replaced by the only one of others."""

    def put(whole: Any, one: Any) -> np.ndarray:
        out = np.array(whole)
        out[i] = np.asarray(one)[0]
        return out

    return Choices(*jax.tree.map(put, tuple(choices), tuple(other)))


_update = eqx.filter_jit(partial(update_agent, None))


def _good_enough(curve: Sequence[tuple[int, float]], tuning: FineTuning) -> bool:
    steps, rate = curve[-1]
    return rate >= tuning.enough and steps >= tuning.least_steps


def _stack(rows: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *rows)
