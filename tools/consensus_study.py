"""Count how often the consensus of ten logs is the recipe.

    python tools/consensus_study.py

Tasks begin at seed 70000; those below were looked at while the search was made.
Writes `results/noise/consensus.json`.
"""

import json
import warnings
from itertools import product
from pathlib import Path

from tqdm.auto import tqdm

import align_rudder as ar
from align_rudder.studies.recipes.settings import Setting
from align_rudder.studies.recipes.worlds import environment, model_of

FIRST, TASKS = 70_000, 150
POOR = (
    Setting(12, missing=0.05),
    Setting(12, missing=0.1),
    Setting(12, foreign=1),
    Setting(12, foreign=2),
    Setting(12, logs=5),
)


def is_right(setting: Setting, seed: int) -> bool:
    """Return whether the only strategy of a task's logs is its recipe."""
    env = environment(setting, seed)
    with warnings.catch_warnings(action="ignore", category=ar.AlignRudderWarning):
        strategies = model_of(setting, seed).strategies_
    found = [[str(g.symbol).removesuffix(", paid") for g in s.subgoals] for s in strategies]
    return found == [[env.symbols[item] for item in env.recipe]]


def main() -> None:
    """Count, and write the file."""
    seeds = range(FIRST, FIRST + TASKS)
    right = {}
    for detours, n in product((0.5, 1.0), (4, 8, 12, 24)):
        name = f"{n} items, {detours:.0%} detours"
        setting = Setting(n, detours=detours)
        right[name] = sum(is_right(setting, s) for s in tqdm(seeds, name, leave=False))
    for setting in POOR:
        name = f"12 items, {setting.logs} logs, {setting.missing:.0%} of the events missing, "
        name += f"{setting.foreign} logs shuffled"
        right[name] = sum(is_right(setting, s) for s in tqdm(seeds, name, leave=False))
    text = json.dumps({"first_seed": FIRST, "tasks": TASKS, "right": right}, indent=1) + "\n"
    path = Path(__file__).parents[1] / "results" / "noise" / "consensus.json"
    path.write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
