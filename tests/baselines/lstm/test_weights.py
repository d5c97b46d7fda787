"""The forward pass of the LSTM: compiled, in JAX and in NumPy the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import mixed

from align_rudder.baselines.lstm.weights import Weights, predictions_numpy


@pytest.mark.parametrize("kind", ["lake", "mixed"])
def test_compiled_forward_pass_equals_jax_and_numpy(kind, lake_data, lake_model, mixed_model):
    jax = pytest.importorskip("jax")
    from align_rudder.baselines.lstm.network import predictions

    model = lake_model if kind == "lake" else mixed_model
    episode = lake_data[1][0] if kind == "lake" else mixed(1, 5)[0]
    w = model.weights_
    tokens, numbers = model.inputs_.encode_episode(episode)
    compiled = w.predict(tokens, numbers)
    in_jax = np.asarray(jax.jit(predictions)(w, tokens[:, None], numbers[:, None]))[:, 0]
    np.testing.assert_allclose(compiled, in_jax, rtol=0, atol=2e-5)
    np.testing.assert_allclose(compiled, predictions_numpy(w, tokens, numbers), atol=2e-5)
    assert np.ptp(compiled) > 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 50), st.floats(0.1, 30.0))
def test_compiled_forward_pass_equals_numpy_for_any_weights(seed, hidden, steps, size):
    rng = np.random.default_rng(seed)
    shapes = ((7, 2 * hidden), (2, 2 * hidden), (2 * hidden,), (hidden, hidden), (hidden + 1,))
    weights = Weights(*(rng.normal(0, 1, shape).astype(np.float32) for shape in shapes))
    weights.embedding[:] *= np.float32(size)  # saturated gates and cells too
    tokens = rng.integers(0, 7, (steps, 2)).astype(np.int32)
    numbers = rng.normal(size=(steps, 2)).astype(np.float32)
    got = weights.predict(tokens, numbers)
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, predictions_numpy(weights, tokens, numbers), atol=5e-3)


def test_padding_and_auxiliary_in_the_loss():
    """The loss of a padded batch is the mean over its episodes, computed step by step."""
    jax = pytest.importorskip("jax")
    from align_rudder.baselines.lstm.network import Batch, loss

    rng = np.random.default_rng(0)
    parts = [(7, 4), (0, 4), (4,), (2, 2), (3,)]
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in parts]
    weights = Weights(*arrays)
    lengths, returns = np.array([3, 6]), np.array([0.5, -1.0], np.float32)
    tokens = rng.integers(0, 7, (2, 6, 1)).astype(np.int32)
    numbers = np.zeros((2, 6, 0), np.float32)
    expected = []
    for i in range(2):
        n = lengths[i]
        errors = (predictions_numpy(weights, tokens[i, :n], numbers[i, :n]) - returns[i]) ** 2
        expected.append(errors[-1] + 0.3 * errors.mean())
    got = jax.jit(loss)(weights, Batch(tokens, numbers, returns, lengths), 0.3)
    assert float(got) == pytest.approx(np.mean(expected), rel=1e-5)
