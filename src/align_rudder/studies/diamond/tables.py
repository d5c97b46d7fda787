"""Results in tables: how often each method finds the diamond, and each sub-goal on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from align_rudder.studies.diamond.methods import OURS, label_of, order_of
from align_rudder.studies.statistics import wilson_interval
from align_rudder.studies.tables import Table
from align_rudder.tasks.diamond.names import goal_names
from align_rudder.text import short_number

__all__ = [
    "GIVEN_UP",
    "endings_rows",
    "endings_table",
    "final_stage",
    "goals_rows",
    "goals_table",
    "range_of",
    "results_rows",
    "results_table",
]

_TOOL = "iron pickaxe"
GIVEN_UP = "given up"
"""How an episode ends that still ran when its evaluation had no more steps for it."""


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2f}"


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


def range_of(solved: ArrayLike, worlds: ArrayLike) -> tuple[Any, Any]:
    """Return the least and the most share of the seeds (S, …); the 95 % interval of a single one.

    The seeds play the same worlds, so that an interval over all of them together would be too
    narrow.
    """
    solved, worlds = np.asarray(solved), np.asarray(worlds)
    if len(solved) == 1:
        return wilson_interval(solved[0], worlds[0])
    shares = solved / worlds
    return shares.min(axis=0), shares.max(axis=0)


def _row(label: str, runs: Sequence[Mapping[str, Any]], stage: str) -> dict[str, Any]:
    """Return the numbers of runs that differ in the seed of their training, counted together."""
    found = [run["stages"][stage] for run in runs]
    worlds, solved = sum(s["worlds"] for s in found), sum(s["solved"] for s in found)
    chain, deepest = list(found[0]["deepest"]), Counter[str]()
    for counts in found:
        deepest.update(counts["deepest"])
    tools = chain[chain.index(_TOOL) :] if _TOOL in chain else []
    low, high = range_of([s["solved"] for s in found], [s["worlds"] for s in found])
    endings = Counter[str]()
    for counts in found:
        endings.update(counts.get("endings", {}))
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
        "low": float(low),
        "high": float(high),
        "iron_pickaxe": sum(deepest[item] for item in tools) / worlds if tools else None,
        "deepest": max((item for item in chain if deepest[item] > 0), key=chain.index),
        "endings": {**endings, GIVEN_UP: worlds - endings.total()}
        if all("endings" in counts for counts in found)
        else None,
    }


def results_rows(evaluations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row of numbers for each method and number of steps; seeds are counted together.

    Our system also has rows for behavioural cloning alone (once: it does not depend on the steps)
    and for its sub-agents without a manager. Trainings of the same method with the same seed have
    rows of their own.

    Args:
        evaluations: Contents of `evaluation.json` of each training.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    again: Counter[tuple[Any, ...]] = Counter()
    for found in evaluations:
        method, steps, limit = found["method"], _steps(found), found["max_steps"]
        setting = (steps, order_of(method), method, limit, final_stage(found))
        groups.setdefault((*setting, again[*setting, found["seed"]]), []).append(found)
        again[*setting, found["seed"]] += 1
    alone = all(found["method"] != OURS for found in evaluations)
    rows: list[dict[str, Any]] = []
    for (_, _, method, _, stage, _), runs in sorted(groups.items(), key=lambda group: group[0][:2]):
        every = set.intersection(*(set(run["stages"]) for run in runs))
        if not rows and method == OURS and "cloned" in every:
            rows.append(_row("Behavioural cloning alone", runs, "cloned"))
        rows.append(_row(label_of(method, alone), runs, stage))
        if method == OURS and stage == "manager" and "agent" in every:
            rows.append(_row("… without the manager", runs, "agent"))
    return rows


def results_table(evaluations: Sequence[Mapping[str, Any]], markdown: bool = False) -> str:
    """Return the table of all methods: diamonds, iron pickaxes, and the deepest item reached.

    Args:
        evaluations: Contents of `evaluation.json` of each training.
        markdown: Whether to return Markdown instead of text for a terminal.
    """
    rows = results_rows(evaluations)
    several = any(len(row["seeds"]) > 1 for row in rows)
    worlds = {row["worlds"] / len(row["seeds"]) for row in rows}
    columns = {
        "method": lambda row: row["label"],
        "steps": lambda row: "–" if row["steps"] is None else short_number(row["steps"]),
        "seeds": lambda row: str(len(row["seeds"])),
        "worlds": lambda row: f"{row['worlds']:,}",
        "diamond %": lambda row: _percent(row["share"]),
        "range" if several else "95 % interval": lambda row: (
            f"{_percent(row['low'])}–{_percent(row['high'])}"
        ),
        f"{_TOOL} %": lambda row: _percent(row["iron_pickaxe"]),
        "deepest item": lambda row: row["deepest"],
    }
    if not several:
        del columns["seeds"]
    if len(worlds) == 1:
        del columns["worlds"]
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
    cells = [[cell(row) for cell in columns.values()] for row in rows]
    notes = ["; ".join(notes)] if markdown else notes
    table = Table("Diamonds in new worlds", list(columns), cells, tuple(notes))
    return table.markdown() if markdown else table.text()


# Endings


def endings_rows(evaluations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return those of `results_rows` whose endings were counted; "given up" is one of them."""
    return [row for row in results_rows(evaluations) if row["endings"] is not None]


def endings_table(evaluations: Sequence[Mapping[str, Any]]) -> str:
    """Return how the episodes of each method ended; `ValueError` if that was counted for none.

    Args:
        evaluations: Contents of `evaluation.json` of each training.
    """
    rows = endings_rows(evaluations)
    if not rows:
        raise ValueError(
            "how episodes ended was not counted, as in all evaluations of before; delete "
            "evaluation.json beside the agents, and evaluate again"
        )
    names = list(dict.fromkeys(name for row in rows for name in row["endings"]))
    seen = [name for name in names if any(row["endings"].get(name) for row in rows)]
    several = len({row["steps"] for row in rows if row["steps"] is not None}) > 1
    header = ["method", *(["steps"] if several else []), *seen]
    cells = []
    for row in rows:
        steps = "–" if row["steps"] is None else short_number(row["steps"])
        shares = [_percent(row["endings"].get(name, 0) / row["worlds"]) for name in seen]
        cells.append([row["label"], *([steps] if several else []), *shares])
    never = [name for name in names if name not in seen]
    left_out = [row["label"] for row in results_rows(evaluations) if row["endings"] is None]
    notes = [f"in no world: {', '.join(never)}"] if never else []
    if left_out:
        notes.append(f"counted before endings were: {', '.join(dict.fromkeys(left_out))}")
    return Table("How episodes ended, in % of new worlds", header, cells, tuple(notes)).text()


# Sub-goals


def goals_rows(evaluation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return for each sub-goal the shares of demonstrations, after cloning and after fine-tuning.

    A stage that the training does not have is None.
    """
    stages, symbols = evaluation["stages"], evaluation["goals"]
    counted = {
        "demonstrations": evaluation.get("demonstrations"),
        "cloned": stages.get("cloned"),
        "fine_tuned": stages[final_stage(evaluation)],
    }
    return [
        {"goal": name, "symbol": symbol}
        | {
            stage: found["reached"][k] / found["worlds"] if found else None
            for stage, found in counted.items()
        }
        for k, (name, symbol) in enumerate(zip(goal_names(symbols), symbols, strict=True))
    ]


def goals_table(evaluation: Mapping[str, Any]) -> str:
    """Return how often each sub-goal is reached: demonstrations, cloning, fine-tuning.

    Args:
        evaluation: Contents of `evaluation.json`.
    """
    header = {"demonstrations": "demonstrations %", "cloned": "BC %", "fine_tuned": "fine-tuned %"}
    rows = [[r["goal"], *(_percent(r[c]) for c in header)] for r in goals_rows(evaluation)]
    worlds = evaluation["stages"][final_stage(evaluation)]["worlds"]
    steps = short_number(_steps(evaluation))
    notes = [f"fine-tuned: {worlds:,} new worlds, after {steps} steps"]
    if evaluation.get("demonstrations"):
        notes.append(f"demonstrations: {evaluation['demonstrations']['worlds']}")
    title = f"Sub-goals reached, {label_of(evaluation['method'])}"
    return Table(title, ["sub-goal", *header.values()], rows, tuple(notes)).text()
