"""One device or many, in one process or several: environments are spread, the rest is copied."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

__all__ = ["Devices", "find_devices"]


class Devices:
    """All devices of all processes, seen as one row along which environments are spread."""

    def __init__(self) -> None:
        if jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
            raise ValueError(
                "JAX is set to double precision, and sub-agents are trained in single; use "
                'jax.config.update("jax_enable_x64", False)'
            )
        self.mesh = Mesh(np.array(jax.devices()), ("envs",))
        self.spread = NamedSharding(self.mesh, PartitionSpec("envs"))
        self.copied = NamedSharding(self.mesh, PartitionSpec())

    @property
    def n(self) -> int:
        """Number of devices."""
        return self.mesh.size

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes files and shows progress."""
        return jax.process_index() == 0

    def check(self, **sizes: int) -> None:
        """Say which numbers of environments cannot be spread evenly."""
        for name, size in sizes.items():
            if size % self.n:
                raise ValueError(
                    f"{name}={size} cannot be spread evenly over {self.n} devices; choose a "
                    f"multiple of {self.n}"
                )

    def place(self, tree: Any, spread: bool = False) -> Any:
        """Return arrays, which every process has whole, on all devices.

        They are spread along axis 0, or copied to each.
        """
        sharding = self.spread if spread else self.copied
        if jax.process_count() == 1:
            return jax.device_put(tree, sharding)
        return jax.tree.map(lambda x: _between_processes(x, sharding), tree)

    def keep(self, tree: Any, spread: bool = False) -> Any:
        """Return arrays placed like that, inside of compiled code."""
        return jax.lax.with_sharding_constraint(tree, self.spread if spread else self.copied)

    def gather(self, tree: Any) -> Any:
        """Return arrays that every process has whole, on a device of its own."""
        whole = jax.jit(lambda x: x, out_shardings=self.copied)(tree)
        return jax.tree.map(lambda x: x.addressable_data(0), whole)

    def any(self, value: bool) -> bool:
        """Return whether it is true of any process, so that all do the same."""
        return bool(np.any(multihost_utils.process_allgather(np.array(value))))

    def wait(self, where: str) -> None:
        """Return when all processes have come to this line."""
        multihost_utils.sync_global_devices(where)


def _between_processes(x: jax.Array, sharding: NamedSharding) -> jax.Array:
    """Return an array that every process has whole as one of all processes."""
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        data = _between_processes(jax.random.key_data(x), sharding)
        return jax.random.wrap_key_data(data)
    whole = np.asarray(x)
    return jax.make_array_from_callback(whole.shape, sharding, lambda at: whole[at])


def find_devices(
    kind: str = "auto", coordinator: str | None = None, processes: int = 1, index: int = 0
) -> Devices:
    """Return the devices to train on.

    Args:
        kind: "auto" for what there is, "gpu" to insist on one, "cpu".
        coordinator: Address of the first process, host:port, if there are several.
        processes: Number of processes.
        index: Which of them this is.
    """
    if kind == "cpu":
        jax.config.update("jax_platforms", "cpu")
    if coordinator is not None:
        if not 0 <= index < processes:
            raise ValueError(f"process {index} of {processes}: give one from 0 to {processes - 1}")
        jax.distributed.initialize(coordinator, processes, index)
    elif processes != 1 or index != 0:
        raise ValueError(
            f"process {index} of {processes} needs the address of the first: --coordinator"
        )
    if kind == "gpu" and jax.default_backend() != "gpu":
        raise ValueError(
            f"a GPU was asked for, and JAX finds only {jax.default_backend()}; install JAX for "
            'your GPU (pip install "jax[cuda13]"), check nvidia-smi, or leave out --device gpu'
        )
    return Devices()
