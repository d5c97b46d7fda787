"""PPO outside of JAX: one sub-agent after the other, then their manager."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
from corridor import LEFT, constant, fetch, followed, net  # noqa: E402

from align_rudder.hierarchy import fine_tuning  # noqa: E402
from align_rudder.hierarchy.external import (  # noqa: E402
    Players,
    TrackedEnv,
    UnreachedError,
    play_out,
)
from align_rudder.hierarchy.fine_tuning import FineTuning, fine_tune  # noqa: E402
from align_rudder.hierarchy.ppo import PPO, new_train_state, update_agent  # noqa: E402
from align_rudder.hierarchy.practice import (  # noqa: E402
    ManagerPractice,
    SubtaskPractice,
    begin_all,
    play_batch,
    success_rate,
)
from align_rudder.hierarchy.replays import Replays  # noqa: E402
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
    before = success_rate(envs, 0, replays, Players(agents), rng, judged)
    for k in range(3):
        agents[k], curve, *_ = fine_tune(SubtaskPractice(k, agents, replays), envs, tuning, seed=k)
        assert max(rate for _, rate in curve) >= 0.9
    after = success_rate(envs, 0, replays, Players(agents), rng, judged)
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


class Losing(gym.Wrapper):
    """Gives every n-th step's episode up, as where a game cannot be brought back."""

    def __init__(self, env, n):
        super().__init__(env)
        self.n, self.asked, self.handed_on = n, 0, 0

    def step(self, action):
        self.asked += 1
        if self.asked % self.n == 0:
            return self.env.unwrapped._obs(), 0.0, False, True, {"lost": "a test"}
        self.handed_on += 1
        return self.env.step(action)


def losing(n):
    env = followed()
    env.env = Losing(env.env, n)
    return env


def test_a_step_that_was_lost_is_not_learned_from_and_the_episode_ends_before_it():
    """One environment loses its seventh and fourteenth step, the other none."""
    envs, ppo = [losing(7), followed()], replace(TUNING.ppo, n_steps=16, gamma=0.5)
    practice, agent = first(fetch()), eqx.tree_at(lambda net: net.value, fetch(), np.ones(5))
    rng = np.random.default_rng(1)
    begin_all(practice, envs, TUNING, rng)
    began, envs[0].env.asked = envs[0].env.handed_on, 0
    batch, _ = play_batch(practice, agent, envs, TUNING, ppo, rng)
    assert batch.reward.shape == (16, 2)
    # The 16 steps of the batch are those handed on; sub-tasks before there are none to play.
    assert envs[0].env.handed_on - began == 16
    assert envs[0].env.asked == 18
    for t in (5, 11):  # what comes before the lost ones: steps 6 and, one of them lost, 12
        assert batch.done[t, 0]
        assert batch.reward[t, 0] == pytest.approx(
            0.5 if batch.reward[t, 0] < 1 else float(batch.reward[t, 0])
        )
    rewards = np.asarray(batch.reward)
    assert ((rewards[:, 0] == 0.5) <= np.asarray(batch.done[:, 0])).all()
    assert (rewards[:, 0] == 0.5).any()


def test_lost_episodes_are_no_trials():
    env, rng = losing(9), np.random.default_rng(0)
    tuning = replace(TUNING, trials=40)
    assert success_rate([env], 0, Replays(3), Players([fetch()]), rng, tuning) == 1.0
    assert env.env.asked // 9 > 10  # many were lost


def test_a_sub_task_that_cannot_be_reached_any_more_costs_nothing_of_the_training(env, tmp_path):
    """Recordings run out in the middle of it; a later training goes on there."""
    stop, begun = Stop(), []

    class Closing(SubtaskPractice):
        def begin(self, env, rng, tuning):
            begun.append(len(batches))
            if len(batches) == 2 and not open_:
                raise UnreachedError("the way is closed")
            super().begin(env, rng, tuning)

    def train(practice):
        checkpoint = Checkpoint(tmp_path / "unfinished.npz", {}, stop)
        return fine_tune(
            practice, [env], tuning, log=lambda *x: batches.append(x[0]), checkpoint=checkpoint
        )

    open_, batches, tuning = False, [], replace(TUNING, enough=2.0, patience=5)
    found = train(Closing(0, [net()], Replays(3)))
    assert found.unreached == "the way is closed"
    assert batches == [32, 64]
    assert (found.steps, [at for at, _ in found.curve][:2]) == (64, [0, 32])
    again = train(Closing(0, [net()], Replays(3)))  # closed still: as far as before
    assert (again.steps, again.curve, batches) == (64, found.curve, [32, 64])
    for one, other in zip(jax.tree.leaves(found.agent), jax.tree.leaves(again.agent), strict=True):
        np.testing.assert_array_equal(one, other)
    open_ = True
    last = train(Closing(0, [net()], Replays(3)))
    assert (last.unreached, last.steps, batches) == (None, 96, [32, 64, 96])
    assert [at for at, _ in last.curve] == [0, 32, 64, 96]


def test_what_was_not_reached_is_tried_in_other_worlds_the_next_time(env, tmp_path):
    drawn = []

    class Closed(SubtaskPractice):
        def begin(self, env, rng, tuning):
            drawn.append(int(rng.integers(2**31)))
            raise UnreachedError("the way is closed")

    for n in (1, 2, 3):
        checkpoint = Checkpoint(tmp_path / "unfinished.npz", {}, Stop())
        found = fine_tune(Closed(0, [net()], Replays(3)), [env], TUNING, checkpoint=checkpoint)
        assert (found.unreached, found.tries) == ("the way is closed", n)
    assert len(set(drawn)) == 3


def test_whatever_breaks_a_training_off_its_last_update_is_saved(env, tmp_path):
    def fail(steps, losses, reward):
        if steps == 64:
            raise RuntimeError("the game is gone")

    checkpoint = Checkpoint(tmp_path / "unfinished.npz", {}, Stop())
    with pytest.raises(RuntimeError, match="the game is gone"):
        fine_tune(first(net()), [env], TUNING, log=fail, checkpoint=checkpoint)
    assert (
        checkpoint.load((new_train_state(net(), TUNING.ppo, 3, jax.random.key(0)), net()))[1][
            "steps"
        ]
        == 64
    )


def test_minibatches_in_python_are_those_of_the_compiled_loop():
    ppo = replace(TUNING.ppo, n_envs=2, n_steps=16, n_minibatches=4, n_epochs=3, burn_in=0)
    envs, rng, practice = [followed(), followed()], np.random.default_rng(0), first(net())
    begin_all(practice, envs, TUNING, rng)
    batch = play_batch(practice, net(), envs, TUNING, ppo, rng)
    before = new_train_state(net(), ppo, 5, jax.random.key(1))
    one, losses = fine_tuning._update(ppo, 5, before, *batch)
    other, expected = update_agent(None, ppo, 5, before, *batch)
    for a, b in zip(jax.tree.leaves(one.agent), jax.tree.leaves(other.agent), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-6)
    assert not np.array_equal(one.agent.move, before.agent.move)
    np.testing.assert_array_equal(jax.random.key_data(one.key), jax.random.key_data(other.key))
