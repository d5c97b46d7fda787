"""A learner of your own: a training loop with a stream that pays the reward along the way.

    python examples/own_learner.py
    python examples/own_learner.py --seeds 10 --settlement last

No wrapper and no library of learners: Q-learning with a replay buffer, and a `stream` that gives
each step its share of the return. FrozenLake of 8×8 cells pays 1 at the goal, and an agent that
explores at random hardly ever gets there. Two things matter for a learner of your own:

- The redistributed reward depends on what was done before: a region is paid when it is entered the
  first time. So the position on the profile, `stream.cell`, is part of the state here. Without it a
  table believes that going back and forth is paid again and again.
- Reward and shares together are more than the return. A `Settlement` takes the rest back, so that
  the sum is the return again. This learner sees an episode when it is over, so the whole episode is
  settled at once; one that learns at every step asks an `Account` for the reward of each.

The comparison is with the same loop on the reward as it is. Neither gets the demonstrations into
its buffer, so that only the reward differs, and neither was tuned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import tyro

import align_rudder as ar
from align_rudder.settlement import Settlement

LEFT, DOWN, RIGHT, UP = range(4)
WAYS = (
    [RIGHT] * 7 + [DOWN] * 7,
    [DOWN] + [RIGHT] * 4 + [DOWN] + [RIGHT] * 3 + [DOWN] * 5,
    [RIGHT] * 4 + [DOWN] * 2 + [RIGHT] * 3 + [DOWN] * 5,
    [RIGHT, DOWN] + [RIGHT] * 6 + [DOWN] * 6,
)


@dataclass
class Arguments:
    """Learn FrozenLake with and without redistribution."""

    seeds: int = 5
    """Independent trials of each method."""
    episodes: int = 500
    """The most episodes of a trial."""
    learning_rate: float = 0.5
    """η of Q-learning."""
    gamma: float = 0.99
    """Discount."""
    epsilon: float = 0.1
    """Share of random actions."""
    replayed: int = 200
    """Transitions learned from after each episode, drawn from the buffer."""
    settlement: str = "even"
    """Where the rest of the return goes: "even", "potential", "last" or "beside"."""
    smoke: bool = False
    """One short trial of each method."""


def make_lake() -> gym.Env:
    """Return the environment: deterministic, 8×8 cells, at most 200 steps."""
    return gym.make("FrozenLake-v1", map_name="8x8", is_slippery=False)


def play(
    env: gym.Env, choose: Callable[[int], int], model: ar.AlignRudder | None, settlement: Settlement
) -> list[tuple[int, int, float, int, bool]]:
    """Play an episode; return state, action, reward, next state and "was it the last" of each step.

    A state is the cell of the lake and, with a model, the position on its profile.
    """
    stream = model.stream() if model is not None else None
    obs, _ = env.reset()
    if stream is not None:
        stream.reset(obs)
    states, actions, rewards, shares, over = [int(obs)], [], [], [], False
    while not over:
        action = choose(states[-1])
        next_obs, reward, terminated, truncated, info = env.step(action)
        position = 0
        if stream is not None:
            shares.append(stream.step(obs, action, float(reward), next_obs, info))
            position = stream.cell
        states.append(int(next_obs) + 64 * position)
        actions.append(action)
        rewards.append(float(reward))
        obs, over = next_obs, terminated or truncated
    if stream is not None:  # the sum stays the return that the environment gave
        rewards = settlement.rewards(np.array(rewards), np.array(shares)).tolist()
    last = [False] * (len(actions) - 1) + [True]
    return list(zip(states, actions, rewards, states[1:], last, strict=False))


def trial(args: Arguments, model: ar.AlignRudder | None, seed: int) -> int:
    """Return after how many episodes the greedy policy reaches the goal; args.episodes if never."""
    env, rng = make_lake(), np.random.default_rng(seed)
    env.reset(seed=seed)
    q = np.zeros((64 * (model.stream().n_cells if model is not None else 1), 4))
    buffer: list[tuple[int, int, float, int, bool]] = []
    settlement = Settlement(args.settlement, args.gamma)

    def greedy(state: int) -> int:
        return int(rng.choice(np.flatnonzero(q[state] == q[state].max())))

    def explore(state: int) -> int:
        return int(rng.integers(4)) if rng.random() < args.epsilon else greedy(state)

    for n in range(1, args.episodes + 1):
        buffer += play(env, explore, model, settlement)
        for i in rng.integers(len(buffer), size=args.replayed):
            s, a, r, s2, last = buffer[i]
            target = r if last else r + args.gamma * q[s2].max()
            q[s, a] += args.learning_rate * (target - q[s, a])
        *_, (_, _, _, end, _) = play(env, greedy, model, settlement)
        if end % 64 == 63:
            return n
    return args.episodes


def main(args: Arguments) -> None:
    """Fit the model to the demonstrations and compare."""
    if args.smoke:
        args.seeds, args.episodes = 1, 20
    steps = iter([action for way in WAYS for action in way])
    demos, _ = ar.record(make_lake(), lambda obs: next(steps), len(WAYS))
    model = ar.AlignRudder().fit(demos)
    print(model.summary())

    print(f"\nepisodes until the greedy policy reaches the goal (at most {args.episodes})")
    for name, used in (("redistributed", model), ("as it is", None)):
        found = [trial(args, used, seed) for seed in range(args.seeds)]
        print(f"  {name:14} {' '.join(f'{n:4}' for n in found)}   mean {np.mean(found):.1f}")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
