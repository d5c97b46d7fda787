"""`align-rudder diamond demos | train | evaluate | watch | ship`."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import tyro

from align_rudder.cli.options import (
    OptionalOutput,
    Output,
    check_figure,
    check_least,
    check_options,
    check_seed,
)
from align_rudder.files import (
    Number,
    check_outputs,
    kind_like,
    write_figure,
    write_json,
    write_text,
)
from align_rudder.runs.progress import bars_or_lines
from align_rudder.studies.diamond.methods import (
    MORE,
    OURS,
    MethodName,
    train_method,
    training_of,
)

__all__ = ["Diamond"]

Device = Literal["auto", "gpu", "cpu"]


@dataclass
class Demos:
    """Let the scripted expert play, keep some runs that found the diamond, align them."""

    output: Output = "demonstrations.npz"
    """File for the demonstrations."""
    n: int = 10
    """How many to keep."""
    choose: Literal["first", "shortest"] = "first"
    """Which: those of the first worlds, however long they are, or the shortest."""
    noise: float = 0.0
    """Share of the actions that are replaced by random ones."""
    worlds: int | None = None
    """New worlds to play; three for each run that is kept, or 512 with --choose shortest."""
    seed: int = 0
    """Seed of the worlds."""
    max_steps: int = 2500
    """Steps after which a run is given up."""
    keep: int | None = None
    """The longest run whose states are kept in memory, 25 kB for each step; all, or 200 with
    --choose shortest."""
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
        from align_rudder.tasks.diamond import demos
        from align_rudder.tasks.diamond.task import DiamondTask

        check_outputs(self.output, self.episodes, self.model, self.figure, self.json)
        check_least(self, n=2, worlds=1, max_steps=1, keep=1)
        check_options(self, {"noise": Number(0, below=1)})
        check_seed(self.seed)
        check_figure(self.figure)
        task, shown = DiamondTask(), sys.stderr.isatty()
        first = self.choose == "first"
        worlds = self.worlds or (3 * self.n if first else 512)
        keep = self.keep or (self.max_steps if first else 200)
        runs = demos.play_expert(task, worlds, self.seed, self.max_steps, keep, shown, self.noise)
        steps = sorted(len(run.actions) for run in runs if run.solved)
        median = f", in {np.median(steps):.0f} steps (median)" if steps else ""
        share = len(steps) / len(runs)
        print(f"{len(steps)} of {len(runs)} runs found a diamond ({share:.1%}){median}")
        chosen = demos.save_chosen(self.output, runs, self.n, self.choose)
        lengths = [len(demo.actions) for demo in chosen]
        print(f"the {self.n} {self.choose}, of {lengths} steps, are in {self.output}\n")
        model = demos.fit_demonstrations(task, chosen)
        print(as_text(model))
        if self.episodes is not None:
            save_episodes(self.episodes, [demo.episode(task, vector=True) for demo in chosen])
        if self.model is not None:
            model.save(self.model)
        if self.figure is not None:
            from align_rudder.studies.diamond.figures import draw_alignment

            write_figure(self.figure, draw_alignment(model))
        found = {"worlds": len(runs), "solved": len(steps), "steps": steps, "lengths": lengths}
        write_json(self.json, {**found, "model": as_data(model)})


@dataclass
class Train:
    """Train sub-agents and manager, or go on with it; the folder keeps agents and logs."""

    goes_on: ClassVar[bool] = True
    method: tyro.conf.Positional[MethodName] = OURS
    """What to train: ours, ours with a part left out, or plain PPO."""
    out: OptionalOutput = None
    """Folder; runs/METHOD-STEPS-SEED if left out."""
    steps: float = 8e6
    """Environment steps in all, those of demonstrations and of evaluations included."""
    seed: int = 0
    """Seed."""
    demos: str | None = None
    """Demonstrations, as `diamond demos` writes them; those of the package if left out."""
    more: str | None = None
    """More runs, in such a file, that are cloned and begun in as well, and not aligned."""
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
    set: tuple[str, ...] = ()
    """Other fields of `hierarchy.Training` and its `PPO`, as NAME=VALUE: --set beside=0.3
    goals=checklist revisit=50."""
    coordinator: str | None = None
    """Address of the first process (host:port), where several train together."""
    processes: int = 1
    """Number of processes."""
    process: int = 0
    """Which of them this is."""

    def run(self) -> None:
        """Train."""
        if not (1 <= self.steps <= 1e12 and self.steps == int(self.steps)):
            raise ValueError(f"--steps is {self.steps}; a whole number from 1 to 1e12 is needed")
        check_seed(self.seed)
        check_least(self, envs=1, pool=1, worlds=1, evaluations=1)
        if self.hidden is not None and (not self.hidden or min(self.hidden) < 1):
            raise ValueError(f"--hidden is {self.hidden}; layers of at least 1 unit are needed")
        if self.out is not None and not self.out.strip():
            raise ValueError("--out is empty; give a folder, or leave it out")

        from align_rudder.hierarchy.devices import find_devices
        from align_rudder.tasks.diamond.demos import prepare

        given = {
            "n_envs": self.envs,
            "gamma": self.gamma,
            "ent_coef": self.entropy,
            "hidden": self.hidden,
            "pool": self.pool,
            "worlds": self.worlds,
            "evaluations": self.evaluations,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if self.more is not None:
            given["name"] = self.method + MORE
        training = training_of(
            self.method, int(self.steps), self.seed, **given, **_fields(self.set, given)
        )
        devices = find_devices(self.device, self.coordinator, self.processes, self.process)
        folder = self.out or f"runs/{self.method}-{self.steps:.3g}-{self.seed}".replace("+", "")
        train_method(training, folder, prepare(self.demos, self.more), devices, bars_or_lines())
        if devices.first:
            print(f"trained; see {folder}, or: align-rudder diamond evaluate {quote(folder)}")


def _fields(settings: Sequence[str], given: Collection[str]) -> dict[str, Any]:
    """Return fields of a training from NAME=VALUE; those that are given otherwise are refused."""
    from align_rudder.hierarchy.ppo import PPO
    from align_rudder.hierarchy.settings import Training

    own = {"ppo", "steps", "seed", "name"}
    kinds = {**vars(Training()), **vars(PPO())}
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or name not in kinds or name in own:
            raise ValueError(
                f"--set {setting}: NAME=VALUE is needed, with one of "
                f"{', '.join(sorted({*kinds} - own))}"
            )
        if name in found or name in given:
            raise ValueError(f"--set {setting}: {name} is given twice")
        value = text if isinstance(kinds[name], str) else _value(setting, text)
        if isinstance(kinds[name], float) and type(value) is int:
            value = float(value)
        kind_like(kinds[name]).check(value, f"--set {name}")
        found[name] = tuple(value) if isinstance(value, list) else value
    return found


def _value(setting: str, text: str) -> Any:
    try:
        return json.loads(text.lower())
    except ValueError as error:
        raise ValueError(
            f"--set {setting}: a number, true, false or a list like [512,512] is needed"
        ) from error


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
    """Count only who plays at the end, not the stages before: cloned, without a manager."""
    demos: str | None = None
    """Demonstrations that the agents were trained with; those of the package if left out."""
    device: Device = "auto"
    """Where to play; gpu fails if there is none."""
    figures: str | None = None
    """Folder for figures: learning curves, alignment, endings and, where clones were counted too
    (not with --last), sub-goals and curves of the sub-agents."""
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
        from align_rudder.studies.diamond.results import evaluate_folder
        from align_rudder.studies.diamond.tables import (
            endings_rows,
            endings_table,
            goals_table,
            results_table,
        )
        from align_rudder.tasks.diamond.demos import prepare

        self._check()
        find_devices(self.device)
        setup, shown = prepare(self.demos), sys.stderr.isatty()
        found = [
            evaluate_folder(
                folder, setup, self.worlds, self.seed, self.max_steps, self.last, progress=shown
            )
            for folder in self.folders
        ]
        print(results_table(found))
        if endings_rows(found):
            print(endings_table(found))
        print(goals_table(found[0]))
        write_json(self.json, found)
        if self.markdown is not None:
            write_text(self.markdown, results_table(found, markdown=True) + "\n")
        if self.figures is not None:
            from align_rudder.studies.diamond.figures import draw_results

            draw_results(self.folders, found, setup.model, self.figures)
            print(f"figures are in {Path(self.figures)}")
        if self.video is not None:
            from align_rudder.studies.diamond.video import record_folder

            first = self.folders[0]
            if run := record_folder(first, setup, self.video, self.seed):
                print(f"a run of {len(run.actions)} steps is in {self.video}")
            else:
                print(f"no run of {first} found a diamond; no video", file=sys.stderr)

    def _check(self) -> None:
        """Refuse what cannot be done, before any world is played."""
        from align_rudder.studies.diamond.results import FILES, read_training, stages_in

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
        if self.video is not None and "agent" not in stages_in(self.folders[0]):
            raise ValueError(
                f"{self.folders[0]} has no agents to record, as published results have none; "
                "train them, or leave out --video"
            )


@dataclass
class Watch:
    """Watch a trained agent in a new world: sub-goals as they are reached, and a video."""

    agent: tyro.conf.Positional[str | None] = None
    """Folder of a training, or file of `diamond ship`; if left out the agent of the package, where
    one comes with it."""
    output: Output = "diamond.gif"
    """File for the video (.gif)."""
    seed: int = 1
    """Seed of the world."""
    max_steps: int = 2000
    """Steps after which it is given up."""
    demos: str | None = None
    """Demonstrations that the agent was trained with; those of the package if left out."""

    def run(self) -> None:
        """Play, tell, record."""
        from align_rudder.studies.diamond.player import shipped_player

        check_outputs(self.output, inputs=[self.agent] if self.agent else [])
        check_least(self, max_steps=1)
        check_seed(self.seed)
        if not self.output.endswith(".gif"):
            raise ValueError(f"--output {self.output}: a name that ends with .gif is needed")
        path = shipped_player() if self.agent is None else Path(self.agent)
        if path is None or not path.exists():
            raise ValueError(
                "no agent comes with this version of the package; give the folder of a training"
                if path is None
                else f"{path} is not there; give the folder of a training, or leave it out"
            )
        import jax

        from align_rudder.studies.diamond import video
        from align_rudder.studies.diamond.goals import subgoals_of
        from align_rudder.studies.diamond.player import load_player
        from align_rudder.studies.diamond.results import load_stage, read_training
        from align_rudder.tasks.diamond.demos import prepare
        from align_rudder.tasks.diamond.names import goal_names

        setup = prepare(self.demos)
        if path.is_dir():
            training, (task, agent) = read_training(path)[0], load_stage(path, setup)
        else:
            task, agent, training = load_player(path, setup)
        symbols = subgoals_of(setup, training.goals).symbols
        names = goal_names(symbols)

        def told(step: int, goal: int) -> None:
            print(f"step {step:5}  {names[goal]}", flush=True)

        with jax.default_matmul_precision(training.precision):
            run = video.record(task, agent, jax.random.key(self.seed), 1, self.max_steps, told)
        assert run is not None  # a single world has an end, whatever it is
        print(f"step {len(run.actions):5}  {run.failed or 'the diamond'}")
        video.save_video(self.output, video.marked(run, training), symbols)
        print(f"the run is in {self.output}")


@dataclass
class Ship:
    """Write the policy of trained sub-agents into one small file, for `diamond watch`."""

    folder: tyro.conf.Positional[str]
    """Folder of the training."""
    output: Output = "player.npz"
    """The file."""
    demos: str | None = None
    """Demonstrations that the agent was trained with; those of the package if left out."""

    def run(self) -> None:
        """Load, write."""
        from align_rudder.studies.diamond.player import save_player
        from align_rudder.tasks.diamond.demos import prepare

        check_outputs(self.output)
        save_player(self.output, self.folder, prepare(self.demos))
        print(f"{self.output}: {Path(self.output).stat().st_size / 1e6:.1f} MB")


@dataclass
class Diamond:
    """ObtainDiamond on Craftax-Classic: demonstrations, sub-agents, manager."""

    command: Annotated[Demos | Train | Evaluate | Watch | Ship, tyro.conf.arg(name="")]

    def run(self) -> None:
        """Run the command."""
        self.command.run()
