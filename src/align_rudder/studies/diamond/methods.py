"""Our system, parts of it left out, and what it is compared with: each is named here and only here.

Nothing heavy is imported: command lines take their choices from this table, figures their colors,
tables their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from align_rudder.hierarchy.devices import Devices
    from align_rudder.hierarchy.settings import Training
    from align_rudder.tasks.diamond.demos import Setup

__all__ = [
    "METHODS",
    "MORE",
    "OURS",
    "Method",
    "MethodName",
    "label_of",
    "order_of",
    "train_method",
    "training_of",
]


@dataclass(frozen=True)
class Method:
    """A method of the study.

    Attributes:
        label: How tables and figures name it; "… " stands for ours, which stands above it.
        color: Its color in figures, by its name in the palette.
        marker: Its marker, for print without color.
        training: Where its configuration differs from ours.
        ppo: Where its PPO does.
        baseline: Whether it knows nothing of the demonstrations.
    """

    label: str
    color: str
    marker: str
    training: Mapping[str, Any] = field(default_factory=dict)
    ppo: Mapping[str, Any] = field(default_factory=dict)
    baseline: bool = False


OURS = "align-rudder"
_SEPARATE = {"separate": True, "hidden": (128, 128)}
_PLAIN = {"plain": True, "clone": 0, "beside": 0.0}
_PLAIN_PPO = {"bc_coef": 0.0, "burn_in": 0, "fresh": 1.0}
_UNPAID = {"beside": 0.0}  # where the diamond's own reward is all there is, or part of another

METHODS: dict[str, Method] = {
    OURS: Method("Align-RUDDER", "vermillion", "o"),
    "manager": Method("… with a manager", "blue", "p", {"manager": 0.05}),
    "flags": Method("… achievements are events, too", "yellow", "d", {"goals": "flags"}),
    "checklist": Method("… sub-goals paid in any order", "green", "h", {"goals": "checklist"}),
    "no-beside": Method("… not paid for the diamond beside", "yellow", "H", _UNPAID),
    "equal-reward": Method("… paid the same for each sub-goal", "sky", "P", {"pay": "goals"}),
    "no-redistribution": Method(
        "… paid for the diamond alone", "green", "D", {"pay": "task", **_UNPAID}
    ),
    "no-starts": Method("… from new worlds alone", "purple", "*", {}, {"fresh": 1.0}),
    "no-cloning": Method("… without cloning", "purple", "v", {"clone": 0}, {"bc_coef": 0.0}),
    "separate": Method("… a network for each sub-task", "blue", "s", _SEPARATE),
    "own-subtask": Method(
        "… a network for each, learning for it alone",
        "black",
        "<",
        {**_SEPARATE, **_UNPAID},
        {"own_subtask": True},
    ),
    "one-demonstration": Method(
        "Sub-goals of one demonstration, not aligned", "black", "x", {"goals": "one"}
    ),
    "kinds": Method("Each kind of event once, not aligned", "sky", ">", {"goals": "kinds"}),
    "dense-starts": Method(
        "PPO, paid for each achievement, with demonstrations",
        "orange",
        "1",
        {"goals": "kinds", "pay": "dense", **_UNPAID},
        {"reward_scale": 1.0},
    ),
    "backplay": Method(
        "PPO, paid for the diamond alone, backplay",
        "gray",
        "8",
        {"goals": "kinds", "pay": "task", **_UNPAID},
        {"backplay": True},
    ),
    "ppo-dense": Method(
        "PPO, paid for each achievement",
        "orange",
        "^",
        {**_PLAIN, "pay": "dense"},
        {**_PLAIN_PPO, "reward_scale": 1.0},
        baseline=True,
    ),
    "ppo-diamond": Method(
        "PPO, paid for the diamond alone",
        "gray",
        "X",
        {**_PLAIN, "pay": "task"},
        _PLAIN_PPO,
        baseline=True,
    ),
}
"""In the order of tables; behavioural cloning alone is the start of ours."""

if TYPE_CHECKING:
    MethodName = str
else:
    MethodName = Literal[tuple(METHODS)]
"""The name of a method, as a choice of command lines."""

_LONG = 50_000_000  # from here on, many environments and a larger pool
_SHORT = 4_000_000  # up to here, evaluations would take a large part of the steps


MORE = "+more"
"""How the name of a training ends that clones more runs than are aligned."""


def label_of(method: str, alone: bool = True) -> str:
    """Return the label of a method, in full where ours does not stand above it.

    Example:
        >>> label_of("no-cloning"), label_of("kinds+more", alone=False)
        ('Align-RUDDER, without cloning', 'Each kind of event once, not aligned, more runs cloned')
    """
    base = method.removesuffix(MORE)
    label = METHODS[base].label if base in METHODS else base
    if base != method:
        ours = base == OURS and not alone
        label = f"{'…' if ours else f'{label},'} more runs cloned"
    return label.replace("… ", f"{METHODS[OURS].label}, ") if alone else label


def order_of(method: str) -> float:
    """Return the place of a method in tables; one that is not known comes last."""
    base = method.removesuffix(MORE)
    place = list(METHODS).index(base) if base in METHODS else len(METHODS)
    return place + 0.5 * (base != method)


def training_of(method: str, steps: int = 8_000_000, seed: int = 0, **options: Any) -> Training:
    """Return the configuration of a method.

    Args:
        method: Its name in `METHODS`.
        steps: Environment steps.
        seed: Seed.
        options: Other values of fields of `Training` or of its `PPO`; None for those of the method.
    """
    from align_rudder.hierarchy.ppo import PPO
    from align_rudder.hierarchy.settings import Training

    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; choose among {', '.join(METHODS)}")
    base = Training(steps, seed, beside=1.0, precision="bfloat16")
    if steps >= _LONG:
        ppo = PPO(n_envs=4096, n_epochs=2, n_minibatches=32, gamma=0.997)
        base = replace(base, ppo=ppo, pool=6144, buffer=512, evaluations=16, worlds=1024)
    else:
        ppo, few = PPO(n_envs=512, n_minibatches=16), steps < _SHORT
        base = replace(base, ppo=ppo, evaluations=1 if few else 4, worlds=128 if few else 256)
    differs, given = METHODS[method], {k: v for k, v in options.items() if v is not None}
    of_ppo = {name: given.pop(name) for name in [*given] if name in PPO.__dataclass_fields__}
    return replace(
        base,
        **{"name": method, **differs.training, **given},
        ppo=replace(base.ppo, **{**differs.ppo, **of_ppo}),
    )


def train_method(
    training: Training,
    folder: str | Path,
    setup: Setup,
    devices: Devices | None = None,
    progress: bool = True,
) -> None:
    """Train a method, or resume its training; the folder then holds the best agents and the logs.

    Args:
        training: The configuration, as `training_of` returns it.
        folder: Where files are kept.
        setup: Task, demonstrations and model, as `prepare` returns them.
        devices: Devices to train on.
        progress: Whether to show a progress bar.
    """
    from align_rudder.hierarchy.trainer import train
    from align_rudder.studies.diamond.goals import subgoals_of

    goals = subgoals_of(setup, training.goals)
    train(goals.task, goals.tables, setup.runs, training, folder, devices, progress)
