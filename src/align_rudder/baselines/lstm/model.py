"""LstmRudder: RUDDER's reward redistribution, with the interface of `AlignRudder`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from align_rudder._estimator import Estimator
from align_rudder._warnings import warn
from align_rudder.baselines.lstm.inputs import StepInputs
from align_rudder.baselines.lstm.streaming import LstmStream, LstmVectorStream
from align_rudder.baselines.lstm.weights import WEIGHTS, Weights
from align_rudder.episodes import Episode
from align_rudder.files import (
    Anything,
    Each,
    Floats,
    Format,
    Maybe,
    Number,
    Table,
    Whole,
    read_header,
)
from align_rudder.redistribution import Redistribution
from align_rudder.sequences import NO_EVENT
from align_rudder.validation import check_episodes

__all__ = ["LstmRudder"]

_PARAMETERS = {
    "hidden": Whole(1),
    "updates": Whole(1),
    "batch_size": Whole(1),
    "learning_rate": Number(),
    "auxiliary": Number(),
    "gate_bias": Number(),
    "max_steps": Maybe(Whole(1)),
    "seed": Whole(0, 2**63 - 1),
}
_LSTM = Format(
    "align-rudder-lstm",
    1,
    header={
        "parameters": Table(_PARAMETERS),
        "inputs": Each(Anything()),
        "offset": Number(),
        "scale": Number(0),
        "n_episodes": Whole(1),
    },
    arrays={"losses": Floats(None, dtype=None)},
    groups=("inputs/", "weights/"),
    remedy="put back a copy, or fit the LSTM again",
)
_STEPS = 32  # episodes are padded to a multiple, so that few shapes are compiled


class LstmRudder(Estimator):
    """Reward redistribution by an LSTM that predicts the return: RUDDER, the baseline.

    It can stand wherever an `AlignRudder` stands: in the wrappers, in the replay buffers, in files.
    Only fitting needs JAX (in a clone: `pip install '.[jax]'`); a fitted model does not.

    Args:
        hidden: Number of LSTM cells.
        updates: Updates of the weights.
        batch_size: Episodes of an update; with random episodes, half of them are random.
        learning_rate: Learning rate of Adam at the beginning; it falls to zero as a cosine.
        auxiliary: Weight of the prediction error at every step, beside that at the last.
        gate_bias: First bias of the input gates; below zero, a step has to show that it matters
            before it is stored.
        max_steps: Steps to which episodes are padded while training; None for the longest one's.
            The same number compiles once for many fits.
        seed: Seed of the first weights and of the order of episodes.

    Attributes:
        inputs_: How a step becomes the input.
        weights_: The trained weights.
        offset_: Mean return of the training episodes.
        scale_: Deviation of their returns, 0 if all are equal: then nothing is redistributed.
        losses_: Training loss at each update.

    Notes:
        R_{t+1} = g_t − g_{t−1}, where g_t is the return predicted from the first t + 1 pairs of
        observation and action, and g_{−1} that predicted before the first one, about the mean
        return. The correction R_{T+2} = G − Σ R makes the return equal for every episode
        (Arjona-Medina et al., 2019). The network is in `align_rudder.baselines.lstm.weights`.

        An LSTM learns from contrast: without episodes of another return (random ones, say) there is
        nothing to predict. The same seed gives the same weights, with any number of threads; on
        another kind of processor, rounding may differ.

    Example:
        >>> good = [Episode([0, 5, 1, i % 3], [0, 0, 0], [0.0, 0.0, 1.0]) for i in range(6)]
        >>> bad = [Episode([0, 3, 1, i % 3], [0, 0, 0], [0.0, 0.0, 0.0]) for i in range(6)]
        >>> model = LstmRudder(updates=100).fit(good, bad)
        >>> rr = model.redistribute(good[0])
        >>> int(rr.rewards.argmax())  # the step in state 5 makes the difference
        1
        >>> bool(np.isclose(rr.rewards.sum() + rr.correction, 1.0))
        True
    """

    inputs_: StepInputs
    weights_: Weights
    losses_: np.ndarray
    offset_: float
    scale_: float
    n_episodes_: int

    def __init__(
        self,
        *,
        hidden: int = 16,
        updates: int = 300,
        batch_size: int = 16,
        learning_rate: float = 0.02,
        auxiliary: float = 0.5,
        gate_bias: float = 0.0,
        max_steps: int | None = None,
        seed: int = 0,
    ) -> None:
        self.hidden = hidden
        self.updates = updates
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.auxiliary = auxiliary
        self.gate_bias = gate_bias
        self.max_steps = max_steps
        self.seed = seed

    # Fitting

    def fit(self, episodes: Sequence[Episode], random_episodes: Sequence[Episode] = ()) -> Self:
        """Train the LSTM to predict the return.

        Args:
            episodes: One or more demonstrations.
            random_episodes: Episodes of a random policy: what a low return looks like.
        """
        self._fit_all([self], [(episodes, random_episodes)])
        return self

    def fit_many(
        self,
        datasets: Sequence[tuple[Sequence[Episode], Sequence[Episode]]],
        seeds: Sequence[int] | None = None,
    ) -> list[Self]:
        """Train many models with these parameters at once, each on its own episodes.

        Args:
            datasets: For each model, demonstrations and random episodes.
            seeds: The seed of each model; None for this one's.

        Returns:
            Fitted models, the same as from `fit` but for rounding.
        """
        seeds = [self.seed] * len(datasets) if seeds is None else list(seeds)
        if len(seeds) != len(datasets):
            raise ValueError(f"there are {len(datasets)} datasets but {len(seeds)} seeds")
        models = [type(self)(**{**self.get_params(deep=False), "seed": int(s)}) for s in seeds]
        self._fit_all(models, datasets)
        return models

    def _fit_all(
        self,
        models: Sequence[LstmRudder],
        datasets: Sequence[tuple[Sequence[Episode], Sequence[Episode]]],
    ) -> None:
        training = _training()
        self._check_parameters()
        if not models:
            return
        examples = []
        for model, (episodes, random_episodes) in zip(models, datasets, strict=True):
            examples.append(model._take(episodes, random_episodes, training.Examples))
        longest = max(len(rows) for one in examples for rows in one.tokens)
        steps = -(-longest // _STEPS) * _STEPS if self.max_steps is None else int(self.max_steps)
        if longest > steps:
            raise ValueError(f"an episode has {longest} steps, more than max_steps={steps}")
        trained = training.train_many(examples, self, steps, [int(m.seed) for m in models])
        for model, (weights, losses) in zip(models, trained, strict=True):
            if not np.isfinite(losses).all():
                raise ValueError(
                    f"the training diverged with learning_rate={self.learning_rate}; lower it"
                )
            model.weights_, model.losses_ = weights, losses

    def _take(
        self, episodes: Sequence[Episode], random_episodes: Sequence[Episode], examples: Any
    ) -> Any:
        """Fit the inputs and the scale of the returns; return the training examples."""
        episodes = check_episodes(episodes)
        if not episodes:
            raise ValueError("no episodes were given; the LSTM learns from demonstrations")
        listed = [*episodes, *check_episodes(random_episodes, "random_episodes")]
        self.inputs_ = StepInputs().fit(listed)
        encoded = [self.inputs_.encode_episode(e) for e in listed]
        returns = np.array([e.ret for e in listed])
        self.n_episodes_, self.offset_ = len(listed), float(returns.mean())
        self.scale_ = float(returns.std())
        if not np.isfinite(self.scale_):
            raise ValueError(f"the returns are too large to predict: {returns.max():g}")
        if self.scale_ <= 1e-12 * abs(self.offset_):
            self.scale_ = 0.0
            warn(
                f"all {len(listed)} episodes have the return {self.offset_:g}, so there is nothing "
                "to predict: every episode keeps its episodic reward, given at its end as the "
                "correction. Give random_episodes=… with other returns",
                stacklevel=5,
            )
        standardised = (returns - self.offset_) / (self.scale_ or 1.0)
        return examples(
            tokens=[tokens for tokens, _ in encoded],
            numbers=[numbers for _, numbers in encoded],
            returns=standardised,
            n_demonstrations=len(episodes),
            n_rows=self.inputs_.n_rows,
        )

    def _check_parameters(self) -> None:
        for name, kind in _PARAMETERS.items():
            kind.check(getattr(self, name), name)

    def _check_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            raise ValueError("this LstmRudder is not fitted; call fit first")

    @property
    def return_range_(self) -> tuple[float, float]:
        """Mean return of the training episodes, less and plus their deviation."""
        self._check_fitted()
        return self.offset_ - self.scale_, self.offset_ + self.scale_

    # Redistribution

    def _standardised(self, episode: Episode) -> np.ndarray:
        self._check_fitted()
        check_episodes([episode])
        return self.weights_.predict(*self.inputs_.encode_episode(episode)).astype(np.float64)

    def predict(self, episode: Episode) -> np.ndarray:
        """Return the predicted return before the first step and after each step (T + 1,)."""
        return self.offset_ + self.scale_ * self._standardised(episode)

    def redistribute(self, episode: Episode) -> Redistribution:
        """Return the share of every step in the episode's return.

        The scores are the predictions less that before the first step; there are no events and no
        positions, so `events` is -1 and `cells` 0 everywhere.
        """
        g, n = self._standardised(episode), len(episode)
        scores, nowhere = (g[1:] - g[0]) * self.scale_, np.zeros(n, np.int64)
        return Redistribution.from_scores(
            scores, np.full(n, NO_EVENT), nowhere, episode.rewards, 1.0, episode.terminated
        )

    def stream(self) -> LstmStream:
        """Return a stream for one running episode at a time."""
        self._check_fitted()
        return LstmStream(self)

    def vector_stream(self, n: int) -> LstmVectorStream:
        """Return a stream for n running episodes at once."""
        self._check_fitted()
        return LstmVectorStream(self, n)

    # Files and text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model as one npz file (arrays and JSON; no pickle)."""
        self._check_fitted()
        header, arrays = self.inputs_.state()
        arrays = {f"inputs/{name}": array for name, array in arrays.items()}
        arrays |= {f"weights/{name}": getattr(self.weights_, name) for name in WEIGHTS}
        parameters = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in self.get_params(deep=False).items()
        }
        header = {
            "parameters": parameters,
            "inputs": header,
            "offset": self.offset_,
            "scale": self.scale_,
            "n_episodes": self.n_episodes_,
        }
        _LSTM.save(path, header, {**arrays, "losses": self.losses_})

    @staticmethod
    def wrote(path: str | os.PathLike[str]) -> bool:
        """Return whether a file is a saved `LstmRudder`, whatever else may be wrong with it."""
        try:
            return read_header(path)["format"] == _LSTM.kind
        except (OSError, ValueError):  # whoever loads it says what is wrong
            return False

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load a saved model."""
        with _LSTM.open(path) as contents:
            header = contents.header
            model = cls(**header["parameters"])
            model.inputs_ = StepInputs.from_state(header["inputs"], contents.group("inputs/"))
            sizes = {"rows": model.inputs_.n_rows, "numbers": model.inputs_.n_numbers}
            model.weights_ = Weights(**contents.checked("weights/", WEIGHTS, sizes))
            model.losses_ = contents.arrays["losses"]
            model.offset_, model.scale_ = float(header["offset"]), float(header["scale"])
            model.n_episodes_ = int(header["n_episodes"])
            if not model.weights_.hidden:
                raise ValueError("its network has no cells; at least one is needed")
        return model

    def __repr__(self) -> str:
        text = super().__repr__()
        if not hasattr(self, "weights_"):
            return text
        return f"{text} fitted to {self.n_episodes_} episodes"


def _training() -> Any:
    """Return the module that trains, which needs JAX."""
    try:
        from align_rudder.baselines.lstm import training
    except ImportError as error:
        raise ImportError(
            "fitting an LSTM needs JAX and Optax; in a clone: pip install '.[jax]'"
        ) from error
    return training
