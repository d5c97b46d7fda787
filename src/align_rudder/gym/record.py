"""Recording: a policy plays, successes and failures are kept apart; and playing it again."""

from __future__ import annotations

import copy
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
from tqdm import tqdm

from align_rudder._warnings import AlignRudderWarning, warn
from align_rudder.episodes import Episode, check_storable, save_episodes, tree_index
from align_rudder.files import check_outputs
from align_rudder.gym.cautions import ForeignActions, UnusableNumbers
from align_rudder.gym.checks import begun, stepped
from align_rudder.gym.keyboard import Keyboard, QuitError
from align_rudder.gym.wrapper import copied
from align_rudder.runs.interrupt import interrupt_on_signal

__all__ = ["Policy", "Recording", "Success", "record", "replay"]

Success: TypeAlias = float | str | Callable[[Episode, Mapping[str, Any]], bool] | None
"""What counts as a success; see `record`."""
Policy: TypeAlias = Any
"""A function of the observation, anything with `predict` as in Stable-Baselines3, "random", or
`Keyboard`."""

_ATTEMPTS = 100  # for each success asked for
_EVERY = 10.0  # seconds between the times at which a running recording is written
_SAID_SO = ("success", "is_success")  # what environments call it in their infos


class Recording(NamedTuple):
    """What was played.

    Attributes:
        successes: The episodes that count as a success, in the order in which they were played.
        failures: The others.
    """

    successes: list[Episode]
    failures: list[Episode]

    def __repr__(self) -> str:
        return f"Recording({len(self.successes)} successes, {len(self.failures)} failures)"


def record(
    env: gym.Env[Any, Any],
    policy: Policy,
    n: int,
    *,
    success: Success = None,
    max_attempts: int | None = None,
    seed: int | None = None,
    path: str | os.PathLike[str] | None = None,
    failures_path: str | os.PathLike[str] | None = None,
    keep_infos: bool = False,
    progress: bool = False,
) -> Recording:
    """Play episodes until n of them are successes; return these, and the failures apart.

    Observations, actions and infos are copied, as environments and policies may overwrite theirs.
    What was played is not lost: if the policy or the environment raises an error, or at Ctrl-C,
    the episodes that had ended are written first; and while a recording runs, what it has so far
    is written every ten seconds or so as NAME-unfinished.npz, should the process be killed.

    Args:
        env: The environment, one that is not vectorised.
        policy: A function of the observation that returns the action; a model of
            Stable-Baselines3, whose actions are sampled, so that demonstrations differ (give
            `lambda obs: model.predict(obs, deterministic=True)[0]` for its best ones); "random"
            for actions drawn from the action space; or a `Keyboard`.
        n: How many successes.
        success: What counts as one: a number, the least return; the name of an entry of the last
            step's info; or a function of the episode and that info. Default: what "success" or
            "is_success" in that info says, and where there is neither, a return above 0. To keep
            all episodes of a random policy: `success=lambda episode, info: True`.
        max_attempts: The most episodes to play; default: 100 for each success.
        seed: Episode i begins with `env.reset(seed=seed + i)`, and "random" draws with this seed:
            the same seed plays the same episodes. None: nothing is seeded.
        path: npz file for the successes, as `save_episodes` writes it. It is written when the
            recording ends. Where it exists already, only a complete recording replaces it; an
            incomplete one is written beside it, as NAME-unfinished.npz.
        failures_path: The same for the failures.
        keep_infos: Whether episodes hold the infos of their steps, which event functions may need.
            To be written they must be numbers, texts, lists and dicts of these.
        progress: Whether to show a progress bar.

    Returns:
        Successes and failures. If `max_attempts` are not enough, fewer successes than n, with a
        warning; also if the person at the keyboard left.

    Example:
        >>> lake = gym.make("FrozenLake-v1", is_slippery=False)
        >>> ways = iter([1, 1, 2, 2, 1, 2, 2, 2, 1, 1, 1, 2])
        >>> demos, failures = record(lake, lambda obs: next(ways), 2)
        >>> demos
        [Episode(6 steps, return 1, terminated), Episode(6 steps, return 1, terminated)]
        >>> len(record(lake, "random", 3, seed=0, success=lambda episode, info: True).successes)
        3
    """
    n, attempts = _check_counts(n, max_attempts)
    if hasattr(env, "num_envs"):
        raise ValueError(
            f"env is a vector environment ({type(env).__name__}); one that is not vectorised is "
            "needed: record with gym.make(…), train with as many as you like"
        )
    judge = _judge(success)
    outputs = [None if p is None else str(Path(p)) for p in (path, failures_path)]
    check_outputs(*outputs)
    found, numbers = Recording([], []), UnusableNumbers()
    foreign = ForeignActions(getattr(env, "action_space", None))
    with _player(policy, env, seed) as act, _kept(found, n, outputs) as kept:
        act = foreign.watched(act)
        bar = tqdm(total=n, desc="successes", disable=not progress)
        with bar:
            for i in range(attempts):
                start = None if seed is None else seed + i
                try:
                    episode, info = _play(env, act, start, keep_infos)
                except QuitError:
                    kept.left = True
                    break
                numbers.see(episode, i)
                good = judge(episode, info)
                kind = found.successes if good else found.failures
                if outputs[not good] is not None:  # now, not when all is played
                    check_storable(episode, kind[0] if kind else episode, f"episode {i}")
                kind.append(episode)
                kept.meanwhile()
                bar.set_postfix_str(f"{i + 1} episodes played")
                bar.update(int(good))
                if len(found.successes) == n:
                    break
    if len(found.successes) < n and not kept.left:
        warn(
            f"{len(found.successes)} of {n} successes in {attempts} episodes; raise max_attempts, "
            "or look at what counts as a success (success=…) and at the policy"
        )
    return found


def replay(
    env: gym.Env[Any, Any], episodes: Sequence[Episode], seeds: Sequence[int | None] | None = None
) -> list[Episode]:
    """Play the actions of episodes again; return the episodes as this environment shows them.

    For demonstrations that were recorded without the wrappers that a learner will see: with its
    progress, its sub-goal or the time beside the observation.

    Args:
        env: The environment, wrapped as the learner sees it.
        episodes: The episodes.
        seeds: With which each began: `record` with `seed` begins episode i with `seed + i`. None:
            the environment always begins in the same state.

    Raises:
        ValueError: If an episode ends at another step than before: it is not the same one.
    """
    seeds = [None] * len(episodes) if seeds is None else list(seeds)
    if len(seeds) != len(episodes):
        raise ValueError(f"there are {len(seeds)} seeds for {len(episodes)} episodes; give as many")
    out = []
    for k, (old, seed) in enumerate(zip(episodes, seeds, strict=True)):
        actions = iter(range(len(old)))

        def act(obs: Any, first: bool, old: Episode = old, actions: Iterator[int] = actions) -> Any:
            return _plain(tree_index(old.actions, next(actions)))

        try:
            new, _ = _play(env, act, seed, old.infos is not None)
        except StopIteration:
            raise ValueError(_differs(k, f"goes on after {len(old)} steps")) from None
        if len(new) != len(old):
            raise ValueError(_differs(k, f"ended after {len(new)} of {len(old)} steps"))
        out.append(new)
    return out


def _differs(k: int, how: str) -> str:
    return (
        f"episode {k}, played again, {how}: it is not the same. Give seeds=… with which the "
        "episodes began, and an environment that does the same for the same seed and actions"
    )


def _play(
    env: gym.Env[Any, Any], act: Callable[[Any, bool], Any], seed: int | None, keep_infos: bool
) -> tuple[Episode, Mapping[str, Any]]:
    """Return one episode and the info of its last step."""
    space = getattr(env, "observation_space", None)
    obs, info = begun(space, env.reset(seed=seed))
    observations, actions, rewards, infos = [copied(obs)], [], [], []
    terminated = truncated = False
    while not (terminated or truncated):
        action = act(obs, not actions)
        actions.append(copied(action))
        obs, reward, terminated, truncated, info = stepped(space, env.step(action))
        observations.append(copied(obs))
        rewards.append(reward)
        if keep_infos:
            infos.append(copied(dict(info)))
    ends, kept = (bool(terminated), bool(truncated)), infos if keep_infos else None
    return Episode(observations, actions, np.array(rewards), *ends, kept), info


def _check_counts(n: int, max_attempts: int | None) -> tuple[int, int]:
    for name, value in (("n", n), ("max_attempts", max_attempts)):
        if value is not None and (not isinstance(value, int | np.integer) or value < 1):
            raise ValueError(f"{name}={value!r}; a whole number from 1 on is needed")
    return int(n), _ATTEMPTS * int(n) if max_attempts is None else int(max_attempts)


def _judge(success: Success) -> Callable[[Episode, Mapping[str, Any]], bool]:
    """Return the function that says whether an episode is a success."""
    if success is None:

        def by_default(episode: Episode, info: Mapping[str, Any]) -> bool:
            said = [bool(np.all(info[key])) for key in _SAID_SO if key in info]
            return said[0] if said else episode.ret > 0

        return by_default
    if isinstance(success, str):
        key = success

        def by_info(episode: Episode, info: Mapping[str, Any]) -> bool:
            if key not in info:
                raise ValueError(
                    f"the last step's info has no {key!r}; it has {sorted(map(str, info))}"
                )
            return bool(np.all(info[key]))

        return by_info
    if callable(success):
        return lambda episode, info: bool(success(episode, info))
    if isinstance(success, bool) or not isinstance(success, int | float | np.number):
        raise ValueError(
            f"success={success!r}; a number (the least return), the name of an entry of info, or a "
            "function (episode, info) -> bool is needed"
        )
    return lambda episode, info: episode.ret >= success


@contextmanager
def _player(
    policy: Policy, env: gym.Env[Any, Any], seed: int | None
) -> Iterator[Callable[[Any, bool], Any]]:
    """Give a function of an observation, and whether it is an episode's first, to the action."""
    if isinstance(policy, Keyboard):
        with policy.at(env) as act:
            yield lambda obs, first: act()
    elif isinstance(policy, str):
        if policy != "random":
            raise ValueError(f'policy={policy!r} is not known; "random" is the only one by name')
        space = copy.deepcopy(env.action_space)
        if seed is not None:
            space.seed(seed)
        yield lambda obs, first: space.sample()
    elif hasattr(policy, "predict"):
        yield _Predicting(policy)
    elif callable(policy):
        yield lambda obs, first: _plain(policy(obs))
    else:
        raise ValueError(
            f"policy is a {type(policy).__name__}; a function of the observation, a model of "
            'Stable-Baselines3, "random" or ar.Keyboard({key: action}) is needed'
        )


class _Predicting:
    """A model of Stable-Baselines3, recurrent ones included."""

    def __init__(self, model: Any) -> None:
        self.model, self.state = model, None

    def __call__(self, obs: Any, first: bool) -> Any:
        state = None if first else self.state
        action, self.state = self.model.predict(
            obs, state=state, episode_start=np.array([first]), deterministic=False
        )
        return _plain(action)


def _plain(action: Any) -> Any:
    """Return an array of no axes as a number, which environments can look up in their tables."""
    return action[()] if isinstance(action, np.ndarray) and action.ndim == 0 else action


class _Kept:
    """What a recording keeps on disk while it runs.

    Attributes:
        left: Whether it was ended by the person at the keyboard.
        beside: Where an incomplete recording is kept, for each file of a complete one.
    """

    def __init__(self, found: Recording, outputs: Sequence[str | None]) -> None:
        self.left = False
        self._found, self._outputs = found, outputs
        self._due = time.monotonic() + _EVERY
        self.beside = {path: _unfinished(path) for path in outputs if path is not None}
        self._written: set[str] = set()

    def meanwhile(self) -> None:
        """Write what there is so far, if that was not done for a while."""
        began = time.monotonic()
        if began < self._due:
            return
        for path, episodes in zip(self._outputs, self._found, strict=True):
            if path is not None and episodes:
                save_episodes(self.beside[path], episodes)
                self._written.add(str(self.beside[path]))
        now = time.monotonic()
        self._due = now + max(_EVERY, 10 * (now - began))

    def clear(self, written: Sequence[str]) -> None:
        """Delete what was written meanwhile, as the episodes are in the files `written` now."""
        for path in self._written - set(written):
            Path(path).unlink(missing_ok=True)


@contextmanager
def _kept(found: Recording, n: int, outputs: Sequence[str | None]) -> Iterator[_Kept]:
    """Write what was recorded, however recording ends."""
    kept = _Kept(found, outputs)
    with interrupt_on_signal():
        try:
            yield kept
        except BaseException as error:
            played = f"{len(found.successes)} successes and {len(found.failures)} failures"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AlignRudderWarning)  # the note says it
                written = _write(found, outputs, kept.beside)
            kept.clear(written)
            where = f"are in {', '.join(written)}" if written else "are lost: give path=…"
            if any(found):
                error.add_note(f"recorded before: {played}, which {where}")
            raise
    complete = len(found.successes) == n
    kept.clear(_write(found, outputs, {} if complete else kept.beside))


def _write(
    found: Recording, outputs: Sequence[str | None], beside: Mapping[str, Path]
) -> list[str]:
    """Write the files that were asked for; return their names.

    An earlier file stays if there is a name `beside` it.
    """
    written = []
    for path, episodes in zip(outputs, found, strict=True):
        if path is None or not episodes:
            continue
        target = Path(path)
        if target.exists():
            target = beside.get(path, target)
        save_episodes(target, episodes)
        written.append(str(target))
    if moved := [name for name in written if name not in outputs]:
        warn(
            f"what was recorded is not complete and is in {', '.join(moved)}; the earlier "
            "recording stays",
            stacklevel=4,
        )
    return written


def _unfinished(path: str) -> Path:
    """Return a free name for an incomplete recording: what a killed one has left is not lost."""
    target = Path(path)
    names = (f"-{k}" if k > 1 else "" for k in count(1))
    beside = (target.with_name(f"{target.stem}-unfinished{k}{target.suffix}") for k in names)
    return next(name for name in beside if not name.exists())
