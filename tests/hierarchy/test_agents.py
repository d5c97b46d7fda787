"""Networks: symmetric ones, and one for each sub-task."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
import jax.numpy as jnp  # noqa: E402
import workshop  # noqa: E402

from align_rudder.hierarchy.agents import new_agent, new_separate_agents  # noqa: E402
from align_rudder.hierarchy.manager import managed  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled_quickly")
TASK = workshop.Workshop()
K = workshop.K


@pytest.mark.parametrize("manages", [False, True])
def test_in_a_mirrored_world_the_mirrored_is_done(task, worlds, manages):
    played = managed(task, workshop.WHOLE) if manages else task
    agent = new_agent(played, jax.random.key(0), (16,), prior=1.0 if manages else None)
    seen = jax.vmap(TASK.observe)(worlds.state)
    k = jnp.arange(64) % (K + 1)

    @jax.jit
    def judge(seen):
        return jax.vmap(agent, (None, 0, 0, 0))(played, seen, k, k)

    logits, values = judge(seen)
    assert np.asarray(logits).std(axis=0).min() > 1e-4
    for m, actions in enumerate(np.asarray(TASK.mirrored_actions)):
        mirrored = jax.vmap(lambda o, m=m: TASK.mirror(o, jnp.int32(m)))(seen)
        choices = [*range(K), *(K + actions)] if manages else actions
        there, value = judge(mirrored)
        np.testing.assert_allclose(there[:, choices], logits, atol=1e-6)
        np.testing.assert_allclose(value, values, atol=1e-5)
    lopsided = new_agent(played, jax.random.key(0), (16,), False, prior=agent.prior)
    judge = jax.jit(lambda seen: jax.vmap(lopsided, (None, 0, 0, 0))(played, seen, k, k))
    assert abs(judge(mirrored)[0][:, choices] - judge(seen)[0]).max() > 1e-4


@pytest.fixture(scope="module")
def separate(task):
    return new_separate_agents(task, jax.random.key(0), (8,))


def test_separate_agents_are_networks_of_their_own(task, worlds, separate):
    seen = jax.tree.map(lambda x: x[0], jax.vmap(TASK.observe)(worlds.state))
    values, judge = [], eqx.filter_jit(lambda agent, k: agent(task, seen, k, jnp.int32(2)))
    for k in range(K + 1):
        one = jax.tree.map(lambda x, k=k: np.asarray(x)[min(k, K - 1)], separate.agents)
        found, expected = judge(separate, jnp.int32(k)), judge(one, jnp.int32(k))
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        values.append(float(found[1]))
    assert len(set(values)) == K + 1


def test_a_step_teaches_only_the_network_of_its_subtask(task, worlds, separate):
    seen = jax.tree.map(lambda x: x[0], jax.vmap(TASK.observe)(worlds.state))

    @eqx.filter_jit
    def gradient(agents, subtask):
        def loss(agents):
            logits, value = agents(task, seen, subtask, jnp.int32(0))
            return jax.nn.log_softmax(logits)[1] + value**2

        return eqx.filter_grad(loss)(agents)

    for k in range(K):
        for leaf in jax.tree.leaves(gradient(separate, jnp.int32(k))):
            touched = np.asarray(leaf).reshape(K, -1).any(axis=1)
            assert not np.delete(touched, k).any()
        out = gradient(separate, jnp.int32(k)).agents
        assert out.actor.out.weight[k].any()
        assert out.critic.out.weight[k].any()
