"""How the environment is shown to the networks, and how their choices become its actions."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from align_rudder.minerl.camera import BINS
from align_rudder.minerl.networks import FRAMES
from align_rudder.minerl.pictures import draw_pictures, shrink
from align_rudder.minerl.spaces import BUTTONS, ENUMS

__all__ = ["PictureFeatures", "PictureView"]


class PictureFeatures(gym.ObservationWrapper):
    """Adds the features of the picture, for models that were fitted with an auto-encoder.

    Args:
        env: The environment.
        autoencoder: File of the auto-encoder.
    """

    def __init__(self, env: gym.Env[Any, Any], autoencoder: str) -> None:
        super().__init__(env)
        from align_rudder.minerl.autoencoder import AutoEncoder

        self.encoder = AutoEncoder.load(autoencoder)
        assert isinstance(env.observation_space, gym.spaces.Dict)
        space = gym.spaces.Box(-np.inf, np.inf, (self.encoder.latent,), np.float32)
        self.observation_space = gym.spaces.Dict(
            {**env.observation_space.spaces, "features": space}
        )

    def observation(self, observation: Any) -> Any:
        """Return the observation with the features of its picture."""
        (features,) = self.encoder.encode(shrink(observation["pov"][None], self.encoder.size))
        return {**observation, "features": features}


class PictureView:
    """The most recent pictures of an episode; see `hierarchy.external.View`.

    Args:
        frames: How many.
    """

    def __init__(self, frames: int = FRAMES) -> None:
        self.frames = frames
        self._pictures: deque[np.ndarray] = deque(maxlen=frames)

    def begin(self) -> None:
        """Forget what was seen."""
        self._pictures.clear()

    def see(self, obs: Mapping[str, Any]) -> np.ndarray:
        """Return the pictures (frames, 48, 48, 3); before the first there is the first."""
        parts = (np.asarray(obs[name])[None] for name in ("pov", "inventory", "equipped"))
        (picture,) = draw_pictures(*parts)
        self._pictures.extend([picture] * (1 if self._pictures else self.frames))
        return np.stack(self._pictures)

    def do(self, choice: Mapping[str, int]) -> dict[str, Any]:
        """Return the action of the environment."""
        turn = [BINS[choice["pitch"]], BINS[choice["yaw"]]]
        return {
            **{button: int(choice[button]) for button in BUTTONS},
            "camera": np.array(turn, np.float32),
            **{head: int(choice[head]) for head in ENUMS},
        }
