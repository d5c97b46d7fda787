"""Sub-agents for environments outside of JAX: any Gymnasium environment, played step by step.

States cannot be stored there. To begin at a sub-task, a recorded episode that came there is
replayed, same seed and same actions; where there is none, and now and then to see new worlds, the
agents of the sub-tasks before play.
Networks, PPO and the redistributed reward are those of the rest of `hierarchy`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import jax
import numpy as np

from align_rudder.files import Array, Format, Many, Maybe, Text, Whole
from align_rudder.hierarchy import actions
from align_rudder.hierarchy.aligned import subgoals_to_learn
from align_rudder.model import AlignRudder

__all__ = [
    "Choices",
    "Players",
    "Replays",
    "StepResult",
    "TrackedEnv",
    "UnreachedError",
    "View",
    "act",
    "begin_at",
    "play_on",
    "play_out",
]

_REPLAYS = Format(
    "align-rudder-replays",
    1,
    header={
        "seeds": Many(Many(Whole(0, 2**63 - 1))),
        "lengths": Many(Many(Whole())),
        "heads": Maybe(Many(Text())),
    },
    groups=("choices",),
    remedy="put back a copy, or delete it: recordings are then made anew",
)


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


class Replays:
    """Episodes that came to a sub-task, to begin there again.

    Most successes begin at a recording, so that one world could soon crowd out the others: all
    worlds are as likely, and those with many recordings lose them first.

    Args:
        n_subtasks: Number of sub-tasks.
        size: How many are kept for each.
    """

    def __init__(self, n_subtasks: int, size: int = 50) -> None:
        self.size = size
        self.kept: list[list[tuple[int, list[Any]]]] = [[] for _ in range(n_subtasks)]

    def add(self, env: TrackedEnv) -> None:
        """Keep an episode that has just come to a sub-task."""
        if env.subtask < len(self.kept) and not env.ended:
            kept = self.kept[env.subtask]
            kept.append((env.seed, list(env.done)))
            if len(kept) > self.size:
                seeds = [seed for seed, _ in kept]
                del kept[seeds.index(max(seeds, key=seeds.count))]  # the oldest of that world

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as one npz file; choices must be whole numbers, or dicts of such."""
        seeds = [[seed for seed, _ in kept] for kept in self.kept]
        lengths = [[len(done) for _, done in kept] for kept in self.kept]
        choices = [choice for kept in self.kept for _, done in kept for choice in done]
        first = choices[0] if choices else {}
        heads = list(first) if isinstance(first, dict) else None
        rows = choices if heads is None else [[c[head] for head in heads] for c in choices]
        header = {"seeds": seeds, "lengths": lengths, "heads": heads}
        _REPLAYS.save(path, header, {"choices": np.array(rows, np.int16)})

    @classmethod
    def load(cls, path: str | os.PathLike[str], n_subtasks: int, size: int = 50) -> Replays:
        """Load what `save` wrote."""
        with _REPLAYS.open(path) as contents:
            header = contents.header
            heads, seeds, lengths = (header[name] for name in ("heads", "seeds", "lengths"))
            if len(seeds) != n_subtasks:
                raise ValueError(
                    f"{path} has recordings of {len(seeds)} sub-tasks; {n_subtasks} are needed: it "
                    "belongs to another model"
                )
            if [len(of) for of in seeds] != [len(of) for of in lengths]:
                raise ValueError("its recordings have not one seed and one length each")
            steps = sum(length for of in lengths for length in of)
            # Of no recordings at all, nobody knows how many heads there are.
            shape = (steps,) if heads is None or not steps else (steps, len(heads))
            kind = Array(*shape, kinds="iuf" if not steps else "iu")
            rows = contents.checked("", {"choices": kind})["choices"].tolist()
        choices = rows if heads is None else [dict(zip(heads, row, strict=True)) for row in rows]
        replays, rest = cls(n_subtasks, size), iter(choices)
        for kept, *its in zip(replays.kept, seeds, lengths, strict=True):
            kept += [(seed, list(islice(rest, n))) for seed, n in zip(*its, strict=True)]
        return replays

    def begin(self, env: TrackedEnv, subtask: int, rng: np.random.Generator) -> bool:
        """Begin at a sub-task by replaying; return whether that worked."""
        if subtask == 0:
            env.begin(int(rng.integers(2**31)))
            return True
        if not self.kept[subtask]:
            return False
        seeds = [seed for seed, _ in self.kept[subtask]]
        world = rng.choice(sorted(set(seeds)))
        index = int(rng.choice(np.flatnonzero(np.array(seeds) == world)))
        seed, choices = self.kept[subtask][index]
        env.begin(seed)
        for choice in choices:
            env.step(choice)
            if env.ended:
                break
        if env.lost:
            return False  # nothing is said of the recording
        if env.ended or env.subtask != subtask:
            # The environment is not as repeatable as it should be: this recording is of no use.
            del self.kept[subtask][index]
            return False
        env.idle = 0
        return True


class Choices(NamedTuple):
    """Choices of an agent in several environments (N, …), with what they were drawn from."""

    observation: Any
    subtask: Any
    cell: Any
    action: Any
    logits: Any
    value: jax.Array

    def of(self, i: int) -> Any:
        """Return the choice for the i-th environment, as integers."""
        return jax.tree.map(lambda x: int(np.asarray(x)[i]), self.action)


@jax.jit
def _act(agent: Any, seen: Any, subtask: jax.Array, cell: jax.Array, key: jax.Array) -> Any:
    logits, value = jax.vmap(agent, (None, 0, 0, 0))(None, seen, subtask, cell)
    return actions.sample(key, logits), logits, value


def act(agent: Any, envs: Sequence[TrackedEnv], key: jax.Array) -> Choices:
    """Return the choices of one agent in several environments."""
    seen = jax.tree.map(lambda *x: np.stack(x), *[env.seen for env in envs])
    subtask, cell = (np.array([getattr(env, at) for env in envs]) for at in ("subtask", "cell"))
    return Choices(seen, subtask, cell, *_act(agent, seen, subtask, cell, key))


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
            return act(self.agents[turn], [env], key).of(0)
        k_who, k_act = jax.random.split(key)
        return self.carry_out(env, act(self.manager, [env], k_who).of(0), k_act)[0]

    def carry_out(self, env: TrackedEnv, choice: Any, key: jax.Array) -> tuple[Any, Any]:
        """Return what to do for the choice of a sub-agent or manager, and what of it counted."""
        who = choice.get("who") if isinstance(choice, dict) else None
        if who is None:
            return choice, choice
        if who == len(self.agents):
            return {head: at for head, at in choice.items() if head != "who"}, choice
        action = act(self.agents[who], [env], key).of(0)
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
        play_on(env, players, rng, lambda: env.subtask < subtask and env.idle < patience, replays)
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
