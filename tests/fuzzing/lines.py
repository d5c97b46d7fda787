"""Odd command lines of all commands, run in this process."""

import contextlib
import io
import os
import shutil
import traceback
import warnings
from pathlib import Path

import numpy as np

from align_rudder.cli.main import main
from fuzzing.mutations import draw
from fuzzing.subjects import subjects

NUMBERS = "0 1 2 3 -1 nan inf -inf 1e308 -1e308 1e-320 0.5 1e9 x"
WHOLE = "0 1 2 3 5 100 -1 -7 2147483647 2147483648 9223372036854775807 99999999999999999999 nan 1e3"
PATHS = [
    *("", ".", "/", "~", "missing.npz", "missing/x.npz", "folder", "folder.npz", "pipe"),
    *("/dev/null", "loop.npz", "a\0b.npz", "x" * 300 + ".npz", "é\u2028.jsonl", "\udc80.npz"),
    *("empty.npz", "empty.jsonl", "half.npz"),
]
POOLS = {
    "number": [*NUMBERS.split(), "", "9" * 5000],
    "whole": [*WHOLE.split(), "", "-9223372036854775809", "9" * 5000],
    "path": PATHS,
    "out": ["out.npz", "out.png", "x/out.npz", "symbols.npz", "plain-arrays.npz", *PATHS],
    "word": ["", "x", "auto", "0", "é", "-", "--", "a b", "FrozenLake-v1", "no/such-v0", "os:path"],
    "key": ["at", "x", "log", "", "é"],
    "events": ["auto", "state", "delta", "feature", "observation", "action", "x"],
    "symbols": ["tool", "tool:n", "tool+error", "message", "tool:", "x", "", "+"],
    "condition": [
        *("reward >= 1", "outcome == yes", "success", "length > 4", "x", ">=", "", "last"),
        *("reward => 1", "reward >= abc", "names has test", "last == ''", "n == 1 and x"),
    ],
    "column": [
        *("case=case", "activity=time", "outcome=x", "case", "=", "x=y", ""),
        *("time=", "outcome=", "case=", "dates=dmy", "dates=x"),
    ],
    "scoring": ["inverse", "log", "karlin-altschul", "x"],
    "engine": ["native", "clustalw", "x"],
    "study": ["four-rooms", "variants", "scaling", "key-chest", "x"],
    "method": ["bc-q", "control", "kappa", "x", ""],
    "backend": ["loky", "x"],
    "training": ["align-rudder", "ppo-dense", "x"],
    "device": ["gpu", "cpu", "x"],
    "negative": ["-1", "-5", "x"],
    "tuned": ["hyper-parameters.json", *PATHS],
}


def table(**options):
    """Return options by name, from pools to options in one string."""
    return {f"--{name}": pool for pool, names in options.items() for name in names.split()}


# What each command takes: its arguments, and its options; "key*" is a list of some keys.
COMMANDS = {
    "fit": (
        ["source"],
        table(whole="max-events strategies top-n", number="gap baseline", out="output json")
        | {"--events": "events", "--keys": "key*", "--scoring": "scoring", "--engine": "engine"}
        | {"--log-events": "symbols", "--success": "condition"},
    ),
    "redistribute": (
        ["model", "source"],
        table(out="output json")
        | {"--turns": "", "--log-events": "symbols", "--success": "condition"},
    ),
    "redistribute --turns": (
        ["log model", "log"],
        table(out="output json", word="group") | {"--success": "condition", "--column": "column*"},
    ),
    "logs": (
        ["log"],
        table(out="json model", whole="strategies", word="group")
        | {"--events": "symbols", "--success": "condition", "--column": "column*"}
        | {"--per-task": ""},
    ),
    "show": (["model"], table(out="json") | {"--columns": ""}),
    "report": (["model", "source"], table(out="output", word="title env", whole="max-episodes")),
    "demo": ([], table(path="output json") | {"--seed": "negative"}),
    "reproduce": (
        ["study"],
        table(whole="trials max-episodes jobs", out="json", path="out", backend="backend")
        | {"--methods": "method*", "--demos": "whole*", "--hyperparameters": "tuned"},
    ),
    "tune": (
        [],
        table(whole="trials max-episodes jobs", out="json", path="out") | {"--methods": "method*"},
    ),
    "diamond demos": (
        [],
        table(
            whole="n seed max-steps keep",
            number="noise",
            word="choose",
            out="output figure model episodes json",
        ),
    ),
    "diamond train": (
        ["training"],
        table(
            whole="envs pool worlds evaluations processes process",
            number="steps gamma entropy",
            path="demos out",
            device="device",
            word="coordinator",
        )
        | {"--hidden": "whole*"},
    ),
    "diamond evaluate": (
        ["path"],
        table(whole="worlds seed max-steps", path="demos", out="figures video markdown json"),
    ),
    "minerl demos": (["path"], table(number="noise", whole="seed") | {"--world": "word*"}),
    "minerl check": (["path"], table(whole="workers", out="json") | {"--tasks": "word*"}),
    "minerl events": (
        ["path"],
        table(
            whole="n max-events frame-size latent steps seed",
            number="subgoal-share subgoal-threshold",
            out="output autoencoder figure json cache",
        ),
    ),
    "minerl train": (
        ["path", "model"],
        table(
            whole="environments skip frames epochs batch seed steps least-steps rollout patience "
            "trials evaluations workers burn-in manager-steps",
            number="enough fresh",
            path="out autoencoder cache",
        ),
    ),
    "minerl evaluate": (
        ["path", "model"],
        table(whole="episodes max-steps seed environments", out="json figures"),
    ),
}
OFTEN = ("fit", "fit", "fit", "redistribute", "redistribute", "report", "show", "logs", "logs")
SMALL = {  # where these run, they run for a second or two
    "reproduce": {"--trials": ["1"], "--max-episodes": ["10"], "--jobs": ["1"]}
    | {"--methods": ["bc-q"], "--demos": ["2"]},
    "tune": {"--trials": ["1"], "--max-episodes": ["10"], "--jobs": ["1"], "--methods": ["bc-q"]},
    # These would compile for minutes, so one thing is wrong in each.
    "diamond demos": {"--worlds": ["0"]},
    "diamond train": {"--seed": ["-1"]},
    "minerl demos": {"--n": ["1"]},
}


class Lines:
    """Cases of command lines.

    Args:
        folder: Where they run, each beside files of all kinds.
    """

    def __init__(self, folder):
        self.folder, self.home = folder / "here", folder / "files"
        self.home.mkdir()
        files = []
        for one in subjects(folder):
            if "/" in one.file:
                continue  # a part of a folder
            name = one.name.replace(" ", "-").removesuffix(Path(one.file).suffix)
            files.append(f"{name}{Path(one.file).suffix}")
            (self.home / files[-1]).write_bytes(one.content)
        for name in ("folder", "folder.npz"):
            (self.home / name).mkdir()
        for name in ("empty.npz", "empty.jsonl"):
            (self.home / name).write_bytes(b"")
        (self.home / "half.npz").write_bytes((self.home / "states.npz").read_bytes()[:900])
        logs = [n for n in files if n.startswith("log-") and n != "log-model.json"]
        endings = (".jsonl", ".fasta")
        sources = [n for n in files if "episodes" in n or n.endswith(endings) or n in logs]
        models = [n for n in files if n.endswith(".npz") and n not in sources]
        rare = [*files, *PATHS]
        self.pools = {**POOLS, "model": [*models * 6, *rare], "source": [*sources * 6, *rare]}
        self.pools |= {"log": [*logs * 20, *rare], "log model": ["log-model.json"] * 99 + rare}

    def make(self, case):
        """Return the name of a case and its command line."""
        rng = np.random.default_rng([0x11AE, case])
        name = draw(rng, [*COMMANDS, *OFTEN])
        arguments, options = COMMANDS[name]
        line = [*name.split(), *(draw(rng, self.pools[pool]) for pool in arguments)]
        chosen = dict(SMALL.get(name, {}))
        for option in rng.permutation(list(options))[: rng.integers(1, 4)].tolist():
            pool = options[option]
            n = int(rng.integers(4)) if pool.endswith("*") else len(pool[:1])
            chosen[option] = [draw(rng, self.pools[pool.rstrip("*")]) for _ in range(n)]
        for option, values in chosen.items():
            line += [option, *values]
        if rng.random() < 0.03:
            line.insert(int(rng.integers(len(line) + 1)), draw(rng, ["--help", "-h", "--x", ""]))
        return name, line

    def judge(self, line):
        """Return what became of a command line, in a word, and why."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.home, self.folder)
        os.chdir(self.folder)
        os.mkfifo("pipe")
        os.symlink("loop.npz", "loop.npz")
        shown, told = io.StringIO(), io.StringIO()
        try:
            with (
                contextlib.redirect_stdout(shown),
                contextlib.redirect_stderr(told),
                warnings.catch_warnings(),
                np.errstate(all="ignore"),
            ):
                warnings.simplefilter("ignore")
                status = main(line)
        except SystemExit as ended:  # from the parser, which has said why
            status = 2 if ended.code else 0
        except TimeoutError:
            return "hung", str(line)
        except BaseException:
            return "traceback", f"{line}\n{traceback.format_exc()}"
        error = told.getvalue()
        if status == 0:
            return "done", str(line)
        if status != 2 or "Traceback" in error:
            return "traceback", f"{line}\n{status} {error}"
        said = [part for part in error.splitlines() if part.startswith("error: ")]
        if len(said) != 1 and "For full helptext" not in error:
            return "no sentence", f"{line}\n{error}"
        return "refused", f"{line} {said[0] if said else 'not parsed'}"
