"""The event encoders in JAX: the event of a transition inside a jitted step.

Those that can be expressed there give the same events as in NumPy, but for ties that single
precision decides otherwise. The others (functions, symbols that are no numbers) need a JAX function
from the user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from align_rudder.events.base import EventEncoder
from align_rudder.events.combined import CombinedEvents
from align_rudder.events.deltas import DeltaEvents
from align_rudder.events.done import DoneEvents
from align_rudder.events.encoders import NoEvents, SymbolEvents
from align_rudder.events.features import FeatureEvents
from align_rudder.events.observations import parts
from align_rudder.events.states import StateEvents
from align_rudder.sequences import NO_EVENT

try:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError('this needs JAX; in a clone: pip install ".[jax]"') from error

__all__ = [
    "Combined",
    "Deltas",
    "EventFunction",
    "Features",
    "JaxEvents",
    "States",
    "Symbols",
    "in_jax",
]

EventFunction = Callable[[Any, Any, Any, Any, Any], Any]
"""`(obs, action, reward, next_obs, info) -> event id`, -1 for none, n for one not known."""


class JaxEvents(eqx.Module):
    """Events of transitions, as pure functions of one environment."""

    @property
    def collapse_runs(self) -> bool:
        """Whether an event happens when it is entered, not each time."""
        return False

    def start_event(self, obs: Any) -> jax.Array:
        """Return the event of the start state, -1 where states are no events."""
        return jnp.int32(NO_EVENT)

    def transition_event(
        self, obs: Any, action: Any, reward: Any, next_obs: Any, info: Any
    ) -> jax.Array:
        """Return the event of one transition, before runs are collapsed."""
        raise NotImplementedError


class Function(JaxEvents):
    """Events by a user's function."""

    function: EventFunction = eqx.field(static=True)

    def transition_event(
        self, obs: Any, action: Any, reward: Any, next_obs: Any, info: Any
    ) -> jax.Array:
        found = self.function(obs, action, reward, next_obs, info)
        numeric = isinstance(found, jax.Array | np.ndarray | np.generic | int)
        event = jnp.asarray(found) if numeric else None
        if event is None or event.shape or not jnp.issubdtype(event.dtype, jnp.integer):
            raise ValueError(
                f"the event function returned {found!r}; in JAX, return the index of the event in "
                "model.events_.symbols_, one whole number, -1 for none"
            )
        return event.astype(jnp.int32)


class Done(JaxEvents):
    """`DoneEvents`.

    Attributes:
        base: The events without "done".
        done: The event "done".
        level: From which reward on a step is it.
    """

    base: JaxEvents
    done: jax.Array
    level: jax.Array

    @property
    def collapse_runs(self) -> bool:
        return self.base.collapse_runs

    def start_event(self, obs: Any) -> jax.Array:
        return self._seen(self.base.start_event(obs))

    def transition_event(
        self, obs: Any, action: Any, reward: Any, next_obs: Any, info: Any
    ) -> jax.Array:
        event = self._seen(self.base.transition_event(obs, action, reward, next_obs, info))
        return jnp.where(jnp.asarray(reward) >= self.level, self.done, event)

    def _seen(self, event: jax.Array) -> jax.Array:
        return jnp.where(event >= self.done, self.done + 1, event)


class Deltas(JaxEvents):
    """`DeltaEvents`.

    Attributes:
        projection: From changes to the space in which they are clustered (F, D).
        exemplars: Centres of the groups of changes (G, D).
        labels: Event of each group, -1 for none (G,).
        radii: How far from its centre a change may be, else it is unknown (G,).
        unknown: The unknown event.
        held: Which numbers are held things (F,), where losses are known.
        patterns: Changes of these that are losses (M, F).
        losses: Event of each (M,).
        keys: For dict observations, the entries used.
    """

    projection: jax.Array
    exemplars: jax.Array
    labels: jax.Array
    radii: jax.Array
    unknown: int = eqx.field(static=True)
    keys: tuple[str, ...] | None = eqx.field(static=True, default=None)
    held: jax.Array | None = None
    patterns: jax.Array | None = None
    losses: jax.Array | None = None

    @classmethod
    def of(cls, encoder: DeltaEvents) -> Deltas:
        """Return a fitted encoder in JAX."""
        arrays, lost = encoder.state()[1], encoder.losses_
        return cls(
            jnp.asarray(arrays["projection"], jnp.float32),
            jnp.asarray(arrays["exemplars"], jnp.float32),
            jnp.asarray(arrays["labels"], jnp.int32),
            jnp.asarray(np.minimum(arrays["radii"], 1e15), jnp.float32),  # its square is finite
            encoder.n_events,
            None if encoder.keys is None else tuple(encoder.keys),
            None if lost is None else jnp.asarray(lost.held),
            None if lost is None else jnp.asarray(lost.patterns, jnp.float32),
            None if lost is None else jnp.asarray(lost.events, jnp.int32),
        )

    def change_event(self, before: jax.Array, after: jax.Array) -> jax.Array:
        """Return the event of a change of the numbers (F,), -1 for none."""
        _check_size(len(self.projection), after)
        delta = (_signed(after) - _signed(before)).astype(jnp.float32)
        z = jnp.sum(delta[:, None] * self.projection, axis=0)
        distance = jnp.sum((z - self.exemplars) ** 2, axis=1)
        at = distance.argmin()
        event = self.labels[at]
        event = jnp.where((event >= 0) & (distance[at] > self.radii[at] ** 2), self.unknown, event)
        if self.held is not None and self.patterns is not None and self.losses is not None:
            same = ((delta == self.patterns) | ~self.held).all(axis=1)
            event = jnp.where(same.any(), self.losses[same.argmax()], event)
        return jnp.where((delta != 0).any(), event, NO_EVENT)

    def transition_event(
        self, obs: Any, action: Any, reward: Any, next_obs: Any, info: Any
    ) -> jax.Array:
        return self.change_event(_flat(obs, self.keys), _flat(next_obs, self.keys))


class _Regions(JaxEvents):
    """Events that are states, or regions of them."""

    @property
    def collapse_runs(self) -> bool:
        """Whether an event happens when it is entered, not each time."""
        return True

    def transition_event(
        self, obs: Any, action: Any, reward: Any, next_obs: Any, info: Any
    ) -> jax.Array:
        return self.start_event(next_obs)


class States(_Regions):
    """`StateEvents`.

    Attributes:
        states: States that demonstrations visited (N, D).
        labels: Event of each (N,).
        keys: For dict observations, the entries used.
    """

    states: jax.Array
    labels: jax.Array
    keys: tuple[str, ...] | None = eqx.field(static=True, default=None)

    @classmethod
    def of(cls, encoder: StateEvents) -> States:
        """Return a fitted encoder in JAX."""
        rows = _table(encoder.states_, "states")
        keys = None if encoder.keys is None else tuple(encoder.keys)
        return cls(rows, jnp.asarray(encoder.labels_, jnp.int32), keys)

    def start_event(self, obs: Any) -> jax.Array:
        state = _flat(obs, self.keys)
        if jnp.issubdtype(state.dtype, jnp.inexact):
            raise ValueError(
                f"the model's events are discrete states, the observation is {state.dtype}; wrap "
                "the environment the model was fitted for"
            )
        return _look_up(self.states, self.labels, state, NO_EVENT)


class Symbols(JaxEvents):
    """`SymbolEvents` of numbers.

    Attributes:
        symbols: The known symbols (N, D).
        source: Whether the symbol is the "observation" reached or the "action".
    """

    symbols: jax.Array
    source: str = eqx.field(static=True)

    @classmethod
    def of(cls, encoder: SymbolEvents) -> Symbols:
        """Return a fitted encoder in JAX."""
        try:
            rows = np.array([np.ravel(symbol) for symbol in encoder.symbols_])  # pyright: ignore[reportArgumentType, reportCallIssue]
        except ValueError:  # of different lengths
            rows = np.array(["?"])
        return cls(_table(rows, "symbols"), encoder.source)

    def transition_event(
        self, obs: Any, action: Any, reward: Any, next_obs: Any, info: Any
    ) -> jax.Array:
        symbol = _flat(action if self.source == "action" else next_obs, None)
        n = len(self.symbols)
        return _look_up(self.symbols, jnp.arange(n, dtype=jnp.int32), symbol, n)


class Features(_Regions):
    """`FeatureEvents`, with the arrays that they have.

    Attributes:
        arrays: The arrays of the encoder.
        labels: Event of each exemplar, -1 for none.
        unknown: The unknown event.
        goal: What is made of an achieved and a desired goal.
        keys: For dict observations, the entries used.
    """

    arrays: dict[str, jax.Array]
    labels: jax.Array
    unknown: int = eqx.field(static=True)
    goal: str | None = eqx.field(static=True, default=None)
    keys: tuple[str, ...] | None = eqx.field(static=True, default=None)

    @classmethod
    def of(cls, encoder: FeatureEvents) -> Features:
        """Return a fitted encoder in JAX."""
        stored = encoder.arrays_ | {"radii": np.minimum(encoder.arrays_["radii"], 1e15)}
        arrays = {name: jnp.asarray(a, jnp.float32) for name, a in stored.items()}
        labels = jnp.asarray(encoder.arrays_["labels"], jnp.int32)
        keys = None if encoder.keys is None else tuple(encoder.keys)
        return cls(arrays, labels, encoder.n_events, encoder.goal, keys)

    def start_event(self, obs: Any) -> jax.Array:
        a, numbers = self.arrays, _flat(obs, self.keys).astype(jnp.float32)
        if self.goal is not None:
            difference = numbers[: len(numbers) // 2] - numbers[len(numbers) // 2 :]
            distance = jnp.sqrt(jnp.sum(difference**2))[None]
            parts = [distance] if self.goal == "distance" else [difference, distance]
            numbers = jnp.concatenate(parts)
        _check_size(len(a["mean"]), numbers)
        standard = (numbers - a["mean"]) / a["scale"]
        if "basis" in a:
            standard = jnp.sum(standard[:, None] * a["basis"], axis=0)
        distance = jnp.sum((standard - a["regions"]) ** 2, axis=1)
        at = distance.argmin()
        phi = jax.nn.softmax(-distance / (2 * a["width"]))
        psi = jnp.sum(phi[:, None] * a["weights"], axis=0)
        event = self.labels[jnp.sum((a["exemplars"] - psi) ** 2, axis=1).argmin()]
        return jnp.where(distance[at] > a["radii"][at] ** 2, self.unknown, event)


class Combined(JaxEvents):
    """`CombinedEvents`.

    Attributes:
        parts: The encoders.
        sizes: How many events each has.
    """

    parts: tuple[JaxEvents, ...]
    sizes: tuple[int, ...] = eqx.field(static=True)

    def _merged(self, found: Sequence[jax.Array]) -> jax.Array:
        """Return the first event that is known, else the unknown one if there is one."""
        out, unknown, first = jnp.int32(NO_EVENT), jnp.bool_(False), 0
        for event, size in zip(found, self.sizes, strict=True):
            known = (event >= 0) & (event < size)
            out = jnp.where((out == NO_EVENT) & known, event + first, out)
            unknown = unknown | (event >= size)
            first += size
        return jnp.where((out == NO_EVENT) & unknown, first, out).astype(jnp.int32)

    def start_event(self, obs: Any) -> jax.Array:
        return self._merged([part.start_event(obs) for part in self.parts])

    def transition_event(
        self, obs: Any, action: Any, reward: Any, next_obs: Any, info: Any
    ) -> jax.Array:
        found = []
        for part in self.parts:
            event = part.transition_event(obs, action, reward, next_obs, info)
            if part.collapse_runs:
                event = jnp.where(event == part.start_event(obs), NO_EVENT, event)
            found.append(event)
        return self._merged(found)


class Nothing(JaxEvents):
    """`NoEvents`."""

    def transition_event(
        self, obs: Any, action: Any, reward: Any, next_obs: Any, info: Any
    ) -> jax.Array:
        return jnp.int32(NO_EVENT)


def in_jax(encoder: EventEncoder, function: EventFunction | None = None) -> JaxEvents:
    """Return the events of a fitted encoder in JAX.

    Args:
        encoder: The encoder.
        function: A JAX function `(obs, action, reward, next_obs, info) -> event id`, for encoders
            that cannot be expressed there; ids are indices of `encoder.symbols_`.
    """
    if isinstance(encoder, DoneEvents):
        inside = in_jax(encoder.base, function)
        return Done(inside, jnp.int32(encoder.done), jnp.float32(encoder.level))
    if function is not None:
        if encoder.collapse_runs:
            raise ValueError(
                f"{type(encoder).__name__} take states as events, the first one as well, and need "
                "no function in JAX; leave it out"
            )
        return Function(function)
    if isinstance(encoder, CombinedEvents):
        parts = tuple(in_jax(part) for part in encoder.parts)
        return Combined(parts, tuple(part.n_events for part in encoder.parts))
    if isinstance(encoder, NoEvents):
        return Nothing()
    kinds: dict[type, Any] = {
        DeltaEvents: Deltas,
        FeatureEvents: Features,
        StateEvents: States,
        SymbolEvents: Symbols,
    }
    if type(encoder) not in kinds:
        some = ", ".join(repr(symbol) for symbol in encoder.symbols_[:3])
        raise ValueError(
            f"{type(encoder).__name__} cannot be expressed in JAX; give function=…, a JAX function "
            "(obs, action, reward, next_obs, info) that returns the index of the event among "
            f"model.events_.symbols_ ({some}, …), -1 for none"
        )
    return kinds[type(encoder)].of(encoder)


def _table(rows: np.ndarray, what: str) -> jax.Array:
    """Return rows of numbers in JAX."""
    if rows.dtype.kind not in "biuf" or rows.ndim != 2:
        raise ValueError(
            f"the model's {what} are not numbers of one shape, as JAX needs them; give function=…, "
            "a JAX function (obs, action, reward, next_obs, info) that returns the event's index"
        )
    table = jnp.asarray(rows)
    if not np.array_equal(np.asarray(table), rows) and rows.dtype.kind != "f":
        raise ValueError(
            f"the model's {what} do not fit into {table.dtype}; let JAX use 64 bits "
            '(jax.config.update("jax_enable_x64", True))'
        )
    return table


def _check_size(needed: int, found: jax.Array) -> None:
    if needed != found.shape[0]:
        raise ValueError(
            f"the model was fitted on {needed} numbers, the environment gives {found.shape[0]}; "
            "wrap the environment the model was fitted for"
        )


def _look_up(rows: jax.Array, labels: jax.Array, value: jax.Array, missing: int) -> jax.Array:
    """Return the label of the row that is the value."""
    _check_size(rows.shape[1], value)
    same = (rows == value).all(axis=1)
    return jnp.where(same.any(), labels[same.argmax()], missing)


def _signed(x: jax.Array) -> jax.Array:
    """Return numbers whose differences may be negative."""
    return x.astype(jnp.int32) if x.dtype.kind in "bu" else x


def _flat(tree: Any, keys: Sequence[str] | None) -> jax.Array:
    """Return an observation as one vector, in the order of the NumPy encoders."""
    return jnp.concatenate([jnp.ravel(jnp.asarray(part)) for part in parts(tree, keys)])
