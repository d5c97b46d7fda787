"""The npz file of a model: arrays and a JSON header, no pickle."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from align_rudder.alignment import Alignment
from align_rudder.demonstrations import Demonstrations
from align_rudder.events import (
    DoneEvents,
    Encoded,
    EventEncoder,
    FunctionEvents,
    encoder_from_state,
)
from align_rudder.files import (
    Anything,
    Choice,
    Contents,
    Each,
    Floats,
    Format,
    Ints,
    Many,
    Maybe,
    Number,
    Table,
    Text,
    Whole,
    decode_symbol,
    encode_symbol,
    read_header,
)
from align_rudder.fitting import learn
from align_rudder.groups import Part
from align_rudder.null import Chance, mixed_background
from align_rudder.presets import PAPER
from align_rudder.scoring import quantise, scoring_matrix
from align_rudder.sequences import GAP, NO_EVENT
from align_rudder.undo import FOUND, Undo, check_undo
from align_rudder.validation import PARAMETERS

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["load_model", "needs_function", "save_model"]


def _of_today(header: dict[str, Any]) -> dict[str, Any]:
    """Return the header of a file of version 0.1, whose reward was the paper's, as one of today."""
    parameters = header.get("parameters")
    if isinstance(parameters, dict) and "done" not in header:
        paper = {name: value for name, value in PAPER.items() if name in PARAMETERS}
        header = {**header, "parameters": paper | parameters, "done": None, "undo": []}
    return header


_MODEL = Format(
    "align-rudder-model",
    1,
    header={
        "parameters": Table(PARAMETERS),
        "scoring": Maybe(Choice(("inverse", "log", "karlin-altschul", "function"))),
        "events": Each(Anything()),
        "n_strategies": Whole(),
        "done": Maybe(Table({"level": Number(), "name": Text()})),
        "undo": Maybe(Many(Many(Anything(), most=2))),  # None: found
    },
    arrays={
        "sequences": Ints("steps", low=NO_EVENT),
        "starts": Ints("demonstrations", low=NO_EVENT),
        "steps": Ints("demonstrations"),
        "returns": Floats("demonstrations"),
        "lengths": Ints("demonstrations"),
        "background": Floats("events", low=0, high=1),
        "tree": Floats("used-1", 4, low=0),
        "scores": Floats("events", "events"),
        "used": Ints("used", high="demonstrations", optional=True),
    },
    groups=("events/", "strategy/", "chance/"),
    remedy="put back a copy, or fit the model again",
    older=_of_today,
)
_STRATEGY = {
    "members": Ints("members", high="demonstrations"),
    "matrix": Ints("members", "columns", low=GAP, high="events", dtype=np.int32),
    "scores": Floats("events", "events"),
    "tree": Floats("members-1", 4, low=0, optional=True),
    "columns": Ints("kept", high="columns", optional=True),
    "gap": Floats(low=0, optional=True),
}
_CHANCE = {
    "events": Ints("steps", low=NO_EVENT),
    "starts": Ints("episodes", low=NO_EVENT),
    "steps": Ints("episodes"),
    "returns": Floats("random"),
}
Model = TypeVar("Model", bound="AlignRudder")


def save_model(model: AlignRudder, path: str | os.PathLike[str]) -> None:
    """Save a fitted model."""
    parameters = {
        k: v.item() if isinstance(v, np.generic) else v
        for k, v in model.get_params(deep=False).items()
        if k not in ("events", "scoring", "undo")
    }
    scoring = model.scoring if isinstance(model.scoring, str) else None
    events_header, events_arrays = model.events_.state()
    arrays = {f"events/{name}": array for name, array in events_arrays.items()}
    arrays |= {
        "sequences": np.concatenate([e.events for e in model.encoded_]),
        "starts": np.array([e.start for e in model.encoded_]),
        "steps": np.array([len(e.events) for e in model.encoded_]),
        "returns": np.array(model.returns_),
        "lengths": np.array(model.lengths_),
        "background": model.background_,
        "tree": model.tree_,
        "scores": model.scores_,
        "used": model.used_,
    }
    if lost := [*model.chance_.random, *model.chance_.failures]:
        arrays |= {
            "chance/events": np.concatenate([e.events for e in lost]),
            "chance/starts": np.array([e.start for e in lost]),
            "chance/steps": np.array([len(e.events) for e in lost]),
            "chance/returns": np.array(model.chance_.returns, float),
        }
    for k, strategy in enumerate(model.strategies_):
        arrays[f"strategy/{k}/members"] = strategy.members
        arrays[f"strategy/{k}/matrix"] = strategy.alignment.matrix
        arrays[f"strategy/{k}/scores"] = strategy.alignment.scores
        arrays[f"strategy/{k}/gap"] = np.array(strategy.alignment.gap)
        if strategy.kept is not None:
            arrays[f"strategy/{k}/columns"] = strategy.kept
        if strategy.alignment.tree is not None:
            arrays[f"strategy/{k}/tree"] = strategy.alignment.tree
    header = {
        "parameters": parameters,
        "scoring": "function" if callable(model.scoring) else scoring,
        "events": {"kind": type(model.events_.base).__name__, **events_header},
        "n_strategies": len(model.strategies_),
        "done": _done_of(model.events_),
        "undo": None
        if isinstance(model.undo, str)
        else [[encode_symbol(s) for s in pair] for pair in (model.undo or {}).items()],
    }
    _MODEL.save(path, header, arrays)


def _done_of(encoder: EventEncoder) -> dict[str, Any] | None:
    """Return what a file holds of the event "done"."""
    done = isinstance(encoder, DoneEvents)
    return {"level": encoder.level, "name": encoder.name} if done else None


def needs_function(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a model whose events come from a function, which it has not."""
    try:
        return read_header(path)["events"]["kind"] == FunctionEvents.__name__
    except (OSError, ValueError, KeyError, TypeError):  # whoever loads it says what is wrong
        return False


def load_model(
    cls: type[Model],
    path: str | os.PathLike[str],
    function: Callable[..., Hashable | None] | None = None,
    scoring: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Model:
    """Load a model of class `cls`, with its event and scoring functions, where it needs them.

    Whatever can be computed from the rest of the file (frequencies, scores, which sequence a row
    of an alignment spells) is compared with it, so that no damaged array is used.
    """
    for name, given, step in (
        ("function", function, "(obs, action, reward, next_obs, info) -> symbol or None"),
        ("scoring", scoring, "of the frequencies of events, which returns a matrix"),
    ):
        if given is not None and not callable(given):
            raise ValueError(
                f"{name}={given!r} is not a function; give the one that the model was fitted with, "
                f"a function {step}"
            )
    with _MODEL.open(path) as contents:
        encoder = _encoder(contents, path, function)
        header, arrays = contents.header, contents.arrays
        encoded = _demonstrations(arrays, encoder.n_events)
        used = _used(arrays, encoded, encoder.n_events)
        chance = _chance(contents, encoder.n_events)
        given = _scoring(header["scoring"], scoring, path)
        p, scores = _scores(contents, [encoded[i].sequence for i in used], chance, given)
        undo = _undo(header["undo"])
        known = scores if given is None else given
        model = cls(encoder.base, scoring=known, undo=undo, **header["parameters"])
        check_tree(arrays["tree"], "the tree")
        demos = Demonstrations(
            encoder,
            encoded,
            arrays["returns"].tolist(),
            arrays["lengths"].tolist(),
            used,
            chance,
        )
        parts = _strategies(contents, encoded, used, encoder.symbols_, model.gap)
        model._take(learn(model, demos, p, scores, parts, arrays["tree"]))
        return model


def _undo(pairs: list[Any] | None) -> Undo | None:
    """Return which events take back which; None for none, "auto" where they were found."""
    if pairs is None:
        return FOUND
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("'undo' has something else than pairs of an event and one undone")
    undo = {decode_symbol(a): decode_symbol(b) for a, b in pairs} or None
    check_undo(undo)
    return undo


def _scoring(stored: str | None, given: Any, path: str | os.PathLike[str]) -> Any:
    """Return the name or the function of the scores, None for a matrix."""
    if stored == "function":
        if given is None:
            raise ValueError(
                f"{path}: the model's scores come from a function, which is not stored in the "
                "file; load it with AlignRudder.load(path, scoring=your_function)"
            )
        return given
    if given is not None:
        raise ValueError(f"{path}: scoring=… was given, but the model's scores are {stored}")
    return stored


def _used(arrays: Mapping[str, np.ndarray], encoded: list[Encoded], n_events: int) -> np.ndarray:
    """Return which demonstrations were aligned, all of them in a file of version 0.1."""
    used = arrays.get("used", np.arange(len(encoded)))
    if len(used) < 2 or (np.diff(used) <= 0).any():
        raise ValueError(f"it used demonstrations {used.tolist()}; two or more in order are needed")
    if any(encoded[i].sequence.max(initial=NO_EVENT) >= n_events for i in used):
        raise ValueError(f"a demonstration has an event beyond the {n_events} that there are")
    return used


def _chance(contents: Contents, n_events: int) -> Chance:
    """Return the random and the failed episodes."""
    if not contents.group("chance/"):
        return Chance.none()
    arrays = contents.checked("chance/", _CHANCE)
    events, starts, steps = (arrays[name] for name in ("events", "starts", "steps"))
    n = len(arrays["returns"])
    if n > len(steps) or sum(steps.tolist()) != len(events):
        raise ValueError(
            f"its random episodes have {sum(steps.tolist())} steps and {n} returns, but there are "
            f"{len(events)} steps of {len(steps)} episodes"
        )
    if max(starts.max(initial=NO_EVENT), events.max(initial=NO_EVENT)) > n_events:
        raise ValueError(f"a random episode has an event beyond the {n_events} that there are")
    parts = np.split(events, np.cumsum(steps)[:-1])
    found = [Encoded(int(start), part) for start, part in zip(starts, parts, strict=True)]
    return Chance(found[:n], arrays["returns"].tolist(), found[n:])


def _encoder(
    contents: Contents,
    path: str | os.PathLike[str],
    function: Callable[..., Hashable | None] | None,
) -> EventEncoder:
    header = dict(contents.header["events"])
    kind = header.pop("kind", None)
    if kind == "FunctionEvents":
        if function is None:
            raise ValueError(
                f"{path}: the model takes its events from a function, which is not stored in the "
                "file; load it with AlignRudder.load(path, function=your_function), or give a "
                "wrapper events=your_function beside the path"
            )
        header["function"] = function
    elif function is not None:
        advice = "leave it out"
        if kind == "SymbolEvents":
            advice = "load it without, and give events= to the wrapper: " + (
                "RedistributeReward(env, model, events=your_function)"
            )
        raise ValueError(
            f"{path}: function=… was given, but the model's events are {kind}; {advice}"
        )
    encoder = encoder_from_state(kind, header, contents.group("events/"))
    done = contents.header["done"]
    return encoder if done is None else DoneEvents(encoder, done["level"], done["name"])


def _demonstrations(arrays: Mapping[str, np.ndarray], n_events: int) -> list[Encoded]:
    """Return the demonstrations as events."""
    sequences, starts, steps = (arrays[name] for name in ("sequences", "starts", "steps"))
    if len(steps) < 2 or sum(steps.tolist()) != len(sequences):
        raise ValueError(
            f"its {len(steps)} demonstrations have {sum(steps.tolist())} steps, but there are "
            f"{len(sequences)}; at least two are needed, and all steps of them"
        )
    if not np.array_equal(arrays["lengths"], steps):
        raise ValueError("'lengths' and 'steps' differ; both are the steps of each demonstration")
    if max(starts.max(), sequences.max(initial=NO_EVENT)) > n_events:
        raise ValueError(f"a demonstration has an event beyond the {n_events} that there are")
    parts = np.split(sequences, np.cumsum(steps)[:-1])
    return [Encoded(int(start), part) for start, part in zip(starts, parts, strict=True)]


def _scores(
    contents: Contents, sequences: Sequence[np.ndarray], chance: Chance, scoring: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return p and the scoring matrix, after a look at whether they are those of the sequences."""
    found, scores = contents.arrays["background"], contents.arrays["scores"]
    p = mixed_background(sequences, chance.counts(len(found)), len(found))
    if not np.allclose(found, p, rtol=1e-9, atol=0):
        raise ValueError("'background' is not how often each event occurs in its demonstrations")
    parameters = contents.header["parameters"]
    expected = scoring_matrix(
        scores if scoring is None else scoring,
        p,
        alpha=parameters["alpha"],
        epsilon=parameters["epsilon"],
    )
    if not np.allclose(scores, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max(initial=0)):
        name = contents.header["scoring"]
        raise ValueError(f"'scores' are not those of scoring {name!r} of its events")
    return found, scores


def _strategies(
    contents: Contents,
    encoded: Sequence[Encoded],
    used: np.ndarray,
    symbols: Sequence[Hashable],
    gap: float,
) -> list[Part]:
    """Return members, alignment and kept columns of each strategy."""
    n, whole = len(encoded), contents.arrays["scores"]
    sequences = [e.sequence for e in encoded]
    sizes = {"demonstrations": n, "events": len(whole)}
    whole = quantise(whole, len(used) * max(sum(len(sequences[i]) for i in used), 1))[0]
    parts, seen = [], np.zeros(n, int)
    known = contents.header["n_strategies"]
    if names := [k for k in contents.group("strategy/") if not _index(k) < known]:
        raise ValueError(f"it has {names[0]!r} of a strategy, but {known} strategies")
    if known > n:
        raise ValueError(f"it has {known} strategies of {n} demonstrations")
    for k in range(known):
        arrays = contents.checked(f"strategy/{k}/", _STRATEGY, sizes)
        members, matrix, tree = arrays["members"], arrays["matrix"], arrays.get("tree")
        np.add.at(seen, members, 1)
        if not np.isin(members, used).all():
            raise ValueError(f"strategy {k} has demonstrations that were not used")
        if not len(members) or seen.max() > 1 or (tree is None) != (len(members) == 1):
            raise ValueError(
                f"strategy {k} has demonstrations {members.tolist()}; each may be in one strategy "
                "once, and two or more have a tree"
            )
        if tree is not None:
            check_tree(tree, f"the tree of strategy {k}")
        for row, i in zip(matrix, members, strict=True):
            if not np.array_equal(row[row != GAP], sequences[i]):
                raise ValueError(f"the alignment of strategy {k} does not spell demonstration {i}")
        steps = sum(len(sequences[i]) for i in members)
        expected = quantise(whole, len(members) * max(steps, 1))[0]
        if not np.allclose(arrays["scores"], expected, rtol=1e-6, atol=1e-6):
            raise ValueError(f"the scores of strategy {k} are not those of the model")
        exact = float(arrays.get("gap", np.array(gap)))  # on the grid of the scores
        if not np.isclose(exact, gap, rtol=1e-6, atol=1e-6):
            raise ValueError(f"the gap cost of strategy {k} is {exact}, that of the model {gap}")
        aligned = Alignment(matrix, symbols, arrays["scores"], exact, tree)
        parts.append(Part(members, aligned, arrays.get("columns")))
    return parts


def _index(name: str) -> int:
    """Return the strategy that an array is of; a large number where the name says none."""
    number = name.split("/")[0]
    return int(number) if number.isascii() and number.isdigit() else 2**31


def check_tree(tree: np.ndarray, name: str) -> None:
    """Raise a `ValueError` unless a matrix is a guide tree as SciPy makes it."""
    n = len(tree) + 1
    nodes, sizes = tree[:, :2], np.ones(2 * n - 1)
    if not (nodes == np.floor(nodes)).all():
        raise ValueError(f"{name} joins {nodes.flat[0]}; whole numbers are needed")
    if (nodes >= n + np.arange(n - 1)[:, None]).any():
        raise ValueError(f"{name} joins a group that there is not yet")
    if len(np.unique(nodes)) < nodes.size:
        raise ValueError(f"{name} joins a group twice")
    for k, (left, right) in enumerate(nodes.astype(int)):
        sizes[n + k] = sizes[left] + sizes[right]
    if not np.array_equal(sizes[n:], tree[:, 3]) or (np.diff(tree[:, 2]) < -1e-9).any():
        raise ValueError(f"{name} has groups of sizes or distances that cannot be")
