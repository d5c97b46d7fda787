"""The command `align-rudder`: what was given is parsed, run, and mistakes are told in one line."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

import align_rudder
from align_rudder._interrupted import SAID, loaded
from align_rudder._warnings import AlignRudderWarning
from align_rudder.cli.demo import Demo
from align_rudder.cli.diamond import Diamond
from align_rudder.cli.logs import Logs
from align_rudder.cli.minerl import MineRL
from align_rudder.cli.model import Fit, Redistribute, Report, Show
from align_rudder.cli.reproduce import Reproduce, Tune
from align_rudder.runs.interrupt import exit_status
from align_rudder.text import visible

__all__ = ["main"]

_TRACEBACK = "ALIGN_RUDDER_TRACEBACK"
_LINE = "\n"
_CLOSED_PIPE = 128 + 13  # as if SIGPIPE had ended it
_MISTAKES = (ValueError, OSError, ImportError, RuntimeError, MemoryError)


@dataclass
class _Command:
    command: Annotated[
        Fit
        | Redistribute
        | Show
        | Report
        | Logs
        | Demo
        | Reproduce
        | Tune
        | Diamond
        | Annotated[MineRL, tyro.conf.subcommand("minerl")],
        tyro.conf.arg(name=""),
    ]


def main(args: list[str] | None = None) -> int:
    """Run the command line and return its exit status; mistakes are told in one line.

    The status is 2 for a mistake of the user's, 70 for one of ours, 130 after Ctrl-C, 143 after
    SIGTERM and 141 if nobody reads the output any more. With the environment variable
    ALIGN_RUDDER_TRACEBACK set, mistakes come with a traceback.
    """
    try:
        try:
            return _main(args)
        finally:  # also when the parser leaves after --help
            sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise Python tries once more to write what is left, and says that it could not.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE


def _main(args: list[str] | None) -> int:
    given = sys.argv[1:] if args is None else args
    if given == ["--version"]:
        print(f"align-rudder {align_rudder.__version__}")
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without block characters
    parsed = tyro.cli(
        _Command,
        args=args,
        prog="align-rudder",
        description="Reward redistribution from a handful of demonstrations.",
    )
    goes_on = getattr(getattr(parsed.command, "command", parsed.command), "goes_on", False)
    kept = "what is finished is kept, the same command goes on from there"
    with warnings.catch_warnings():
        warnings.simplefilter("always", AlignRudderWarning)
        warnings.showwarning = _show_warning
        try:
            loaded()
            parsed.command.run()
            sys.stdout.flush()
        except BrokenPipeError:
            if goes_on:
                with contextlib.suppress(OSError):
                    print(f"stopped, as nobody reads the output; {kept}", file=sys.stderr)
            raise
        except KeyboardInterrupt as error:
            print(f"interrupted; {kept}" if goes_on else SAID, file=sys.stderr)
            return exit_status(error)
        except Exception as error:
            if os.environ.get(_TRACEBACK):
                raise
            ours = not isinstance(error, _MISTAKES)
            said = _unexpected(error) if ours else _line(error)
            print(f"error: {visible(said)}", file=sys.stderr)
            return 70 if ours else 2
    return 0


def _line(error: Exception) -> str:
    """Return what an error says in one line."""
    return " ".join(str(error).split()) or f"{type(error).__name__}, without a reason"


def _unexpected(error: Exception) -> str:
    """Return what to say of an error that no check foresaw."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"{type(error).__name__}: {_line(error)} (in {last.filename}, line {last.lineno}). This is "
        f"a mistake of the package: run the same command with {_TRACEBACK}=1 and report it"
    )


def _show_warning(message: Any, category: type[Warning], *rest: Any) -> None:
    kind = "warning" if issubclass(category, AlignRudderWarning) else category.__name__
    print(f"{kind}: {visible(str(message), keep=_LINE)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
