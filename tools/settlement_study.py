"""Compare the ways to settle, to pay in order and to observe progress, for learners on tables.

    python tools/settlement_study.py --trials 20

runs what `results/settlement/tabular.json` does not hold and writes it, and the table in
`docs/method.md`; delete the file to run everything again. Each learner is Q(λ)
with γ = 0.99, λ = 0.8 and a learning rate of 0.2, cloned from the demonstrations where these have
states. These and the way of aligning were chosen on seeds below 30000, where the study begins.
"""

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from joblib import Parallel, delayed
from tqdm.auto import tqdm

import align_rudder as ar
from align_rudder.baselines import (
    Protocol,
    Result,
    TabularMDP,
    learn_align_rudder,
    learn_q,
    rollout,
)
from align_rudder.settlement import Settlement
from align_rudder.tasks import RecipesEnv, RoomsEnv
from align_rudder.tasks.mdp import optimal_policy

ROOT = Path(__file__).parents[1]
PATH = ROOT / "results" / "settlement" / "tabular.json"
FIRST, CAP = 30_000, 3000
RULE = {"learning_rate": 0.2, "trace": 0.8, "gamma": 0.99}
SETTLEMENTS = ("mean", "annealed", "even", "potential", "last", "beside")
WAYS: dict[str, dict[str, Any]] = {
    "plain reward": {},
    "position observed, nothing paid on the way": {"settlement": Settlement(successes=0)},
    **{kind: {"settlement": kind} for kind in SETTLEMENTS},
    "shares alone (the paper's tables)": {"settlement": None},
    "mean, order paid less (skip=1)": {"settlement": "mean", "skip": 1.0},
    "mean, order not paid (skip=0)": {"settlement": "mean", "skip": 0.0},
    "mean, progress not observed": {"settlement": "mean", "progress": False},
}


def rooms(rooms: int, n: int) -> Callable[..., Result]:
    """Return a trial in rooms with n demonstrations."""

    def trial(way: dict[str, Any], seed: int) -> Result:
        env = RoomsEnv(rooms)
        return on_table(env.mdp, env.demonstrations(n, seed), way, seed)

    return trial


def lake(way: dict[str, Any], seed: int) -> Result:
    """Return a trial on a frozen lake of 8 × 8 cells without slipping, five demonstrations."""
    mdp = TabularMDP.from_gymnasium(gym.make("FrozenLake-v1", map_name="8x8", is_slippery=False))
    rng, policy, demos = np.random.default_rng(seed), optimal_policy(mdp), []
    while len(demos) < 5:
        episode = rollout(mdp, policy, rng, 0.3)
        demos += [episode] * (episode.ret > 0)
    return on_table(mdp, demos, way, seed)


def on_table(mdp: TabularMDP, demos: list[ar.Episode], way: dict[str, Any], seed: int) -> Result:
    """Learn from demonstrations of the same table."""
    protocol = Protocol(max_episodes=CAP)
    if not way:
        return learn_q(mdp, demos, seed=seed, protocol=protocol, **RULE)
    way = dict(way)
    options = {"skip": way.pop("skip")} if "skip" in way else None
    return learn_align_rudder(
        mdp, demos, seed=seed, protocol=protocol, options=options, **RULE, **way
    )


def recipes(length: int, wrong: str) -> Callable[..., Result]:
    """Return a trial on a new layout with ten logs of others; what is held is hidden."""

    def trial(way: dict[str, Any], seed: int) -> Result:
        protocol = Protocol(max_episodes=CAP, evaluation_epsilon=0.0, evaluation_episodes=1)
        env = RecipesEnv(length, seed=seed, recipe_seed=seed, wrong=wrong)
        if not way:
            return learn_q(env.mdp, [], seed=seed, returns=[1.0], protocol=protocol, **RULE)
        logs = [
            RecipesEnv(length, seed=[seed, j], recipe_seed=seed, wrong=wrong).log(j)
            for j in range(10)
        ]
        way = dict(way)
        options = {"skip": way.pop("skip")} if "skip" in way else {}
        model = ar.AlignRudder(undo=env.undo or None, **options).fit_events(logs)
        # One thing is measured: without turns the model is the same from begin to end.
        return learn_align_rudder(
            env.mdp, [], seed=seed, model=model, turns=None, protocol=protocol, **RULE, **way
        )

    return trial


TASKS: dict[str, Callable[..., Result]] = {
    "FourRooms, 2": rooms(4, 2),
    "FourRooms, 10": rooms(4, 10),
    "EightRooms, 2": rooms(8, 2),
    "EightRooms, 10": rooms(8, 10),
    "FrozenLake 8×8": lake,
    "Recipes, L = 8": recipes(8, "nothing"),
    "Recipes, L = 12": recipes(12, "nothing"),
    "Recipes that spoil, L = 4": recipes(4, "undo"),
}


def one(task: str, way: str, seed: int) -> int:
    """Return the episodes that a trial takes, `CAP` if it fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ar.AlignRudderWarning)
        return TASKS[task](WAYS[way], seed).episodes


def table(results: dict[str, dict[str, list[int]]]) -> str:
    """Return the results as a table of Markdown: mean episodes, and the share solved if not all."""
    lines = ["| | " + " | ".join(TASKS) + " |", "|---" * (len(TASKS) + 1) + "|"]
    for way in WAYS:
        cells = []
        for task in TASKS:
            found = np.array(results[task][way])
            solved = (found < CAP).mean()
            cells.append(f"{found.mean():.0f}" + (f" ({solved:.0%})" if solved < 1 else ""))
        lines.append(f"| {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def known(about: dict[str, Any]) -> dict[str, dict[str, list[int]]]:
    """Return the episodes of the trials that were run before with these settings."""
    if not PATH.exists():
        return {}
    kept = json.loads(PATH.read_text("utf-8"))
    if kept["settings"] != about:
        raise ValueError(
            f"{PATH} was made with {kept['settings']}, not {about}; delete it to run all trials"
        )
    return kept["episodes"]


def main() -> None:
    """Run the trials that are missing, write the file and the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20, help="trials of each cell")
    parser.add_argument("--jobs", type=int, default=-1, help="processes")
    args = parser.parse_args()
    about = {"first_seed": FIRST, "cap": CAP, "trials": args.trials, **RULE}
    there = known(about)
    jobs = [
        (t, w, FIRST + s)
        for t in TASKS
        for w in WAYS
        if w not in there.get(t, {})
        for s in range(args.trials)
    ]
    run = Parallel(n_jobs=args.jobs, return_as="generator", batch_size=8)
    found = list(tqdm(run(delayed(one)(*job) for job in jobs), total=len(jobs)))
    results = {t: {w: list(there.get(t, {}).get(w, [])) for w in WAYS} for t in TASKS}
    for (task, way, _), episodes in zip(jobs, found, strict=True):
        results[task][way].append(int(episodes))
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(json.dumps({"settings": about, "episodes": results}, indent=1) + "\n", "utf-8")
    text = table(results)
    print(text)
    page = ROOT / "docs" / "method.md"
    before, marked, rest = page.read_text("utf-8").partition("<!-- settlement: tables -->\n")
    _, end, after = rest.partition("<!-- end -->\n")
    if marked and end:
        page.write_text(before + marked + "\n" + text + "\n\n" + end + after, "utf-8")


if __name__ == "__main__":
    main()
