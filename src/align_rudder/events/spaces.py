"""Whether an environment's observations are those that an encoder was fitted on."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from gymnasium import spaces

from align_rudder.events.base import EventEncoder
from align_rudder.events.combined import CombinedEvents
from align_rudder.events.encoders import SymbolEvents
from align_rudder.events.observations import said_shapes
from align_rudder.events.states import StateEvents

__all__ = ["check_space"]


def _shapes(space: spaces.Space[Any], prefix: str = "") -> dict[str, list[int]]:
    """Return the shape of each part of an observation, named as the encoders name them."""
    if isinstance(space, spaces.Dict):
        return {n: s for k in sorted(space) for n, s in _shapes(space[k], f"{prefix}{k}.").items()}
    if isinstance(space, spaces.Tuple):
        parts = (_shapes(s, f"{prefix}{i}.") for i, s in enumerate(space.spaces))
        return {n: s for part in parts for n, s in part.items()}
    return {prefix[:-1]: list(space.shape or ())}


def _unlike(needed: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Return how the entries a model was fitted on differ from those of an environment."""
    said = {
        "without": sorted(found.keys() - needed.keys()),
        "with": sorted(needed.keys() - found.keys()),
        "of other shapes in": sorted(n for n in found if needed.get(n, found[n]) != found[n]),
    }
    return ", ".join(f"{what} {names}" for what, names in said.items() if names)


def check_space(encoder: EventEncoder, space: spaces.Space[Any]) -> None:
    """Raise an error if an encoder was fitted on other observations than the space has."""
    if isinstance(encoder, CombinedEvents):
        for part in encoder.parts:
            check_space(part, space)
        return
    if isinstance(encoder, SymbolEvents):
        _check_symbols(encoder, space)
        return
    needed = encoder.observation_shapes()
    if needed is None:
        return
    found = whole = _shapes(space)
    keys = getattr(encoder, "keys", None)
    if keys is not None:
        found = {n: s for n, s in found.items() if n.split(".")[0] in keys}
    scalars = isinstance(space, spaces.Tuple) and all(shape == [] for shape in found.values())
    if scalars and needed == {"": [len(found)]}:
        return  # a tuple of numbers, which an Episode holds as one vector
    if found != needed:
        advice = "wrap the environment the model was fitted for"
        if "" in needed or "" in whole:
            raise ValueError(
                f"the model was fitted on observations of {said_shapes(needed)}, the environment "
                f"has {said_shapes(whole)} ({space}); {advice}"
            )
        raise ValueError(
            f"the model was fitted on observations {_unlike(needed, found)}, unlike the "
            f"environment's; {advice}, or fit events on entries that both have (keys=…)"
        )
    if isinstance(encoder, StateEvents) and isinstance(space, spaces.Discrete):
        low, high = int(encoder.states_.min()), int(encoder.states_.max())
        if low < space.start or high >= space.start + space.n:
            raise ValueError(
                f"the model was fitted on states {low} to {high}, the environment has {space}; "
                "wrap the environment the model was fitted for"
            )


def _check_symbols(encoder: SymbolEvents, space: spaces.Space[Any]) -> None:
    """Raise an error if no observation of the space is a symbol that the encoder knows."""
    if encoder.source != "observation" or not encoder.symbols_:
        return
    if not any(_may_be(symbol, space) for symbol in encoder.symbols_):
        shown = ", ".join(repr(symbol) for symbol in encoder.symbols_[:5])
        raise ValueError(
            f"none of the model's symbols ({shown}{', …' * (len(encoder.symbols_) > 5)}) is an "
            f"observation of the environment ({space}), so nothing would ever be paid; give "
            "events=…, a function (obs, action, reward, next_obs, info) -> symbol or None"
        )


def _may_be(symbol: Hashable, space: spaces.Space[Any]) -> bool:
    """Return whether a symbol may be an observation of the space."""
    if isinstance(space, spaces.Discrete):
        return isinstance(symbol, int) and bool(space.contains(symbol))
    if isinstance(space, spaces.Text):
        return isinstance(symbol, str)
    if isinstance(space, (spaces.Dict, spaces.Tuple)) or space.shape is None:
        return True  # nothing is known of it
    if space.shape == ():
        return isinstance(symbol, (int, float))
    return isinstance(symbol, tuple) and len(symbol) == math.prod(space.shape)
