"""`align-rudder minerl demos | check | events | train | evaluate`."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import tyro

from align_rudder.cli.minerl_agents import Evaluate, Train, features_of, load_encoder, options_of
from align_rudder.cli.options import check_figure, check_least, check_options
from align_rudder.files import Number, check_outputs, write_figure, write_json

if TYPE_CHECKING:
    from align_rudder.minerl.autoencoder import AutoEncoder
    from align_rudder.minerl.dataset import Pool

__all__ = ["MineRL"]


@dataclass
class Demos:
    """Record a dataset in the package's small world, to try everything without the real one.

    The same command goes on where one was stopped.
    """

    goes_on: ClassVar[bool] = True
    data_root: tyro.conf.Positional[str]
    """Folder for the dataset; it is made."""
    n: int = 20
    """Number of trajectories; each finds the diamond."""
    version: Literal[3, 4] = 3
    """Version of the format."""
    noise: float = 0.05
    """How often, at a step, something is begun that leads nowhere."""
    world: tuple[str, ...] = ()
    """Options of the small world as NAME=VALUE, such as hits=4."""
    seed: int = 0
    """Seed of the first world."""

    def run(self) -> None:
        """Play and film."""
        from align_rudder.minerl.testing.recording import record_dataset

        folders = record_dataset(
            self.data_root,
            self.n,
            self.version,
            self.seed,
            noise=self.noise,
            world=options_of(self.world),
            progress=sys.stderr.isatty(),
        )
        print(f"{len(folders)} trajectories are in {self.data_root}")


@dataclass
class Check:
    """Read all trajectories of the MineRL dataset once and say what is there, what is damaged."""

    data_root: tyro.conf.Positional[str]
    """Folder of the dataset (MINERL_DATA_ROOT)."""
    tasks: tuple[str, ...] | None = None
    """Tasks; all that are there if left out."""
    video: Literal["packets", "frames", "skip"] = "frames"
    """How recordings are checked: count packets, decode all frames, not at all (without PyAV)."""
    bad: str | None = None
    """List of bad recordings: a text file, or the folder minerl/data/assets/blacklist of minerl."""
    workers: int | None = None
    """Threads that read; all cores if left out."""
    json: str | None = None
    """Also write what is damaged as JSON to this file."""

    def run(self) -> None:
        """Check and report."""
        check_outputs(self.json)
        pool = _load(self)
        print(pool.report())
        damaged = [asdict(damage) for damage in pool.damaged]
        write_json(self.json, {"trajectories": len(pool), "damaged": damaged})


@dataclass
class Events:
    """Find events and sub-goals in the MineRL dataset, and the segments of every sub-task."""

    data_root: tyro.conf.Positional[str]
    """Folder of the dataset (MINERL_DATA_ROOT), with MineRLObtainDiamond-v0 and others in it."""
    output: Annotated[str, tyro.conf.arg(aliases=["-o"])] = "model.npz"
    """File for the model."""
    autoencoder: str | None = None
    """Auto-encoder for features of pictures; without one, events come from the inventory alone."""
    train_autoencoder: bool = False
    """Train one and save it beside the model, as MODEL-autoencoder.npz."""
    n: int = 10
    """How many of the shortest trajectories with a diamond to align."""
    max_events: int = 20
    """The most events."""
    subgoal_share: float = 1.0
    """Sub-goals are what this share of the aligned trajectories has in common."""
    subgoal_threshold: float | None = None
    """Instead: the redistributed reward above which a column is a sub-goal."""
    tasks: tuple[str, ...] | None = None
    """Tasks of the pool; all that are there if left out."""
    video: Literal["packets", "frames", "skip"] = "packets"
    """How recordings are checked: count packets, decode all frames, not at all (without PyAV)."""
    bad: str | None = None
    """List of bad recordings: a text file, or the folder minerl/data/assets/blacklist of minerl."""
    cache: str | None = None
    """Folder to keep features of pictures in, so that they are computed once."""
    frame_size: int = 64
    """Side of the pictures of a new auto-encoder."""
    latent: int = 32
    """Features of a new auto-encoder."""
    steps: int = 4000
    """Updates of a new auto-encoder."""
    seed: int = 0
    """Seed of a new auto-encoder."""
    workers: int | None = None
    """Threads that read; all cores if left out."""
    figure: str | None = None
    """Also draw the alignment into this file (.png, .svg, .pdf)."""
    json: str | None = None
    """Also write all that is found, with every segment, as JSON to this file."""

    def run(self) -> None:
        """Check, choose, align, cut, show."""
        from align_rudder.minerl import pipeline
        from align_rudder.minerl.dataset import shortest_with_diamond
        from align_rudder.minerl.segments import beside_model, save_segments

        check_least(self, n=2, max_events=1, frame_size=8, latent=1, steps=1, seed=0)
        check_figure(self.figure)
        check_options(self, {"subgoal_share": Number(above=0, high=1)})
        kept = str(beside_model(self.output, "segments"))
        trained = str(beside_model(self.output, "autoencoder")) if self.train_autoencoder else None
        check_outputs(self.output, kept, self.figure, self.json, trained)
        encoder, shown = self._encoder(), sys.stderr.isatty()
        pool = _load(self)
        print(pool.report() + "\n")
        if trained is not None:
            encoder = self._train_encoder(pool, trained)
        features = features_of(encoder, self.cache)
        model = pipeline.fit_events(
            pool,
            self.n,
            features,
            max_events=self.max_events,
            subgoal_share=self.subgoal_share,
            subgoal_threshold=self.subgoal_threshold,
            workers=self.workers,
            progress=shown,
        )
        chosen = shortest_with_diamond(pool, self.n)
        model.save(self.output)
        print(f"saved to {self.output}\n")
        found = pipeline.segments(pool, model, features, workers=self.workers, progress=shown)
        save_segments(kept, self.output, found)
        print(pipeline.as_text(model, chosen, found))
        print(f"\nsegments saved to {kept}, for minerl train")
        damaged = [asdict(damage) for damage in pool.damaged]
        write_json(self.json, {"damaged": damaged, **pipeline.as_data(model, chosen, found)})
        if self.figure is not None:
            from align_rudder.show.figures import consensus

            write_figure(self.figure, consensus(model, threshold=1.0))

    def _encoder(self) -> AutoEncoder | None:
        """Return the auto-encoder that is given; refuse options that do not go together."""
        if self.autoencoder is None:
            if self.cache is not None and not self.train_autoencoder:
                raise ValueError("--cache keeps features of pictures; it needs an auto-encoder")
            return None
        if self.train_autoencoder:
            raise ValueError(
                f"--autoencoder {self.autoencoder} and --train-autoencoder are both given; use the "
                "first to load one, the second to train a new one"
            )
        return load_encoder(self.autoencoder)

    def _train_encoder(self, pool: Pool, path: str) -> AutoEncoder:
        """Return a new auto-encoder, saved and shown."""
        from align_rudder.minerl.autoencoder import train_autoencoder

        encoder = train_autoencoder(
            pool,
            size=self.frame_size,
            latent=self.latent,
            steps=self.steps,
            seed=self.seed,
            progress=sys.stderr.isatty(),
        )
        encoder.save(path)
        error, mean = (encoder.notes[k] for k in ("error", "error_of_mean_picture"))
        print(
            f"auto-encoder trained and saved to {path}: mean squared error {error:.2g}, "
            f"{error / mean:.1%} of that of the mean picture\n"
        )
        return encoder


def _load(command: Check | Events) -> Pool:
    """Return the pool that a command is about."""
    from align_rudder.minerl.dataset import load_pool

    return load_pool(
        command.data_root,
        command.tasks,
        video=None if command.video == "skip" else command.video,
        workers=command.workers,
        progress=sys.stderr.isatty(),
        bad=command.bad,
    )


@dataclass
class MineRL:
    """ObtainDiamond on the real MineRL data: events, sub-goals, sub-agents, manager."""

    command: Annotated[
        Annotated[Demos, tyro.conf.subcommand("demos")]
        | Annotated[Check, tyro.conf.subcommand("check")]
        | Annotated[Events, tyro.conf.subcommand("events")]
        | Annotated[Train, tyro.conf.subcommand("train")]
        | Annotated[Evaluate, tyro.conf.subcommand("evaluate")],
        tyro.conf.arg(name=""),
    ] = field()

    def run(self) -> None:
        """Run the command."""
        self.command.run()
