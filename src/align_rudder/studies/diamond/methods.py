"""Our system, what it is compared with, and parts of it left out; each for any number of steps."""

from __future__ import annotations

from dataclasses import replace

from align_rudder.hierarchy.ppo import PPO
from align_rudder.hierarchy.training import Training

__all__ = ["METHODS", "label_of", "training_of"]

METHODS = {
    "align-rudder": "Align-RUDDER",
    "separate": "… a network for each sub-task",
    "own-subtask": "… a network for each, learning for it alone",
    "no-redistribution": "… paid for the diamond alone",
    "equal-reward": "… paid the same for each sub-goal",
    "no-cloning": "… without cloning",
    "ppo-dense": "PPO, paid for each achievement",
    "ppo-diamond": "PPO, paid for the diamond alone",
}
"""Names and descriptions; behavioural cloning alone is the start of `align-rudder`."""

_LONG = 50_000_000  # from here on, many environments and a larger pool


def label_of(method: str, alone: bool = True) -> str:
    """Return what a method is called, in full where it stands alone and not below ours."""
    label = METHODS.get(method, method)
    return label.replace("… ", "Align-RUDDER, ") if alone else label


def training_of(method: str, steps: int = 8_000_000, seed: int = 0) -> Training:
    """Return the configuration of a method."""
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; choose among {', '.join(METHODS)}")
    if steps >= _LONG:
        ppo = PPO(n_envs=4096, n_epochs=2, n_minibatches=32, gamma=0.997)
        base = Training(steps, seed, ppo, pool=6144, buffer=512, evaluations=16, worlds=1024)
    else:
        base = Training(steps, seed, PPO(n_envs=512, n_minibatches=16), evaluations=5)
    base = replace(base, precision="bfloat16", name=method)
    ppo = base.ppo
    match method:
        case "align-rudder":
            return base
        case "separate":
            return replace(base, separate=True, hidden=(128, 128))
        case "own-subtask":
            own = replace(ppo, own_subtask=True)
            return replace(base, ppo=own, separate=True, hidden=(128, 128))
        case "no-redistribution":
            return replace(base, pay="task")
        case "equal-reward":
            return replace(base, pay="goals")
        case "no-cloning":
            return replace(base, ppo=replace(ppo, bc_coef=0.0), clone=0)
    scale = 1.0 if method == "ppo-dense" else 10.0
    plain = replace(ppo, bc_coef=0.0, burn_in=0, fresh=1.0, reward_scale=scale)
    pay = "dense" if method == "ppo-dense" else "task"
    return replace(base, ppo=plain, pay=pay, plain=True, clone=0, manager=0.0)
