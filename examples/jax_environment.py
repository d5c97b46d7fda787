"""An environment in JAX: the redistributed reward inside a jitted training loop.

    python examples/jax_environment.py                    # a minute on one core
    python examples/jax_environment.py --seeds 5 --settlement last

`KeyDoor` has the interface of gymnax: `reset(key, params)` and `step(key, state, action, params)`,
pure functions that begin the next episode when one ends. The agent must take a key, open a door
with it, light a lamp, go down to the cellar with that and open the chest there, each by going to
its place. Only the chest pays, and hardly any random episode opens it.

`RedistributeReward` from `align_rudder.gym.gymnax` wraps it: the tracker of the alignment is part
of the state, so that PPO, environments and redistribution are one compiled function. The learner is
PPO in one piece, as in CleanRL and PureJaxRL; the comparison is the same learner on the reward as
it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

import align_rudder as ar
from align_rudder.gym.gymnax import RedistributeReward

MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
NAMES = ("key", "door", "lamp", "cellar", "chest", "cat")
CHEST, CAT = 4, 5
THINGS = np.array([[1, 6], [6, 5], [6, 1], [2, 2], [0, 4], [4, 4]])  # where they are
SIZE = 8


@dataclass
class Arguments:
    """Learn a key-and-door task with and without redistribution."""

    seeds: int = 1
    """Independent trials of each method."""
    steps: int = 200_000
    """Environment steps of a trial."""
    n_envs: int = 64
    """Environments side by side."""
    n_steps: int = 64
    """Steps of each between updates."""
    epochs: int = 4
    """Passes over the steps of an update."""
    minibatches: int = 4
    """Parts of each pass."""
    learning_rate: float = 1e-3
    """Learning rate of Adam."""
    gamma: float = 0.98
    """Discount."""
    gae_lambda: float = 0.95
    """λ of the generalised advantages."""
    clip: float = 0.2
    """How far PPO lets the policy move in an update."""
    entropy: float = 0.05
    """Weight of the policy's entropy."""
    settlement: str = "annealed"
    """What becomes of the shares: "annealed", "even", "mean", "potential", "last" or "beside"."""
    progress: bool = True
    """Let the agent observe how far along the demonstrations' profile it is."""
    smoke: bool = False
    """A few updates only."""


class State(NamedTuple):
    """A state of the environment."""

    place: jax.Array
    did: jax.Array  # (6,): which things were used; whether the cat purrs
    time: jax.Array


class Params(NamedTuple):
    """Parameters of the environment."""

    max_steps_in_episode: int = 80


class KeyDoor:
    """From key to chest in a room of 8×8 cells, as gymnax has environments.

    What is seen: the place, and what was done. The cat can be stroked, and stops purring when it is
    stroked again; it has nothing to do with the task. Every episode begins elsewhere.
    """

    default_params = Params()

    def look(self, state: State) -> dict[str, jax.Array]:
        """Return the observation."""
        where = jax.nn.one_hot(state.place[0] * SIZE + state.place[1], SIZE**2)
        return {"where": where, **dict(zip(NAMES, state.did, strict=True))}

    def reset_env(self, key: jax.Array, params: Params) -> tuple[Any, State]:
        """Return observation and state at the beginning of an episode."""
        place = jax.random.randint(key, (2,), 0, SIZE)
        state = State(place, jnp.zeros(len(THINGS), jnp.int32), jnp.int32(0))
        return self.look(state), state

    def step_env(self, key: jax.Array, state: State, action: Any, params: Params) -> Any:
        """Step, without beginning anew at the end of an episode."""
        place = jnp.clip(state.place + jnp.asarray(MOVES)[action], 0, SIZE - 1)
        used = (place == THINGS).all(axis=1)
        did = state.did
        may = jnp.append(True, did[:CHEST] > 0)  # each thing needs the one before
        quest = jnp.maximum(did[:CAT], used[:CAT] & may)
        did = jnp.append(quest, jnp.where(used[CAT], 1 - did[CAT], did[CAT])).astype(jnp.int32)
        state = State(place, did, state.time + 1)
        solved = did[CHEST] > 0
        done = solved | (state.time >= params.max_steps_in_episode)
        return self.look(state), state, solved * 1.0, done, {"solved": solved}

    def reset(self, key: jax.Array, params: Params | None = None) -> tuple[Any, State]:
        """Return observation and state at the beginning of an episode."""
        return self.reset_env(key, params or self.default_params)

    def step(self, key: jax.Array, state: State, action: Any, params: Params | None = None) -> Any:
        """Step; at the end of an episode the next one begins."""
        params = params or self.default_params
        key_step, key_reset = jax.random.split(key)
        obs, after, reward, done, info = self.step_env(key_step, state, action, params)
        first = self.reset_env(key_reset, params)
        obs, after = jax.tree.map(lambda a, b: jnp.where(done, a, b), first, (obs, after))
        return obs, after, reward, done, info


def demonstration(seed: int) -> ar.Episode:
    """Return an episode of someone who knows the way; some stroke the cat on the way."""
    env, rng = KeyDoor(), np.random.default_rng(seed)
    step = jax.jit(env.step_env)
    obs, state = env.reset(jax.random.key(seed))
    plan = list(range(CHEST + 1))
    if rng.random() < 0.4:
        plan.insert(int(rng.integers(CHEST + 1)), CAT)
    observations, actions, rewards = [obs], [], []
    while plan:
        across, down = THINGS[plan[0]] - np.asarray(state.place)
        moves = [2 if across > 0 else 3] if across else []
        moves += [0 if down > 0 else 1] if down else []
        if not moves:
            plan = plan[1:]
            continue
        action = int(rng.choice(moves))
        obs, state, reward, *_ = step(jax.random.key(0), state, action, env.default_params)
        observations.append(obs)
        actions.append(action)
        rewards.append(float(reward))
    seen = {name: np.array([o[name] for o in observations]) for name in observations[0]}
    return ar.Episode(seen, actions, rewards, terminated=True)


class Agent(eqx.Module):
    """Policy and value."""

    actor: eqx.nn.MLP
    critic: eqx.nn.MLP

    def __init__(self, n_in: int, key: jax.Array) -> None:
        one, two = jax.random.split(key)
        self.actor = eqx.nn.MLP(n_in, len(MOVES), 64, 2, jnp.tanh, key=one)
        self.critic = eqx.nn.MLP(n_in, "scalar", 64, 2, jnp.tanh, key=two)

    def __call__(self, obs: Any) -> tuple[jax.Array, jax.Array]:
        """Return logits and value."""
        x = vector(obs)
        return self.actor(x), self.critic(x)


def vector(obs: dict[str, Any]) -> jax.Array:
    """Return an observation as input of a network.

    Where the progress is observed, a block for each position follows, and that of the agent's holds
    the observation again: what is learned at one position does not leak into the next.
    """
    parts = [jnp.ravel(part) for name, part in sorted(obs.items()) if name != "progress"]
    seen = jnp.concatenate(parts).astype(jnp.float32)
    return jnp.append(seen, jnp.outer(obs["progress"], seen)) if "progress" in obs else seen


class Transition(NamedTuple):
    """A step of all environments."""

    obs: Any
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array
    solved: jax.Array


def train(args: Arguments, env: Any, seed: int) -> np.ndarray:
    """Return the share of episodes that opened the chest, for each update."""
    key, k_agent, k_reset = jax.random.split(jax.random.key(seed), 3)
    obs, state = jax.vmap(env.reset)(jax.random.split(k_reset, args.n_envs))
    n_in = len(vector(jax.tree.map(lambda x: x[0], obs)))
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(args.learning_rate))
    params, static = eqx.partition(Agent(n_in, k_agent), eqx.is_inexact_array)

    def forward(params: Any, obs: Any) -> Any:
        return jax.vmap(eqx.combine(params, static))(obs)

    def rollout(carry: Any, key: jax.Array) -> Any:
        """Take one step in all environments: reward and redistribution are part of it."""
        params, obs, state = carry
        k_act, k_step = jax.random.split(key)
        logits, value = forward(params, obs)
        action = jax.random.categorical(k_act, logits)
        log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]
        keys = jax.random.split(k_step, args.n_envs)
        following, state, reward, done, info = jax.vmap(env.step)(keys, state, action)
        kept = Transition(obs, action, log_prob, value, reward, done, info["solved"])
        return (params, following, state), kept

    def advantages(batch: Transition, last: jax.Array) -> jax.Array:
        """Return Â_t = Σ_l (γλ)^l δ_{t+l} with δ_t = r_t + γ V_{t+1} − V_t."""

        def back(carry: Any, step: Transition) -> Any:
            advantage, following = carry
            go_on = 1.0 - step.done
            delta = step.reward + args.gamma * following * go_on - step.value
            advantage = delta + args.gamma * args.gae_lambda * go_on * advantage
            return (advantage, step.value), advantage

        return jax.lax.scan(back, (jnp.zeros_like(last), last), batch, reverse=True)[1]

    def loss(params: Any, part: Any) -> jax.Array:
        batch, advantage, target = part
        logits, value = forward(params, batch.obs)
        log_probs = jax.nn.log_softmax(logits)
        log_prob = jnp.take_along_axis(log_probs, batch.action[:, None], 1)[:, 0]
        ratio = jnp.exp(log_prob - batch.log_prob)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        clipped = jnp.clip(ratio, 1 - args.clip, 1 + args.clip)
        policy = -jnp.minimum(ratio * advantage, clipped * advantage).mean()
        entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=1).mean()
        return policy + 0.5 * ((value - target) ** 2).mean() - args.entropy * entropy

    @jax.jit
    def update(params: Any, opt_state: Any, obs: Any, state: Any, key: jax.Array) -> Any:
        k_play, k_learn = jax.random.split(key)
        keys = jax.random.split(k_play, args.n_steps)
        (_, obs, state), batch = jax.lax.scan(rollout, (params, obs, state), keys)
        advantage = advantages(batch, forward(params, obs)[1])
        whole = (batch, advantage, advantage + batch.value)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), whole)

        def learn(carry: Any, rows: jax.Array) -> Any:
            params, opt_state = carry
            gradient = jax.grad(loss)(params, jax.tree.map(lambda x: x[rows], flat))
            change, opt_state = optimizer.update(gradient, opt_state, params)
            return (optax.apply_updates(params, change), opt_state), None

        n = args.n_envs * args.n_steps
        shuffled = [jax.random.permutation(k, n) for k in jax.random.split(k_learn, args.epochs)]
        rows = jnp.stack(shuffled).reshape(args.epochs * args.minibatches, -1)
        (params, opt_state), _ = jax.lax.scan(learn, (params, opt_state), rows)
        solved = (batch.solved & batch.done).sum() / jnp.maximum(batch.done.sum(), 1)
        return params, opt_state, obs, state, solved

    opt_state, curve = optimizer.init(params), []
    for _ in range(args.steps // (args.n_envs * args.n_steps)):
        key, k_update = jax.random.split(key)
        params, opt_state, obs, state, solved = update(params, opt_state, obs, state, k_update)
        curve.append(float(solved))
    return np.array(curve)


def main(args: Arguments) -> None:
    """Fit the model to ten demonstrations and compare."""
    if args.smoke:
        args.steps, args.n_envs, args.n_steps = 2048, 16, 32
    demos = [demonstration(seed) for seed in range(10)]
    # Every change of these is an event; "where" changes all the time and is left out.
    events = ar.DeltaEvents(keys=NAMES)
    model = ar.AlignRudder(events).fit(demos)
    print(model.summary())

    print("\nchests opened, per cent of the episodes, over the course of training")
    redistributed = RedistributeReward(
        KeyDoor(), model, args.settlement, args.gamma, observe_progress=args.progress
    )
    for name, env in (("redistributed", redistributed), ("as it is", KeyDoor())):
        for seed in range(args.seeds):
            parts = np.array_split(train(args, env, seed), 4)
            print(f"  {name:14} {' '.join(f'{100 * part.mean():5.1f}' for part in parts)}")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
