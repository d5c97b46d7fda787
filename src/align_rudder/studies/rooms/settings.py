"""What is run: the settings of every study of the rooms.

Nothing heavy is imported here: command lines take their choices from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from align_rudder.files import Kind, Number, Text, Whole
from align_rudder.studies.method import check_methods
from align_rudder.studies.rooms.methods import (
    COMPARED,
    FAIR,
    KEY_CHEST,
    LONGER,
    POOR,
    REPLAYED,
    VARIANTS,
)

if TYPE_CHECKING:
    from align_rudder.episodes import Episode
    from align_rudder.tasks import RoomsEnv

__all__ = [
    "DEMOS",
    "EXPERIMENTS",
    "NOISE",
    "PAPERS",
    "POOL",
    "SEARCHES",
    "STUDIES",
    "Search",
    "Setting",
    "demonstrations",
    "environment",
    "settings_of",
]

POOL = 100
NOISE = 0.2
"""Share of random actions in the demonstrations of the paper."""
DEMOS = (2, 5, 10, 50, 100)


@dataclass(frozen=True)
class Study:
    """What a study compares.

    Attributes:
        worlds: Rooms, probability of a random move, and most events of Align-RUDDER.
        methods: Methods.
        demos: Numbers of demonstrations.
        trials: Trials of each setting.
        noises: Shares of random actions in the demonstrations.
        protocol: Arguments of its protocol that differ from the default.
        optimal: Whether the target is a share of what the best policy earns.
        known: Methods that it can compare.
        first_seed: Seed of its first trial.
    """

    worlds: Sequence[tuple[int, float, int]]
    methods: tuple[str, ...] = COMPARED
    demos: tuple[int, ...] = DEMOS
    trials: int = 100
    noises: tuple[float, ...] = (NOISE,)
    protocol: Mapping[str, Any] = field(default_factory=dict)
    optimal: bool = False
    known: tuple[str, ...] = (*COMPARED, *VARIANTS)
    first_seed: int = 0


STUDIES = {
    "four-rooms": Study([(4, 0.01, 15)]),
    "eight-rooms": Study([(8, 0.01, 15)]),
    "stochastic": Study(
        [(4, slip, 15) for slip in (0.05, 0.10, 0.15, 0.25, 0.40)]
        + [(8, slip, 15) for slip in (0.05, 0.10)],
        FAIR,
        (2, 5, 10),
        trials=50,
        known=FAIR,
    ),
    "clusters": Study([(4, 0.01, most) for most in (2, 5, 8, 10, 12, 15)], ("align-rudder",)),
    "variants": Study([(4, 0.01, 15), (8, 0.01, 15)], ("align-rudder", *VARIANTS)),
    "scaling": Study(
        [(rooms, 0.01, max(15, 2 * rooms)) for rooms in (2, 4, 8, 16, 32)],
        LONGER,
        (10,),
        trials=50,
        known=LONGER,
    ),
    "rooms": Study([(4, 0.01, 15), (8, 0.01, 15)], FAIR, (2, 5, 10), known=FAIR),
    "poor": Study(
        [(8, 0.1, 15)],
        POOR,
        (2, 5, 10),
        trials=50,
        noises=(0.3, 0.5, 0.7),
        protocol={"target": 0.9, "evaluation_epsilon": 0.0, "max_episodes": 3000},
        optimal=True,
        known=POOR,
        first_seed=80_000,  # smaller ones were looked at while the learner's defaults were chosen
    ),
}


@dataclass(frozen=True)
class Search:
    """What hyper-parameters are chosen on, with seeds that no result uses.

    Attributes:
        methods: Methods.
        places: Rooms, slip, noise of the demonstrations and their number.
        how: The same in words.
        study: The study whose protocol it has.
        trials: Trials of each configuration in each place.
    """

    methods: tuple[str, ...]
    places: tuple[tuple[int, float, float, int], ...]
    how: str
    study: str
    trials: int

    def name_of(self, place: tuple[int, float, float, int]) -> str:
        """Return how tables name a place."""
        rooms, _, noise, demos = place
        noisy = "" if len({place[2] for place in self.places}) == 1 else f", {noise:.0%} random"
        return f"{rooms} rooms{noisy}, {demos}"


_BOTH = tuple((rooms, 0.01, NOISE, demos) for rooms in (4, 8) for demos in (2, 10))
_RANDOM = tuple((8, 0.1, noise, demos) for noise in (0.3, 0.5, 0.7) for demos in (2, 10))
SEARCHES = {
    "paper": Search(COMPARED, _BOTH, "both tasks, (2, 10) demonstrations", "four-rooms", 10),
    "rooms": Search(FAIR, _BOTH, "both tasks, 2 and 10 demonstrations", "rooms", 5),
    "poor": Search(
        (*FAIR, *REPLAYED),
        _RANDOM,
        "30, 50 and 70 % random actions, 2 and 10 demonstrations",
        "poor",
        4,
    ),
}


PAPERS = tuple(name for name, study in STUDIES.items() if "align-rudder" in study.known)
"""Studies of the paper's own protocol."""
EXPERIMENTS = (*STUDIES, KEY_CHEST)
"""Names of all experiments of the paper."""


@dataclass(frozen=True, order=True)
class Setting:
    """One cell of a table, in which trials differ by their seed alone.

    Attributes:
        rooms: Rooms of the environment.
        slip: Probability of a random move.
        max_events: Most events that Align-RUDDER may form.
        demos: Number of demonstrations.
        method: Name of the method.
        variant: Index of a configuration of the method's grid; -1 for the chosen one.
        noise: Share of random actions in the demonstrations.
    """

    rooms: int
    slip: float
    max_events: int
    demos: int
    method: str
    variant: int = -1
    noise: float = NOISE

    COLUMNS: ClassVar[Mapping[str, Kind]] = {
        "rooms": Whole(1),
        "slip": Number(0, 1),
        "max_events": Whole(1),
        "demos": Whole(1),
        "method": Text(),
        "variant": Whole(-1),
        "noise": Number(0, 1),
    }


@lru_cache(maxsize=8)
def environment(rooms: int, slip: float) -> RoomsEnv:
    """Return the environment of a setting."""
    from align_rudder.tasks import RoomsEnv

    return RoomsEnv(rooms, slip)


def demonstrations(setting: Setting, seed: int) -> list[Episode]:
    """Return the demonstrations of a trial: the first of the trial's pool."""
    env = environment(setting.rooms, setting.slip)
    return env.demonstrations(setting.demos, seed, setting.noise)


def settings_of(
    study: str, methods: Sequence[str] | None = None, demos: Sequence[int] | None = None
) -> list[Setting]:
    """Return the settings of a study.

    Args:
        study: One of `STUDIES`.
        methods: Names of methods; None for those of the study.
        demos: Numbers of demonstrations; None for those of the study.
    """
    if study not in STUDIES:
        raise ValueError(f"study {study!r} is not known; use one of {', '.join(STUDIES)}")
    methods = tuple(dict.fromkeys(methods or STUDIES[study].methods))
    check_methods(methods, STUDIES[study].known)
    demos = tuple(dict.fromkeys(demos or STUDIES[study].demos))
    for n in demos:
        if not 2 <= n <= POOL:
            raise ValueError(
                f"{n} demonstrations were asked for; every trial has a pool of {POOL}, and an "
                f"alignment needs 2, so give numbers from 2 to {POOL}"
            )
    if study == "scaling" and len(demos) > 1:
        raise ValueError(f"the scaling study is of one number of demonstrations, not {demos}")
    if study == "clusters" and methods != ("align-rudder",):
        raise ValueError("the study of clusters is of align-rudder alone; leave out --methods")
    return [
        Setting(rooms, slip, most, n, method, noise=noise)
        for rooms, slip, most in STUDIES[study].worlds
        for noise in STUDIES[study].noises
        for method in methods
        for n in demos
    ]
