"""Shared by the tests of the diamond task: the ten demonstrations, and one small training."""

import os
from functools import cache

import jax
import jax.numpy as jnp
import pytest
from filelock import FileLock

from align_rudder.cli.main import main
from align_rudder.tasks.diamond.demos import prepare, save_demonstrations
from align_rudder.tasks.diamond.task import DiamondTask

SMALL = [
    *("--steps", "6000", "--envs", "8", "--hidden", "8"),
    *("--pool", "8", "--worlds", "4", "--evaluations", "1"),
    *("--set", "manager=0.05"),
]


@cache
def setup():
    """Return task, demonstrations and model: those of the package, once for each process."""
    return prepare()


class Replay(DiamondTask):
    """The task with one world, that of a demonstration: to make a new one takes long to compile."""

    def new_world(self, key):
        return jax.tree.map(jnp.asarray, at(setup().demos[0], 0))


def at(demo, t):
    """Return the state of a demonstration at a time."""
    return jax.tree.map(lambda x: x[t], demo.states)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A folder with `demos.npz` and a finished training `run`, made once for all workers."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "diamond-training"
    with FileLock(shared / "diamond-training.lock"):
        if not (folder / "done").exists():
            folder.mkdir(exist_ok=True)
            shortest = sorted(setup().demos, key=lambda demo: len(demo.actions))[:4]
            save_demonstrations(folder / "demos.npz", shortest)
            files = ["--demos", str(folder / "demos.npz"), "-o", str(folder / "run")]
            jax.config.update("jax_disable_most_optimizations", True)  # compiled in less time
            assert main(["diamond", "train", *SMALL, *files]) == 0
            jax.config.update("jax_disable_most_optimizations", False)
            (folder / "done").touch()
    return folder
