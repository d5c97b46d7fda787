"""What the LSTM sees of a step: rows of an embedding for categories, numbers for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from align_rudder.episodes import Episode, Tree, tree_index
from align_rudder.events.base import SHAPES
from align_rudder.events.observations import check_width, common_shapes, leaves
from align_rudder.files import LARGEST, Array, Flags, Floats, Ints, Table, Whole, check_arrays

__all__ = ["MAX_CATEGORICAL", "UNSEEN", "StepInputs"]

MAX_CATEGORICAL = 64
"""Whole numbers in larger arrays than this (images) are taken as numbers, not as categories."""

_FARTHEST = 1e9  # deviations from the mean, which the network's numbers can take

UNSEEN = 0
"""Row of everything that the training episodes did not hold; it stays zero."""


def _components(tree: Tree, n: int, name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the columns of n observations or actions, and which of them are categories."""
    columns: list[np.ndarray] = []
    categorical: list[bool] = []
    for leaf in leaves(tree):
        if leaf.dtype.kind not in "biuf":
            raise ValueError(
                f"the {name} are of type {leaf.dtype}; an LSTM needs numbers. Encode them as whole "
                "numbers, or leave them out"
            )
        if leaf.size % max(n, 1) or (n > 1 and leaf.shape[:1] != (n,)):
            raise ValueError(f"the {name} have shape {leaf.shape}, for {n} steps")
        rows = leaf.reshape(n, -1)
        if leaf.dtype.kind == "f" and not np.isfinite(rows).all():
            raise ValueError(f"the {name} hold NaN or infinite values; clean them first")
        whole = leaf.dtype.kind in "biu" and rows.shape[1] <= MAX_CATEGORICAL
        columns += list(rows.T)
        categorical += [whole] * rows.shape[1]
    return columns, np.array(categorical, bool)


def _index(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return where each value is among the known ones (sorted), -1 if it is not."""
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[at] == values, at, -1)


class StepInputs:
    """Turns (observation, action) of a step into embedding rows and standardised numbers.

    Whole numbers are categories: each has a row of the embedding, which is a column of the input
    weights of a one-hot input. If the action is a single whole number, every category of the
    observation is taken together with it, so that for one discrete observation the input is the
    one-hot of the state-action pair. Floats are standardised with the training episodes' mean and
    deviation. What was not seen in training has the row `UNSEEN`, which is zero.

    Attributes:
        shapes: Shape of each part of an observation.
        n_rows: Rows of the embedding.
        n_tokens: Categories of a step.
        n_numbers: Numbers of a step.
    """

    shapes: dict[str, list[int]]
    n_rows: int

    def fit(self, episodes: Sequence[Episode]) -> Self:
        """Learn the categories, and the mean and deviation of the numbers.

        Args:
            episodes: Episodes of one environment.
        """
        self.shapes = common_shapes(episodes, None)
        parts = [
            self._split(tree_index(e.observations, np.s_[:-1]), e.actions, len(e)) for e in episodes
        ]
        if len({(bytes(of_obs), bytes(of_actions)) for _, of_obs, of_actions in parts}) > 1:
            raise ValueError(
                "some episodes have whole numbers where others have floats, or actions of another "
                "size; give all of them the same types"
            )
        _, self._obs_kinds, self._action_kinds = parts[0]
        columns = [np.concatenate(column) for column in zip(*(p[0] for p in parts), strict=True)]
        self._learn_categories(columns)
        numbers = self._numbers(columns, sum(map(len, episodes)))
        self._mean = numbers.mean(axis=0)
        deviation = numbers.std(axis=0)
        self._deviation = np.where(deviation > 1 / LARGEST, deviation, 1.0)
        return self

    @property
    def _paired(self) -> bool:
        """Whether the action is a single whole number."""
        return self._action_kinds.tolist() == [True]

    def _split(
        self, observations: Tree, actions: Tree, n: int
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Return the columns of observations, then actions, and which of each are categories."""
        columns, obs_kinds = _components(observations, n, "observations")
        taken, action_kinds = _components(actions, n, "actions")
        return columns + taken, obs_kinds, action_kinds

    def _learn_categories(self, columns: list[np.ndarray]) -> None:
        self._actions = np.unique(columns[-1]) if self._paired else np.zeros(1, np.int64)
        action = _index(columns[-1], self._actions) if self._paired else 0
        self._values: list[np.ndarray] = []
        self._rows: list[np.ndarray] = []
        self.n_rows = UNSEEN + 1
        for column in self._categories(columns):
            values, at = np.unique(column, return_inverse=True)
            seen = np.zeros((len(values), len(self._actions)), bool)
            seen[at.reshape(-1), action] = True
            rows = np.full(seen.shape, UNSEEN, np.int32)
            rows[seen] = self.n_rows + np.arange(seen.sum())
            self.n_rows += int(seen.sum())
            self._values.append(values)
            self._rows.append(rows)

    def _chosen(self, columns: list[Any], whole: bool) -> list[Any]:
        """Return the columns of categories, or those of numbers."""
        kinds = [*self._obs_kinds, *self._action_kinds]
        return [column for column, kind in zip(columns, kinds, strict=True) if kind == whole]

    def _categories(self, columns: list[Any]) -> list[Any]:
        """Return the columns that have rows; an action paired with others has none of its own."""
        chosen = self._chosen(columns, whole=True)
        return chosen[:-1] if self._paired and len(chosen) > 1 else chosen

    def _numbers(self, columns: list[np.ndarray], n: int) -> np.ndarray:
        chosen = self._chosen(columns, whole=False)
        return np.array(chosen, np.float64).T.reshape(n, len(chosen))

    @property
    def n_tokens(self) -> int:
        """Categories of a step."""
        return len(self._values)

    @property
    def n_numbers(self) -> int:
        """Numbers of a step."""
        return len(self._mean)

    def encode(self, observations: Tree, actions: Tree, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return embedding rows (n, tokens) and numbers (n, numbers) of n steps."""
        columns, obs_kinds, action_kinds = self._split(observations, actions, n)
        for name, found, needed in (
            ("observations", obs_kinds, self._obs_kinds),
            ("actions", action_kinds, self._action_kinds),
        ):
            if found.tolist() != needed.tolist():
                raise ValueError(
                    f"the {name} have {int(found.sum())} whole numbers and {int((~found).sum())} "
                    f"floats, the model was fitted on {int(needed.sum())} and "
                    f"{int((~needed).sum())}, in a fixed order; use those of the same environment"
                )
        action = _index(columns[-1], self._actions) if self._paired else np.zeros(n, np.int64)
        tokens = np.empty((n, self.n_tokens), np.int32)
        for k, column in enumerate(self._categories(columns)):
            at = _index(column, self._values[k])
            tokens[:, k] = np.where((at >= 0) & (action >= 0), self._rows[k][at, action], UNSEEN)
        numbers = (self._numbers(columns, n) - self._mean) / self._deviation
        if not (np.abs(numbers) <= _FARTHEST).all():
            raise ValueError(
                f"an observation or action is {np.abs(numbers).max():.3g} deviations from the mean "
                f"that the model was fitted on; at most {_FARTHEST:g} are taken"
            )
        return tokens, numbers.astype(np.float32)

    def encode_episode(self, episode: Episode) -> tuple[np.ndarray, np.ndarray]:
        """Return embedding rows (T, tokens) and numbers (T, numbers) of an episode."""
        before = tree_index(episode.observations, np.s_[:-1])
        return self.encode(before, episode.actions, len(episode))

    def pair_rows(self, n_states: int, n_actions: int) -> np.ndarray:
        """Return the embedding row of every state and action (S, A), for tabular learners."""
        if not self._paired or self._obs_kinds.tolist() != [True]:
            raise ValueError(
                "a tabular learner needs a model fitted on single whole numbers as observations "
                "and actions"
            )
        states, actions = np.divmod(np.arange(n_states * n_actions), n_actions)
        return self.encode(states, actions, n_states * n_actions)[0].reshape(n_states, n_actions)

    def observation_shapes(self) -> dict[str, list[int]]:
        """Return the shape of each part of an observation."""
        return self.shapes

    def value_range(self) -> tuple[int, int] | None:
        """Return the lowest and highest state, where an observation is one whole number."""
        if self.shapes != {"": []} or self._obs_kinds.tolist() != [True]:
            return None
        return int(self._values[0][0]), int(self._values[0][-1])

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what a file needs: a JSON header and arrays."""
        arrays = {
            "obs_kinds": self._obs_kinds,
            "action_kinds": self._action_kinds,
            "actions": self._actions,
            "mean": self._mean,
            "deviation": self._deviation,
        }
        for k, (values, rows) in enumerate(zip(self._values, self._rows, strict=True)):
            arrays[f"values/{k}"], arrays[f"rows/{k}"] = values, rows
        return {"shapes": self.shapes, "n_tokens": self.n_tokens, "n_rows": self.n_rows}, arrays

    @classmethod
    def from_state(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the inputs that `state` described; `ValueError` if they do not fit together."""
        Table({"shapes": SHAPES, "n_tokens": Whole(), "n_rows": Whole(1)}).check(header, "inputs")
        n_tokens, n_rows = header["n_tokens"], header["n_rows"]
        if 2 * n_tokens > len(arrays):
            raise ValueError(f"its inputs have {n_tokens} categories, but {len(arrays)} arrays")
        needed: dict[str, Array] = {
            "obs_kinds": Flags("components"),
            "action_kinds": Flags("action"),
            "actions": Ints("choices", low=-(2**63), high=2**63 - 1),
            "mean": Floats("numbers"),
            "deviation": Floats("numbers", low=1 / LARGEST),
        }
        for k in range(n_tokens):
            needed[f"values/{k}"] = Array(f"values/{k}", kinds="biu")
            needed[f"rows/{k}"] = Ints(f"values/{k}", "choices", high="rows", dtype=np.int32)
        arrays = check_arrays(arrays, needed, {"rows": n_rows})
        inputs = cls()
        inputs.shapes, inputs.n_rows = dict(header["shapes"]), n_rows
        inputs._obs_kinds, inputs._action_kinds = arrays["obs_kinds"], arrays["action_kinds"]
        inputs._actions = arrays["actions"]
        inputs._mean, inputs._deviation = arrays["mean"], arrays["deviation"]
        inputs._values = [arrays[f"values/{k}"] for k in range(n_tokens)]
        inputs._rows = [arrays[f"rows/{k}"] for k in range(n_tokens)]
        check_width(inputs.shapes, len(inputs._obs_kinds))
        for values in (inputs._actions, *inputs._values):
            if not len(values) or (values[1:] <= values[:-1]).any():
                raise ValueError("the values of a category are not in order, or there are none")
        columns = [*inputs._obs_kinds, *inputs._action_kinds]
        needs = len(inputs._categories(columns)), len(inputs._chosen(columns, whole=False))
        if needs != (n_tokens, inputs.n_numbers):
            raise ValueError(
                f"its inputs have {n_tokens} categories and {inputs.n_numbers} numbers; "
                f"{needs[0]} and {needs[1]} are needed"
            )
        return inputs
