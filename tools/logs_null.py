"""Whether anything tells where nothing can: `python tools/logs_null.py LOG`.

The outcomes of a log are dealt anew, over all runs, within tasks, or by a chance that each task
has, and those of a made-up log as well. Then nothing makes a run fail; how often something is said
to is counted.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from logs.planted import planted
from logs.test_learning import dealt

from align_rudder.data.logs import RunLog, read_log
from align_rudder.files import write_json
from align_rudder.logs import LogModel, report_data


def dealt_over_all(log: RunLog, seed: int) -> RunLog:
    """Return a log with its outcomes dealt anew over all runs, as though there were one task."""
    one = RunLog(tuple(replace(run, group=None) for run in log.runs))
    mixed = dealt(one, seed, within=True)
    groups = (run.group for run in log.runs)
    runs = (replace(run, group=group) for run, group in zip(mixed.runs, groups, strict=True))
    return RunLog(tuple(runs))


def main() -> None:
    """Deal, fit, count, write."""
    parser = argparse.ArgumentParser(description="False alarms")
    parser.add_argument("log", type=Path)
    parser.add_argument("--sets", type=int, default=50)
    parser.add_argument("--json", type=Path, default=Path("results/logs/null.json"))
    given = parser.parse_args()
    real, rows = read_log(given.log), []
    for how in ("over all", "within tasks", "by task"):
        for name in ("the log", "made up"):
            alarms = 0
            for seed in range(given.sets):
                log = real if name == "the log" else planted(seed, "left out", tasks=8).log
                if how == "over all":
                    log = dealt_over_all(log, seed)
                else:
                    log = dealt(log, seed, within=how == "within tasks")
                data = report_data(model := LogModel().fit(log), log)
                named = any(row["telling"] for row in data["divergences"])
                alarms += bool(model.contrast_.telling.any() or named)
            rows.append({"dealt": how, "log": name, "sets": given.sets, "alarms": alarms})
            print(rows[-1], flush=True)
    write_json(given.json, {"rows": rows})


if __name__ == "__main__":
    main()
