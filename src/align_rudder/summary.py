"""What a model found, as text and as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from align_rudder.text import legend, letters_for, short

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["as_data", "as_text"]


def as_text(model: AlignRudder, width: int = 100) -> str:
    """Return events, alignment, consensus and sub-goals of every strategy as text."""
    n, returns = len(model.encoded_), np.array(model.returns_)
    symbols = list(model.events_.symbols_)
    letters = letters_for(symbols)
    lines = [
        f"{n} demonstrations, mean return {returns.mean():g}, "
        f"{np.mean([len(e.sequence) for e in model.encoded_]):.1f} events on average, "
        f"{len(symbols)} kinds of event, C = {model.scale_:.4g}"
    ]
    if len(model.outliers_):
        lines.append(f"in no strategy: demonstrations {model.outliers_.tolist()}")
    if not model.strategies_:
        lines += [
            "the demonstrations share no strategy; rewards stay episodic",
            legend(symbols, letters, width),
        ]
    for k, strategy in enumerate(model.strategies_):
        if len(model.strategies_) > 1:
            lines.append(f"\nStrategy {k}: demonstrations {strategy.members.tolist()}")
        profile = strategy.profile
        consensus = [letters[e] for e in profile.top_events[profile.conservation >= 0.8 - 1e-12]]
        lines += [
            "",
            str(strategy.alignment),
            "",
            f"consensus (80 %): {''.join(consensus)}",
            "",
        ]
        lines.append(f"{'sub-goal':>8}  {'column':>6}  {'share':>6}  {'reward':>8}  event")
        for i, goal in enumerate(strategy.subgoals):
            lines.append(
                f"{i:>8}  {strategy.profile.columns[goal.column]:>6}  {goal.share:>6.0%}  "
                f"{goal.reward:>8.4f}  "
                f"{letters[goal.event]} = {short(goal.symbol)}"
            )
    return "\n".join(lines)


def as_data(model: AlignRudder) -> dict[str, Any]:
    """Return what a model found as plain data for JSON."""
    return {
        "demonstrations": len(model.encoded_),
        "returns": model.returns_,
        "events": [str(s) for s in model.events_.symbols_],
        "scale": model.scale_,
        "outliers": model.outliers_.tolist(),
        "strategies": [
            {
                "members": s.members.tolist(),
                "alignment": s.alignment.matrix.tolist(),
                "sum_of_pairs": s.alignment.score,
                "consensus": [str(c) for c in s.profile.consensus()],
                "profile_columns": s.profile.columns.tolist(),
                "conservation": s.profile.conservation.tolist(),
                "subgoals": [
                    {
                        "column": g.column,
                        "alignment_column": int(s.profile.columns[g.column]),
                        "event": str(g.symbol),
                        "share": g.share,
                        "reward": g.reward,
                    }
                    for g in s.subgoals
                ],
            }
            for s in model.strategies_
        ],
    }
