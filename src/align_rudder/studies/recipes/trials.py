"""One trial of a method on a recipe, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from align_rudder.baselines import (
    learn_align_rudder,
    learn_gail_events,
    learn_ircr,
    learn_q,
    learn_rounds,
    learn_rrd,
    learn_unordered,
)
from align_rudder.baselines.gail_events import remembered_pairs
from align_rudder.baselines.protocol import Protocol, Result
from align_rudder.files import Kind, Whole
from align_rudder.studies.recipes.settings import Setting
from align_rudder.studies.recipes.worlds import (
    environment,
    in_common,
    in_order,
    logs_of,
    median_of,
    model_of,
    recall,
    stage_pairs,
)
from align_rudder.studies.trials import episodes_fault, values_in

__all__ = ["LEARNERS", "RecipeTrial", "protocol_of", "run_trial"]

_REPLAYS = 10  # episodes that are gone back to after each, as RRD and IRCR do


@dataclass(frozen=True)
class RecipeTrial:
    """A finished trial.

    Attributes:
        setting: Its setting.
        seed: Its seed, of layout, recipe, logs and learner.
        episodes: Episodes to the target, or the cap.
        solved: Whether the target was reached.
        steps: Environment steps of learning.
    """

    setting: Setting
    seed: int
    episodes: int
    solved: bool
    steps: int

    COLUMNS: ClassVar[Mapping[str, Kind]] = {
        **Setting.COLUMNS,
        "seed": Whole(0, 2**53),
        "episodes": Whole(0, 2**53),
        "solved": Whole(0, 1),
        "steps": Whole(0, 2**53),
    }

    @property
    def key(self) -> tuple[Setting, int]:
        """Setting and seed."""
        return self.setting, self.seed

    def row(self) -> list[str]:
        """Return the values as text."""
        numbers = (self.seed, self.episodes, int(self.solved), self.steps)
        return [*map(str, (*astuple(self.setting), *numbers))]

    def fault(self, config: Mapping[str, Any]) -> str:
        """Return why no trial of a configuration ends like this; "" if one may."""
        return episodes_fault(self.episodes, self.solved, self.steps, config.get("protocol"))

    @classmethod
    def parse(cls, row: dict[str, str]) -> Self:
        """Return the trial of a row."""
        *setting, seed, episodes, solved, steps = values_in(row, cls.COLUMNS)
        return cls(Setting(*setting), seed, episodes, solved == 1, steps)


def protocol_of(max_episodes: int) -> Protocol:
    """Return how trials are run and judged: one greedy episode that must succeed."""
    return Protocol(max_episodes=max_episodes, evaluation_epsilon=0.0, evaluation_episodes=1)


def _align_rudder(setting: Setting, seed: int, **options: Any) -> Result:
    mdp, model = environment(setting, seed).mdp, model_of(setting, seed)
    return learn_align_rudder(mdp, [], seed=seed, model=model, **options)


def _consensus_alone(setting: Setting, seed: int, **options: Any) -> Result:
    return _align_rudder(setting, seed, turns=None, **options)


def _strictly(choose: Callable[[list[Any]], list[Any]]) -> Callable[..., Result]:
    """Return a learner that is paid in order for what is chosen of the logs, and for that alone.

    Of an empty choice nothing but the environment's reward is paid.
    """

    def learned(setting: Setting, seed: int, **options: Any) -> Result:
        env = environment(setting, seed)
        undo: dict[Hashable, Hashable] = {**env.undo}
        model = in_order(choose(logs_of(setting, seed)), undo or None)
        return learn_align_rudder(env.mdp, [], seed=seed, model=model, turns=None, **options)

    return learned


def _replayed(setting: Setting, seed: int, **options: Any) -> Result:
    return _align_rudder(setting, seed, replays=_REPLAYS, **options)


def _median_replayed(setting: Setting, seed: int, **options: Any) -> Result:
    return _strictly(median_of)(setting, seed, replays=_REPLAYS, **options)


def _shortest(logs: list[Any]) -> list[Any]:
    return min(logs, key=len)


def _in_turn(setting: Setting, seed: int, **options: Any) -> Result:
    mdp, models = environment(setting, seed).mdp, model_of(setting, seed).alternatives(median=False)
    return learn_align_rudder(mdp, [], seed=seed, model=models, **options)


def _median_in_turn(setting: Setting, seed: int, **options: Any) -> Result:
    env = environment(setting, seed)
    undo: dict[Hashable, Hashable] = {**env.undo}
    median = in_order(median_of(logs_of(setting, seed)), undo or None)
    models = [median, *model_of(setting, seed).alternatives(median=False)]
    return learn_align_rudder(env.mdp, [], seed=seed, model=models, **options)


def _unordered(setting: Setting, seed: int, **options: Any) -> Result:
    mdp, model = environment(setting, seed).mdp, model_of(setting, seed)
    return learn_unordered(mdp, [], seed=seed, model=model, **options)


def _rounds(setting: Setting, seed: int, **options: Any) -> Result:
    return learn_rounds(
        environment(setting, seed).mdp, logs_of(setting, seed), seed=seed, **options
    )


def _collect(setting: Setting, seed: int, **options: Any) -> Result:
    return _rounds(setting, seed, any_order=True, **options)


def _collect_told(setting: Setting, seed: int, **options: Any) -> Result:
    undo: dict[Hashable, Hashable] = {**environment(setting, seed).undo}
    return _collect(setting, seed, undo=undo, **options)


def _gail_events(setting: Setting, seed: int, **options: Any) -> Result:
    mdp, env = recall(setting, seed), environment(setting, seed)
    shown = [remembered_pairs(log, env.symbols) for log in logs_of(setting, seed)]
    known = np.arange(mdp.n_states) // env.mdp.n_states
    return learn_gail_events(mdp, shown, known, seed=seed, **options)


def _gail_inventory(setting: Setting, seed: int, **options: Any) -> Result:
    env = environment(setting, seed, hidden=False)
    shown = [stage_pairs(env, log) for log in logs_of(setting, seed)]
    known = np.arange(env.mdp.n_states) // env.size**2
    return learn_gail_events(env.mdp, shown, known, seed=seed, **options)


def _with_memory(learn: Callable[..., Result]) -> Callable[..., Result]:
    """Return a learner that has no logs and remembers the last event."""

    def learned(setting: Setting, seed: int, **options: Any) -> Result:
        return learn(recall(setting, seed), [], seed=seed, returns=[1.0], **options)

    return learned


LEARNERS: dict[str, Callable[..., Result]] = {
    "align-rudder": _align_rudder,
    "defaults": _align_rudder,
    "consensus-alone": _consensus_alone,
    "replayed": _replayed,
    "median-replayed": _median_replayed,
    "shortest-log": _strictly(_shortest),
    "common-subsequence": _strictly(in_common),
    "median": _strictly(median_of),
    "in-turn": _in_turn,
    "median-in-turn": _median_in_turn,
    "unordered": _unordered,
    "rounds": _rounds,
    "collect": _collect,
    "collect-told": _collect_told,
    "collect-told-defaults": _collect_told,
    "gail-events": _gail_events,
    "q-memory": _with_memory(learn_q),
    "rrd": _with_memory(learn_rrd),
    "ircr-absorbing": _with_memory(learn_ircr),
    "gail-inventory": _gail_inventory,
}


def run_trial(
    setting: Setting, seed: int, parameters: Mapping[str, Any], protocol: Protocol
) -> RecipeTrial:
    """Run one trial; everything in it follows from setting, seed and parameters.

    Args:
        setting: The setting.
        seed: The seed of layout, recipe, logs and learner.
        parameters: Arguments of the learner.
        protocol: How the trial is run and judged.
    """
    result = LEARNERS[setting.method](setting, seed, protocol=protocol, **parameters)
    return RecipeTrial(setting, seed, result.episodes, result.solved, result.steps)
