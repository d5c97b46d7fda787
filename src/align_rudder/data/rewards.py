"""Redistributed rewards of many episodes: as a file, as plain data, as a table."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from align_rudder.files import save_npz
from align_rudder.redistribution import Redistribution

__all__ = ["RewardTable"]


class RewardTable(tuple[Redistribution, ...]):
    """What a model gave each step of some episodes: the redistribution of each."""

    __slots__ = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save rewards, scores and events, all episodes' one after the other, as one npz file."""
        arrays = {
            name: np.concatenate([getattr(row, name) for row in self])
            for name in ("rewards", "scores", "events")
        }
        arrays["corrections"] = np.array([row.correction for row in self])
        arrays["returns"] = np.array([row.ret for row in self])
        arrays["lengths"] = np.array([len(row.rewards) for row in self])
        save_npz(path, "align-rudder-redistribution", 1, {}, arrays)

    def data(self, symbols: Sequence[Hashable]) -> list[dict[str, Any]]:
        """Return the same as plain data for JSON, an entry for each episode.

        Args:
            symbols: What each event is called (`model.events_.symbols_`). "event_names" has for
                each step the name of its event, None where there is none, and "unknown" where it
                is none of these.
        """
        names = [*map(str, symbols), "unknown"]
        return [
            {
                "return": row.ret,
                "rewards": row.rewards.tolist(),
                "correction": row.correction,
                "scores": row.scores.tolist(),
                "events": row.events.tolist(),
                "event_names": [None if e < 0 else names[e] for e in row.events.tolist()],
            }
            for row in self
        ]

    def __str__(self) -> str:
        lines = [
            f"{'episode':>7}  {'steps':>6}  {'events':>6}  {'return':>9}  {'given':>9}  "
            f"{'correction':>10}"
        ]
        for i, row in enumerate(self):
            lines.append(
                f"{i:>7}  {len(row.rewards):>6}  {int((row.events >= 0).sum()):>6}  "
                f"{row.ret:>9.4g}  {row.rewards.sum():>9.4g}  {row.correction:>10.4g}"
            )
        return "\n".join(lines)
