"""What agents are paid, and when an episode is cut off."""

import numpy as np
import pytest

import align_rudder as ar

jax = pytest.importorskip("jax")
pytest.importorskip("equinox")
import workshop  # noqa: E402

from align_rudder.hierarchy.aligned import PAYS, AlignedTask, PlainTask  # noqa: E402

TASK = workshop.Workshop()
K = workshop.K


@pytest.fixture(scope="module")
def replayed(known):
    """Noisy runs, some of them in vain, as every pay sees them; and their actions."""
    runs = [workshop.play(TASK, 100 + i, noise=0.2 + 0.1 * i) for i in range(6)]
    tasks = {pay: AlignedTask(TASK, known.tables, pay) for pay in PAYS}
    tasks |= {f"plain {pay}": PlainTask(TASK, known.tables, pay) for pay in PAYS}

    @jax.jit
    def replay(state, actions):
        def step(carry, action):
            steps = {n: t.step(jax.random.key(0), carry[n], action) for n, t in tasks.items()}
            return {n: s for n, (s, _) in steps.items()}, steps

        start = {n: t.begin(jax.random.key(0))._replace(state=state) for n, t in tasks.items()}
        return jax.lax.scan(step, start, actions)[1]

    out = []
    for states, actions in runs:
        first = jax.tree.map(lambda x: x[0], states)
        padded = np.pad(actions, (0, TASK.max_steps - len(actions)))
        whole, n = replay(first, padded), len(actions)
        out.append((states, actions, jax.tree.map(lambda x, n=n: x[:n], whole)))
    assert {bool(states.items[-1, workshop.GEM]) for states, _, _ in out} == {True, False}
    return out


def test_gains_are_the_redistributed_reward(replayed, known):
    for states, actions, found in replayed:
        rewards = np.zeros(len(actions))
        rewards[-1] = states.items[-1, workshop.GEM] > 0
        observations = {n: states.items[:, i] for i, n in enumerate(workshop.FEATURES)}
        episode = ar.Episode(observations, actions, rewards, terminated=True)
        expected = known.model.redistribute(episode).rewards
        _, out = found["step"]
        np.testing.assert_allclose(out.gain, expected, atol=2e-3)
        np.testing.assert_array_equal(out.gain > 1e-6, expected > 1e-6)
        np.testing.assert_array_equal(out.reward, out.gain)


def test_subgoals_pay_what_was_pending(replayed):
    """At any time, what was paid and what is pending is what was given."""
    for _, _, found in replayed:
        s, out = found["subgoal"]
        paid = np.cumsum(out.reward)
        np.testing.assert_allclose(paid + s.pending, s.given, atol=1e-6)
        np.testing.assert_allclose(s.given, np.cumsum(found["step"][1].reward), atol=1e-6)
        assert not out.reward[~out.reached].any()
        assert not s.pending[out.reached].any()
        assert (out.reward[out.reached] > 0).all()


def test_the_task_pays_once_and_goals_pay_the_same(replayed):
    for states, _, found in replayed:
        solved = float(states.items[-1, workshop.GEM] > 0)
        for pay in ("task", "plain task"):
            reward = np.asarray(found[pay][1].reward)
            assert reward[-1] == solved
            assert not reward[:-1].any()
        s, out = found["goals"]
        np.testing.assert_allclose(np.cumsum(out.reward), s.subtask / K, rtol=1e-6)


def test_a_plain_task_knows_no_subgoals(replayed):
    for _, _, found in replayed:
        for pay in ("subgoal", "step", "goals"):
            s, out = found[f"plain {pay}"]
            assert not out.reward.any()
            assert not out.reached.any()
            assert not s.subtask.any()
        np.testing.assert_array_equal(found["plain dense"][1].reward, found["dense"][1].reward)
        assert found["dense"][1].reward.any()


def test_an_unknown_pay_is_refused(known):
    with pytest.raises(ValueError, match="is not one of subgoal"):
        AlignedTask(TASK, known.tables, "nothing")


def test_an_episode_without_progress_is_cut_off(task, worlds):
    impatient = AlignedTask(TASK, task.tables, patience=5)

    def step(s, _):
        new, out = impatient.step(jax.random.key(0), s, 0)
        return new, out.cut

    start = jax.tree.map(lambda x: x[0], worlds)
    _, cut = jax.lax.scan(step, start, None, 7)
    assert cut.tolist() == [False] * 4 + [True] * 3
