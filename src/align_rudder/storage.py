"""The npz file of a model: arrays and a JSON header, no pickle."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from align_rudder.alignment import Alignment
from align_rudder.events import Encoded, FunctionEvents, encoder_from_state
from align_rudder.files import load_npz, save_npz

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["load_model", "save_model"]

_KIND, _VERSION = "align-rudder-model", 1
Model = TypeVar("Model", bound="AlignRudder")


def save_model(model: AlignRudder, path: str | os.PathLike[str]) -> None:
    """Save a fitted model."""
    parameters = {
        k: v.item() if isinstance(v, np.generic) else v
        for k, v in model.get_params(deep=False).items()
        if k not in ("events", "scoring")
    }
    named = isinstance(model.scoring, str)
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
    }
    for k, strategy in enumerate(model.strategies_):
        arrays[f"strategy/{k}/members"] = strategy.members
        arrays[f"strategy/{k}/matrix"] = strategy.alignment.matrix
        arrays[f"strategy/{k}/scores"] = strategy.alignment.scores
        if strategy.alignment.tree is not None:
            arrays[f"strategy/{k}/tree"] = strategy.alignment.tree
    header = {
        "parameters": parameters,
        "scoring": model.scoring if named else None,
        "events": {"kind": type(model.events_).__name__, **events_header},
        "n_strategies": len(model.strategies_),
    }
    save_npz(path, _KIND, _VERSION, header, arrays)


def load_model(
    cls: type[Model],
    path: str | os.PathLike[str],
    function: Callable[..., Hashable | None] | None = None,
) -> Model:
    """Load a model of class `cls`; `function` is its event function, where it needs one."""
    header, arrays = load_npz(path, _KIND, _VERSION)
    try:
        return _build(cls, header, arrays, function)
    except KeyError as error:
        raise ValueError(f"{path} is damaged: it has no {error}") from error
    except (IndexError, TypeError) as error:
        raise ValueError(f"{path} is damaged: its arrays do not fit together ({error})") from error


def _build(
    cls: type[Model], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], function: Any
) -> Model:
    events_header = {**header["events"], "function": function}
    prefix = "events/"
    encoder = encoder_from_state(
        events_header.pop("kind"),
        events_header,
        {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)},
    )
    if function is not None and not isinstance(encoder, FunctionEvents):
        raise ValueError(
            f"function=… was given, but the model's events are {type(encoder).__name__}"
        )
    scoring = header["scoring"] if header["scoring"] is not None else arrays["scores"]
    model = cls(encoder, scoring=scoring, **header["parameters"])
    counts = {name: len(arrays[name]) for name in ("starts", "steps", "returns", "lengths")}
    if len(set(counts.values())) > 1:
        raise IndexError(f"demonstrations are counted as {counts}")
    ends = np.cumsum(arrays["steps"])
    encoded = [
        Encoded(int(start), arrays["sequences"][end - steps : end])
        for start, steps, end in zip(arrays["starts"], arrays["steps"], ends, strict=True)
    ]
    parts = []
    for k in range(header["n_strategies"]):
        alignment = Alignment(
            arrays[f"strategy/{k}/matrix"],
            encoder.symbols_,
            arrays[f"strategy/{k}/scores"],
            model.gap,
            arrays.get(f"strategy/{k}/tree"),
        )
        parts.append((arrays[f"strategy/{k}/members"], alignment))
    model._set(
        encoder,
        encoded,
        arrays["returns"].tolist(),
        arrays["lengths"].tolist(),
        arrays["background"],
        parts,
        arrays["tree"],
    )
    model.scores_ = arrays["scores"]
    return model
