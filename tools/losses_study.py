"""Recipes that spoil: a wrong item costs the last right one. Are losses found without being told?

    python tools/losses_study.py --trials 20

Ten demonstrations of other layouts, as logs of what was visited or as what was held; then Q(λ) on a
new layout, where the agent sees only where it is. Seeds begin at 50000. Writes
`results/losses/recipes.json` and the table in `docs/method.md`.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from tqdm.auto import tqdm

import align_rudder as ar
from align_rudder.baselines import Protocol, learn_align_rudder, learn_q
from align_rudder.tasks import RecipesEnv

ROOT = Path(__file__).parents[1]
FIRST, CAP, LENGTHS = 50_000, 3000, (4, 6)
PROTOCOL = Protocol(max_episodes=CAP, evaluation_epsilon=0.0, evaluation_episodes=1)
WAYS = (
    "plain reward",
    "logs, losses not known",
    "logs, losses named by hand",
    "what is held, `undo=None`",
    "what is held, losses found (default)",
)


def others(length: int, seed: int) -> list[RecipesEnv]:
    """Return ten other layouts of a recipe."""
    return [RecipesEnv(length, seed=[seed, j], recipe_seed=seed, wrong="undo") for j in range(10)]


def held(env: RecipesEnv, j: int) -> ar.Episode:
    """Return a demonstration as what is held after each event."""
    log = env.log(j)
    return ar.Episode(env.held(log), np.zeros(len(log), int), np.eye(len(log))[-1])


def one(length: int, way: str, seed: int) -> int:
    """Return the episodes that a trial takes, `CAP` if it fails."""
    warnings.simplefilter("ignore", ar.AlignRudderWarning)
    env = RecipesEnv(length, seed=seed, recipe_seed=seed, wrong="undo")
    options = {"seed": seed, "protocol": PROTOCOL}
    if way == "plain reward":
        rule = {"learning_rate": 0.2, "trace": 0.8, "gamma": 0.99}
        return learn_q(env.mdp, [], returns=[1.0], **rule, **options).episodes
    if way.startswith("logs"):
        logs = [other.log(j) for j, other in enumerate(others(length, seed))]
        model = ar.AlignRudder(undo=env.undo if "hand" in way else None).fit_events(logs)
        return learn_align_rudder(env.mdp, [], model=model, turns=None, **options).episodes
    demos = [held(other, j) for j, other in enumerate(others(length, seed))]
    undo = "auto" if "found" in way else None
    model = ar.AlignRudder(ar.DeltaEvents(max_share=1.0), undo=undo).fit(demos)
    events = env.events_of(model.events_)
    return learn_align_rudder(
        env.mdp, [], model=model, events=events, turns=None, **options
    ).episodes


def table(results: dict[str, list[int]]) -> str:
    """Return the results as a table of Markdown: mean episodes, and the share solved if not all."""
    lines = ["| | " + " | ".join(f"L = {n}" for n in LENGTHS) + " |", "|---|---|---|"]
    for way in WAYS:
        cells = []
        for length in LENGTHS:
            found = np.array(results[f"{way}, {length}"])
            solved = (found < CAP).mean()
            cells.append(f"{found.mean():.0f}" + (f" ({solved:.0%})" if solved < 1 else ""))
        lines.append(f"| {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run all trials, write the file and the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--trials", type=int, default=20, help="trials of each cell")
    parser.add_argument("--jobs", type=int, default=-1, help="processes")
    args = parser.parse_args()
    jobs = [(n, w, FIRST + k) for n in LENGTHS for w in WAYS for k in range(args.trials)]
    run = Parallel(n_jobs=args.jobs, return_as="generator", batch_size=4)
    found = tqdm(run(delayed(one)(*job) for job in jobs), total=len(jobs), mininterval=10)
    results: dict[str, list[int]] = {}
    for (length, way, _), episodes in zip(jobs, found, strict=True):
        results.setdefault(f"{way}, {length}", []).append(int(episodes))
    about = {"first_seed": FIRST, "trials": args.trials, "cap": CAP}
    path = ROOT / "results" / "losses" / "recipes.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"settings": about, "episodes": results}, indent=1) + "\n", "utf-8")
    print(text := table(results))
    page = ROOT / "docs" / "method.md"
    before, marked, rest = page.read_text("utf-8").partition("<!-- losses: table -->\n")
    _, end, after = rest.partition("<!-- end -->\n")
    if marked and end:
        page.write_text(before + marked + "\n" + text + "\n\n" + end + after, "utf-8")


if __name__ == "__main__":
    main()
