"""`align-rudder diamond demos | train | evaluate`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import tyro

from align_rudder.cli.options import check_figure, check_least, check_seed
from align_rudder.files import check_outputs, write_json, write_whole
from align_rudder.runs.progress import bars_or_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align_rudder.hierarchy.aligned import AlignmentTables
    from align_rudder.model import AlignRudder
    from align_rudder.tasks.diamond.demos import Demonstration
    from align_rudder.tasks.diamond.task import DiamondTask

__all__ = ["Diamond"]

Method = Literal[
    "align-rudder",
    "separate",
    "own-subtask",
    "no-redistribution",
    "equal-reward",
    "no-cloning",
    "ppo-dense",
    "ppo-diamond",
]
Device = Literal["auto", "gpu", "cpu"]


class Prepared(NamedTuple):
    """The task, demonstrations, and what the alignment made of them."""

    task: DiamondTask
    demos: list[Demonstration]
    model: AlignRudder
    tables: AlignmentTables

    @property
    def goals(self) -> list[str]:
        """Names of the sub-goals."""
        return [str(goal.symbol) for goal in self.model.subgoals_]


def prepare(path: str | None = None) -> Prepared:
    """Load demonstrations, those that come with the package if no file is given, and align them."""
    from align_rudder.hierarchy.aligned import tables_of
    from align_rudder.tasks.diamond.demos import fit_demonstrations, load_demonstrations
    from align_rudder.tasks.diamond.task import DiamondTask

    task = DiamondTask()
    own = files("align_rudder.tasks.diamond") / "demonstrations.npz"
    demos = load_demonstrations(str(own) if path is None else path, task)
    model = fit_demonstrations(task, demos)
    return Prepared(task, demos, model, tables_of(model))


@dataclass
class Demos:
    """Let the scripted expert play, keep the shortest runs that found the diamond, align them."""

    output: Annotated[str, tyro.conf.arg(aliases=["-o"])] = "demonstrations.npz"
    """File for the demonstrations."""
    n: int = 10
    """How many to keep."""
    worlds: int = 512
    """New worlds to play."""
    seed: int = 0
    """Seed of the worlds."""
    max_steps: int = 2500
    """Steps after which a run is given up."""
    keep: int = 200
    """The longest run whose states are kept in memory; a state takes 25 kB."""
    episodes: str | None = None
    """Also write them to this npz file as episodes of `AlignRudder/Diamond-v0`."""
    model: str | None = None
    """Also save the fitted model to this npz file."""
    figure: str | None = None
    """Also draw the alignment into this file (.png, .svg, .pdf)."""
    json: str | None = None
    """Also write the numbers as JSON to this file."""

    def run(self) -> None:
        """Play, choose, save, show."""
        from align_rudder.episodes import save_episodes
        from align_rudder.summary import as_data, as_text
        from align_rudder.tasks.diamond.demos import (
            fit_demonstrations,
            play_expert,
            save_demonstrations,
            shortest,
        )
        from align_rudder.tasks.diamond.task import DiamondTask

        check_outputs(self.output, self.episodes, self.model, self.figure, self.json)
        check_least(self, n=2, worlds=1, max_steps=1, keep=1)
        check_seed(self.seed)
        check_figure(self.figure)
        task = DiamondTask()
        shown = sys.stderr.isatty()
        runs = play_expert(task, self.worlds, self.seed, self.max_steps, self.keep, shown)
        solved = sorted(len(r.actions) for r in runs if r.solved)
        median = f", in {np.median(solved):.0f} steps (median)" if solved else ""
        share = len(solved) / len(runs)
        print(f"{len(solved)} of {len(runs)} runs found a diamond ({share:.1%}){median}")
        kept = sum(run.solved and run.states is not None for run in runs)
        if 0 < kept < self.n:
            path = Path(self.output)  # what is there already may be better
            path = path.with_stem(f"{path.stem}-{kept}") if path.exists() else path
            save_demonstrations(path, shortest(runs, kept))
            print(f"{kept} of them are in {path}", file=sys.stderr)
        demos = shortest(runs, self.n)
        save_demonstrations(self.output, demos)
        lengths = [len(demo.actions) for demo in demos]
        print(f"the {self.n} shortest, of {lengths} steps, are in {self.output}\n")
        model = fit_demonstrations(task, demos)
        print(as_text(model))
        if self.episodes is not None:
            save_episodes(self.episodes, [demo.episode(task, vector=True) for demo in demos])
        if self.model is not None:
            model.save(self.model)
        if self.figure is not None:
            _draw_alignment(model, self.figure)
        found = {"worlds": len(runs), "solved": len(solved), "steps": solved, "lengths": lengths}
        write_json(self.json, {**found, "model": as_data(model)})


@dataclass
class Train:
    """Train sub-agents and main agent, or go on with it; the folder keeps agents and logs."""

    goes_on: ClassVar[bool] = True
    method: tyro.conf.Positional[Method] = "align-rudder"
    """What to train: ours, ours with a part left out, or plain PPO."""
    out: Annotated[str | None, tyro.conf.arg(aliases=["-o"])] = None
    """Folder; runs/METHOD-STEPS-SEED if left out."""
    steps: float = 8e6
    """Environment steps in all, those of demonstrations and of evaluations included."""
    seed: int = 0
    """Seed."""
    demos: str | None = None
    """Demonstrations, as `diamond demos` writes them; those of the package if left out."""
    device: Device = "auto"
    """Where to train; gpu fails if there is none."""
    envs: int | None = None
    """Environments at once; 512, or 4,096 from 50 M steps on, if left out."""
    gamma: float | None = None
    """Discount; 0.995, or 0.997 from 50 M steps on, if left out."""
    entropy: float | None = None
    """Weight of the entropy; 0.005 if left out."""
    hidden: tuple[int, ...] | None = None
    """Layers of the networks; 512 512 if left out, 128 128 for a network for each sub-task."""
    pool: int | None = None
    """New worlds to begin in; 2,048, or 6,144 from 50 M steps on, if left out."""
    worlds: int | None = None
    """New worlds of each evaluation; 512, or 1,024 from 50 M steps on, if left out."""
    evaluations: int | None = None
    """Evaluations during training; 5, or 16 from 50 M steps on, if left out."""
    coordinator: str | None = None
    """Address of the first process (host:port), where several train together."""
    processes: int = 1
    """Number of processes."""
    process: int = 0
    """Which of them this is."""

    def run(self) -> None:
        """Train."""
        from align_rudder.hierarchy.devices import find_devices
        from align_rudder.hierarchy.training import train
        from align_rudder.studies.diamond.methods import training_of

        if not (1 <= self.steps <= 1e12 and self.steps == int(self.steps)):
            raise ValueError(f"--steps is {self.steps}; a whole number from 1 to 1e12 is needed")
        check_seed(self.seed)
        check_least(self, envs=1, pool=1, worlds=1, evaluations=1)
        if self.hidden is not None and (not self.hidden or min(self.hidden) < 1):
            raise ValueError(f"--hidden is {self.hidden}; layers of at least 1 unit are needed")
        if self.out is not None and not self.out.strip():
            raise ValueError("--out is empty; give a folder, or leave it out")
        training = training_of(self.method, int(self.steps), self.seed)
        given: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("hidden", "pool", "worlds", "evaluations")
            if getattr(self, name) is not None
        }
        chosen = {"n_envs": self.envs, "gamma": self.gamma, "ent_coef": self.entropy}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        training = replace(training, ppo=replace(training.ppo, **chosen), **given)
        devices = find_devices(self.device, self.coordinator, self.processes, self.process)
        known = prepare(self.demos)
        folder = self.out or f"runs/{self.method}-{self.steps:.3g}-{self.seed}".replace("+", "")
        runs = [(demo.states, demo.actions) for demo in known.demos]
        train(known.task, known.tables, runs, training, folder, devices, bars_or_lines())
        if devices.first:
            print(f"trained; see {folder}, or: align-rudder diamond evaluate {quote(folder)}")


@dataclass
class Evaluate:
    """Count how far trained agents come in new worlds; tables, figures and a video."""

    goes_on: ClassVar[bool] = True
    folders: tyro.conf.Positional[tuple[str, ...]]
    """Folders of trainings; several are compared. What was counted before is not counted again."""
    worlds: int = 10_000
    """New worlds; take a few hundred without a GPU."""
    seed: int = 1
    """Seed of the worlds."""
    max_steps: int | None = None
    """Limit of an episode; the task's 10,000 if left out."""
    last: bool = False
    """Count only who plays at the end, not the stages before: cloned, without a main agent."""
    demos: str | None = None
    """Demonstrations that the agents were trained with; those of the package if left out."""
    device: Device = "auto"
    """Where to play; gpu fails if there is none."""
    figures: str | None = None
    """Folder for figures: learning curves, alignment and, where clones were counted too (not with
    --last), sub-goals and curves of the sub-agents."""
    video: str | None = None
    """Also record a run of the first folder's agents that finds a diamond, if one of 16 does in
    1,000 steps, into this file (.gif)."""
    markdown: str | None = None
    """Also write the table of all methods as Markdown to this file."""
    json: str | None = None
    """Also write the counts as JSON to this file."""

    def run(self) -> None:
        """Play, count, show."""
        from align_rudder.hierarchy.devices import find_devices
        from align_rudder.studies.diamond.results import FILES, evaluate_folder, read_training
        from align_rudder.studies.diamond.tables import goals_table, results_table

        read = [f"{folder}/{name}" for folder in self.folders for name in FILES]
        check_outputs(self.json, self.video, self.markdown, inputs=read)
        if not self.folders:
            raise ValueError("give the folder of a training, as `diamond train` makes it")
        check_least(self, worlds=1, max_steps=1)
        check_seed(self.seed)
        if self.video is not None and not self.video.endswith(".gif"):
            raise ValueError(f"--video {self.video}: a name that ends with .gif is needed")
        if self.figures is not None:
            for path in (Path(self.figures), *Path(self.figures).parents):
                if path.is_file():
                    raise ValueError(f"--figures {self.figures}: {path} is a file; give a folder")
        for folder in self.folders:
            read_training(folder)
        if self.video is not None and not (Path(self.folders[0]) / "agent.npz").is_file():
            raise ValueError(
                f"{self.folders[0]} has no agents to record, as published results have none; "
                "train them, or leave out --video"
            )
        find_devices(self.device)
        known = prepare(self.demos)
        shown = sys.stderr.isatty()
        found = [
            evaluate_folder(
                folder,
                known.task,
                known.tables,
                known.goals,
                known.demos,
                self.worlds,
                self.seed,
                self.max_steps,
                shown,
                self.last,
            )
            for folder in self.folders
        ]
        print(results_table(found))
        print(goals_table(found[0]))
        write_json(self.json, found)
        if self.markdown is not None:
            text = results_table(found, markdown=True) + "\n"
            write_whole(self.markdown, lambda file: file.write(text.encode()))
        if self.figures is not None:
            self._draw(known, found)
        if self.video is not None:
            self._record(known, Path(self.folders[0]))

    def _draw(self, known: Prepared, found: Sequence[dict[str, Any]]) -> None:
        from align_rudder.studies.diamond import figures

        folder = Path(self.figures or ".")
        folder.mkdir(parents=True, exist_ok=True)
        _save(figures.learning_curves(self.folders), folder / "curves.png")
        paths = [Path(path).resolve() for path in self.folders]
        unique = len({path.name for path in paths}) == len(paths)
        for path, evaluation in zip(paths, found, strict=True):
            name = path.name if unique else f"{path.parent.name}-{path.name}"
            if "cloned" in evaluation["stages"]:
                _save(figures.subgoal_bars(evaluation), folder / f"{name}-subgoals.png")
                _save(figures.sub_agent_curves(path, known.goals), folder / f"{name}-agents.png")
        _draw_alignment(known.model, str(folder / "alignment.png"))
        print(f"figures are in {folder}")

    def _record(self, known: Prepared, folder: Path) -> None:
        import jax

        from align_rudder.studies.diamond.results import load_stage, read_training
        from align_rudder.studies.diamond.video import record, save_video

        task, agent = load_stage(folder, known.task, known.tables)
        with jax.default_matmul_precision(read_training(folder)[1].precision):
            run = record(task, agent, jax.random.key(self.seed))
        if run is None:
            print(f"no run of {folder} found a diamond; no video", file=sys.stderr)
            return
        save_video(str(self.video), run, known.goals)
        print(f"a run of {len(run.actions)} steps is in {self.video}")


def _save(figure: Any, path: str | Path) -> None:
    kind = Path(path).suffix.removeprefix(".") or "png"
    write_whole(path, lambda file: figure.savefig(file, format=kind, dpi=150))


def _draw_alignment(model: AlignRudder, path: str) -> None:
    from align_rudder.show.figures import consensus

    _save(consensus(model), path)


@dataclass
class Diamond:
    """ObtainDiamond on Craftax-Classic: demonstrations, sub-agents, main agent."""

    command: Annotated[
        Annotated[Demos, tyro.conf.subcommand("demos")]
        | Annotated[Train, tyro.conf.subcommand("train")]
        | Annotated[Evaluate, tyro.conf.subcommand("evaluate")],
        tyro.conf.arg(name=""),
    ] = field()

    def run(self) -> None:
        """Run the command."""
        self.command.run()
