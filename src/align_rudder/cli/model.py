"""`align-rudder fit | redistribute | show | report`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import tyro

from align_rudder.cli.logs import columns_of
from align_rudder.cli.options import OptionalOutput, Output, check_least, check_options
from align_rudder.files import check_outputs, write_json
from align_rudder.text import visible

if TYPE_CHECKING:
    import gymnasium as gym

    from align_rudder.data.logs import LogOptions, RunLog
    from align_rudder.data.sources import Source
    from align_rudder.events import EventEncoder

__all__ = ["Fit", "Redistribute", "Report", "Show"]


@dataclass
class Fit:
    """Align demonstrations and save the model."""

    demos: tyro.conf.Positional[str]
    """Demonstrations: .npz, .fasta, .jsonl, a log of runs, the folder or id of a Minari dataset."""
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
    min_conservation: float | None = None
    """Keep what more than this share of the demonstrations do; default: what is beyond chance."""
    random: str | None = None
    """Episodes of a random policy, in the form of the demonstrations: what is done by chance."""
    baseline: float | None = None
    """Return of an episode worth nothing; default: the mean of the random episodes, else 0."""
    engine: Literal["native", "clustalw"] = "native"
    """What aligns."""
    log_events: str = "tool"
    """Of logs, what becomes an event: tool, tool:ARGUMENT, tool+error, message, joined by +."""
    success: str | None = None
    """Of logs, which runs succeeded, such as 'reward >= 1'; default: what the file says."""
    column: tuple[str, ...] = ()
    """Of logs in CSV: case=NAME, activity=NAME, time=NAME, outcome=NAME; see `logs`."""
    json: str | None = None
    """Also write the summary as JSON to this file."""

    def run(self) -> None:
        """Fit, save and show."""
        from align_rudder.data.sources import load_source
        from align_rudder.model import AlignRudder
        from align_rudder.summary import as_data
        from align_rudder.validation import PARAMETERS

        check_outputs(self.output, self.json, inputs=[self.demos, self.random])
        check_options(self, PARAMETERS)
        if sys.stderr.isatty():
            print("aligning; a first run compiles for some seconds …", file=sys.stderr)
        columns = columns_of(self.column)
        source = load_source(self.demos, self.log_events, self.success, columns)
        model = AlignRudder(
            self._encoder(source),
            scoring=self.scoring,
            gap=self.gap,
            strategies=self.strategies,
            top_n=self.top_n,
            baseline=self.baseline,
            min_conservation=self.min_conservation,
            engine=self.engine,
            progress=sys.stderr.isatty(),
        )
        chance = (
            None
            if self.random is None
            else load_source(self.random, self.log_events, self.success, columns, labelled=False)
        )
        source.fit(model, chance)
        model.save(self.output)
        write_json(self.json, as_data(model))
        print(model.summary())
        print(f"\nsaved to {self.output}")

    def _encoder(self, source: Source) -> EventEncoder | None:
        from align_rudder.events import named_encoder

        chosen = self.max_events is not None or self.keys is not None
        if source.episodes is None and (chosen or self.events != "auto"):
            raise ValueError(
                f"{self.demos} holds symbols, which are events already; leave out --events, "
                "--max-events and --keys"
            )
        if chosen and self.events not in ("state", "delta", "feature"):
            raise ValueError("--max-events and --keys need --events state, delta or feature")
        check_least(self, max_events=1)
        return named_encoder(self.events, max_events=self.max_events, keys=self.keys)


@dataclass
class Redistribute:
    """Give every step of episodes its share of the return; with --turns, every turn of a log."""

    model: tyro.conf.Positional[str]
    """A model that `fit` saved; with --turns, one that `logs --model` saved."""
    episodes: tyro.conf.Positional[str]
    """Episodes, in any of the forms that demonstrations have."""
    output: OptionalOutput = None
    """npz file for rewards, scores, events (concatenated), corrections, returns and lengths; with
    --turns, JSON lines: for each run one number or null for each of its messages."""
    turns: bool = False
    """Rewards of the assistant's turns in a log of runs; their sum is the outcome of the run."""
    log_events: str = "tool"
    """Of logs, what becomes an event; with --turns, the model knows."""
    success: str | None = None
    """Of logs, which runs succeeded, such as 'reward >= 1'; default: what the file says; with
    --turns, as the log of the model was read."""
    group: str | None = None
    """With --turns, the field that names the task; default: as the log of the model was read."""
    column: tuple[str, ...] = ()
    """Of logs in CSV: case=NAME, activity=NAME, time=NAME, outcome=NAME; see `logs`. With --turns,
    default: as the log of the model was read."""
    json: str | None = None
    """Also write the same as JSON to this file, with the names of the events."""

    def run(self) -> None:
        """Redistribute, write files, show a table."""
        from align_rudder.data.sources import load_source
        from align_rudder.model import AlignRudder

        check_outputs(self.output, self.json, inputs=[self.model, self.episodes])
        if self.turns:
            self._turns()
            return
        model = AlignRudder.load(self.model)
        if self.group is not None:
            raise ValueError("--group is for turns of a log; leave it out, or add --turns")
        columns = columns_of(self.column)
        source = load_source(self.episodes, self.log_events, self.success, columns, labelled=False)
        table = source.redistribute(model)
        if self.output:
            table.save(self.output)
        write_json(self.json, table.data(model.events_.symbols_))
        print(table)
        if self.output:
            print(f"\nsaved to {self.output}")

    def _turns(self) -> None:
        from align_rudder._warnings import warn
        from align_rudder.logs import LogModel, TurnTable

        if self.model.lower().endswith(".npz"):
            raise ValueError(
                f"{self.model} is a model of `fit`; --turns needs one of a log, which "
                "`align-rudder logs RUNS --model model.json` writes"
            )
        model = LogModel.load(self.model)
        log = self._log(model.options_)
        unknown, n = model.unknown_symbols(log.runs)
        if 2 * unknown > n:
            warn(
                f"the model knows {n - unknown} of the {n} different events of the log; is it a "
                "log of the same tools?"
            )
        table = TurnTable.of(model, log)
        for fault in table.faults:
            warn(f"left out: {fault}")
        for note in log.notes:
            print(f"note: {visible(note)}")
        if self.output:
            table.save(self.output)
        write_json(self.json, table.data())
        print(table)
        if self.output:
            print(f"\nsaved to {self.output}")

    def _log(self, options: LogOptions) -> RunLog:
        """Return the log, read as that of the model where no option says how."""
        from align_rudder.data.logs import read_log

        if self.success is None and options.function:
            raise ValueError(
                f"which runs of its log succeeded was said by a function, which {self.model} "
                "cannot hold; say it again: --success 'FIELD == VALUE'"
            )
        columns = {**(options.columns or {}), **(columns_of(self.column) or {})}
        success = options.success if self.success is None else self.success
        group = options.group if self.group is None else self.group
        told = [
            f"--{name} {value!r}"
            for name, value in (("success", options.success), ("group", options.group))
            if value is not None and getattr(self, name) is None
        ]
        try:
            return read_log(self.episodes, success, group, columns or None)
        except ValueError as error:
            if not told:
                raise
            said = f"the log is read as that of the model ({', '.join(told)}); give the option anew"
            raise ValueError(f"{error}; {said} to read it otherwise") from None


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
        from align_rudder.model import AlignRudder
        from align_rudder.summary import as_data

        check_outputs(self.json, inputs=[self.model])
        model = AlignRudder.load(self.model)
        write_json(self.json, as_data(model))
        print(model.summary())
        if self.columns:
            for strategy in model.strategies_:
                print(f"\n{strategy.profile}")


@dataclass
class Report:
    """Write one HTML page that shows what a model found and what it does with episodes."""

    model: tyro.conf.Positional[str]
    """A model that `fit` saved."""
    episodes: tyro.conf.Positional[str | None] = None
    """Episodes to show, in any of the forms that demonstrations have."""
    output: Output = "report.html"
    """File for the page."""
    title: str = "Align-RUDDER report"
    """Title of the page."""
    log_events: str = "tool"
    """Of logs, what becomes an event; as it was when the model was fitted."""
    success: str | None = None
    """Of logs, which runs succeeded, such as 'reward >= 1'; default: what the file says."""
    column: tuple[str, ...] = ()
    """Of logs in CSV: case=NAME, activity=NAME, time=NAME, outcome=NAME; see `logs`."""
    max_episodes: int = 20
    """The most episodes shown."""
    env: str | None = None
    """Gymnasium id of a grid environment, to show clusters and reward on its map."""

    def run(self) -> None:
        """Load, redistribute, write."""
        from align_rudder._warnings import warn
        from align_rudder.data.sources import load_source
        from align_rudder.model import AlignRudder
        from align_rudder.show.report import write_report

        check_outputs(self.output, inputs=[self.model, self.episodes])
        check_least(self, max_episodes=0)
        model = AlignRudder.load(self.model)
        columns, given = columns_of(self.column), ()
        if self.episodes is not None:
            given = load_source(
                self.episodes, self.log_events, self.success, columns, labelled=False
            ).given
        verdict = write_report(
            model,
            given,
            self.output,
            title=self.title,
            max_episodes=self.max_episodes,
            env=None if self.env is None else _make(self.env),
        )
        for remark in verdict["warnings"]:
            warn(f"{remark['what']} {remark['do']}")
        print(f"saved to {self.output}; open it in a browser")


def _make(name: str) -> gym.Env[Any, Any]:
    import gymnasium as gym

    try:
        return gym.make(name)
    except Exception as error:  # the environment is another's, and so is what it raises
        raise ValueError(f"there is no environment {name}: {error}") from error
