"""From demonstrations to a sub-agent that PPO makes better than cloning did, on real Craftax."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("craftax")
import equinox as eqx  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from diamond_training import Replay, setup  # noqa: E402

from align_rudder.hierarchy.agents import new_agent  # noqa: E402
from align_rudder.hierarchy.aligned import AlignedTask  # noqa: E402
from align_rudder.hierarchy.cloning import aligned_demonstrations, clone_agent  # noqa: E402
from align_rudder.hierarchy.evaluation import evaluate, new_worlds  # noqa: E402
from align_rudder.hierarchy.ppo import PPO, new_runner_state, train_step  # noqa: E402
from align_rudder.hierarchy.resets import new_starts  # noqa: E402
from align_rudder.studies.diamond.results import (  # noqa: E402
    CHAIN,
    aligned_task,
    count_demonstrations,
    counts_of,
)


def test_redistribution_of_the_demonstrations_is_that_of_numpy():
    """Event by event and step by step, inside JAX as outside; scores are on a grid of 2^-10."""
    world, demos, model, _ = setup()
    task = aligned_task(setup()._replace(task=Replay()))
    follow = eqx.filter_jit(lambda s, *features: task.follow(s, *features))
    start = task.begin(jax.random.key(0))
    for demo in demos[:3]:
        expected = model.redistribute(demo.episode(world))
        features = np.asarray(jax.vmap(world.features)(jax.tree.map(jnp.asarray, demo.states)))
        s = start
        for t in range(len(demo.actions)):
            s, out = follow(s, features[t], features[t + 1])
            assert out.event == expected.events[t]
            assert out.gain == pytest.approx(expected.rewards[t], abs=2e-3)


@pytest.mark.slow
def test_ppo_on_the_redistributed_reward_is_better_than_cloning():
    """The third piece of wood within 30 steps of a new world."""
    task = AlignedTask(setup().task, aligned_task(setup()).tables, patience=25)
    begins = [  # of each demonstration, until the table is there
        (jax.tree.map(lambda x: x[:61], states), actions[:60]) for states, actions in setup().runs
    ]
    shown = aligned_demonstrations(task, begins)
    agent = new_agent(task, jax.random.key(0), (64,))
    agent, _ = eqx.filter_jit(clone_agent)(task, agent, shown.examples, jax.random.key(1), 200)
    pool, test = (new_worlds(task, jax.random.key(k), 128) for k in (2, 3))
    play = eqx.filter_jit(evaluate)

    def found(agent):
        return play(task, agent, test, jax.random.key(4), jnp.int32(30))

    def rate(agent):
        return np.mean(np.asarray(found(agent).subtask) >= 3)

    cloned = rate(agent)
    ppo = PPO(
        n_envs=64,
        n_steps=16,
        n_minibatches=4,
        learning_rate=1e-3,
        gamma=0.95,
        fresh=1.0,
        burn_in=3,
        own_subtask=True,
    )
    starts = new_starts(pool, task.n_subtasks, 1)
    runner = new_runner_state(agent, starts, ppo, 20, jax.random.key(5))
    step = eqx.filter_jit(lambda task, runner, shown: train_step(task, ppo, 20, runner, shown)[0])
    for _ in range(20):
        runner = step(task, runner, shown.examples)
    learned = rate(runner.train_state.agent)
    assert cloned > 0.3  # ten demonstrations teach something
    assert learned > cloned + 0.08

    played = found(runner.train_state.agent)
    counts = counts_of(played)
    given_up = int((np.asarray(played.ending) < 0).sum())
    assert sum(counts["endings"].values()) == 128 - given_up
    assert given_up == (np.asarray(played.steps) == 30).sum()
    assert counts["worlds"] == sum(counts["deepest"].values()) == 128
    assert counts["deepest"]["nothing"] == 128 - counts["reached"][0]
    assert counts["episode_steps"] <= 128 * 30


def test_all_demonstrations_reach_the_diamond():
    counts = count_demonstrations(setup()._replace(task=Replay()))
    assert counts["solved"] == len(setup().demos)
    assert counts["reached"][-1] >= 9
    assert list(CHAIN)[-1] == "diamond"
