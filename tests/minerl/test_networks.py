"""The paper's networks, against the same layers in PyTorch; initial weights; PPO moves them."""

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("torch")
import equinox as eqx
import jax
import jax.numpy as jnp
import torch

from align_rudder.hierarchy import actions
from align_rudder.hierarchy.ppo import PPO, Transition, new_train_state, update_agent
from align_rudder.minerl.networks import (
    HEAD_SIZES,
    Norm,
    new_manager,
    new_network,
    new_sub_agent,
)
from align_rudder.minerl.spaces import BUTTONS, ENUMS


@pytest.fixture(scope="module")
def agent():
    return new_sub_agent(jax.random.key(0))


def copied(encoder):
    """Return the encoder's layers in PyTorch."""
    layers = []
    for convolution, norm in zip(encoder.convolutions, encoder.norms, strict=True):
        weight = np.asarray(convolution.weight)
        layer = torch.nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2], 2, 1)
        layer.weight.data = torch.tensor(weight)
        layer.bias.data = torch.tensor(np.asarray(convolution.bias).ravel())
        normal = torch.nn.BatchNorm2d(weight.shape[0])
        normal.weight.data = torch.tensor(np.asarray(norm.scale))
        normal.bias.data = torch.tensor(np.asarray(norm.offset))
        layers += [layer, normal, torch.nn.ReLU()]
    lstm = torch.nn.LSTM(288, 256, batch_first=True)
    lstm.weight_ih_l0.data = torch.tensor(np.asarray(encoder.lstm.weight_ih))
    lstm.weight_hh_l0.data = torch.tensor(np.asarray(encoder.lstm.weight_hh))
    lstm.bias_ih_l0.data = torch.tensor(np.asarray(encoder.lstm.bias))
    lstm.bias_hh_l0.data = torch.zeros(1024)
    return torch.nn.Sequential(*layers), lstm


def test_the_encoder_is_that_of_pytorch(agent):
    pictures = np.random.default_rng(0).integers(0, 256, (2, 5, 48, 48, 3)).astype(np.uint8)
    stack, lstm = copied(agent.actor)
    x = torch.tensor(pictures.reshape(10, 48, 48, 3)).permute(0, 3, 1, 2).float() / 255
    for learning in (True, False):
        stack.train(learning)
        with torch.no_grad():
            features = stack(x).reshape(2, 5, -1)
            expected = lstm(features)[0][:, -1]
        assert features.shape[-1] == 288
        found, kept = agent.actor(jnp.asarray(pictures), learning)
        np.testing.assert_allclose(found, expected.numpy(), atol=2e-5)
        if learning:
            for norm, other in zip(kept.norms, stack[1::3], strict=True):
                np.testing.assert_allclose(norm.mean, other.running_mean.numpy(), atol=1e-5)
                np.testing.assert_allclose(norm.variance, other.running_var.numpy(), atol=1e-5)
            agent = eqx.tree_at(lambda a: a.actor, agent, kept)


@pytest.mark.parametrize(
    "make",
    [
        lambda key: eqx.nn.Conv2d(3, 16, 4, key=key),
        lambda key: eqx.nn.Linear(64, 48, key=key),
        lambda key: eqx.nn.LSTMCell(32, 24, key=key),
    ],
)
def test_initial_weights_are_those_of_equinox(make):
    """Drawn by another generator: the same ranges and spreads, others for each seed."""
    drawn, again, other = (
        jax.tree.leaves(new_network(make, np.random.default_rng(seed))) for seed in (0, 0, 1)
    )
    assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))
    for mine, different, theirs in zip(
        drawn, other, jax.tree.leaves(make(jax.random.key(0))), strict=True
    ):
        assert mine.shape == theirs.shape
        assert float(jnp.abs(mine).max()) == pytest.approx(float(jnp.abs(theirs).max()), rel=0.2)
        assert float(mine.std()) == pytest.approx(float(theirs.std()), rel=0.3)
        assert not np.array_equal(mine, different)


def test_parameters_follow_from_the_layers(agent):
    convolutions = 3 * 16 * 16 + 16 + 16 * 32 * 16 + 32 + 32 * 64 * 9 + 64 + 64 * 32 * 9 + 32
    norms = 2 * (16 + 32 + 64 + 32)
    lstm = (288 + 256) * 4 * 256 + 4 * 256
    encoder = convolutions + norms + lstm
    units = 8 + 8 + 7 + 5 + 8 + 3 + 22

    def learned(*parts):
        """Count what is learned; the running means of a norm are not."""
        is_norm = lambda part: isinstance(part, Norm)  # noqa: E731
        leaves = jax.tree.leaves(parts, is_leaf=is_norm)
        return sum(2 * part.scale.size if is_norm(part) else part.size for part in leaves)

    assert learned(agent.actor, agent.heads) == encoder + 256 * units + units == 620_013
    assert learned(agent.critic, agent.value) == encoder + 256 + 1 == 604_593


def test_heads_are_those_of_the_action_space(agent):
    logits, value = eqx.filter_jit(agent)(None, jnp.zeros((2, 48, 48, 3), jnp.uint8), 0, 0)
    assert {head: x.shape for head, x in logits.items()} == {
        **dict.fromkeys(BUTTONS, (2,)),
        "pitch": (11,),
        "yaw": (11,),
        **{head: (len(values),) for head, values in ENUMS.items()},
    }
    assert set(logits) == set(HEAD_SIZES)
    unit = logits["attack"][1] - logits["attack"][0]
    pressed = np.exp(actions.log_prob(logits["attack"], jnp.array(1)))
    assert pressed == pytest.approx(1 / (1 + np.exp(-float(unit))), rel=1e-5)
    assert np.isfinite(value)


def test_the_manager_begins_with_the_order_of_the_alignment():
    manager = eqx.filter_jit(new_manager(jax.random.key(0), 5))
    seen = jnp.zeros((2, 48, 48, 3), jnp.uint8)
    for turn, expected in ((0, 0), (3, 3), (5, 4)):
        p = jax.nn.softmax(manager(None, seen, jnp.array(turn), 0)[0]["who"])
        assert p.argmax() == expected
        assert p[expected] > 0.99


def test_ppo_improves_the_papers_networks():
    """An action that is always paid becomes likelier, what is not paid for stays as it is."""
    manager = new_manager(jax.random.key(0), 3)
    ppo = PPO(n_envs=1, n_steps=8, n_minibatches=1, learning_rate=3e-3, ent_coef=0.0, burn_in=0)
    rng = np.random.default_rng(0)
    seen = jnp.asarray(rng.integers(0, 256, (8, 1, 2, 48, 48, 3)), jnp.uint8)
    chosen = {head: np.full((8, 1), -1) for head in (*HEAD_SIZES, "who")}
    chosen["who"][:, 0] = np.arange(8) % 4
    zero = jnp.zeros((8, 1), int)
    act = jax.jit(jax.vmap(lambda m, x: m(None, x, jnp.array(0), jnp.array(0)), (None, 0)))

    def who(manager):
        logits, value = act(manager, seen[:, 0])
        return jax.nn.log_softmax(logits["who"]), value

    log_p, value = who(manager)
    at = jnp.asarray(chosen["who"][:, 0])
    taken = jnp.take_along_axis(log_p, at[:, None], axis=1)
    paid = (at == 2).astype(jnp.float32)[:, None]
    played = Transition(
        seen,
        zero,
        zero,
        {head: jnp.asarray(x) for head, x in chosen.items()},
        taken,
        value[:, None],
        paid,
        jnp.ones((8, 1), bool),
    )
    state = new_train_state(manager, ppo, 1, jax.random.key(0))
    better = eqx.filter_jit(update_agent)(None, ppo, 1, state, played, jnp.zeros(1))[0].agent
    after, value_after = who(better)
    assert (after[:, 2] > log_p[:, 2]).all()
    error = ((value[:, None] - paid) ** 2).mean()
    assert ((value_after[:, None] - paid) ** 2).mean() < error
    # Running means of the batch norms are not learned.
    for a, b in zip(manager.own.actor.norms, better.own.actor.norms, strict=True):
        np.testing.assert_array_equal(a.mean, b.mean)
        np.testing.assert_array_equal(a.variance, b.variance)
