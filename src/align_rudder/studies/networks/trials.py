"""One trial of a method, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, ClassVar, Self

import gymnasium as gym

from align_rudder.baselines.gail_events import remembered_pairs
from align_rudder.files import Kind, Number, Text, Whole
from align_rudder.gym.wrapper import RedistributeReward
from align_rudder.studies.networks.gail import Discriminator, Imitation
from align_rudder.studies.networks.settings import VIEW, Setting
from align_rudder.studies.networks.worlds import (
    demonstrations,
    level,
    logs_of,
    model_of,
    stage_pairs,
    training_seed,
)
from align_rudder.studies.networks.wrappers import Inventory, LastEvent, Rounds, Unordered, happened
from align_rudder.studies.recipes.worlds import in_order, median_of
from align_rudder.studies.trials import values_in

try:
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback, CallbackList
    from stable_baselines3.common.vec_env import DummyVecEnv

    from align_rudder.gym.sb3_cloning import ValueBurnIn, clone
except ImportError as error:
    raise ImportError(
        'this needs Stable-Baselines3; in a clone: pip install ".[networks]"'
    ) from error

__all__ = ["POINT", "TARGET", "WINDOW", "NetworkTrial", "learning_options", "run_trial"]

TARGET = 0.8
"""Share of the last episodes that must be successes."""
WINDOW = 100
"""Which episodes are the last."""
POINT = 5_000
"""Steps between two points of a curve."""
HELD = 4
"""A trial ends when so many points in a row have reached the target."""
ENVIRONMENTS, ROLLOUT = 16, 128
PPO_OPTIONS: dict[str, Any] = {
    "n_steps": ROLLOUT,
    "batch_size": 256,
    "n_epochs": 4,
    "policy_kwargs": {"net_arch": [128, 128]},
    "device": "cpu",
}


@dataclass(frozen=True)
class NetworkTrial:
    """A finished trial.

    Attributes:
        setting: Its setting.
        seed: Its seed, of recipe, logs and learner.
        steps: Environment steps to the target, or the cap.
        solved: Whether the target was reached.
        final: Share of the last 100 episodes of training that were successes.
        curve: The same after every 5,000 steps.
    """

    setting: Setting
    seed: int
    steps: int
    solved: bool
    final: float
    curve: tuple[float, ...]

    COLUMNS: ClassVar[Mapping[str, Kind]] = {
        **Setting.COLUMNS,
        "seed": Whole(0, 2**53),
        "steps": Whole(0, 2**53),
        "solved": Whole(0, 1),
        "final": Number(0, 1),
        "curve": Text(),
    }

    @property
    def key(self) -> tuple[Setting, int]:
        """Setting and seed."""
        return self.setting, self.seed

    def row(self) -> list[str]:
        """Return the values as text."""
        curve = " ".join(f"{rate:.2f}" for rate in self.curve)
        numbers = (self.seed, self.steps, int(self.solved), self.final)
        return [*map(str, (*astuple(self.setting), *numbers)), curve]

    def lost(self, steps: int) -> float:
        """Return the area above the curve up to that many steps, Σ (1 − success) · 5,000.

        A trial that ended because it was solved goes on with its last value.
        """
        points = max(steps // POINT, 1)
        continued = [*self.curve, *[self.final] * points][:points]
        return POINT * sum(1 - rate for rate in continued)

    def fault(self, config: Mapping[str, Any]) -> str:
        """Return why no trial of a configuration ends like this; "" if one may."""
        cap = config.get("steps")
        if cap is None:
            return ""
        if not self.solved and self.steps != cap:
            return f"it is not solved, and steps is {self.steps} instead of the cap of {cap}"
        # The last rollout is played to its end.
        if self.solved and not 0 < self.steps < cap + ENVIRONMENTS * ROLLOUT:
            return f"it is solved after {self.steps} steps, and the cap is {cap}"
        if self.solved and self.steps % POINT:
            return f"it is solved after {self.steps} steps, and is judged after every {POINT}"
        return ""

    @classmethod
    def parse(cls, row: dict[str, str]) -> Self:
        """Return the trial of a row."""
        *setting, seed, steps, solved, final, curve = values_in(row, cls.COLUMNS)
        rates = tuple(Number(0, 1).check(float(rate), "curve") for rate in curve.split())
        return cls(Setting(*setting), seed, steps, solved == 1, final, rates)


class Watch(BaseCallback):
    """Notes how many of the last episodes were successes, and ends a trial that is solved."""

    def __init__(self) -> None:
        super().__init__()
        self.won: list[bool] = []
        self.curve: list[float] = []

    @property
    def rate(self) -> float:
        """Share of the last episodes that were successes; those that are missing were none."""
        return round(sum(self.won[-WINDOW:]) / WINDOW, 2)

    def _on_step(self) -> bool:
        for over, info in zip(self.locals["dones"], self.locals["infos"], strict=True):
            if over:
                self.won.append(bool(info["is_success"]))
        if self.num_timesteps >= POINT * (len(self.curve) + 1):
            self.curve.append(self.rate)
        return len(self.curve) < HELD or min(self.curve[-HELD:]) < TARGET


class TrainDiscriminator(BaseCallback):
    """Trains a discriminator after every rollout."""

    def __init__(self, discriminator: Discriminator) -> None:
        super().__init__()
        self.discriminator = discriminator

    def _on_rollout_end(self) -> None:
        self.discriminator.train()

    def _on_step(self) -> bool:
        return True


@dataclass
class Learner:
    """What differs between methods.

    Attributes:
        wrap: Returns the level as the agent has it.
        options: Parameters of PPO.
        callbacks: What else happens in training.
        epochs: Passes over demonstrations that are cloned at first; 0 for none.
    """

    wrap: Callable[[gym.Env], gym.Env]
    options: dict[str, Any]
    callbacks: tuple[BaseCallback, ...] = ()
    epochs: int = 0


def _align_rudder(setting: Setting, seed: int, **options: Any) -> Learner:
    model = model_of(setting, seed)
    return Learner(lambda env: RedistributeReward(env, model, events=happened), options)


def _shortest_log(setting: Setting, seed: int, **options: Any) -> Learner:
    model = in_order(min(logs_of(setting, seed), key=len))
    return Learner(lambda env: RedistributeReward(env, model, events=happened), options)


def _median(setting: Setting, seed: int, **options: Any) -> Learner:
    model = in_order(median_of(logs_of(setting, seed)))
    return Learner(lambda env: RedistributeReward(env, model, events=happened), options)


def _unordered(setting: Setting, seed: int, **options: Any) -> Learner:
    logs = logs_of(setting, seed)
    return Learner(lambda env: Unordered(env, logs), options)


def _rounds(setting: Setting, seed: int, **options: Any) -> Learner:
    logs = logs_of(setting, seed)
    return Learner(lambda env: Rounds(env, logs), options)


def _ppo_memory(setting: Setting, seed: int, **options: Any) -> Learner:
    return Learner(LastEvent, options)


def _gail_events(
    setting: Setting, seed: int, discriminator_rate: float, reward: str, **options: Any
) -> Learner:
    symbols = level(setting, seed).symbols
    shown = [remembered_pairs(log, symbols) for log in logs_of(setting, seed)]
    n = len(symbols)
    judge = Discriminator(shown, n + 1, n, discriminator_rate, reward, options["gamma"], seed)
    callbacks = (TrainDiscriminator(judge),)
    return Learner(lambda env: Imitation(LastEvent(env), judge), options, callbacks)


def _gail_inventory(
    setting: Setting, seed: int, discriminator_rate: float, reward: str, **options: Any
) -> Learner:
    env = level(setting, seed)
    shown = [stage_pairs(env, log) for log in logs_of(setting, seed)]
    known, n = setting.length + 1, len(env.symbols)
    judge = Discriminator(shown, known, n, discriminator_rate, reward, options["gamma"], seed)
    callbacks = (TrainDiscriminator(judge),)
    return Learner(lambda env: Imitation(Inventory(env), judge), options, callbacks)


def _ppo_cloned(setting: Setting, seed: int, epochs: int, burn_in: int, **options: Any) -> Learner:
    return Learner(LastEvent, options, (ValueBurnIn(burn_in),), epochs)


LEARNERS: dict[str, Callable[..., Learner]] = {
    "align-rudder": _align_rudder,
    "shortest-log": _shortest_log,
    "median": _median,
    "unordered": _unordered,
    "rounds": _rounds,
    "gail-events": _gail_events,
    "ppo-memory": _ppo_memory,
    "gail-inventory": _gail_inventory,
    "ppo-cloned": _ppo_cloned,
}


def learning_options() -> dict[str, Any]:
    """Return what is the same in all trials, as plain data."""
    return {
        **PPO_OPTIONS,
        "view": VIEW,
        "environments": ENVIRONMENTS,
        "target": TARGET,
        "window": WINDOW,
        "point": POINT,
        "held": HELD,
    }


def run_trial(
    setting: Setting, seed: int, parameters: Mapping[str, Any], steps: int
) -> NetworkTrial:
    """Run one trial; everything in it follows from setting, seed and parameters.

    Args:
        setting: The setting.
        seed: The seed of recipe, logs and learner.
        parameters: Hyper-parameters of the method.
        steps: Most environment steps.
    """
    torch.set_num_threads(1)
    learner = LEARNERS[setting.method](setting, seed, **parameters)
    made = [lambda: learner.wrap(level(setting, seed))] * ENVIRONMENTS
    venv = DummyVecEnv(made)
    venv.seed(training_seed(seed))
    # A model of very many positions shows the position beside the view, in a dict.
    several = isinstance(venv.observation_space, gym.spaces.Dict)
    policy = "MultiInputPolicy" if several else "MlpPolicy"
    ppo = PPO(policy, venv, seed=seed, **PPO_OPTIONS, **learner.options)
    if learner.epochs:
        shown = learner.wrap(level(setting, seed, max_steps=10_000))
        clone(ppo, demonstrations(shown, setting, seed), epochs=learner.epochs, seed=seed)
    watch = Watch()
    ppo.learn(steps, callback=CallbackList([watch, *learner.callbacks]))
    reached = [k for k, rate in enumerate(watch.curve, 1) if rate >= TARGET]
    first = reached[0] * POINT if reached else steps
    return NetworkTrial(setting, seed, first, bool(reached), watch.rate, tuple(watch.curve))
