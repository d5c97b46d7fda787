"""One sub-agent of a training: cloned, judged, fine-tuned, in whichever process has the time."""

from __future__ import annotations

import logging
import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from align_rudder._warnings import AlignRudderWarning, warn
from align_rudder.hierarchy.external import Players, TrackedEnv, UnreachedError
from align_rudder.hierarchy.fine_tuning import FineTuning, TunedAgent, fine_tune
from align_rudder.hierarchy.ppo import Losses
from align_rudder.hierarchy.practice import Practice, SubtaskPractice, success_rate
from align_rudder.hierarchy.replays import Replays
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.cloning import Cloning, clone_sub_agent
from align_rudder.minerl.crashes import CrashCounts
from align_rudder.minerl.networks import new_sub_agent
from align_rudder.minerl.place import Games, Place
from align_rudder.minerl.samples import Samples
from align_rudder.minerl.segments import PoolSegment
from align_rudder.runs.checkpoint import notes_of
from align_rudder.runs.interrupt import Stop, stop_on_file
from align_rudder.runs.rows import Rows

__all__ = [
    "CloningJob",
    "Done",
    "clone",
    "clone_apart",
    "judge",
    "load_agents",
    "practise",
    "say_trained",
    "tune",
    "tune_apart",
]

_logger = logging.getLogger(__name__)
_JUDGED = ["epoch", "score"]


class Done(NamedTuple):
    """What a process says of the sub-agent that it trained.

    Attributes:
        subtask: The sub-task.
        stopped: Whether it was asked to stop before it was done.
        error: What broke it off.
        crashes: How often its games crashed.
    """

    subtask: int
    stopped: bool = False
    error: Exception | None = None
    crashes: CrashCounts = CrashCounts()


def new_clone(place: Place, k: int) -> Any:
    """Return a sub-agent that has learned nothing."""
    return new_sub_agent(place.key(0, k))


class CloningJob(NamedTuple):
    """What is needed to clone a sub-agent, wherever that is done.

    Attributes:
        place: The folder.
        k: The sub-task.
        segments: Its segments.
        cache: Where pictures are kept.
        cloning: Settings.
        seen: Frames for which an action is held, and frames that are seen.
        to_judge: Whether the agents of all evaluations are kept, for `judge`; if not, the best by
            held-out loss is the clone.
    """

    place: Place
    k: int
    segments: Sequence[PoolSegment]
    cache: ArrayCache
    cloning: Cloning
    seen: tuple[int, int]
    to_judge: bool


def clone(job: CloningJob, stop: Stop) -> None:
    """Clone a sub-agent, until it is asked to stop."""
    place, k, segments, cache, cloning, seen, to_judge = job
    new, checkpoint = new_clone(place, k), place.checkpoint(f"cloned-{k}.npz", stop)
    with place.bar(f"cloning {k + 1} of {place.n}", cloning.epochs) as show:
        found = clone_sub_agent(
            new,
            Samples(segments, cache, *seen),
            cloning,
            place.seed + k,
            None,
            lambda epoch, loss: show(epoch, f"loss {loss:.3f}"),
            checkpoint,
            partial(_keep, place, k) if to_judge else None,
        )
    _curve(place, k).write(found.curve)
    if to_judge and not place.has(f"candidate-{k}-{cloning.epochs}.npz"):
        _keep(place, k, cloning.epochs, found.agent)  # learned before there were environments
    if not to_judge:
        place.save(f"cloned-{k}.npz", found.agent)
        checkpoint.remove()
        _logger.info("sub-agent %d is cloned", k)


def _curve(place: Place, k: int) -> Rows:
    return Rows(place.folder / f"cloning-{k}.csv", ["epoch", "loss", "score"])


def _keep(place: Place, k: int, epoch: int, agent: Any) -> None:
    place.save(f"candidate-{k}-{epoch}.npz", agent)


def judge(
    place: Place,
    k: int,
    before: Sequence[Any],
    envs: Sequence[TrackedEnv],
    tuning: FineTuning,
    replays: Replays,
    stop: Stop,
) -> bool:
    """Choose the clone of a sub-task: the agent that solves it most often, of these the last.

    Where the clones before it do not come to the sub-task, none can be tried, and it is the last.
    Returns False if it was asked to stop before; what was judged is kept.
    """
    rows, new = Rows(place.folder / f"judging-{k}.csv", _JUDGED), new_clone(place, k)
    scores = {int(row["epoch"]): float(row["score"]) for row in rows.read()}
    started = [Counter(env.counts) for env in envs]
    epochs = sorted(int(path.stem.split("-")[2]) for path in place.folder.glob(f"candidate-{k}-*"))
    with place.bar(f"judging {k + 1} of {place.n}", len(epochs)) as show:
        for i, epoch in enumerate(epochs):
            if epoch in scores:
                continue
            if stop.asked:
                return False
            agent, _ = place.load(f"candidate-{k}-{epoch}.npz", new)
            rng = np.random.default_rng([place.seed, k, epoch])
            try:
                everyone = Players([*before, agent])
                scores[epoch] = success_rate(envs, k, replays, everyone, rng, tuning)
            except UnreachedError:
                break
            finally:
                place.save_replays(replays)
            rows.append([epoch, scores[epoch]])
            show(i + 1, f"successes {scores[epoch]:.2f}")
    best = max(epochs, key=lambda epoch: (scores.get(epoch, -1.0), epoch))
    counts = sum((env.counts - had for env, had in zip(envs, started, strict=True)), Counter[str]())
    chosen, _ = place.load(f"candidate-{k}-{best}.npz", new)
    learned = [(int(row["epoch"]), row["loss"]) for row in _curve(place, k).read()]
    _curve(place, k).write([(at, loss, scores.get(at, math.nan)) for at, loss in learned])
    place.save(f"cloned-{k}.npz", chosen, {"counts": dict(sorted(counts.items())), "epoch": best})
    for pattern in (f"candidate-{k}-*.npz", f"unfinished-cloned-{k}.npz", f"judging-{k}.csv"):
        place.drop(pattern)
    _logger.info("sub-agent %d is cloned", k)
    return True


def load_agents(place: Place, names: Sequence[str]) -> list[Any]:
    """Return the sub-agents in some files, one for each sub-task."""
    return [place.load(name, new_clone(place, k))[0] for k, name in enumerate(names)]


def tune(
    place: Place,
    k: int,
    players: Sequence[str],
    envs: Sequence[TrackedEnv],
    tuning: FineTuning,
    stop: Stop,
) -> None:
    """Fine-tune the sub-agent of a sub-task, or come as far as its episodes can be begun.

    Args:
        place: The folder.
        k: The sub-task.
        players: The files of the sub-agents that play to it, one for each sub-task.
        envs: Environments.
        tuning: Settings.
        stop: Whether to stop.
    """
    own = f"replays-{k}.npz"
    replays = place.replays(own if place.has(own) else "replays.npz")
    practice = SubtaskPractice(k, load_agents(place, players), replays)
    found = practise(
        place, f"agent-{k}.npz", practice, envs, tuning, stop, partial(_save, place, replays, own)
    )
    Rows(place.folder / f"tuning-{k}.csv", ["steps", "rate"]).write(found.curve)


def _save(place: Place, replays: Replays, name: str) -> None:
    place.save_replays(replays, name)


def practise(
    place: Place,
    name: str,
    practice: Practice,
    envs: Sequence[TrackedEnv],
    tuning: FineTuning,
    stop: Stop,
    beside: Callable[[], None] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> TunedAgent:
    """Train an agent by PPO, show how far it is, and save it.

    Args:
        place: The folder.
        name: The file of the agent.
        practice: What it practises.
        envs: Environments.
        tuning: Settings.
        stop: Whether to stop.
        beside: Called to save what else is needed, with each checkpoint and at the end.
        notes: What else is noted of it; to its counts those of the training are added.
    """
    checkpoint = place.checkpoint(name, stop, beside)
    k = practice.subtask if isinstance(practice, SubtaskPractice) else None
    what = "manager" if k is None else f"fine-tuning {k + 1} of {place.n}"
    with place.bar(what, tuning.steps) as show:

        def log(steps: int, losses: Losses, reward: float) -> None:
            show(steps, f"reward {reward:.4f}")

        found = fine_tune(practice, envs, tuning, place.seed + (k or 0), log, checkpoint)
    unreached: dict[str, Any] = {}
    if found.unreached is not None:
        after = f"{found.steps:,} of {tuning.steps:,} steps"
        unreached = {"unreached": found.unreached, "after": after, "tries": found.tries}
    counts = Counter(found.counts) + Counter((notes or {}).get("counts", {}))
    place.save(
        name, found.agent, {**(notes or {}), **unreached, "counts": dict(sorted(counts.items()))}
    )
    if beside is not None:
        beside()
    if not unreached:
        checkpoint.remove()
    say_trained(place, name)
    return found


def say_trained(place: Place, name: str) -> None:
    """Say that an agent is trained, or why it is not finished."""
    notes = notes_of(place.folder / name)
    if "unreached" in notes:
        warn(
            f"{name} is not finished after {notes['after']}: {notes['unreached']}. The best so far "
            "plays for it; the same command takes it up again"
        )
    else:
        _logger.info("%s is trained", name)


def clone_apart(job: CloningJob) -> Done:
    """Clone a sub-agent in a process of its own; see `clone`."""
    with stop_on_file(job.place.stop_file) as stop:
        return _told(job.k, stop, lambda: clone(job, stop))


def tune_apart(
    place: Place, k: int, players: Sequence[str], games: Games, tuning: FineTuning
) -> Done:
    """Fine-tune a sub-agent in a process of its own, with games of its own; see `tune`."""
    with stop_on_file(place.stop_file) as stop:
        envs: list[TrackedEnv] = []

        def run() -> None:
            with games.playing(place.folder / f"crashes-{k}.csv") as opened:
                envs.extend(opened)
                # What there is to say is said by the process that the user sees.
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", AlignRudderWarning)
                    tune(place, k, players, opened, tuning, stop)

        return _told(k, stop, run)._replace(crashes=CrashCounts.of(env.env for env in envs))


def _told(k: int, stop: Stop, run: Callable[[], None]) -> Done:
    """Return how it went: what one process meets does not throw away the work of others."""
    if stop.asked:
        return Done(k, stopped=True)
    try:
        run()
    except KeyboardInterrupt:
        return Done(k, stopped=True)
    except Exception as error:
        return Done(k, error=error)
    return Done(k)
