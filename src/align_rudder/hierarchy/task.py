"""What an environment must give to be learned by sub-agents."""

from __future__ import annotations

from typing import Any, Protocol

import jax

__all__ = ["Task"]


class Task(Protocol):
    """A JAX environment: pure functions of one environment, to be vmapped.

    States and observations are pytrees of arrays. Everything an episode needs is in its state, so
    that any state can be stored and restored.
    """

    @property
    def n_actions(self) -> int:
        """Number of primitive actions."""
        ...

    @property
    def max_steps(self) -> int:
        """Time limit of an episode."""
        ...

    def new_world(self, key: jax.Array) -> Any:
        """Return the start state of a new world."""
        ...

    def step(self, key: jax.Array, state: Any, action: jax.Array) -> Any:
        """Return the next state."""
        ...

    def dense_reward(self, before: Any, after: Any) -> jax.Array:
        """Return a hand-made reward of a step, for comparison only."""
        ...

    def over(self, state: Any) -> jax.Array:
        """Return whether the episode has ended."""
        ...

    def solved(self, state: Any) -> jax.Array:
        """Return whether the state earns the reward of 1 for which all is done."""
        ...

    def features(self, state: Any) -> jax.Array:
        """Return the numbers whose changes are events (F,)."""
        ...

    @property
    def endings(self) -> tuple[str, ...]:
        """How an episode can end, in words."""
        ...

    def ending(self, before: Any, after: Any) -> jax.Array:
        """Return how the last step of an episode ended it, as an index of `endings`."""
        ...

    def report(self, state: Any) -> jax.Array:
        """Return the numbers that tell how far an episode came (R,)."""
        ...

    def observe(self, state: Any) -> Any:
        """Return what the agent sees, compactly: this is stored for every step."""
        ...

    def encode(self, observation: Any) -> jax.Array:
        """Return an observation as input of a network (D,)."""
        ...

    def mirror(self, observation: Any, which: jax.Array) -> Any:
        """Return the observation in the world mirrored by symmetry `which`; 0 is as it is."""
        ...

    @property
    def mirrored_actions(self) -> jax.Array:
        """For each symmetry, the action that does in the mirrored world what a does here (M, A)."""
        ...
