"""The auto-encoder: it learns pictures, repeatably, and is saved and loaded."""

import numpy as np
import pytest

pytest.importorskip("equinox")
pytest.importorskip("av")
import jax
import jax.numpy as jnp

from align_rudder.minerl.autoencoder import AutoEncoder, train_autoencoder
from align_rudder.minerl.testing.videos import frame_color

SIDE = 16


@pytest.fixture(scope="module")
def trained(filmed):
    return train_autoencoder(
        filmed, size=SIDE, latent=32, steps=250, batch=64, buffer=600, every=1, learning_rate=3e-3
    )


def colors(numbers):
    return np.stack([np.full((SIDE, SIDE, 3), frame_color(n), np.uint8) for n in numbers])


def error(encoder, frames):
    """The mean squared error of pictures, with pixels in [0, 1]."""
    shown = jax.vmap(encoder.network.decode)(jnp.asarray(encoder.encode(frames)))
    return float(((shown.transpose(0, 2, 3, 1) - frames / 255) ** 2).mean())


def test_it_learns_the_pictures(trained, filmed):
    seen = np.concatenate([t.frame_array(size=SIDE) for t in filmed])
    of_mean = float((seen / 255.0).var(axis=0).mean())
    assert error(trained, seen) < 0.1 * of_mean
    assert trained.notes["error"] < 0.1 * trained.notes["error_of_mean_picture"]
    assert trained.notes["steps"] == 250


def test_features_tell_the_colour(trained):
    numbers = np.arange(0, 400)
    features, shown = trained.encode(colors(numbers)), colors(numbers)[:, 0, 0].astype(float)
    assert features.shape == (400, 32)
    x = np.column_stack([features, np.ones(len(numbers))])
    weights = np.linalg.lstsq(x[::2], shown[::2], rcond=None)[0]
    off = x[1::2] @ weights - shown[1::2]
    assert (off**2).mean() < 0.05 * shown[1::2].var()


def test_it_is_saved_and_loaded(encoder, tmp_path):
    path = tmp_path / "encoder.npz"
    encoder.save(path)
    loaded = AutoEncoder.load(path)
    frames = colors(range(5))
    np.testing.assert_array_equal(loaded.encode(frames), encoder.encode(frames))
    assert (loaded.size, loaded.latent, loaded.notes) == (SIDE, 32, encoder.notes)
    assert loaded.digest == encoder.digest
    with pytest.raises(ValueError, match=r"uint8 of shape \(n, 16, 16, 3\) is needed"):
        encoder.encode(frames.astype(float))
    with pytest.raises(ValueError, match="is needed"):
        encoder.encode(frames[:, :8])
    (tmp_path / "half.npz").write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="truncated, damaged"):
        AutoEncoder.load(tmp_path / "half.npz")


def test_files_that_are_no_autoencoder_are_refused(encoder, tmp_path):
    from align_rudder.files import load_npz, save_npz

    encoder.save(tmp_path / "whole.npz")
    header, arrays = load_npz(tmp_path / "whole.npz", "align-rudder-autoencoder", 1)
    about = {key: header[key] for key in ("size", "latent", "notes")}
    for change, message in [
        ({"size": 20}, "a multiple of 8"),
        ({"latent": None}, "latent.* is None; a whole number"),
        ({"latent": 10**12}, "latent.* a whole number from 1 to"),
        ({"notes": 3}, "notes.* is 3; an object"),
    ]:
        save_npz(tmp_path / "x.npz", "align-rudder-autoencoder", 1, {**about, **change}, arrays)
        with pytest.raises(ValueError, match=message):
            AutoEncoder.load(tmp_path / "x.npz")
    arrays.popitem()
    save_npz(tmp_path / "x.npz", "align-rudder-autoencoder", 1, about, arrays)
    with pytest.raises(ValueError, match="has no "):
        AutoEncoder.load(tmp_path / "x.npz")


def test_training_is_repeatable_and_says_what_is_wrong():
    frames = colors(range(40))
    options = {"size": SIDE, "latent": 4, "steps": 3, "batch": 8, "buffer": 16}
    a, b = (train_autoencoder(frames, **options, seed=1) for _ in range(2))
    assert a.digest == b.digest
    assert a.digest != train_autoencoder(frames, **options, seed=2).digest
    for wrong, said in (
        ({"size": 20}, "size=20; a multiple of 8"),
        ({"latent": 0}, "latent is 0"),
        ({"steps": 0}, "steps is 0"),
        ({"buffer": 4}, "buffer=4 is smaller than a batch of 8"),
    ):
        with pytest.raises(ValueError, match=said):
            train_autoencoder(frames, **{**options, **wrong})
    with pytest.raises(ValueError, match="no frames to learn from"):
        train_autoencoder([], **options)
    with pytest.raises(ValueError, match="uint8 of shape"):
        train_autoencoder(frames[:, :8], **options)
