"""Measure in how many recipes the order of the items is found from event logs of other layouts.

    python tools/orders_study.py --tasks 100

writes `results/orders/recipes.json`. Task k has the seed 2000 + k; smaller and larger ones were
looked at while the search was made quicker.
"""

import argparse
import json
import warnings
from pathlib import Path

from tqdm.auto import tqdm

import align_rudder as ar
from align_rudder.tasks import RecipesEnv

ROOT = Path(__file__).parents[1]
FIRST = 2000
SETTINGS = {
    "4 items, 10 logs": {"length": 4},
    "8 items, 10 logs": {"length": 8},
    "12 items, 10 logs": {"length": 12},
    "8 items, 10 logs, 10 distractors": {"length": 8, "distractors": 10},
}
LOGS = 10


def orders(tasks: int) -> dict[str, dict[str, int]]:
    """Return in how many tasks the columns are the recipe, and in how many nothing was found."""
    out = {}
    for name, options in SETTINGS.items():
        right = nothing = 0
        for seed in tqdm(range(FIRST, FIRST + tasks), desc=name, leave=False):
            envs = [RecipesEnv(seed=[seed, j], recipe_seed=seed, **options) for j in range(LOGS)]
            model = ar.AlignRudder().fit_events([env.log(j) for j, env in enumerate(envs)])
            recipe = [envs[0].symbols[item] for item in envs[0].recipe]
            found = [] if model.profile_ is None else model.profile_.top_events.tolist()
            names = [str(model.events_.symbols_[event]).split(",")[0] for event in found]
            right += names == recipe
            nothing += not found
        out[name] = {"tasks": tasks, "right": right, "nothing": nothing}
    return out


def main() -> None:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tasks", type=int, default=100, help="recipes for each row")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "orders")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ar.AlignRudderWarning)
    text = json.dumps(orders(args.tasks), indent=2) + "\n"
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "recipes.json").write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
