"""Many cases, in a process that may die of one: `python -m fuzzing files -n 1000`."""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzzing.files import Files
from fuzzing.lines import Lines

FAILURES = ("no sentence", "wrong", "hung", "traceback", "killed")
_KINDS = {"files": Files, "lines": Lines}
_SECONDS = {"files": 30, "lines": 120}  # after which a case hangs
_MEMORY = {"files": 8 * 2**30, "lines": 32 * 2**30}


def run_cases(kind, first, n, out):
    """Run cases one after the other, and note in a file what became of each."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY[kind], _MEMORY[kind]))

    def late(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, open(out, "a") as notes:
        cases = _KINDS[kind](Path(folder))
        for case in range(first, first + n):
            name, made = cases.make(case)
            notes.write(f"{case}\t{name}\t")
            notes.flush()  # so that it is known who killed the process
            signal.setitimer(signal.ITIMER_REAL, _SECONDS[kind])
            word, why = cases.judge(made)
            signal.setitimer(signal.ITIMER_REAL, 0)
            notes.write(f"{word}\t{json.dumps(why)}\n")


def supervise(kind, first, n, out):
    """Run cases in a process of their own, and go on behind a case that kills it."""
    out = Path(out).resolve()
    out.unlink(missing_ok=True)
    case = first
    while case < first + n:
        command = [sys.executable, "-m", "fuzzing", kind, "--out", str(out), "--run"]
        command += ["--first", str(case), "-n", str(first + n - case)]
        with tempfile.TemporaryFile("w+") as told:
            process = subprocess.Popen(command, stdout=told, stderr=told)
            why = _wait(process, out, 3 * _SECONDS[kind])
            told.seek(0)
            why = why or told.read()[-2000:]
        rows = read(out)
        if rows and not rows[-1][2]:
            with open(out, "a") as notes:
                notes.write(f"killed\t{json.dumps(why or 'the process ended')}\n")
        elif len(rows) < n + first - case and (not rows or rows[-1][0] < first + n - 1):
            raise RuntimeError(f"the fuzzer itself failed behind {rows[-1:]}: {why}")
        case = read(out)[-1][0] + 1
    return read(out)


def _wait(process, out, seconds):
    """Wait for a process, and end it where its case does not come to an end; return why it died."""
    size, since = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(0.1)
        now = out.stat().st_size if out.exists() else 0
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > seconds:
            process.kill()
            process.wait()
            return "it hung in compiled code"
    return f"signal {-process.returncode}" if process.returncode < 0 else None


def read(out):
    """Return (case, kind, outcome, why) of each line; of the case that runs, an empty outcome."""
    rows = []
    for line in Path(out).read_text().split("\n") if os.path.exists(out) else []:
        case, name, word, why = [*line.split("\t"), "", "", ""][:4]
        if name:
            rows.append((int(case), name, word, json.loads(why) if why else ""))
    return rows


def failures(rows):
    """Return the cases that failed."""
    return [row for row in rows if row[2] in FAILURES]


def main(arguments=None):
    """Run cases, or one of them again."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("kind", choices=list(_KINDS), help="what to make cases of")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("-n", type=int, default=1000, help="how many cases")
    parser.add_argument("--out", default="fuzz.tsv", help="file for what became of each")
    parser.add_argument("--again", type=int, help="run this case alone; its files stay")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.run:
        run_cases(given.kind, given.first, given.n, given.out)
        return 0
    if given.again is not None:
        folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{given.again}-"))
        cases = _KINDS[given.kind](folder)
        name, made = cases.make(given.again)
        print(f"{name} in {folder}: {made}")
        print(*cases.judge(made), sep=": ")
        return 0
    began = time.monotonic()
    rows = supervise(given.kind, given.first, given.n, given.out)
    for case, name, word, why in failures(rows):
        print(f"case {case} ({name}): {word}\n{why}\n")
    print(dict(Counter(row[2] for row in rows)), f"in {time.monotonic() - began:.0f} s")
    return 1 if failures(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
