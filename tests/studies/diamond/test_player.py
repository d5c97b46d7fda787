"""A trained agent in a file of its own plays as it did; damaged and strange files are refused."""

import shutil

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("craftax")
from diamond_training import setup, trained  # noqa: E402, F401
from PIL import Image  # noqa: E402

from align_rudder.cli.main import main  # noqa: E402
from align_rudder.studies.diamond.player import load_player, save_player  # noqa: E402
from align_rudder.studies.diamond.results import load_stage  # noqa: E402
from align_rudder.tasks.diamond.demos import prepare  # noqa: E402


@pytest.fixture
def folder(trained, tmp_path):  # noqa: F811
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.slow
def test_a_player_has_the_policy_of_its_training(folder):
    four = prepare(folder / "demos.npz")
    path = folder / "player.npz"
    save_player(path, folder / "run", four)
    task, agent, training = load_player(path, four)
    other, whole = load_stage(folder / "run", four, "agent")
    assert training.name == "align-rudder"
    assert path.stat().st_size < 0.3 * (folder / "run" / "agent.npz").stat().st_size
    for t in (0, 30, 60):
        state = jax.tree.map(lambda x, t=t: x[t], four.demos[0].states)
        seen = task.task.observe(state)
        for subtask in (0, 5):
            mine, value = agent(task, seen, subtask, 0)
            np.testing.assert_allclose(mine, whole(other, seen, subtask, 0)[0], atol=0.01)
            assert value == 0
    with pytest.raises(ValueError, match="trained with other demonstrations"):
        load_player(path, setup())
    (folder / "cut.npz").write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"cut\.npz"):
        load_player(folder / "cut.npz", four)


@pytest.mark.slow
def test_a_world_is_watched_from_a_folder_and_from_a_file(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    demos = ["--demos", "demos.npz"]
    assert main(["diamond", "ship", "run", *demos, "-o", "player.npz"]) == 0
    assert "MB" in capsys.readouterr().out
    assert main(["diamond", "watch", "player.npz", *demos, "--max-steps", "12"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["step    12  given up", "the run is in diamond.gif"]
    with Image.open("diamond.gif") as gif:
        assert gif.n_frames == 12 + 2


def test_what_cannot_be_watched_is_said(tmp_path, capsys):
    for arguments, word in (
        (["nowhere"], "nowhere is not there"),
        ([str(tmp_path), "-o", "run.mp4"], "ends with .gif"),
        ([str(tmp_path), "-o", str(tmp_path / "run.gif")], "not the folder of a training"),
        ([str(tmp_path), "--max-steps", "0"], "max-steps"),
    ):
        assert main(["diamond", "watch", *arguments]) == 2
        assert word in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
