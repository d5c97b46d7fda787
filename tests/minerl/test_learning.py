"""MineRL: what the networks see, the networks themselves, cloning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")
pytest.importorskip("av")
import equinox as eqx  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from align_rudder.minerl.testing.colours import frame_number  # noqa: E402

from align_rudder.hierarchy import actions  # noqa: E402
from align_rudder.minerl.cache import ArrayCache  # noqa: E402
from align_rudder.minerl.camera import BINS, camera_targets, nearest_bins, turn_of  # noqa: E402
from align_rudder.minerl.cloning import Cloning, clone_sub_agent  # noqa: E402
from align_rudder.minerl.dataset import find_trajectories  # noqa: E402
from align_rudder.minerl.networks import (  # noqa: E402
    FRAMES,
    HEAD_SIZES,
    Encoder,
    count_parameters,
    new_manager,
    new_sub_agent,
)
from align_rudder.minerl.pictures import BORDER_COLOURS, draw_pictures, shrink  # noqa: E402
from align_rudder.minerl.samples import Samples, targets_of  # noqa: E402
from align_rudder.minerl.spaces import BUTTONS, ENUMS, HELD, ITEMS  # noqa: E402
from align_rudder.minerl.testing.synthetic import write_dataset  # noqa: E402
from align_rudder.minerl.view import PictureView  # noqa: E402

# Camera


@given(st.floats(-60, 60))
def test_camera_targets_sum_to_one_and_mean_the_true_angle(angle):
    p = camera_targets(np.array(angle)).astype(float)
    assert p.sum() == pytest.approx(1, abs=1e-6)
    assert (p >= 0).all()
    assert (p > 0).sum() <= 2
    assert (p * BINS).sum() == pytest.approx(angle, abs=1e-4)


def test_eleven_bins_symmetric_and_clipped():
    assert len(BINS) == 11
    np.testing.assert_array_equal(BINS, -BINS[::-1])
    np.testing.assert_array_equal(camera_targets(np.array([-180.0, 180.0])).argmax(axis=1), [0, 10])
    np.testing.assert_array_equal(nearest_bins(turn_of(np.arange(11))), np.arange(11))
    with pytest.raises(ValueError, match="finite"):
        camera_targets(np.array([np.nan]))


# Pictures


def blank(n=1, value=100):
    return np.full((n, 64, 64, 3), value, np.uint8)


def test_the_inventory_is_a_bar_of_grey_squares():
    counts = np.zeros((4, len(ITEMS)), int)
    counts[:, ITEMS.index("cobblestone")] = [0, 48, 95, 500]
    held = np.full(4, HELD.index("air"))
    small = draw_pictures(blank(4), counts, held)
    assert small.shape == (4, 48, 48, 3)
    # In the frame before shrinking: squares of three pixels from column 5, rows 59 to 61.
    x = round((5 + 3 * ITEMS.index("cobblestone") + 1.5) * 48 / 64 - 0.5)
    y = round((59 + 1.5) * 48 / 64 - 0.5)
    found = small[:, y, x, 0].astype(int)
    np.testing.assert_allclose(found, [255, 128, 3, 0], atol=3)
    other = round((5 + 3 * ITEMS.index("log") + 1.5) * 48 / 64 - 0.5)
    assert (small[:, y, other] == 255).all()


def test_the_held_item_is_the_colour_of_the_border():
    held = np.arange(len(HELD))
    small = draw_pictures(blank(len(HELD)), np.zeros((len(HELD), 18), int), held)
    np.testing.assert_array_equal(small[:, 0, 24], BORDER_COLOURS)
    np.testing.assert_array_equal(small[:, 24, -1], BORDER_COLOURS)
    assert len(np.unique(BORDER_COLOURS, axis=0)) == len(HELD)
    assert (small[:, 24, 24] == 100).all()


def test_shrinking_takes_means_of_areas():
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (2, 64, 64, 3)).astype(np.uint8)
    found = shrink(frames, 48).astype(float)
    fine = np.repeat(np.repeat(frames, 3, axis=1), 3, axis=2).reshape(2, 48, 4, 48, 4, 3)
    np.testing.assert_allclose(found, fine.mean(axis=(2, 4)), atol=0.51)


def test_wrong_pictures_are_refused():
    with pytest.raises(ValueError, match=r"float64 \(1, 64, 64, 3\)"):
        draw_pictures(blank().astype(float), np.zeros((1, 18), int), np.zeros(1, int))
    with pytest.raises(ValueError, match=r"inventory is \(1, 17\)"):
        draw_pictures(blank(), np.zeros((1, 17), int), np.zeros(1, int))


# Networks, against the same layers in PyTorch


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


def test_the_encoder_is_that_of_pytorch():
    agent = new_sub_agent(jax.random.key(0))
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


def test_initial_weights_are_those_of_equinox():
    """Drawn by another generator: the same ranges and spreads, another one for each key."""
    drawn, other = (jax.tree.leaves(new_sub_agent(jax.random.key(k)).actor) for k in (0, 1))
    for mine, different, theirs in zip(
        drawn, other, jax.tree.leaves(Encoder(jax.random.key(0))), strict=True
    ):
        assert mine.shape == theirs.shape
        bound = float(jnp.abs(theirs).max())
        assert float(jnp.abs(mine).max()) == pytest.approx(bound, rel=0.2, abs=1e-9)
        assert float(mine.std()) == pytest.approx(float(theirs.std()), rel=0.3, abs=1e-9)
        assert theirs.std() == 0 or not np.array_equal(mine, different)
    again = jax.tree.leaves(new_sub_agent(jax.random.key(0)).actor)
    assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))


def test_parameters_follow_from_the_layers():
    convolutions = 3 * 16 * 16 + 16 + 16 * 32 * 16 + 32 + 32 * 64 * 9 + 64 + 64 * 32 * 9 + 32
    norms = 2 * (16 + 32 + 64 + 32)
    lstm = (288 + 256) * 4 * 256 + 4 * 256
    encoder = convolutions + norms + lstm
    units = 8 + 8 + 7 + 5 + 8 + 3 + 22
    found = count_parameters(new_sub_agent(jax.random.key(0)))
    assert found == {"policy": encoder + 256 * units + units, "value": encoder + 256 + 1}


def test_heads_are_those_of_the_action_space():
    agent = new_sub_agent(jax.random.key(0))
    logits, value = agent(None, jnp.zeros((FRAMES, 48, 48, 3), jnp.uint8), 0, 0)
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


def test_the_main_agent_begins_with_the_order_of_the_alignment():
    manager = new_manager(jax.random.key(0), 5)
    seen = jnp.zeros((FRAMES, 48, 48, 3), jnp.uint8)
    for turn, expected in ((0, 0), (3, 3), (5, 4)):
        p = jax.nn.softmax(manager(None, seen, jnp.array(turn), 0)[0]["who"])
        assert p.argmax() == expected
        assert p[expected] > 0.99


# Samples


@pytest.fixture(scope="module")
def trajectory(tmp_path_factory):
    root = tmp_path_factory.mktemp("minerl")
    write_dataset(root, 1, 3, "MineRLObtainDiamond-v0", seed=0)
    (found,) = find_trajectories(root, ["MineRLObtainDiamond-v0"])
    return found


@pytest.fixture(scope="module")
def treechop(tmp_path_factory):
    root = tmp_path_factory.mktemp("treechop")
    write_dataset(root, 1, 3, "MineRLTreechop-v0", seed=0)
    (found,) = find_trajectories(root, ["MineRLTreechop-v0"])
    return found


def test_targets_hold_an_action_for_some_frames(trajectory):
    given, found = trajectory.actions(), targets_of(trajectory, skip=4)
    rng = np.random.default_rng(0)
    n = len(trajectory)
    for t in (*rng.integers(0, n, 50), n - 1):
        window = slice(t, min(t + 4, n))
        for button in BUTTONS:
            assert found[button][t] == (given[button][window].sum() / 4 >= 0.5)
        turned = np.asarray(given["camera"][window], float).sum(axis=0)
        np.testing.assert_allclose(found["pitch"][t], camera_targets(turned[0]), atol=1e-6)
        np.testing.assert_allclose(found["yaw"][t], camera_targets(turned[1]), atol=1e-6)
        # Of what is made, placed or equipped, that of the first frame with any of it.
        none = {head: values.index("none") for head, values in ENUMS.items()}
        busy = [s for s in range(t, window.stop) if any(given[h][s] != none[h] for h in ENUMS)]
        for head in ENUMS:
            assert found[head][t] == (given[head][busy[0]] if busy else none[head])


def test_heads_that_a_task_lacks_are_not_known(treechop):
    found = targets_of(treechop)
    logits = {head: jnp.zeros((len(treechop), n)) for head, n in HEAD_SIZES.items()}
    for head in ENUMS:
        assert (found[head] == -1).all()
    buttons = {head: x for head, x in found.items() if head not in ENUMS}
    whole = actions.cross_entropy(logits, {h: jnp.asarray(x) for h, x in found.items()})
    part = actions.cross_entropy({h: logits[h] for h in buttons}, buttons)
    np.testing.assert_allclose(whole, part, rtol=1e-6)


def test_samples_are_the_frames_up_to_their_step(trajectory, tmp_path):
    """Flat colours tell which frame of the recording a picture is."""
    samples = Samples([(trajectory, 40, 60), (trajectory, 0, 5)], ArrayCache(tmp_path), skip=2)
    assert len(samples) == 25
    seen, targets = samples.batch(np.array([7, 20, 24]))
    middle = seen[:, :, 20:28, 20:28].reshape(3 * FRAMES, 8, 8, 3)
    whole = np.stack(list(trajectory.frames()))
    hidden = frame_number(whole[0])  # frames that the recording has before the first
    numbers = np.array([frame_number(picture) - hidden for picture in middle]).reshape(3, FRAMES)
    for row, t in enumerate((47, 0, 4)):
        expected = np.maximum(t - 2 * np.arange(FRAMES)[::-1], 0)
        np.testing.assert_array_equal(numbers[row], expected)
    assert targets["attack"][0] == targets_of(trajectory, 2)["attack"][47]


def test_bad_segments_are_named(trajectory, tmp_path):
    with pytest.raises(ValueError, match="nothing to clone"):
        Samples([], ArrayCache(tmp_path))
    with pytest.raises(ValueError, match=r"steps 5 to 999999 are not a segment of v3_"):
        Samples([(trajectory, 5, 999_999)], ArrayCache(tmp_path))


# Cloning


def test_a_pass_shows_every_sample_in_batches_of_one_size():
    shown = []

    class Counting(Coloured):
        def batch(self, indices):
            shown.append(np.array(indices))
            return super().batch(indices)

    settings = Cloning(epochs=1, batch=8, held_out=0.2)
    clone_sub_agent(new_sub_agent(jax.random.key(0)), Counting(25), settings)
    trained, judged = shown[:3], shown[3:]
    assert {len(part) for part in shown} == {8}
    assert len(set(np.concatenate(trained))) == 20
    assert len(set(np.concatenate(judged))) == 5
    assert not set(np.concatenate(trained)) & set(np.concatenate(judged))


class Coloured:
    """Samples whose colour says what an expert does: attack in red, craft planks in green, …"""

    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.kind = rng.integers(0, 3, n)

    def __len__(self):
        return len(self.kind)

    def batch(self, indices):
        kind = self.kind[indices]
        seen = np.full((len(kind), 4, 48, 48, 3), 40, np.uint8)
        for row, k in enumerate(kind):
            seen[row, -1, :, :, k] = 200
        targets = {button: np.zeros(len(kind), np.int32) for button in BUTTONS}
        targets["attack"] = (kind == 0).astype(np.int32)
        yaw = np.where(kind == 2, 10.0, 0.0)
        targets["pitch"], targets["yaw"] = camera_targets(np.zeros(len(kind))), camera_targets(yaw)
        for head, values in ENUMS.items():
            targets[head] = np.full(len(kind), values.index("none"), np.int32)
        targets["craft"][kind == 1] = ENUMS["craft"].index("planks")
        return seen, targets


def test_cloning_learns_what_a_simple_expert_does():
    samples = Coloured(96)
    settings = Cloning(epochs=20, batch=16, evaluate_every=5, held_out=0.15, learning_rate=0.03)
    start = new_sub_agent(jax.random.key(0))
    found = clone_sub_agent(start, samples, settings)
    assert [epoch for epoch, _, _ in found.curve] == [5, 10, 15, 20]
    seen, targets = samples.batch(np.arange(96))
    logits, _ = found.agent.clone(jnp.asarray(seen), learning=False)
    for head in ("attack", "craft"):
        right = np.mean(np.asarray(logits[head].argmax(axis=1)) == targets[head])
        assert right > 0.95, head  # by chance 0.67 at best
    turned = np.asarray(jax.nn.softmax(logits["yaw"]) @ BINS)
    assert np.abs(turned - np.where(samples.kind == 2, 10, 0)).mean() < 2
    # The value network is left alone.
    for before, after in zip(
        jax.tree.leaves((start.critic, start.value)),
        jax.tree.leaves((found.agent.critic, found.agent.value)),
        strict=True,
    ):
        np.testing.assert_array_equal(before, after)


def test_the_judge_decides_which_agent_is_kept():
    scores = iter([1.0, 5.0, 2.0])
    judged = []

    def judge(agent):
        judged.append(agent)
        return next(scores)

    settings = Cloning(epochs=3, batch=8, evaluate_every=1)
    found = clone_sub_agent(new_sub_agent(jax.random.key(0)), Coloured(8), settings, judge=judge)
    assert found.agent is judged[1]
    assert [score for _, _, score in found.curve] == [1.0, 5.0, 2.0]


# View


def test_samples_and_view_show_as_many_frames_as_asked_for(trajectory, tmp_path):
    """What an agent is cloned from is what it will see, down to the first frames."""
    samples = Samples([(trajectory, 0, 9)], ArrayCache(tmp_path), skip=1, frames=3)
    seen, _ = samples.batch(np.arange(9))
    assert seen.shape == (9, 3, 48, 48, 3)
    view = PictureView(3)
    view.begin()
    inventory, held = trajectory.inventory(), trajectory.mainhand()["type"]
    for t, frame in enumerate(trajectory.frames(0, 9)):
        hand = HELD.index("air") if held[t] == "none" else HELD.index(held[t])
        shown = view.see({"pov": frame, "inventory": inventory[t], "equipped": hand})
        np.testing.assert_array_equal(shown, seen[t])


def test_the_view_keeps_32_pictures_and_does_what_is_chosen():
    view = PictureView()
    view.begin()

    def obs(value):
        return {"pov": blank(1, value)[0], "inventory": np.zeros(18, int), "equipped": 0}

    first = view.see(obs(0))
    assert first.shape == (32, 48, 48, 3)
    assert (first[:, 24, 24] == 0).all()
    for value in range(1, 40):
        seen = view.see(obs(value))
    np.testing.assert_array_equal(seen[:, 24, 24, 0], np.arange(8, 40))
    view.begin()
    assert (view.see(obs(7))[:, 24, 24] == 7).all()
    choice = dict.fromkeys(HEAD_SIZES, 0) | {"attack": 1, "yaw": 10, "pitch": 5, "craft": 2}
    action = view.do(choice)
    assert action["attack"] == 1
    assert action["craft"] == 2
    np.testing.assert_array_equal(action["camera"], [0, 60])
    assert set(action) == {*BUTTONS, "camera", *ENUMS}
