"""Devices: what cannot be spread, and what is not there, is refused."""

from types import SimpleNamespace

import pytest

jax = pytest.importorskip("jax")
from align_rudder.hierarchy.devices import Devices, find_devices  # noqa: E402


def test_environments_must_be_spread_evenly():
    devices = Devices()
    devices.check(n_envs=devices.n, worlds=3 * devices.n)
    devices.mesh = SimpleNamespace(size=2)
    with pytest.raises(ValueError, match="worlds=3 cannot be spread evenly over 2 devices"):
        devices.check(n_envs=2, worlds=3)


def test_devices_that_are_not_there_are_refused():
    if jax.default_backend() == "cpu":
        with pytest.raises(ValueError, match="a GPU was asked for, and JAX finds only cpu"):
            find_devices("gpu")
    with pytest.raises(ValueError, match="process 0 of 2 needs the address"):
        find_devices(processes=2)
    with pytest.raises(ValueError, match="process 1 of 1 needs the address"):
        find_devices(index=1)
    with pytest.raises(ValueError, match="process 2 of 2: give one from 0 to 1"):
        find_devices(coordinator="localhost:1", processes=2, index=2)
