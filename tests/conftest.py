"""Shared by the tests: FrozenLake, demonstrations on it, and a model fitted to them.

What JAX compiles is kept in one folder for all workers and child processes of a run, so that the
same program is compiled once.
"""

import gc
import os
import re
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import align_rudder as ar

_CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

try:  # scikit-bio turns on JAX's double precision when it is imported: turn it off again
    import jax
    import skbio.util  # noqa: F401
except ImportError:
    pass
else:
    jax.config.update("jax_enable_x64", False)

# What a skipped test says is missing, and the packages that bring it.
_PROGRAMS = {"ClustalW": "clustalw", "MAFFT": "mafft", "Chrom": "chromium chromium-driver"}


def pytest_terminal_summary(terminalreporter):
    """End with one line on what to install, where tests were skipped for want of a program."""
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    found = {name: sum(bool(re.search(name, r)) for r in reasons) for name in _PROGRAMS}
    if skipped := sum(found.values()):
        packages = " ".join(_PROGRAMS[name] for name, n in found.items() if n)
        terminalreporter.write_line(
            f"{skipped} tests were skipped for want of programs; to run them: "
            f"apt-get install {packages}",
            yellow=True,
        )


_MAPPINGS = 15_000


@pytest.fixture(autouse=True, scope="module")
def few_mappings():
    """Let go of what JAX has compiled, before there are more mappings than a process may have.

    Linux allows 65,530, each program takes several, and beyond them the process dies.
    """
    yield
    maps = Path("/proc/self/maps")
    if "jax" in sys.modules and maps.exists() and maps.read_bytes().count(b"\n") > _MAPPINGS:
        sys.modules["jax"].clear_caches()
        gc.collect()


RIGHT, DOWN = 2, 1


def walk(env, actions):
    """Return the episode of an action sequence, extended by going right and down."""
    obs, _ = env.reset(seed=0)
    observations, taken, rewards = [obs], [], []
    terminated = truncated = False
    queue = list(actions)
    while not (terminated or truncated):
        action = queue.pop(0) if queue else (RIGHT if len(taken) % 2 else DOWN)
        obs, reward, terminated, truncated, _ = env.step(action)
        observations.append(obs)
        taken.append(action)
        rewards.append(reward)
    return ar.Episode(observations, taken, rewards, terminated, truncated)


LAKE = {"is_slippery": False, "map_name": "4x4"}
PATHS = (
    [1, 1, 2, 2, 1, 2],
    [1, 1, 0, 2, 2, 1, 2],
    [1, 1, 3, 1, 2, 2, 1, 2],
    [3, 1, 1, 2, 2, 1, 2],
    [1, 0, 1, 2, 1, 2, 2],
)


@pytest.fixture
def lake():
    return gym.make("FrozenLake-v1", **LAKE)


@pytest.fixture
def demos(lake):
    episodes = [walk(lake, path) for path in PATHS]
    assert all(e.ret == 1.0 for e in episodes)
    return episodes


@pytest.fixture
def model(demos):
    return ar.AlignRudder().fit(demos)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def compiled_quickly():
    """JAX's programs are compiled in less time and run slower."""
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
