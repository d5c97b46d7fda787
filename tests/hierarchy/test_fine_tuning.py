"""PPO outside of JAX: one sub-agent after the other, then their manager."""

from dataclasses import replace

import numpy as np
import pytest

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
from corridor import LEFT, constant, fetch, followed, net  # noqa: E402

from align_rudder.hierarchy.external import Players, Replays, TrackedEnv, play_out  # noqa: E402
from align_rudder.hierarchy.fine_tuning import (  # noqa: E402
    FineTuning,
    ManagerPractice,
    SubtaskPractice,
    fine_tune,
    success_rate,
)
from align_rudder.hierarchy.ppo import PPO  # noqa: E402
from align_rudder.runs.checkpoint import Checkpoint  # noqa: E402
from align_rudder.runs.interrupt import Stop  # noqa: E402


def first(agent):
    """Return the practice of the first sub-task."""
    return SubtaskPractice(0, [agent], Replays(3))


def test_sub_agents_learn_one_after_the_other_and_play_the_task_together():
    envs = [followed() for _ in range(4)]
    tuning = FineTuning(
        steps=1600,
        burn_in=64,
        patience=12,
        evaluate_every=800,
        trials=10,
        ppo=PPO(n_envs=1, n_steps=16, n_minibatches=4, learning_rate=0.1, gamma=0.9),
    )
    replays, agents = Replays(3), [net() for _ in range(3)]
    rng = np.random.default_rng(5)
    judged = replace(tuning, trials=20)
    before = success_rate(envs[0], 0, replays, Players(agents), rng, judged)
    for k in range(3):
        agents[k], curve = fine_tune(SubtaskPractice(k, agents, replays), envs, tuning, seed=k)
        assert max(rate for _, rate in curve) >= 0.9
    after = success_rate(envs[0], 0, replays, Players(agents), rng, judged)
    assert after >= 0.9 > before
    solved = [play_out(envs[0], Players(agents), rng, 60)[1] for _ in range(10)]
    assert np.mean(solved) >= 0.8

    # A sub-agent that is broken: the manager learns to do without it.
    broken = [agents[0], constant(LEFT), agents[2]]
    manager = net(who=4)
    long = FineTuning(
        steps=6400, burn_in=64, patience=25, evaluate_every=3200, trials=10, ppo=tuning.ppo
    )
    tuned = fine_tune(ManagerPractice(manager, broken), envs, long, seed=0)
    assert tuned.curve[0][1] <= 0.6
    assert max(rate for _, rate in tuned.curve) >= tuned.curve[0][1] + 0.2


TUNING = FineTuning(
    steps=96,
    burn_in=0,
    patience=12,
    evaluate_every=32,
    trials=2,
    ppo=PPO(n_envs=1, n_steps=32, n_minibatches=1, n_epochs=1),
)


@pytest.mark.parametrize(
    ("enough", "least", "steps"), [(0.0, 0, [0]), (0.0, 40, [0, 32, 64]), (2.0, 0, [0, 32, 64, 96])]
)
def test_a_training_ends_when_it_is_good_enough_but_not_too_early(env, enough, least, steps):
    tuning = replace(TUNING, enough=enough, least_steps=least)
    found = fine_tune(first(net()), [env], tuning)
    assert [at for at, _ in found.curve] == steps


def test_a_sub_agent_is_paid_for_its_subgoal_and_not_for_what_else_it_gains(monkeypatch):
    step = TrackedEnv.step
    monkeypatch.setattr(TrackedEnv, "step", lambda self, do: step(self, do)._replace(reward=99.0))
    env, paid = followed(), []
    tuning = replace(TUNING, ppo=replace(TUNING.ppo, learning_rate=1e-9))
    fine_tune(first(fetch()), [env], tuning, log=lambda *x: paid.append(x[2]))
    subgoals = np.array(paid) * 32 / (tuning.ppo.reward_scale * env.worth[0])  # in each batch
    np.testing.assert_allclose(subgoals, np.round(subgoals), atol=1e-4)
    assert (subgoals >= 5).all()


def test_too_few_steps_for_a_batch_are_refused(env):
    with pytest.raises(ValueError, match=r"steps=20 are fewer than a batch of PPO, 1 env.* 32"):
        fine_tune(first(net()), [env], replace(TUNING, steps=20))


def test_a_training_that_was_stopped_goes_on(env, tmp_path):
    stop, configuration = Stop(), {"seed": 0}

    def checkpoint():
        return Checkpoint(tmp_path / "unfinished.npz", configuration, stop)

    def ask(steps, losses, reward):
        stop.asked = steps == 64

    with pytest.raises(KeyboardInterrupt):
        fine_tune(first(net()), [env], TUNING, log=ask, checkpoint=checkpoint())
    stop.asked, seen = False, []
    found = fine_tune(
        first(net()),
        [env],
        replace(TUNING, enough=2.0),
        log=lambda steps, losses, reward: seen.append(steps),
        checkpoint=checkpoint(),
    )
    assert seen == [96]  # 32 and 64 were done before
    assert [at for at, _ in found.curve] == [0, 32, 64, 96]
    configuration["seed"] = 1
    with pytest.raises(ValueError, match="seed is 0 there and 1 here"):
        fine_tune(first(net()), [env], TUNING, checkpoint=checkpoint())
    checkpoint().remove()
    assert not list(tmp_path.iterdir())
