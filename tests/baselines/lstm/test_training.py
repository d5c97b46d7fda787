"""Training of LSTMs: the same seed gives the same weights, whatever else is trained or padded."""

import os
import subprocess
import sys

import numpy as np
import pytest
from toys import toy

from align_rudder.baselines.lstm import LstmRudder
from align_rudder.baselines.rudder import random_episodes_of

pytest.importorskip("jax")

STEPS = {"max_steps": 100}


def assert_same_weights(a, b, tolerance):
    for name in ("embedding", "numeric", "bias", "recurrent", "head"):
        np.testing.assert_allclose(
            getattr(a.weights_, name), getattr(b.weights_, name), rtol=0, atol=tolerance
        )


@pytest.fixture(scope="module")
def trials():
    """Return datasets of different sizes, which are padded to the same shapes."""
    mdp, demos = toy("FrozenLake-v1", is_slippery=False)
    return [(demos[: 2 + i], random_episodes_of(mdp, 17 + 2 * i, i)) for i in range(3)]


def test_same_seed_same_weights_other_seed_others(trials):
    a, b = (LstmRudder(**STEPS, seed=3).fit(*trials[0]) for _ in range(2))
    assert_same_weights(a, b, 0.0)
    other = LstmRudder(**STEPS).fit(*trials[0])
    assert np.abs(other.weights_.embedding - a.weights_.embedding).max() > 0.01


def test_fit_many_equals_fit_whatever_else_is_in_the_batch(trials):
    template = LstmRudder(**STEPS)
    together = template.fit_many(trials, seeds=[5, 6, 7])
    assert not hasattr(template, "weights_")
    for i, (demos, random) in enumerate(trials):
        alone = LstmRudder(**STEPS, seed=5 + i).fit(demos, random)
        assert together[i].get_params() == alone.get_params()
        assert_same_weights(together[i], alone, 1e-4)
        for episode in [*demos, *random]:
            np.testing.assert_allclose(
                together[i].predict(episode), alone.predict(episode), rtol=0, atol=1e-4
            )


def test_padding_changes_no_result(trials):
    short = LstmRudder(**STEPS).fit(*trials[0])
    long = LstmRudder(max_steps=130).fit(*trials[0])
    assert_same_weights(short, long, 1e-4)


@pytest.mark.slow
def test_threads_change_no_result():
    code = """
from align_rudder.tasks import KeyChestEnv
from align_rudder.baselines.lstm import LstmRudder
env = KeyChestEnv()
model = LstmRudder(updates=10, batch_size=64)
random = env.demonstrations(8, 1, exploration=0.9)
random = [type(e)(e.observations, e.actions, 0 * e.rewards) for e in random]
text = model.fit(env.demonstrations(8, 0), random).weights_.embedding.tobytes().hex()
"""
    here: dict[str, str] = {}
    exec(code, here)
    one_thread = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    there = subprocess.run(
        [sys.executable, "-c", code + "print(text)"],
        env={**os.environ, "XLA_FLAGS": one_thread},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == here["text"]
