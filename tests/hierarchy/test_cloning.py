"""Behavioural cloning fits the demonstrations."""

import pytest

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
import workshop  # noqa: E402

from align_rudder.hierarchy.agents import new_agent  # noqa: E402
from align_rudder.hierarchy.cloning import clone_agent  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled_quickly")
K = workshop.K


@pytest.mark.parametrize("updates", [7, 30])
def test_cloning_makes_all_the_updates_asked_for_and_fits(task, shown, updates):
    agent = new_agent(task, jax.random.key(0), (16,), symmetric=False)
    fit = eqx.filter_jit(clone_agent)
    _, curve = fit(task, agent, shown.examples, jax.random.key(1), updates, learning_rate=1e-2)
    assert curve[-1, 0] == updates
    assert len(curve) <= 20
    assert (curve[-1, 1 : K + 1] < curve[0, 1 : K + 1]).all()
