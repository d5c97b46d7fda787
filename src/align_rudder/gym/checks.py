"""What an environment returns, checked in one place for wrappers and for recording."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from align_rudder.files import LARGEST, shown
from align_rudder.gym.spaces import check_observation

__all__ = ["begun", "paid_by_environment", "paid_to_each", "parts_of", "stepped"]

_PARTS = {
    "reset": "(obs, info), with {} as info where there is nothing to say",
    "step": "(obs, reward, terminated, truncated, info), with a number as the reward, 0.0 for none",
}
_COUNT = {"reset": 2, "step": 5}


def begun(space: gym.Space[Any] | None, returned: Any) -> tuple[Any, Mapping[str, Any]]:
    """Return observation and info of a reset, or raise a `ValueError` that says what is wrong.

    Args:
        space: The observation space of the environment; None if it has none.
        returned: What its reset returned.
    """
    obs, info = parts_of("reset", returned)
    if space is not None:
        check_observation(space, obs)
    return obs, info


def stepped(
    space: gym.Space[Any] | None, returned: Any
) -> tuple[Any, float, bool, bool, Mapping[str, Any]]:
    """Return what a step returned, the reward as a number, or say in a `ValueError` what is wrong.

    Args:
        space: The observation space of the environment; None if it has none.
        returned: What its step returned.
    """
    plain = type(returned) is tuple and len(returned) == 5 and type(returned[4]) is dict
    parts = returned if plain else parts_of("step", returned)  # each step comes here
    obs, reward, terminated, truncated, info = parts
    if space is not None:
        check_observation(space, obs)
    return obs, paid_by_environment(reward), terminated, truncated, info


def parts_of(method: str, returned: Any) -> Any:
    """Return the parts of what `reset` or `step` returned, or say which are needed."""
    if isinstance(returned, tuple) and len(returned) == _COUNT[method]:
        if not isinstance(returned[-1], Mapping):
            raise ValueError(
                f"the environment's {method} returned {shown(returned[-1])} as info, which is no "
                "dict; let it return a dict, {} where there is nothing to say"
            )
        return returned
    if isinstance(returned, tuple):
        found = f"{len(returned)} values"
        if method == "step" and len(returned) == 4:
            found += " (as in Gym before version 0.26)"
    else:
        found = shown(returned)
    raise ValueError(f"the environment's {method} returned {found}; let it return {_PARTS[method]}")


def paid_by_environment(reward: Any) -> float:
    """Return a reward as a number, or say that it is none."""
    if type(reward) is float and abs(reward) <= LARGEST:  # nearly every step
        return reward
    try:
        if isinstance(reward, str | bytes) or getattr(reward, "ndim", 0):
            raise TypeError
        number = float(reward)
    except (TypeError, ValueError):
        raise ValueError(
            f"the environment paid {shown(reward)}, which is no number; let its step return "
            f"{_PARTS['step']}"
        ) from None
    if not math.isfinite(number):
        raise ValueError(
            f"the environment paid {number}, with which no return can be counted; let it pay "
            "finite numbers"
        )
    if abs(number) > LARGEST:
        raise ValueError(f"the environment paid {number}; let it pay numbers below {LARGEST:g}")
    return number


def paid_to_each(rewards: Any, n: int) -> np.ndarray:
    """Return the rewards of n environments as numbers (n,), or say what else they are."""
    found = np.asarray(rewards)
    if found.shape != (n,):
        raise ValueError(
            f"the environments paid {shown(rewards)}, of shape {found.shape}; let step return "
            f"rewards of shape {(n,)}, a number for each"
        )
    usable = found.dtype.kind in "biuf" and bool((np.abs(found) <= LARGEST).all())
    return (
        found.astype(np.float64)
        if usable
        else np.array([paid_by_environment(reward) for reward in found.tolist()])
    )
