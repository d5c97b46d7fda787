"""Results in tables: how often each method finds the diamond, and each sub-goal on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from align_rudder.events.names import short_goal_names
from align_rudder.studies.diamond.methods import METHODS, label_of
from align_rudder.studies.tables import Table

__all__ = [
    "final_stage",
    "goals_rows",
    "goals_table",
    "results_rows",
    "results_table",
    "short_number",
    "wilson_interval",
]

_TOOL = "iron pickaxe"


def wilson_interval(
    successes: int | np.ndarray, trials: int | np.ndarray, z: float = 1.959963984540054
) -> tuple[Any, Any]:
    """Return the Wilson interval of a share, of 95 % unless `z` says otherwise.

    Args:
        successes: How many succeeded; an array for several shares.
        trials: Of how many.
        z: Quantile of the normal distribution.

    Notes:
        With p = k / n: (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n).

    Example:
        >>> low, high = wilson_interval(0, 10_000)
        >>> f"{low:.2%} to {high:.2%}"
        '0.00% to 0.04%'
    """
    k, n = np.asarray(successes, float), np.asarray(trials, float)
    if (n < 1).any() or (k < 0).any() or (k > n).any():
        raise ValueError(f"{successes} successes of {trials} trials: give 0 to all of 1 or more")
    p = k / n
    middle = p + z**2 / (2 * n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    scale = 1 + z**2 / n
    # At the ends the bound is p itself, which rounding would miss by 1e-17.
    low = np.where(k == 0, 0.0, (middle - half) / scale)
    high = np.where(k == n, 1.0, (middle + half) / scale)
    return (float(low), float(high)) if low.ndim == 0 else (low, high)


def short_number(value: float) -> str:
    """Return a number in few characters.

    Example:
        >>> short_number(8_000_000), short_number(1500), short_number(20)
        ('8 M', '1.5 k', '20')
    """
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


# Results


def final_stage(evaluation: Mapping[str, Any]) -> str:
    """Return which stage a training ends with: "manager" if it has one, else "agent"."""
    for stage in ("manager", "agent"):
        if stage in evaluation["stages"]:
            return stage
    raise ValueError(
        f"the evaluation of {evaluation['method']} has neither agent nor manager, "
        f"{'only ' + ', '.join(evaluation['stages']) if evaluation['stages'] else 'nor any stage'}"
        "; train to the end, then evaluate"
    )


def _steps(evaluation: Mapping[str, Any]) -> int:
    """Return the steps of a training, those made so far if it is not finished."""
    return evaluation.get("steps_so_far", evaluation["steps"])


def _row(label: str, runs: Sequence[Mapping[str, Any]], stage: str) -> dict[str, Any]:
    """Return the numbers of runs that differ in the seed of their training, counted together."""
    found = [run["stages"][stage] for run in runs]
    worlds, solved = sum(s["worlds"] for s in found), sum(s["solved"] for s in found)
    chain = list(found[0]["deepest"])
    deepest = Counter[str]()
    for counts in found:
        deepest.update(counts["deepest"])
    tools = chain[chain.index(_TOOL) :] if _TOOL in chain else []
    shares = [s["solved"] / s["worlds"] for s in found]
    # The seeds play the same worlds, so that an interval over all of them together would be too
    # narrow.
    one = len(runs) == 1
    low, high = wilson_interval(solved, worlds) if one else (min(shares), max(shares))
    return {
        "method": runs[0]["method"],
        "label": label,
        "stage": stage,
        "steps": None if stage == "cloned" else _steps(runs[0]),
        "seeds": [run["seed"] for run in runs],
        "max_steps": runs[0]["max_steps"],
        "worlds": worlds,
        "solved": solved,
        "share": solved / worlds,
        "low": low,
        "high": high,
        "iron_pickaxe": sum(deepest[item] for item in tools) / worlds if tools else None,
        "deepest": max((item for item in chain if deepest[item] > 0), key=chain.index),
    }


def results_rows(evaluations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row of numbers for each method and number of steps; seeds are counted together.

    Our system also has rows for behavioural cloning alone (once: it does not depend on the steps)
    and for its sub-agents without a main agent. Trainings of the same method with the same seed
    have rows of their own.

    Args:
        evaluations: Contents of `evaluation.json` of each training.
    """
    order = list(METHODS)
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    again: Counter[tuple[Any, ...]] = Counter()
    for found in evaluations:
        setting = (found["method"], _steps(found), found["max_steps"], final_stage(found))
        groups.setdefault((*setting, again[*setting, found["seed"]]), []).append(found)
        again[*setting, found["seed"]] += 1

    def place(setting: tuple[Any, ...]) -> tuple[int, int]:
        method, steps = setting[:2]
        return steps, order.index(method) if method in order else len(order)

    rows: list[dict[str, Any]] = []
    alone = all(setting[0] != order[0] for setting in groups)
    for setting in sorted(groups, key=place):
        runs = groups[setting]
        method, stage = str(setting[0]), setting[3]
        ours = method == order[0]
        if not rows and ours and all("cloned" in run["stages"] for run in runs):
            rows.append(_row("Behavioural cloning alone", runs, "cloned"))
        rows.append(_row(label_of(method, alone), runs, stage))
        if ours and stage == "manager" and all("agent" in run["stages"] for run in runs):
            rows.append(_row("… without the main agent", runs, "agent"))
    return rows


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2f}"


def results_table(evaluations: Sequence[Mapping[str, Any]], markdown: bool = False) -> str:
    """Return the table of all methods: diamonds, iron pickaxes, and the deepest item reached.

    Args:
        evaluations: Contents of `evaluation.json` of each training.
        markdown: Whether to return Markdown instead of text for a terminal.
    """
    rows = results_rows(evaluations)
    several = any(len(row["seeds"]) > 1 for row in rows)
    worlds = {row["worlds"] / len(row["seeds"]) for row in rows}
    span = "range" if several else "95 % interval"
    header = ["method", "steps"]
    header += ["seeds"] if several else []
    header += ["worlds"] if len(worlds) > 1 else []
    header += ["diamond %", span, f"{_TOOL} %", "deepest item"]
    cells = []
    for row in rows:
        cell = {
            "method": row["label"],
            "steps": "–" if row["steps"] is None else short_number(row["steps"]),
            "seeds": str(len(row["seeds"])),
            "worlds": f"{row['worlds']:,}",
            "diamond %": _percent(row["share"]),
            span: f"{_percent(row['low'])}–{_percent(row['high'])}",
            f"{_TOOL} %": _percent(row["iron_pickaxe"]),
            "deepest item": row["deepest"],
        }
        cells.append([cell[name] for name in header])
    limits = sorted({row["max_steps"] for row in rows})
    many = f"{worlds.pop():,.0f} " if len(worlds) == 1 else ""
    notes = [
        f"{many}new worlds{' for each seed' if many and several else ''}, at most "
        f"{' or '.join(f'{n:,}' for n in limits)} steps in each",
        "range: least and most of the seeds; of one seed, the 95 % Wilson interval over worlds"
        if several
        else "Wilson interval over worlds; one seed",
        "deepest item: reached in at least one world",
    ]
    notes = ["; ".join(notes)] if markdown else notes
    table = Table("Diamonds in new worlds", header, cells, tuple(notes))
    return table.markdown() if markdown else table.text()


def goals_rows(evaluation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return for each sub-goal the shares of demonstrations, after cloning and after fine-tuning.

    A stage that the training does not have is None.
    """
    stages = evaluation["stages"]
    counted = {
        "demonstrations": evaluation.get("demonstrations"),
        "cloned": stages.get("cloned"),
        "fine_tuned": stages[final_stage(evaluation)],
    }
    names = short_goal_names(evaluation["goals"])
    return [
        {"goal": name, "symbol": symbol}
        | {
            stage: found["reached"][k] / found["worlds"] if found else None
            for stage, found in counted.items()
        }
        for k, (name, symbol) in enumerate(zip(names, evaluation["goals"], strict=True))
    ]


def goals_table(evaluation: Mapping[str, Any], markdown: bool = False) -> str:
    """Return how often each sub-goal is reached: demonstrations, cloning, fine-tuning.

    Args:
        evaluation: Contents of `evaluation.json`.
        markdown: Whether to return Markdown instead of text for a terminal.
    """
    columns = ("demonstrations", "cloned", "fine_tuned")
    rows = [[r["goal"], *(_percent(r[c]) for c in columns)] for r in goals_rows(evaluation)]
    header = ["sub-goal", "demonstrations %", "BC %", "fine-tuned %"]
    stage, method = evaluation["stages"][final_stage(evaluation)], evaluation["method"]
    steps = short_number(_steps(evaluation))
    notes = [f"fine-tuned: {stage['worlds']:,} new worlds, after {steps} steps"]
    if evaluation.get("demonstrations"):
        notes.append(f"demonstrations: {evaluation['demonstrations']['worlds']}")
    table = Table(f"Sub-goals reached, {label_of(method)}", header, rows, tuple(notes))
    return table.markdown() if markdown else table.text()
