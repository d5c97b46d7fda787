"""Measure how much of the reward is on keys hidden in noise, and how often noise is no strategy.

    python tools/noise_study.py --sets 100

writes `results/noise/keys.json` and `results/noise/silence.json`. The sequences come from
`tests/noise.py`; set k has the seed 1000 + k, as smaller ones were looked at while thresholds were
chosen.
"""

import argparse
import json
import sys
import warnings
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

import align_rudder as ar

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from noise import KEYS, NOTHING, keys_in_noise, share_on_keys  # noqa: E402

FIRST = 1000


def keys(sets: int) -> dict[str, dict[str, float]]:
    """Return mean and least share of the reward on the keys, and in how many sets it is 90 %."""
    out = {}
    for name, setting in KEYS.items():
        shares = []
        for seed in tqdm(range(sets), desc=name, leave=False):
            sequences = keys_in_noise(np.random.default_rng(FIRST + seed), *setting)
            shares.append(share_on_keys(ar.AlignRudder().fit_events(sequences), sequences))
        out[name] = {
            "sets": sets,
            "mean": round(float(np.mean(shares)), 4),
            "least": round(float(np.min(shares)), 4),
            "at_least_90": int(np.sum(np.array(shares) >= 0.9)),
        }
    return out


def silence(sets: int) -> dict[str, dict[str, int]]:
    """Return in how many sets nothing was found."""
    out = {}
    for name, (make, length, kinds) in NOTHING.items():
        silent = 0
        for seed in tqdm(range(sets), desc=name, leave=False):
            sequences = make(np.random.default_rng(FIRST + seed), length, kinds)
            silent += not ar.AlignRudder().fit_events(sequences).strategies_
        out[name] = {"sets": sets, "silent": silent}
    return out


def main() -> None:
    """Measure both and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=100, help="sets of ten sequences for each row")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "noise")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ar.AlignRudderWarning)
    args.output.mkdir(parents=True, exist_ok=True)
    for name, measure in {"keys": keys, "silence": silence}.items():
        text = json.dumps(measure(args.sets), indent=2) + "\n"
        (args.output / f"{name}.json").write_text(text, "utf-8")
        print(text, end="")


if __name__ == "__main__":
    main()
