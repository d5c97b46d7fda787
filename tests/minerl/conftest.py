"""Shared by the tests of MineRL: generated datasets and environments of the small world."""

import contextlib
import shutil
from collections import namedtuple

import numpy as np
import pytest
from small_world import DIAMOND, IRON, TREECHOP

from align_rudder.minerl.dataset import load_pool
from align_rudder.minerl.environment import MineRLEnv
from align_rudder.minerl.pipeline import fit_events
from align_rudder.minerl.testing import scripted
from align_rudder.minerl.testing.synthetic import write_dataset

WAIT = 60  # seconds; only a failing test takes so long
OF_MODULE = ("stage", "distance", "spread", "hits")

TRICKS = """
import importlib.util, os, subprocess, sys, time
spec = importlib.util.spec_from_file_location("scripted", {scripted!r})
scripted = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scripted)

GARBAGE = dict(
    garbage=b"Exception in thread main",
    half=(1000).to_bytes(4, "big") + b"only this",
    zero=bytes(8),
    words=(8).to_bytes(4, "big") + b"\\xff" * 8,
    keys=(6).to_bytes(4, "big") + (2).to_bytes(4, "big") + b"{{}}",
)


class Env(scripted.ScriptedEnv):
    def __init__(self, task, trick, **options):
        super().__init__(task, **options)
        self.trick, self.broken = trick, False
        if trick == "spaces":
            del self.observation_space.spaces["inventory"].spaces["log"]
            del self.action_space.spaces["nearbySmelt"]
            self.action_space.spaces["craft"] = scripted.Enum("none", "planks")
        if trick == "cannot":
            raise OSError("no Java here")

    def reset(self):
        if self.broken:
            raise ConnectionError("Minecraft is gone for ever")
        self.broken = self.trick == "one"
        observation = super().reset()
        if self.trick == "elsewhere":
            self.items["log"] = os.getpid()
        return observation

    def step(self, action):
        if self.trick == "noise":
            print("x" * 100000)
            os.write(1, b"\\x00\\xff\\x00\\x00 garbage")
            subprocess.call(["echo", "hello from a child"])
        if self.trick == "crash":
            print("Minecraft is on fire", file=sys.stderr, flush=True)
            os._exit(3)
        if self.trick == "fork":
            if os.fork() == 0:
                time.sleep(5)
            os._exit(3)
        if self.trick == "hang":
            sys.modules["__main__"].GRACE = 0.2
            time.sleep(1000)
        if self.trick == "raise":
            self.broken = True
            raise ConnectionError("no such block")
        if self.trick in GARBAGE:
            os.write(int(sys.argv[sys.argv.index("--descriptor") + 1]), GARBAGE[self.trick])
            time.sleep(1000)
        observation, reward, done, info = super().step(action)
        if self.trick == "picture":
            observation["pov"] = observation["pov"][:8]
        if self.trick == "lost":
            return observation, reward, True, {{"error": "Connection timed out!"}}
        if self.trick == "echo":
            for head, value in action.items():
                info[head] = type(value).__name__ + " " + str(value)
        return observation, reward, done, info
"""


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """All three tasks in version 3; tests that damage something work on a copy, `root`."""
    pytest.importorskip("av")
    root = tmp_path_factory.mktemp("minerl") / "v3"
    write_dataset(root, 5, 3, DIAMOND, seed=1)
    write_dataset(root, 2, 3, IRON, seed=2)
    write_dataset(root, 3, 3, TREECHOP, seed=3, lengths=[40, 60, 50])
    return root


@pytest.fixture(scope="session")
def source4(tmp_path_factory):
    """Two tasks in version 4."""
    pytest.importorskip("av")
    root = tmp_path_factory.mktemp("minerl") / "v4"
    write_dataset(root, 3, 4, DIAMOND, seed=1)
    write_dataset(root, 2, 4, TREECHOP, seed=3, lengths=[40, 60])
    return root


@pytest.fixture
def root(source, tmp_path):
    return shutil.copytree(source, tmp_path / "data")


@pytest.fixture(scope="session", params=[(0, 3), (1, 4)], ids=str)
def pool(request, tmp_path_factory):
    """26 trajectories of all tasks, without recordings."""
    (seed, version), root = request.param, tmp_path_factory.mktemp("pool") / "data"
    write_dataset(root, 20, version, DIAMOND, 10 * seed, video=False)
    write_dataset(root, 3, version, IRON, 10 * seed + 1, video=False)
    lengths = [60, 80, 70]
    write_dataset(root, 3, version, TREECHOP, 10 * seed + 2, lengths=lengths, video=False)
    return load_pool(root, video=None, workers=2)


@pytest.fixture(scope="session")
def model(pool):
    return fit_events(pool, workers=1)


@pytest.fixture(scope="session")
def filmed(tmp_path_factory):
    """A smaller pool with recordings."""
    pytest.importorskip("av")
    root = tmp_path_factory.mktemp("filmed") / "data"
    write_dataset(root, 6, 3, DIAMOND, 5, diamonds=5)
    write_dataset(root, 1, 3, TREECHOP, 6, lengths=[60])
    return load_pool(root, workers=2)


@pytest.fixture(scope="session")
def encoder():
    """An auto-encoder of 16×16 pixels that knows nothing yet: its features differ all the same."""
    pytest.importorskip("equinox")
    from align_rudder.minerl.autoencoder import AutoEncoder, Network
    from align_rudder.minerl.networks import new_network

    network = new_network(lambda key: Network(16, 32, key), np.random.default_rng(0))
    return AutoEncoder(network, 16)


@pytest.fixture
def make():
    """Make environments that are closed in the end."""
    with contextlib.ExitStack() as stack:

        def make(version=3, *, trick=None, task=DIAMOND, **options):
            own = {k: options.pop(k) for k in list(options) if k in OF_MODULE}
            own["version"] = version
            options = {"module": "scripted", "timeout": WAIT, "reward": None} | options
            options["reward"] = options["reward"] or ("diamond" if task == DIAMOND else "all")
            if trick is not None:
                options["module"], own["trick"] = trick.module, trick.name
            return stack.enter_context(MineRLEnv(task, module_options=own, **options))

        yield make


@pytest.fixture(scope="session")
def shared():
    """One environment of each version, for tests that leave them as they were."""
    with contextlib.ExitStack() as stack:
        yield {
            version: stack.enter_context(
                MineRLEnv(module="scripted", module_options={"version": version})
            )
            for version in (3, 4)
        }


Trick = namedtuple("Trick", "module name")


@pytest.fixture
def trick(tmp_path):
    path = tmp_path / "tricks.py"
    path.write_text(TRICKS.format(scripted=scripted.__file__))
    return lambda name: Trick(f"{path}:Env", name)
