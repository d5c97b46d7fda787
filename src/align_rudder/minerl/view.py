"""How the environment is shown to the networks, and how their choices become its actions."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from align_rudder.minerl.camera import BINS
from align_rudder.minerl.networks import FRAMES
from align_rudder.minerl.pictures import draw_pictures
from align_rudder.minerl.spaces import BUTTONS, ENUMS

__all__ = ["PictureView"]


class PictureView:
    """The 32 most recent pictures of an episode; see `hierarchy.external.View`."""

    def __init__(self) -> None:
        self._pictures: deque[np.ndarray] = deque(maxlen=FRAMES)

    def begin(self) -> None:
        """Forget what was seen."""
        self._pictures.clear()

    def see(self, obs: Mapping[str, Any]) -> np.ndarray:
        """Return the pictures (32, 48, 48, 3); before the first there is the first."""
        (picture,) = draw_pictures(
            np.asarray(obs["pov"])[None],
            np.asarray(obs["inventory"])[None],
            np.asarray(obs["equipped"])[None],
        )
        missing = FRAMES - len(self._pictures) if not self._pictures else 1
        self._pictures.extend([picture] * missing)
        return np.stack(self._pictures)

    def do(self, choice: Mapping[str, int]) -> dict[str, Any]:
        """Return the action of the environment."""
        turn = [BINS[choice["pitch"]], BINS[choice["yaw"]]]
        return {
            **{button: int(choice[button]) for button in BUTTONS},
            "camera": np.array(turn, np.float32),
            **{head: int(choice[head]) for head in ENUMS},
        }
