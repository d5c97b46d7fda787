"""Playing in MineRL: the game as agents see it. (How far they come: `test_training`.)"""

import pytest

pytest.importorskip("jax")
pytest.importorskip("av")
from align_rudder.minerl.pipeline import fit_events
from align_rudder.minerl.playing import open_game


def test_a_game_is_opened_for_the_model_it_is_followed_along(encoder, filmed, tmp_path):
    encoder.save(tmp_path / "encoder.npz")
    path = str(tmp_path / "encoder.npz")
    blind, seeing = fit_events(filmed, 5), fit_events(filmed, 5, encoder.features)
    with pytest.raises(ValueError, match="fitted without features of pictures; leave out"):
        open_game(blind, module="scripted", autoencoder=path)
    with pytest.raises(ValueError, match="fitted with features of pictures; give"):
        open_game(seeing, module="scripted")
    game = open_game(seeing, module="scripted", world={"hits": 1}, autoencoder=path, frames=3)
    with game.env:
        game.begin(0)
        assert game.seen.shape == (3, 48, 48, 3)
        assert game.obs["features"].shape == (32,)
