"""Watching training: what the redistributed episodes earn and which sub-goals they reach."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from align_rudder.gym.wrapper import resolve_model
from align_rudder.streams import RewardModel

__all__ = ["LiveCurves", "ScalarWriter"]

_NAME_LENGTH = 24  # the table that Stable-Baselines3 prints has little room


class ScalarWriter(Protocol):
    """What numbers are written to: TensorBoard's `SummaryWriter`, or anything alike."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int, /) -> Any:
        """Write one number."""
        ...


@dataclass
class _Running:
    """An episode that has not ended: its steps, Σ_t of what was given, best sub-goal index."""

    steps: int = 0
    given: float = 0.0
    best: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Finished:
    """An episode that has ended."""

    ret: float
    redistributed: float
    kappa: float
    best: Mapping[int, int]


class LiveCurves:
    """Turns the `info` of a redistributed environment into a few numbers about its last episodes.

    It knows an episode's end by the "correction" that the wrapper puts into `info`, so it needs
    nothing but the infos, in any of the forms that they have: the dict of one environment, the
    dict of arrays of a Gymnasium vector environment (every autoreset mode, the wrapper inside or
    outside), the list of dicts of a Stable-Baselines3 one.

    Args:
        model: The model that the environment redistributes with, or its path; for the names of the
            sub-goals.
        window: Over how many of the last episodes to average.

    Notes:
        The numbers, each a mean over episodes:

        - "align_rudder/return": the true return G.
        - "align_rudder/redistributed": Σ_t R_{t+1}, the redistributed reward before the correction.
          What a failed episode has earned on the way shows here before any return does.
        - "align_rudder/kappa": the mean over an episode's steps of κ̂_t = G − Σ_{s≤t} R_{s+1}, the
          reward that was still to come. As delayed as without redistribution: G; never: 0; below
          0: what the correction takes back.
        - "align_rudder/subgoals": sub-goals reached (in the strategy where most were).
        - "subgoals/1_key": the share of episodes that reached or passed that sub-goal; with several
          strategies "subgoals/1.1_key".

    Example:
        >>> from align_rudder import AlignRudder
        >>> model = AlignRudder().fit_events([["key", "door"], ["key", "cat", "door"]])
        >>> curves = LiveCurves(model)
        >>> info = {"redistributed": 0.5, "subgoal": 1, "strategy": 0}
        >>> curves.add(info)
        >>> curves.add({**info, "correction": -0.5})
        >>> curves.numbers()["subgoals/1_key"], curves.numbers()["align_rudder/kappa"]
        (1.0, -0.5)
    """

    def __init__(
        self, model: RewardModel | str | os.PathLike[str] | None = None, window: int = 100
    ) -> None:
        if window < 1:
            raise ValueError(f"window={window}; at least one episode is needed to average over")
        self.model = None if model is None else resolve_model(model)
        self.episodes = 0
        self._finished: deque[_Finished] = deque(maxlen=window)
        self._strategies = self._current()
        self.restart()

    def _current(self) -> Sequence[Any]:
        return getattr(self.model, "strategies_", ())

    def restart(self) -> None:
        """Forget the running episodes: for when environments are reset before these have ended."""
        self._running: dict[int, _Running] = {}

    def add(self, infos: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Take in the infos of one step of all environments."""
        found = False
        for i, info in _transitions(infos):
            found = True
            episode = self._running.setdefault(i, _Running())
            given, k = float(info["redistributed"]), int(info["strategy"])
            episode.steps += 1
            episode.given += given
            episode.best[k] = max(episode.best.get(k, 0), int(info["subgoal"]))
            if "correction" in info:
                self._finish(i, given, float(info["correction"]))
        if not found and not _is_reset(infos):
            raise ValueError(
                'the infos hold no "redistributed"; wrap the environment with '
                "align_rudder.RedistributeReward (or its form in align_rudder.gym.vector)"
            )

    def _finish(self, i: int, given: float, correction: float) -> None:
        episode = self._running.pop(i)
        ret = given + correction
        kappa = ret - episode.given / episode.steps
        if self._current() is not self._strategies:  # aligned again: other sub-goals
            self._strategies = self._current()
            self._finished.clear()
        self._finished.append(_Finished(ret, given, kappa, episode.best))
        self.episodes += 1

    def numbers(self) -> dict[str, float]:
        """Return the means over the last episodes, by name; nothing before the first has ended."""
        episodes = self._finished
        if not episodes:
            return {}
        out = {
            "align_rudder/return": float(np.mean([e.ret for e in episodes])),
            "align_rudder/redistributed": float(np.mean([e.redistributed for e in episodes])),
            "align_rudder/kappa": float(np.mean([e.kappa for e in episodes])),
        }
        if any(strategy.subgoals for strategy in self._strategies):
            out["align_rudder/subgoals"] = float(np.mean([max(e.best.values()) for e in episodes]))
        for k, strategy in enumerate(self._strategies):
            for goal_index, goal in enumerate(strategy.subgoals):
                reached = [e.best.get(k, 0) > goal_index for e in episodes]
                place = f"{k + 1}.{goal_index + 1}" if len(self._strategies) > 1 else goal_index + 1
                out[f"subgoals/{_clean(f'{place}_{goal.symbol}')}"] = float(np.mean(reached))
        return out

    def write(self, writer: ScalarWriter, step: int) -> None:
        """Write the numbers, at a step of training, to anything with TensorBoard's `add_scalar`."""
        for name, value in self.numbers().items():
            writer.add_scalar(name, value, step)


def _transitions(
    infos: Mapping[str, Any] | Sequence[Mapping[str, Any]],
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield for each environment that made a step its index and info."""
    if not isinstance(infos, Mapping):
        yield from ((i, info) for i, info in enumerate(infos) if "redistributed" in info)
        return
    # With autoreset on the same step, wrapped sub-environments leave their last info in here.
    if isinstance(final := infos.get("final_info"), Mapping):
        yield from _transitions(final)
    if "redistributed" not in infos:
        return
    if np.ndim(infos["redistributed"]) == 0:
        yield 0, infos
        return
    for i in np.flatnonzero(infos["_redistributed"]):
        info = {key: infos[key][i] for key in ("redistributed", "subgoal", "strategy")}
        if "correction" in infos and infos["_correction"][i]:
            info["correction"] = infos["correction"][i]
        yield int(i), info


def _is_reset(infos: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> bool:
    """Return whether infos may come from a step on which every environment was reset."""
    return len(infos) == 0 or (isinstance(infos, Mapping) and "subgoal" in infos)


def _clean(name: str) -> str:
    """Return a name with the characters that TensorBoard allows, cut to a length."""
    return re.sub(r"[^-\w.]+", "_", name)[:_NAME_LENGTH].rstrip("_")


Tracker = LiveCurves
"""Its name in version 0.1; a tracker is now what keeps track of one episode."""
