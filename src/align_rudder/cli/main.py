"""The command `align-rudder`."""

from __future__ import annotations

import io
import os
import sys
import warnings
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from align_rudder._warnings import AlignRudderWarning, warn
from align_rudder.cli.demo import Demo
from align_rudder.cli.diamond import Diamond
from align_rudder.cli.minerl import MineRL
from align_rudder.cli.report import Report
from align_rudder.cli.reproduce import Reproduce, Tune
from align_rudder.data.sources import load_source
from align_rudder.events import DeltaEvents, EventEncoder, FeatureEvents, StateEvents, SymbolEvents
from align_rudder.files import check_outputs, save_npz, write_json
from align_rudder.model import AlignRudder
from align_rudder.redistribution import Redistribution
from align_rudder.summary import as_data

__all__ = ["main"]

Output = Annotated[str, tyro.conf.arg(aliases=["-o"])]
OptionalOutput = Annotated[str | None, tyro.conf.arg(aliases=["-o"])]


@dataclass
class Fit:
    """Align demonstrations and save the model."""

    demos: tyro.conf.Positional[str]
    """Demonstrations: .npz, .fasta, .jsonl, the folder or the id of a Minari dataset."""
    output: Output = "model.npz"
    """File for the model."""
    events: Literal["auto", "state", "delta", "feature", "observation", "action"] = "auto"
    """How steps become events: states, changes, features, or observations or actions as symbols."""
    max_events: int | None = None
    """The most events (states, changes, features)."""
    keys: tuple[str, ...] | None = None
    """Entries of dict observations to use."""
    scoring: Literal["inverse", "log", "karlin-altschul"] = "inverse"
    """Score of a match: 1/p, −ln p, or Karlin and Altschul's."""
    gap: float = 0.0
    """Gap cost."""
    strategies: int | None = None
    """Number of strategies in the demonstrations; default: find it."""
    top_n: int | None = None
    """Use only the best demonstrations by return, the shorter among equals."""
    baseline: float = 0.0
    """Return of an episode worth nothing."""
    engine: Literal["native", "clustalw"] = "native"
    """What aligns."""
    json: str | None = None
    """Also write the summary as JSON to this file."""

    def run(self) -> None:
        """Fit, save and show."""
        check_outputs(self.output, self.json, inputs=[self.demos])
        if sys.stderr.isatty():
            print("aligning; a first run compiles for some seconds …", file=sys.stderr)
        source = load_source(self.demos)
        asked = (self.events, self.max_events, self.keys)
        if source.episodes is None and asked != ("auto", None, None):
            raise ValueError(
                f"{self.demos} holds symbols, which are events already; leave out --events, "
                "--max-events and --keys"
            )
        model = AlignRudder(
            _encoder(self.events, self.max_events, self.keys)
            if source.episodes is not None
            else None,
            scoring=self.scoring,
            gap=self.gap,
            strategies=self.strategies,
            top_n=self.top_n,
            baseline=self.baseline,
            engine=self.engine,
            progress=sys.stderr.isatty(),
        )
        if source.episodes is not None:
            model.fit(source.episodes)
        else:
            model.fit_events(source.sequences or [], source.returns)
        model.save(self.output)
        write_json(self.json, as_data(model))
        print(model.summary())
        print(f"\nsaved to {self.output}")


@dataclass
class Redistribute:
    """Give every step of episodes its share of the return."""

    model: tyro.conf.Positional[str]
    """A model that `fit` saved."""
    episodes: tyro.conf.Positional[str]
    """Episodes, in any of the forms that demonstrations have."""
    output: OptionalOutput = None
    """npz file for rewards, scores, events (concatenated), corrections, returns and lengths."""
    json: str | None = None
    """Also write the same as JSON to this file."""

    def run(self) -> None:
        """Redistribute, write files, show a table."""
        check_outputs(self.output, self.json, inputs=[self.model, self.episodes])
        model = AlignRudder.load(self.model)
        source = load_source(self.episodes)
        if source.episodes is not None:
            found = [model.redistribute(e) for e in source.episodes]
        else:
            pairs = zip(source.sequences or [], source.returns or [], strict=True)
            found = [model.redistribute_events(s, r) for s, r in pairs]
        if not any((r.events[r.events != model.events_.n_events] >= 0).any() for r in found):
            warn("the episodes hold no event that the model knows; are they of the same task?")
        if self.output:
            save_npz(
                self.output,
                "align-rudder-redistribution",
                1,
                {},
                {
                    "rewards": np.concatenate([r.rewards for r in found]),
                    "scores": np.concatenate([r.scores for r in found]),
                    "events": np.concatenate([r.events for r in found]),
                    "corrections": np.array([r.correction for r in found]),
                    "returns": np.array([r.ret for r in found]),
                    "lengths": np.array([len(r.rewards) for r in found]),
                },
            )
        write_json(
            self.json,
            [
                {
                    "return": r.ret,
                    "rewards": r.rewards.tolist(),
                    "correction": r.correction,
                    "scores": r.scores.tolist(),
                    "events": r.events.tolist(),
                }
                for r in found
            ],
        )
        print(_table(found))
        if self.output:
            print(f"\nsaved to {self.output}")


@dataclass
class Show:
    """Show events, alignment, consensus and sub-goals of a model."""

    model: tyro.conf.Positional[str]
    """A model that `fit` saved."""
    columns: bool = False
    """Also show the profile, column by column."""
    json: str | None = None
    """Also write the summary as JSON to this file."""

    def run(self) -> None:
        """Load and show."""
        check_outputs(self.json, inputs=[self.model])
        model = AlignRudder.load(self.model)
        write_json(self.json, as_data(model))
        print(model.summary())
        if self.columns:
            for strategy in model.strategies_:
                print(f"\n{strategy.profile}")


def _encoder(
    kind: str, max_events: int | None, keys: tuple[str, ...] | None
) -> EventEncoder | None:
    if max_events is not None and max_events < 1:
        raise ValueError(f"--max-events is {max_events}; at least 1 is needed")
    options: dict[str, Any] = {} if max_events is None else {"max_events": max_events}
    if keys is not None:
        options["keys"] = keys
    if kind in ("observation", "action"):
        if options:
            raise ValueError("--max-events and --keys do not go with events that are symbols")
        return SymbolEvents(kind)
    if kind == "auto":
        if options:
            raise ValueError("--max-events and --keys need --events state, delta or feature")
        return None
    return {"state": StateEvents, "delta": DeltaEvents, "feature": FeatureEvents}[kind](**options)


def _table(found: list[Redistribution]) -> str:
    lines = [
        f"{'episode':>7}  {'steps':>6}  {'events':>6}  {'return':>9}  {'given':>9}  "
        f"{'correction':>10}"
    ]
    for i, r in enumerate(found):
        lines.append(
            f"{i:>7}  {len(r.rewards):>6}  {int((r.events >= 0).sum()):>6}  {r.ret:>9.4g}  "
            f"{r.rewards.sum():>9.4g}  {r.correction:>10.4g}"
        )
    return "\n".join(lines)


@dataclass
class _Command:
    command: Annotated[
        Annotated[Fit, tyro.conf.subcommand("fit")]
        | Annotated[Redistribute, tyro.conf.subcommand("redistribute")]
        | Annotated[Show, tyro.conf.subcommand("show")]
        | Annotated[Report, tyro.conf.subcommand("report")]
        | Annotated[Demo, tyro.conf.subcommand("demo")]
        | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
        | Annotated[Tune, tyro.conf.subcommand("tune")]
        | Annotated[Diamond, tyro.conf.subcommand("diamond")]
        | Annotated[MineRL, tyro.conf.subcommand("minerl")],
        tyro.conf.arg(name=""),
    ] = field()


def main(args: list[str] | None = None) -> int:
    """Run the command line; errors of the user's come as one line, not as a traceback."""
    given = sys.argv[1:] if args is None else args
    if given == ["--version"]:
        print(f"align-rudder {version('align-rudder')}")
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without block characters
    parsed = tyro.cli(
        _Command,
        args=args,
        prog="align-rudder",
        description="Reward redistribution from a handful of demonstrations.",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("always", AlignRudderWarning)
        warnings.showwarning = _show_warning
        try:
            parsed.command.run()
            sys.stdout.flush()
        except (ValueError, OSError, ImportError, RuntimeError, MemoryError) as error:
            if isinstance(error, BrokenPipeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            print(f"error: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            inner = getattr(parsed.command, "command", parsed.command)
            kept = "what is finished is kept, the same command goes on from there"
            goes_on = getattr(inner, "goes_on", False)
            print(f"interrupted; {kept if goes_on else 'begin again'}", file=sys.stderr)
            return 130
    return 0


def _show_warning(message: Any, category: type[Warning], *rest: Any) -> None:
    kind = "warning" if issubclass(category, AlignRudderWarning) else category.__name__
    print(f"{kind}: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
