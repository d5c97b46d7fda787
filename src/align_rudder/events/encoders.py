"""Events that are there already: symbols in the data, or what a user's function returns."""

from __future__ import annotations

import contextlib
import copy
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np

from align_rudder.episodes import Episode, tree_index
from align_rudder.events.base import Encoded, EventEncoder
from align_rudder.files import (
    Anything,
    Choice,
    Many,
    Table,
    check_arrays,
    decode_symbols,
    encode_symbol,
    shown,
)
from align_rudder.sequences import NO_EVENT, index_symbols

__all__ = ["FunctionEvents", "NoEvents", "SymbolEvents", "Vocabulary"]


_NO_INFOS = "these episodes were recorded without infos: record with keep_infos=True"


class NoEvents(EventEncoder):
    """No step is an event: where none was found that says more than chance."""

    def __init__(self) -> None:
        self.symbols_ = []

    def fit(self, episodes: Sequence[Episode], random_episodes: Sequence[Episode] = ()) -> Self:
        return self

    def transition_event(
        self, obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
    ) -> int:
        return NO_EVENT

    def transition_events(
        self,
        obs: Any,
        actions: Any,
        rewards: np.ndarray,
        next_obs: Any,
        infos: Sequence[Mapping[str, Any]],
    ) -> np.ndarray:
        return np.full(len(rewards), NO_EVENT, np.int64)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"parameters": {}}, {}

    def _restore(self, header: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        pass


class Vocabulary(EventEncoder):
    """Events named by symbols; a symbol that `fit` did not see is the unknown event n."""

    HEADER: ClassVar = {"symbols": Many(Anything())}
    _ids: dict[Hashable, int]

    def _learn(self, sequences: Sequence[Iterable[Hashable]]) -> None:
        if not len(sequences):
            raise ValueError("there are no demonstrations to find events in; give some")
        self._set_symbols(_symbols_in(sequences))
        self.warn_if_many()

    def extended(self, sequences: Sequence[Iterable[Hashable]]) -> Self:
        """Return the same encoder with the new symbols of these sequences at the end."""
        found = _symbols_in(sequences)
        encoder = copy.copy(self)
        encoder._set_symbols([*self.symbols_, *(s for s in found if s not in self._ids)])
        encoder.warn_if_many()
        return encoder

    @abstractmethod
    def symbols_of(self, episode: Episode) -> list[Hashable]:
        """Return the symbol of each step of an episode, None where nothing happened."""

    def fit(self, episodes: Sequence[Episode], random_episodes: Sequence[Episode] = ()) -> Self:
        self._learn([self.symbols_of(episode) for episode in episodes])
        return self

    def _set_symbols(self, symbols: Sequence[Hashable]) -> None:
        self.symbols_ = list(symbols)
        self._ids = {symbol: i for i, symbol in enumerate(self.symbols_)}

    def _id(self, symbol: Hashable | None) -> int:
        if symbol is None:
            return NO_EVENT
        try:
            return self._ids.get(symbol, len(self._ids))
        except TypeError as error:
            raise ValueError(
                f"{symbol!r} cannot be an event: {error}; return a text, a number or a tuple"
            ) from error

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"symbols": [encode_symbol(s) for s in self.symbols_]}, {}

    @classmethod
    def from_state(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        check_arrays(arrays, {})
        parameters = Table({**cls.HEADER, **cls.PARAMETERS}).check(header, "events")
        encoder = cls(**{name: parameters[name] for name in cls.PARAMETERS})
        encoder._set_symbols(decode_symbols(header["symbols"]))
        return encoder


class SymbolEvents(Vocabulary):
    """Every symbol is an event each time it occurs.

    Args:
        source: In episodes, whether the symbol is the "observation" reached or the "action".

    Example:
        >>> events = SymbolEvents().fit_sequences([["key", "door"], ["key", "chest", "door"]])
        >>> events.encode_sequence(["door", "dragon", "key"])
        array([1, 3, 2])
    """

    PARAMETERS: ClassVar = {"source": Choice(("observation", "action"))}

    def __init__(self, source: Literal["observation", "action"] = "observation") -> None:
        self.PARAMETERS["source"].check(source, "source")
        self.source: Literal["observation", "action"] = source

    def fit_sequences(self, sequences: Sequence[Iterable[Hashable]]) -> Self:
        """Learn the symbols of sequences."""
        self._learn(sequences)
        return self

    def encode_sequence(self, sequence: Iterable[Hashable]) -> np.ndarray:
        """Return the event ids of a sequence; None is no event, an unseen symbol is n."""
        items = (x.item() if isinstance(x, np.generic) else x for x in sequence)
        try:
            return np.array([self._id(s) for s in items], dtype=np.int64)
        except TypeError as error:
            raise ValueError(f"{sequence!r} holds something not hashable: {error}") from error

    def symbols_of(self, episode: Episode) -> list[Hashable]:
        tree = (
            episode.actions
            if self.source == "action"
            else tree_index(episode.observations, np.s_[1:])
        )
        if not isinstance(tree, np.ndarray):
            raise ValueError(
                f"the {self.source} is a {type(tree).__name__}, not a symbol; use a function"
            )
        return [_symbol(x) for x in tree]

    def transition_event(
        self, obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
    ) -> int:
        return self._id(_symbol(action if self.source == "action" else next_obs))

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, arrays = super().state()
        return {**header, "source": self.source}, arrays


def _symbols_in(sequences: Sequence[Iterable[Hashable]]) -> list[Hashable]:
    """Return the symbols of sequences in order; None stands for no event and is none."""
    found = [s for s in index_symbols(sequences)[1] if s is not None]
    with contextlib.suppress(TypeError):
        found.sort()  # pyright: ignore[reportCallIssue]
    return found


def _symbol(value: Any) -> Hashable:
    """Return a hashable symbol for a number, a string or an array of numbers."""
    if isinstance(value, np.ndarray):
        return value.item() if value.ndim == 0 else tuple(value.ravel().tolist())
    if isinstance(value, dict):
        raise ValueError(
            f"an observation or action is a dict of {sorted(value)}, not a symbol; use a function "
            "as events, or DeltaEvents"
        )
    return value.item() if isinstance(value, np.generic) else value


class FunctionEvents(Vocabulary):
    """Events by a user's function of the transition; None means that nothing happened.

    Args:
        function: `(obs, action, reward, next_obs, info) -> symbol or None`.

    Notes:
        A saved model holds the symbols, not the function: give it again when loading, with
        `AlignRudder.load(path, function=…)`.
    """

    PARAMETERS: ClassVar = {"function": Anything()}
    _MOST_NAMED: ClassVar = 20
    _without_infos = False

    def __init__(
        self, function: Callable[[Any, Any, float, Any, Mapping[str, Any]], Hashable | None]
    ):
        if not callable(function):
            raise ValueError(
                f"{function!r} is not a function (obs, action, reward, next_obs, info)"
            )
        self.function = function

    def fit(self, episodes: Sequence[Episode], random_episodes: Sequence[Episode] = ()) -> Self:
        self._without_infos = all(episode.infos is None for episode in episodes)
        named = [self._named_symbols(e, f"demonstration {i}") for i, e in enumerate(episodes)]
        if episodes and self._named_symbols(episodes[0], "demonstration 0") != named[0]:
            raise ValueError(
                "the event function names other events when demonstration 0 is read again; it is "
                "called several times and in any order, so let it depend on its arguments alone: "
                "no counter, no random number, no memory of earlier steps"
            )
        self._learn(named)
        return self

    def advice_on_none(self) -> str:
        """Return what to do where the function names nothing: it may need infos."""
        advice = "Let the event function name something that happens in all of them"
        return f"{advice}; {_NO_INFOS}" if self._without_infos else advice

    def symbols_of(self, episode: Episode) -> list[Hashable]:
        return self._named_symbols(episode, "the episode")

    def _named_symbols(self, episode: Episode, name: str) -> list[Hashable]:
        infos = episode.infos if episode.infos is not None else [{}] * len(episode)
        hint = f"; {_NO_INFOS}" if episode.infos is None else ""
        return [
            self._call(
                f" at step {t} of {name}",
                hint,
                tree_index(episode.observations, t),
                tree_index(episode.actions, t),
                float(episode.rewards[t]),
                tree_index(episode.observations, t + 1),
                infos[t],
            )
            for t in range(len(episode))
        ]

    def _call(self, where: str, hint: str, *step: Any) -> Hashable:
        """Return the symbol of a step, or say where the function raised an error.

        Args:
            where: The step, in words.
            hint: What to say of an error that something missing may have made.
            step: What the function is called with.
        """
        try:
            symbol = self.function(*step)
        except Exception as error:
            missing = isinstance(error, LookupError | TypeError | AttributeError)
            raise ValueError(
                f"the event function raised {type(error).__name__}{where}: {error}. It is called "
                f"with (obs, action, reward, next_obs, info){hint if missing else ''}"
            ) from error
        if isinstance(symbol, np.ndarray | np.generic):
            symbol = _symbol(symbol)
        if symbol is None or isinstance(symbol, str):
            return symbol
        try:
            hash(symbol)
            wrong = isinstance(symbol, float) and symbol != symbol
        except TypeError:
            wrong = True
        if wrong:
            name = getattr(self.function, "__name__", type(self.function).__name__)
            raise ValueError(
                f"the event function {name} returned {shown(symbol)} (a {type(symbol).__name__})"
                f"{where}; an event is a text, a number or a tuple: let it return one of these, or "
                "None where nothing happened"
            )
        return symbol

    def transition_event(
        self, obs: Any, action: Any, reward: float, next_obs: Any, info: Mapping[str, Any]
    ) -> int:
        symbol = self._call("", "", obs, action, reward, next_obs, info)
        event = self._id(symbol)
        if event == len(self._ids) and len(self.unknown_) < self._MOST_NAMED:
            self.unknown_[symbol] = None
        return event

    def _set_symbols(self, symbols: Sequence[Hashable]) -> None:
        super()._set_symbols(symbols)
        self.unknown_: dict[Hashable, None] = {}
        """Symbols of running episodes that the demonstrations do not have, the first ones."""

    def encode(self, episode: Episode) -> Encoded:
        events = [self._id(symbol) for symbol in self.symbols_of(episode)]
        return Encoded(NO_EVENT, np.array(events, np.int64))
