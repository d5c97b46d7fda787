"""Rollouts of an agent: what every turn was worth, as a trainer of the GRPO kind takes it.

    python examples/agent_turns.py
    python examples/agent_turns.py --log my_rollouts.jsonl --out my_advantages.jsonl

GRPO samples a group of rollouts i of one task, gives each its return G_i, and every token of
rollout i the same advantage A_i = (G_i - mean(G)) / std(G). Which turn made the difference, it does
not say.

A `LogModel` of all rollouts aligns the successful ones and estimates, from the steps on their
common road that a run has held, left out or swapped so far, the chance of success V after each
turn. With K_i turns and w, how much more successes return than failures, the turn rewards are

    r_{i,k} = w (V_{i,k} - V_{i,k-1}) + c_i,   c_i = (G_i - w sum_k (V_{i,k} - V_{i,k-1})) / K_i,

which sum to G_i. The advantages are

    A_{i,k} = (G_i - mean(G) + beta (r_{i,k} - G_i / K_i)) / std(G).

No turn has any for its index: c_i is the same for all turns of a rollout and drops out of
r_{i,k} - G_i / K_i, whose sum over k is 0. So the mean over the turns of rollout i is A_i, however
long it is; beta = 0 is GRPO itself; and where the model knows nothing, all turns have A_i. A return
to go, or a mean over the k-th turns of all rollouts, would favour early or late turns for that.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

import align_rudder as ar
from align_rudder.logs import report_data
from align_rudder.logs.text import as_text

STEPS = ["find_order", "check_policy", "ask_to_confirm", "refund", "send_mail"]
OTHERS = ["search", "think", "list_tools"]


@dataclass
class Arguments:
    """Turn a group of rollouts of one task into an advantage for each turn."""

    log: str | None = None
    """Rollouts in any form that `ar.read_log` reads, with tasks and rewards; default: made up."""
    task: str | None = None
    """The task whose rollouts are shown and written; default: the first with both outcomes."""
    beta: float = 1.0
    """How much turns of a rollout differ; 0 is GRPO."""
    out: str = "advantages.jsonl"
    """File for the advantages, a line for each rollout."""
    smoke: bool = False
    """Nothing to shorten here: the whole example takes seconds."""


def made_up_rollouts(path: Path, tasks: int = 6, each: int = 8) -> None:
    """Write rollouts of an agent that refunds; those fail that do not check the policy first."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for i in range(tasks * each):
            wrong = rng.random() < 0.4
            tools = [tool for tool in STEPS if not (wrong and tool == "check_policy")]
            for _ in range(rng.poisson(1.5)):
                tools.insert(int(rng.integers(len(tools) + 1)), str(rng.choice(OTHERS)))
            messages = [{"role": "user", "content": "I want my money back."}]
            for k, tool in enumerate(tools):
                function = {"name": tool, "arguments": "{}"}
                call = {"id": str(k), "type": "function", "function": function}
                messages += [
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": str(k), "content": "ok"},
                ]
            messages.append({"role": "assistant", "content": "Done."})
            row = {"messages": messages, "reward": float(not wrong), "task_id": i // each}
            file.write(json.dumps(row) + "\n")


def main(args: Arguments) -> None:
    """Read, fit, show, write."""
    path = Path(args.log or "rollouts.jsonl")
    if args.log is None:
        made_up_rollouts(path)
    log = ar.read_log(path)
    model = ar.LogModel().fit(log)
    print(as_text(report_data(model, log)))

    outcomes: dict[str | None, set[bool | None]] = {}
    for run in log.runs:
        outcomes.setdefault(run.group, set()).add(run.success)
    mixed = [task for task, seen in outcomes.items() if {True, False} <= seen]
    task = args.task if args.task is not None else mixed[0] if mixed else log.runs[0].group
    group = [run for run in log.runs if run.group == task and run.ret is not None]
    advantages = ar.turn_advantages([model.turn_rewards(run) for run in group], args.beta)

    with open(args.out, "w") as file:
        for run, row in zip(group, advantages, strict=True):
            file.write(json.dumps({"run": run.name, "task": task, "advantages": row}) + "\n")
    print(f"\nadvantages of the turns of task {task}, written to {args.out}")
    for run, row in zip(group, advantages, strict=True):
        said = {entry.message: entry.name for entry in run.entries if entry.kind == "call"}
        turns = ", ".join(
            f"{said.get(i, '(text)')} {a:+.2f}" for i, a in enumerate(row) if a is not None
        )
        print(f"  {run.ret:g}: {turns}")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
