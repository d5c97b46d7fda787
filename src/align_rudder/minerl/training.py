"""The paper's Minecraft training: cloning by sub-task, fine-tuning by sub-task, the manager.

Without environments only the first stage runs. Every finished agent is a file; a training that is
stopped goes on with what is missing, from where that was saved last.

Several processes, here or on a Ray cluster, train on one folder: sub-agents are cloned apart, and
judged in their order while others are still cloned. They are fine-tuned in rounds: in a round the
clones, or the agents of the rounds before, play to each sub-task. So none waits for another, and
the result does not depend on how many train at once. Where episodes do not come to a sub-task, its
best so far is used and marked as unfinished; it is taken up in the next round, when others have
learned more, and by the same command later.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tqdm import tqdm

from align_rudder._moved import attribute_of
from align_rudder.files import Many, Table, Text, Whole, check_values, read_json, write_json
from align_rudder.hierarchy.external import TrackedEnv
from align_rudder.hierarchy.fine_tuning import FineTuning
from align_rudder.hierarchy.ppo import without_later
from align_rudder.hierarchy.practice import ManagerPractice, scout
from align_rudder.minerl.cache import ArrayCache
from align_rudder.minerl.cloning import Cloning
from align_rudder.minerl.crashes import CrashCounts
from align_rudder.minerl.networks import FRAMES, new_manager
from align_rudder.minerl.place import Games, Place
from align_rudder.minerl.samples import FRAME_SKIP
from align_rudder.minerl.segments import PoolSubTask
from align_rudder.minerl.sub_agents import (
    CloningJob,
    clone,
    clone_apart,
    judge,
    load_agents,
    practise,
    say_trained,
    tune,
    tune_apart,
)
from align_rudder.runs.checkpoint import digest, notes_of
from align_rudder.runs.claim import claim
from align_rudder.runs.interrupt import Stop, stop_on_signal
from align_rudder.runs.lock import only_here
from align_rudder.runs.rows import Rows
from align_rudder.runs.workers import Job, Workers

__all__ = ["Games", "MineRLTraining", "Trained", "frames_of", "frames_text", "train"]

if not TYPE_CHECKING:
    __getattr__ = attribute_of(__name__)

PAPER_FRAMES = 8_000_000
"""Steps of the environment that the MineRL challenge allowed, and the paper keeps to."""
_ROUND = "round.json"


@dataclass(frozen=True)
class MineRLTraining:
    """All that the result of a training depends on, beside the data.

    Attributes:
        seed: Seed.
        skip: Frames for which an action is held.
        frames: Number of most recent frames that the networks see.
        cloning: Settings of behavioural cloning.
        tuning: Settings of PPO for the sub-agents.
        managing: Settings of PPO for the manager.
    """

    seed: int = 0
    skip: int = FRAME_SKIP
    frames: int = FRAMES
    cloning: Cloning = field(default_factory=Cloning)
    tuning: FineTuning = field(default_factory=FineTuning)
    managing: FineTuning = field(default_factory=FineTuning)

    def __post_init__(self) -> None:
        check_values(skip=(self.skip, Whole(1)), frames=(self.frames, Whole(1)))

    def configuration(self, subtasks: Sequence[PoolSubTask]) -> dict[str, Any]:
        """Return what the files of a folder must agree on."""
        parts = [
            [(t.task, t.name, start, stop) for t, start, stop in task.segments] for task in subtasks
        ]
        data = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
        goals = [str(task.goal.symbol) for task in subtasks]
        settings = without_later(asdict(self))
        return json.loads(json.dumps({**settings, "goals": goals, "segments": data}))


class Trained(NamedTuple):
    """What a training came to.

    Attributes:
        made: How many agents were finished; those that were there already are not counted.
        unfinished: Sub-tasks whose sub-agents are not finished.
        crashes: How often games crashed.
    """

    made: int
    unfinished: list[int]
    crashes: CrashCounts


def train(
    subtasks: Sequence[PoolSubTask],
    folder: str | Path,
    cache: ArrayCache,
    training: MineRLTraining,
    games: Games | None = None,
    workers: Workers | None = None,
    *,
    world: Mapping[str, Any] | None = None,
    progress: bool = False,
) -> Trained:
    """Train all sub-agents, and the manager if there are environments.

    Args:
        subtasks: The sub-tasks with their segments, from `pipeline.segments` or `load_segments`.
        folder: Where agents and logs are kept.
        cache: Where pictures are kept.
        training: Settings.
        games: Environments to fine-tune in.
        workers: Where sub-agents are trained, and how many at once; each has games of its own. On
            a Ray cluster all machines must see the folder, the cache and the data. One after the
            other in this process if left out.
        world: What the environments are, as JSON; agents fine-tuned in another one are refused.
        progress: Whether to show progress bars.
    """
    folder = Path(folder)
    for task in subtasks:
        if not task.segments:
            raise ValueError(
                f"no trajectory reaches the sub-goal {str(task.goal.symbol)!r}, so there is "
                "nothing to clone; give the data that the model was fitted to"
            )
    with only_here(folder), ExitStack() as stack:
        configuration = training.configuration(subtasks)
        claim(folder, configuration, file="training.json", empty=not any(folder.glob("*.npz")))
        if games is not None and world is not None:
            claim(folder, world, file="world.json", empty=not (folder / "world.json").exists())
        place = Place(folder.resolve(), configuration, training.seed, len(subtasks), progress)
        stop = stack.enter_context(stop_on_signal(file=place.stop_file))
        trainer = _Trainer(place, training, subtasks, cache, games, workers or Workers(1), stop)
        return trainer.run()


def frames_of(folder: str | Path, skip: int) -> dict[str, int]:
    """Return the frames that a training took in environments, by what they were for.

    Every agent's file notes its steps, and what is under way too. Steps that were done again after
    a crash, and those of work that was lost, are not among them.

    Args:
        folder: The folder of the training.
        skip: Frames of a step, at most.
    """
    counts: Counter[str] = Counter()
    for path in sorted(Path(folder).glob("*.npz")):
        kind = path.name.removeprefix("unfinished-")
        if kind != path.name and (path.parent / kind).exists():
            continue  # the agent in the other file is from the same training
        if kind.startswith(("cloned-", "agent-", "manager")):
            counts.update(notes_of(path).get("counts", {}))
    return {purpose: steps * skip for purpose, steps in sorted(counts.items())}


def frames_text(frames: Mapping[str, int]) -> str:
    """Return what `frames_of` found in words.

    Example:
        >>> print(frames_text({"judged": 200_000, "practised": 1_000_000}))
        1,200,000 frames were played, 15 % of the 8,000,000 that the paper allows itself:
          200,000 judged, 1,000,000 practised
    """
    total = sum(frames.values())
    if not total:
        return "no frame was played; the paper allows itself 8,000,000"
    parts = ", ".join(f"{n:,} {purpose}" for purpose, n in frames.items())
    return (
        f"{total:,} frames were played, {100 * total / PAPER_FRAMES:.2g} % of the "
        f"{PAPER_FRAMES:,} that the paper allows itself:\n  {parts}"
    )


@dataclass
class _Trainer:
    """Makes the agents of a folder; what is there is kept."""

    place: Place
    training: MineRLTraining
    subtasks: Sequence[PoolSubTask]
    cache: ArrayCache
    games: Games | None
    workers: Workers
    stop: Stop
    made: int = 0
    crashes: CrashCounts = field(default_factory=CrashCounts)
    envs: list[TrackedEnv] = field(default_factory=list)

    def run(self) -> Trained:
        """Make all that is missing."""
        self.place.check()
        if self.games is None:
            self.clone_all()
            return Trained(self.made, [], self.crashes)
        with self._playing():
            self.clone_all()
            if not self._apart:
                self.tune_all()
                self.manage()
        if self._apart:
            self.tune_all()  # in games of their own
            with self._playing():
                self.manage()
        return Trained(self.made, self._unfinished(), self.crashes)

    @property
    def _apart(self) -> bool:
        return self.workers.jobs != 1 or self.workers.backend != "loky"

    @contextmanager
    def _playing(self) -> Any:
        """Open the environments."""
        assert self.games is not None
        with self.games.playing(self.place.folder / "crashes.csv") as self.envs:
            try:
                yield
            finally:
                self.crashes += CrashCounts.of(env.env for env in self.envs)

    def clone_all(self) -> None:
        """Make all clones; where there are environments, judge them there."""
        missing = [k for k in range(self.place.n) if not self.place.has(f"cloned-{k}.npz")]
        settings = self.training
        seen, to_judge = (settings.skip, settings.frames), self.games is not None

        def job(k: int) -> CloningJob:
            segments = self.subtasks[k].segments
            return CloningJob(self.place, k, segments, self.cache, settings.cloning, seen, to_judge)

        if not self._apart:
            for k in missing:
                self._stop_if_asked()
                clone(job(k), self.stop)
                self._judge(k)
                self._stop_if_asked()
            return
        learned: set[int] = set()

        def judge_next(k: int) -> None:
            learned.add(k)
            while missing and missing[0] in learned and not self.stop.asked:
                self._judge(missing.pop(0))

        jobs = [(clone_apart, (job(k),)) for k in missing]
        self._do_apart(jobs, "sub-agents cloned", judge_next)

    def _judge(self, k: int) -> None:
        """Choose a clone, if that is still to be done."""
        chosen = True
        if self.games is not None:
            chosen = judge(
                self.place,
                k,
                load_agents(self.place, [f"cloned-{j}.npz" for j in range(k)]),
                self.envs,
                self.training.tuning,
                self.place.replays(),
                self.stop,
            )
        self.made += chosen

    def tune_all(self) -> None:
        """Fine-tune all sub-agents, in rounds, until a round finishes none."""
        while todo := self._unfinished():
            players = self._players(todo)
            if self._apart:
                tuning = self.training.tuning
                jobs = [(tune_apart, (self.place, k, players, self.games, tuning)) for k in todo]
                self._do_apart(
                    jobs,
                    "sub-agents fine-tuned",
                    lambda k: say_trained(self.place, f"agent-{k}.npz"),
                )
            else:
                for k in todo:
                    self._stop_if_asked()
                    tune(self.place, k, players, self.envs, self.training.tuning, self.stop)
            self._end_round()
            left = self._unfinished()
            self.made += len(todo) - len(left)
            if len(left) == len(todo):
                return

    def _unfinished(self) -> list[int]:
        """Return the sub-tasks whose sub-agents are not fine-tuned to their end."""
        return [
            k
            for k in range(self.place.n)
            if not self.place.has(f"agent-{k}.npz")
            or "unreached" in notes_of(self.place.folder / f"agent-{k}.npz")
        ]

    def _players(self, todo: Sequence[int]) -> list[str]:
        """Return who plays in this round; when it begins, they record where sub-tasks begin."""
        path = self.place.folder / _ROUND
        if path.is_file():
            kind = Table({"players": Many(Text())})
            return read_json(path, kind, remedy="delete it: a new round is begun")["players"]
        names = [f"{'cloned' if k in todo else 'agent'}-{k}.npz" for k in range(self.place.n)]
        replays, agents = self.place.replays(), load_agents(self.place, names)
        # Where some were not reached before, other tries are made.
        tries = sum(
            notes_of(self.place.folder / f"agent-{k}.npz").get("tries", 0)
            for k in todo
            if self.place.has(f"agent-{k}.npz")
        )
        rng = np.random.default_rng([self.place.seed, self.place.n, *([tries] if tries else [])])
        with self._playing() if self._apart else nullcontext():
            tuning = self.training.tuning
            scout(agents, self.envs, replays, tuning, rng, lambda: self.stop.asked)
        self.place.save_replays(replays)
        self._stop_if_asked()
        write_json(path, {"players": names})
        return names

    def _end_round(self) -> None:
        """Put together what was recorded in a round."""
        replays = self.place.replays()
        for k in range(self.place.n):
            replays.take(self.place.replays(f"replays-{k}.npz"))
        self.place.save_replays(replays)
        self.place.drop("replays-*.npz")
        self.place.drop(_ROUND)

    def manage(self) -> None:
        """Train the manager of the sub-agents; if these learned more since, it learns on too."""
        agents = load_agents(self.place, [f"agent-{k}.npz" for k in range(self.place.n)])
        new, of = new_manager(self.place.key(1), len(agents)), digest(agents)
        spent: dict[str, int] = {}
        if self.place.has("manager.npz"):
            before, notes = self.place.load("manager.npz", new)
            if notes.get("agents", of) == of:
                return
            new, spent = before, notes.get("counts", {})
        self._stop_if_asked()
        practice, tuning = ManagerPractice(new, agents), self.training.managing
        found = practise(
            self.place,
            "manager.npz",
            practice,
            self.envs,
            tuning,
            self.stop,
            notes={"agents": of, "counts": spent},
        )
        Rows(self.place.folder / "tuning-manager.csv", ["steps", "rate"]).write(found.curve)
        self.made += 1

    def _do_apart(
        self, jobs: Sequence[Job], what: str, then: Callable[[int], None] | None = None
    ) -> None:
        """Have other processes do jobs; when anything fails, what is under way is saved first.

        Args:
            jobs: The jobs, which return `Done`.
            what: What they are called, in the plural.
            then: Called with each sub-task that is done.
        """
        error: Exception | None = None
        with tqdm(total=len(jobs), desc=what, disable=not self.place.progress) as bar:
            for done in self.workers.results(jobs):
                self.crashes += done.crashes
                failed = done.error
                if failed is None and not done.stopped:
                    bar.update()
                    try:
                        if then is not None:
                            then(done.subtask)
                    except Exception as met:
                        failed = met
                if failed is not None:
                    error, self.stop.asked = error or failed, True
        if error is not None:
            raise error
        self._stop_if_asked()

    def _stop_if_asked(self) -> None:
        if self.stop.asked:
            raise self.stop.interruption()
