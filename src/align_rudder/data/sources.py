"""Demonstrations and episodes in any form: npz, Minari, FASTA, JSON lines, logs of runs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from align_rudder._warnings import warn
from align_rudder.data.logs import event_chooser, read_log
from align_rudder.data.logs.chat import is_run
from align_rudder.data.logs.events import check_arguments
from align_rudder.data.logs.read import ENDINGS
from align_rudder.data.rewards import RewardTable
from align_rudder.episodes import Episode, load_episodes
from align_rudder.fasta import read_fasta
from align_rudder.files import LARGEST, MAX_NESTED, Number, check_file, parse_json, read_text
from align_rudder.model import AlignRudder

__all__ = ["Source", "load_source"]


@dataclass(frozen=True)
class Source:
    """Either episodes, or sequences of symbols with their returns, and which of them failed."""

    episodes: list[Episode] | None = None
    sequences: list[list[Hashable]] | None = None
    returns: list[float] | None = None
    failed: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.given)

    @property
    def given(self) -> Sequence[Episode | tuple[list[Hashable], float]]:
        """The episodes, or (sequence, return) for each sequence, as a report takes them."""
        if self.episodes is not None:
            return self.episodes
        return list(zip(self.sequences or [], self.returns or [], strict=True))

    def fit(self, model: AlignRudder, random: Source | None = None) -> AlignRudder:
        """Fit a model to the demonstrations, and return it.

        Args:
            model: The model.
            random: Episodes of a random policy, in the form that the demonstrations have.
        """
        if random is not None and (random.episodes is None) != (self.episodes is None):
            raise ValueError(
                "demonstrations and random episodes are of two forms, episodes and symbols; give "
                "both in the same form"
            )
        if self.episodes is not None:
            return model.fit(self.episodes, () if random is None else random.episodes or ())
        sequences, returns = self.sequences or [], self.returns or []
        good = [i for i in range(len(sequences)) if i not in self.failed]
        if self.failed:
            many = len(self.failed) > 10
            which = f"{len(self.failed)} sequences" if many else f"sequences {list(self.failed)}"
            warn(f"{which} are failures and are not aligned")
        return model.fit_events(
            [sequences[i] for i in good],
            [returns[i] for i in good],
            random_sequences=() if random is None else random.sequences or (),
            failures=[sequences[i] for i in self.failed],
            random_returns=None if random is None else random.returns,
        )

    def redistribute(self, model: AlignRudder) -> RewardTable:
        """Return what a model gives each step of the episodes, or each symbol of the sequences."""
        table = RewardTable(
            [
                model.redistribute(one)
                if isinstance(one, Episode)
                else model.redistribute_events(*one)
                for one in self.given
            ]
        )
        unknown = model.events_.n_events
        if not any(((row.events >= 0) & (row.events != unknown)).any() for row in table):
            warn("the episodes hold no event that the model knows; are they of the same task?")
        return table


def load_source(
    source: str,
    events: str = "tool",
    success: str | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    labelled: bool = True,
) -> Source:
    """Read demonstrations or episodes.

    Args:
        source: A file of episodes (.npz), of sequences as FASTA (.fasta, .fa; one letter an event,
            "return=0.5" in a name gives its return) or JSON lines (.jsonl; a list of symbols or
            {"events": […], "return": 1.0} a line, "success": false for a failure), a log of runs
            (chat messages as .json or .jsonl, .traj, .xes, .xes.gz, .csv, or a folder of them), the
            folder of a Minari dataset, or the id of a local one.
        events: What becomes an event of a log; see `align_rudder.data.logs.event_chooser`.
        success: Which runs of a log succeeded, such as "reward >= 1"; None for what the file says.
        columns: Of a log in CSV, which column is what; see `align_rudder.data.logs.read_log`.
        labelled: Whether runs of a log without outcome are left out; else they return 0.
    """
    if not source:
        raise ValueError("the name of the file is empty; give a file or the id of a dataset")
    path = Path(source)
    readers = {".npz": _npz, ".fasta": _fasta, ".fa": _fasta, ".jsonl": _jsonl}
    reader = readers.get(path.suffix.lower())
    if _is_log(path):
        return _log(source, events, success, columns, labelled)
    if reader is not None:
        return reader(check_file(path))
    if path.is_file():
        raise ValueError(
            f"{source} has an ending that is not known; .npz (episodes), .fasta or .fa, .jsonl "
            f"(sequences of symbols) and {', '.join(ENDINGS)} (logs) are"
        )
    from align_rudder.data.minari import load_minari

    return Source(episodes=load_minari(path if path.is_dir() else source))


def _is_log(path: Path) -> bool:
    """Return whether a path leads to a log of runs, or to a folder of them that is no Minari."""
    name = path.name.lower()
    if path.is_dir():
        minari = (path / "data").is_dir() or (path / "main_data.hdf5").exists()
        return not minari and any(p.name.lower().endswith(ENDINGS) for p in path.iterdir())
    if not name.endswith(".jsonl"):
        return name.endswith(ENDINGS) and path.exists()
    with contextlib.suppress(OSError, ValueError):
        line = next((one for one in read_text(path).split("\n") if one.strip()), "")
        return is_run(parse_json(line, constants=True, halves=True))
    return False


def _log(
    source: str,
    events: str,
    success: str | None,
    columns: Mapping[str, str] | None,
    labelled: bool,
) -> Source:
    chooser, log = event_chooser(events), read_log(source, success, columns=columns)
    if labelled:
        check_arguments(events, log.runs)
    for fault in log.faults[:3]:
        warn(f"left out: {fault}")
    if len(log.faults) > 3:
        warn(f"left out: {len(log.faults) - 3} more that could not be read")
    runs = log.runs
    if labelled and log.unknown:
        warn(f"{len(log.unknown)} runs have no outcome and are left out; say which succeeded")
        runs = tuple(run for run in runs if run.success is not None)
    if not runs:
        raise ValueError(
            f"{source}: no run has an outcome; say which succeeded, such as --success 'reward >= 1'"
        )
    returns = [0.0 if run.ret is None else run.ret for run in runs]
    return Source(
        sequences=[run.events(chooser)[0] for run in runs],
        returns=[float(Number().check(ret, f"{source}: the return")) for ret in returns],
        failed=tuple(i for i, run in enumerate(runs) if run.success is False),
    )


def _npz(path: Path) -> Source:
    return Source(episodes=load_episodes(path))


def _fasta(path: Path) -> Source:
    names, rows = read_fasta(path)
    returns = []
    for name in names:
        found = re.search(r"\breturn=(\S+)", name)
        try:
            returns.append(Number().check(float(found.group(1)), "it") if found else 1.0)
        except ValueError as error:
            raise ValueError(
                f"{path}: the return in '>{name[:60]}' is not a number up to {LARGEST:g}"
            ) from error
    return Source(sequences=[list(row.replace("-", "")) for row in rows], returns=returns)


def _jsonl(path: Path) -> Source:
    sequences, returns, failed = [], [], []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            value = parse_json(line, depth=MAX_NESTED // 2)  # an object is nested twice
        except ValueError as error:
            raise ValueError(f"{where} is not JSON: {error}") from error
        if isinstance(value, dict):
            if not isinstance(value.get("events"), list):
                raise ValueError(f'{where} needs "events": [ … ], got {line[:60]}')
            success = value.get("success", True)
            if not isinstance(success, bool):
                raise ValueError(f'{where}: "success" is {success!r}; true or false is needed')
            events, ret = value["events"], value.get("return", float(success))
            if not success:
                failed.append(len(sequences))
        else:
            events, ret = value, 1.0
        if not isinstance(events, list):
            raise ValueError(f"{where} is not a list of symbols: {line[:60]}")
        returns.append(float(Number().check(ret, f"{where}: the return")))
        sequences.append([_symbol(e) for e in events])
    if not sequences:
        raise ValueError(f"{path} holds no sequence; one JSON list of symbols a line is needed")
    return Source(sequences=sequences, returns=returns, failed=tuple(failed))


def _symbol(value: Any) -> Hashable:
    if isinstance(value, list):
        return tuple(_symbol(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, _symbol(v)) for k, v in sorted(value.items()))
    return value
