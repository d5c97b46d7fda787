"""Learn from poor demonstrations: does it help to have more of them?

    python tools/poor_study.py --trials 20

EightRooms where a tenth of the moves slip. Demonstrations are successful episodes in which 30, 50
or 70 % of the actions were random. A trial counts the episodes until a greedy policy earns 90 % of
what the best policy earns, whatever the demonstrations did. Seeds begin at 70000; smaller ones were
looked at while defaults were chosen. Writes `results/poor/trials.json` and the table in
`docs/method.md`.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from tqdm.auto import tqdm

import align_rudder as ar
from align_rudder.baselines import Protocol, learn_align_rudder, learn_q
from align_rudder.tasks import RoomsEnv
from align_rudder.tasks.mdp import best_return

ROOT = Path(__file__).parents[1]
FIRST, CAP = 70_000, 3000
ROOMS, SLIP, TARGET = 8, 0.1, 0.9
SHARES, NUMBERS = (0.3, 0.5, 0.7), (2, 5, 10)
WAYS = {"Align-RUDDER": {}, 'settlement "even"': {"settlement": "even"}, "plain reward": None}
PLAIN = {"learning_rate": 0.2, "trace": 0.8, "gamma": 0.99}  # as `learn_align_rudder` has them


def one(share: float, n: int, way: str, seed: int) -> int:
    """Return the episodes that a trial takes, `CAP` if it fails."""
    env = RoomsEnv(ROOMS, slip=SLIP)
    demos = env.demonstrations(n, seed, exploration=share)
    target = TARGET * best_return(env.mdp) / float(np.mean([demo.ret for demo in demos]))
    protocol = Protocol(target=target, max_episodes=CAP, evaluation_epsilon=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ar.AlignRudderWarning)
        options: dict[str, Any] | None = WAYS[way]
        if options is None:
            return learn_q(env.mdp, demos, seed=seed, protocol=protocol, **PLAIN).episodes
        return learn_align_rudder(env.mdp, demos, seed=seed, protocol=protocol, **options).episodes


def table(results: dict[str, list[int]]) -> str:
    """Return the results as a table of Markdown: mean episodes, and the share solved if not all."""
    heads = [f"{share:.0%}, {n}" for share in SHARES for n in NUMBERS]
    lines = ["| random actions, demonstrations | " + " | ".join(heads) + " |"]
    lines.append("|---" * (len(heads) + 1) + "|")
    for way in WAYS:
        cells = []
        for head in heads:
            found = np.array(results[f"{way}, {head}"])
            error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
            solved = (found < CAP).mean()
            cells.append(
                f"{found.mean():.0f} ± {error:.0f}" + (f" ({solved:.0%})" if solved < 1 else "")
            )
        lines.append(f"| {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run all trials, write the file and the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--trials", type=int, default=20, help="trials of each cell")
    parser.add_argument("--first", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--jobs", type=int, default=-1, help="processes")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "poor")
    args = parser.parse_args()
    jobs = [
        (share, n, way, args.first + k)
        for share in SHARES
        for n in NUMBERS
        for way in WAYS
        for k in range(args.trials)
    ]
    run = Parallel(n_jobs=args.jobs, return_as="generator", batch_size=4)
    results: dict[str, list[int]] = {}
    found = tqdm(run(delayed(one)(*job) for job in jobs), total=len(jobs), mininterval=10)
    for (share, n, way, _), episodes in zip(jobs, found, strict=True):
        results.setdefault(f"{way}, {share:.0%}, {n}", []).append(int(episodes))
    args.output.mkdir(parents=True, exist_ok=True)
    about = {
        "first_seed": args.first,
        "trials": args.trials,
        "cap": CAP,
        "rooms": ROOMS,
        "slip": SLIP,
        "target": TARGET,
        "best_return": best_return(RoomsEnv(ROOMS, slip=SLIP).mdp),
    }
    text = json.dumps({"settings": about, "episodes": results}, indent=1) + "\n"
    (args.output / "trials.json").write_text(text, "utf-8")
    print(text := table(results))
    page = ROOT / "docs" / "method.md"
    before, marked, rest = page.read_text("utf-8").partition("<!-- poor: table -->\n")
    _, end, after = rest.partition("<!-- end -->\n")
    if marked and end and args.first == FIRST:
        page.write_text(before + marked + "\n" + text + "\n\n" + end + after, "utf-8")


if __name__ == "__main__":
    main()
