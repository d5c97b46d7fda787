"""Trajectories as episodes, and as a Minari dataset.

Episodes of all tasks and versions have the same form, so they are one pool:

    observations   inventory (T+1, 18) counts of `ITEMS`; equipped (T+1,) index in `HELD`;
                   damage, max_damage (T+1,); diamond (T+1,) 0 or 1; pov (T+1, n, n, 3) if asked for
    actions        each of `HEADS`; enums as indices into `ENUMS`

Treechop records no inventory: its logs are counted from the reward, everything else is zero, and
heads that its actions lack (`Trajectory.spec` has those it has) are filled with what does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import gymnasium as gym
import numpy as np

from align_rudder.data.minari import import_minari, new_dataset
from align_rudder.episodes import Episode, tree_index
from align_rudder.files import Choice
from align_rudder.minerl.spaces import (
    DIAMOND_REWARD,
    DO_NOTHING,
    HEADS,
    HELD,
    ITEMS,
    MAX_COUNT,
    MAX_DAMAGE,
    action_space,
)
from align_rudder.minerl.trajectory import Trajectory

if TYPE_CHECKING:
    from minari import MinariDataset
    from minari.data_collector import EpisodeBuffer

__all__ = ["episode_of", "episode_space", "to_minari"]

_CHUNK = 1000
"""Steps that are written to a Minari dataset at a time; bounds what is in memory."""


def episode_of(
    trajectory: Trajectory,
    *,
    frame_size: int | None = None,
    rewards: Literal["stored", "diamond"] = "stored",
) -> Episode:
    """Return a trajectory as an episode (see the module's notes for its form).

    It ends with its last step, as in the reference loader; whether the task was solved shows in the
    rewards only.

    Args:
        trajectory: The trajectory.
        frame_size: Side of the pictures; None for none. All of them are held in memory:
            12 kB a step at 64.
        rewards: "stored" are those of the dataset; "diamond" keeps only the diamond's, as the
            paper does.
    """
    Choice(("stored", "diamond")).check(rewards, "rewards")
    stored = trajectory.rewards
    mined = stored >= DIAMOND_REWARD
    observations = _observations(trajectory, stored, mined)
    if frame_size is not None:
        observations["pov"] = trajectory.frame_array(size=frame_size)
    paid = np.where(mined, DIAMOND_REWARD, 0.0) if rewards == "diamond" else stored
    return Episode(observations, _actions(trajectory), paid, terminated=True)


def _observations(
    trajectory: Trajectory, rewards: np.ndarray, mined: np.ndarray
) -> dict[str, np.ndarray]:
    steps = len(trajectory)
    inventory, hand = trajectory.inventory(), trajectory.mainhand()
    diamond = np.zeros(steps + 1, np.int64)
    diamond[1:] = np.maximum.accumulate(mined)
    if inventory is None or hand is None:
        inventory = np.zeros((steps + 1, len(ITEMS)), np.int32)
        inventory[1:, ITEMS.index("log")] = np.cumsum(rewards).astype(np.int32)
        nothing = np.zeros(steps + 1, np.int32)
        equipped, damage, most = np.full(steps + 1, HELD.index("air")), nothing, nothing.copy()
    else:
        equipped = trajectory.indices("type", hand["type"])
        # The empty hand has another name in each version.
        equipped[equipped == HELD.index(trajectory.format.empty_hand)] = HELD.index("air")
        damage, most = hand["damage"].astype(np.int32), hand["maxDamage"].astype(np.int32)
    return {
        "inventory": inventory,
        "equipped": equipped,
        "damage": damage,
        "max_damage": most,
        "diamond": diamond,
    }


def _actions(trajectory: Trajectory) -> dict[str, np.ndarray]:
    filler = {head: np.full(len(trajectory), none) for head, none in DO_NOTHING.items()}
    given = filler | trajectory.actions()
    return {head: given[head] for head in HEADS}


def episode_space(frame_size: int | None = None) -> gym.spaces.Dict:
    """Return the space of the observations of `episode_of`."""
    damage = gym.spaces.Box(-1, MAX_DAMAGE, (), np.int32)
    parts: dict[str, gym.Space] = {
        "inventory": gym.spaces.Box(0, MAX_COUNT, (len(ITEMS),), np.int32),
        "equipped": gym.spaces.Discrete(len(HELD)),
        "damage": damage,
        "max_damage": damage,
        "diamond": gym.spaces.Discrete(2),
    }
    if frame_size is not None:
        parts["pov"] = gym.spaces.Box(0, 255, (frame_size, frame_size, 3), np.uint8)
    return gym.spaces.Dict(parts)


def to_minari(
    trajectories: Iterable[Trajectory],
    dataset_id: str,
    *,
    frame_size: int | None = None,
    rewards: Literal["stored", "diamond"] = "stored",
    description: str = "Human play from the MineRL dataset",
) -> MinariDataset:
    """Write trajectories as a new local Minari dataset, whole or not at all.

    The episodes are those of `episode_of`; the metadata of each has `task`, `trajectory`,
    `minerl_version` and `absent_heads` (those that its actions lack and that are filled).

    Args:
        trajectories: A pool, or any trajectories. One is written at a time.
        dataset_id: Id of the dataset, `(namespace/)name-v0`.
        frame_size: Side of the pictures; None for none. They are stored as they are, 12 kB a step
            at 64.
        rewards: As in `episode_of`.
        description: What the dataset says of itself.
    """
    minari = import_minari()
    from minari.dataset.minari_storage import MinariStorage

    with new_dataset(dataset_id) as written:
        storage = MinariStorage.new(
            written.folder / "data",
            episode_space(frame_size),
            action_space(),
            data_format="hdf5",
            jpeg_encoding=False,
        )
        kept = {"dataset_id": dataset_id, "minari_version": minari.__version__}
        storage.update_metadata(kept | {"description": description})
        about: list[dict[str, Any]] = []
        storage.update_episodes(_buffers(trajectories, frame_size, rewards, about))
        if not about:
            raise ValueError("there are no trajectories to write; at least one is needed")
        storage.update_episode_metadata(about)
    return minari.MinariDataset(written.target / "data")


def _buffers(
    trajectories: Iterable[Trajectory],
    frame_size: int | None,
    rewards: Literal["stored", "diamond"],
    about: list[dict[str, Any]],
) -> Iterator[EpisodeBuffer]:
    """Yield the parts of all episodes in order; parts with the same id are put together."""
    from minari import EpisodeMetadataCallback
    from minari.data_collector import EpisodeBuffer

    for i, trajectory in enumerate(trajectories):
        episode = episode_of(trajectory, rewards=rewards)
        pictures = iter(()) if frame_size is None else trajectory.frames(size=frame_size)
        absent = [head for head in HEADS if head not in trajectory.spec.heads]
        for start in range(0, len(episode), _CHUNK):
            stop = min(start + _CHUNK, len(episode))
            seen = slice(start if start == 0 else start + 1, stop + 1)
            observations = tree_index(episode.observations, seen)
            if frame_size is not None:
                observations["pov"] = np.stack(list(islice(pictures, seen.stop - seen.start)))
            going_on = [False] * (stop - start)
            yield EpisodeBuffer(
                id=i,
                observations=observations,
                actions=tree_index(episode.actions, slice(start, stop)),
                rewards=episode.rewards[start:stop].tolist(),
                terminations=[*going_on[1:], stop == len(episode)],
                truncations=going_on,
            )
        about.append(
            EpisodeMetadataCallback()({"rewards": episode.rewards})
            | {
                "id": i,
                "total_steps": len(episode),
                "task": trajectory.task,
                "trajectory": trajectory.name,
                "minerl_version": trajectory.version,
                "absent_heads": ",".join(absent),
            }
        )
