"""Craftax's own pictures of a world."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["painter"]


@cache
def painter(block: int, darkest: float = 0.0) -> Callable[[Any], jax.Array]:
    """Return the compiled function from a world to its picture (height, width, 3), in bytes.

    Args:
        block: Pixels of each block; Craftax has textures of `BLOCK_PIXEL_SIZE_*`.
        darkest: The least light; below 0.5 Craftax draws noise over the picture.
    """
    from craftax.craftax_classic.renderer import make_craftax_pixel_renderer

    with contextlib.redirect_stdout(sys.stderr):  # Craftax reports on its textures
        draw = make_craftax_pixel_renderer(block)

    def picture(world: Any) -> jax.Array:
        light = jnp.maximum(world.light_level, darkest)
        noise = jax.random.fold_in(jax.random.key(0), world.timestep)
        pixels = draw(world.replace(light_level=light, state_rng=noise))
        return jnp.clip(pixels, 0, 255).astype(jnp.uint8)

    return jax.jit(picture)
