"""What a model found, as text and as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from align_rudder.events import (
    CombinedEvents,
    DoneEvents,
    FeatureEvents,
    StateEvents,
    SymbolEvents,
    Vocabulary,
)
from align_rudder.fitting import FEW, Strategy, of_one
from align_rudder.orders import missing_kinds
from align_rudder.sequences import Lost
from align_rudder.subtasks import SubGoal
from align_rudder.text import legend, letters_for, short

if TYPE_CHECKING:
    from align_rudder.model import AlignRudder

__all__ = ["as_data", "as_text", "delayed", "doubts", "last_step_share", "random_policy"]

_LARGE_SHARE = 0.2  # of the reward, for a random policy
_NEARLY_ALL = 0.9  # of the reward, for the last step
_MOST_SUBGOALS = 30
_EVERY_STEP, _MANY_STEPS = 0.9, 30
_NEXT_TO_NOTHING = 1e-3  # of the reward
_LITTLE = 1 / 3  # of what a column that all demonstrations hold earns, their median


def random_policy(model: AlignRudder) -> str | None:
    """Return the sentence that says what a random policy earns; None if that is not known."""
    share, last = model.random_share_, last_step_share(model)
    of_which = f", {last:.0%} of which stays on the last step" * (last >= _NEARLY_ALL)
    return None if share is None else f"a random policy earns {share:.0%} of this reward{of_which}"


def delayed(model: AlignRudder) -> str | None:
    """Return the sentence that says that nothing much was redistributed; None if it was."""
    last = last_step_share(model)
    return f"{last:.0%} of the reward stays on the last step" if last >= _NEARLY_ALL else None


def last_step_share(model: AlignRudder) -> float:
    """Return which part of what the demonstrations are given is on "done" or on their last step."""
    done = model.events_.done if isinstance(model.events_, DoneEvents) else None
    given = last = 0.0
    for i in model.used_:
        shares = model.demonstration(i)
        paid = shares.events == done if done is not None else np.zeros(len(shares.rewards), bool)
        paid[-1:] = True
        given += float(shares.rewards.sum())
        last += float(shares.rewards[paid].sum())
    return last / given if given > 0 else 0.0


def doubts(model: AlignRudder) -> list[tuple[str, str]]:
    """Return what speaks against trusting a model, each with what to do about it."""
    n, share, base = len(model.encoded_), model.random_share_, model.events_.base
    names = [short(symbol, 200) for symbol in model.events_.symbols_]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(names) < 2000 else []
    steps = sum(model.lengths_[i] for i in model.used_)
    events = sum(len(model.encoded_[i].sequence) for i in model.used_)
    # A log of symbols has nothing but events.
    dense = not isinstance(base, SymbolEvents) and events > _EVERY_STEP * max(steps, 1)
    # A saved model does not say whether somebody chose its events.
    regions = isinstance(base, StateEvents | FeatureEvents | CombinedEvents) and model.strategies_
    most = max((len(s.subgoals) for s in model.strategies_), default=0)
    failures = ", ".join(map(str, model.failures_.tolist()))
    unpaid = {
        names[kind]
        for s in model.strategies_
        for kind in missing_kinds(s.alignment, s.profile.columns, every=True).tolist()
    }
    lacking, waits, little = _lacking(model), delayed(model), _earn_little(model)
    checks = (
        (
            waits,
            f"{waits}: what is done before earns next to nothing, so that this reward is hardly "
            "less delayed than the environment's.",
            "Choose other events, which show what the reward is for (other keys, a function), and "
            "see whether the observations show it at all.",
        ),
        (
            share is not None and share > _LARGE_SHARE,
            f"A random policy earns {share or 0:.0%} of this reward, so that it says little.",
            "Choose events that show what only a good policy does.",
        ),
        (
            share is None and regions,
            "What a random policy earns is not known, and it may pass through these states or "
            "regions as well.",
            "Give random_episodes=….",
        ),
        (
            len(model.failures_),
            f"{len(model.failures_)} of {n} demonstrations were not paid, or far less than the "
            f"others: {failures}. They are not aligned.",
            "Leave them out, or give them as failures=….",
        ),
        (
            of_one(model.strategies_, model.used_),
            f"{len(model.used_)} demonstrations are too few to show what they share beyond chance: "
            "the shortest is paid event by event, with all that is superfluous in it.",
            "Give ten or more.",
        ),
        (
            lacking,
            "A few demonstrations do not show whether what one of them lacks matters: "
            f"{'; '.join(lacking[:3])}{'; …' * (len(lacking) > 3)}.",
            "More demonstrations show it; ten or more are good.",
        ),
        (
            dense and steps > _MANY_STEPS * len(model.used_),
            "There is an event at nearly every step: events that always happen mark nothing.",
            "Use fewer events (max_events, other keys) or a function that names what matters.",
        ),
        (
            most > _MOST_SUBGOALS,
            f"A strategy has {most} sub-goals, far more than a person could name.",
            "Use fewer events, or raise subgoal_threshold.",
        ),
        (
            unpaid,
            f"All demonstrations hold {', '.join(sorted(unpaid)[:3])}, but not all at the same "
            "place, so that it is paid little or nothing.",
            "If things may be done in any order, give more demonstrations or strategies=2 or more.",
        ),
        (
            little,
            f"All demonstrations hold {', '.join(little[:3])}{', …' * (len(little) > 3)}, but a "
            "random policy comes by as well, so that it earns little; if the task needs it, "
            "nothing else leads there.",
            'If it does, try settlement="potential" in the wrapper, or fewer kinds of event.',
        ),
        (
            twice,
            f"Different kinds of event have the same name: {', '.join(twice[:3])}.",
            "Give them names of their own, or merge them.",
        ),
    )
    return [(what, do) for wrong, what, do in checks if wrong]


def _earn_little(model: AlignRudder) -> list[str]:
    """Return what all demonstrations hold in its place, but earns little as chance gets it too."""
    if model.random_share_ is None or not isinstance(model.events_.base, Vocabulary):
        return []
    found = []
    for strategy in model.strategies_:
        profile, rewards = strategy.profile, strategy.column_rewards
        held = profile.conservation >= 1 - 1e-12
        cheap = held & (rewards < _LITTLE * np.median(rewards[held])) if held.any() else held
        found += [short(profile.symbols[profile.top_events[t]]) for t in np.flatnonzero(cheap)]
    return sorted(set(found))


def _lacking(model: AlignRudder) -> list[str]:
    """Return which of a few demonstrations lack what at least half of their strategy hold.

    Only events that a person has named: of others nobody would say that one was left out.
    """
    known = model.events_.base
    if not isinstance(known, Vocabulary) or of_one(model.strategies_, model.used_):
        return []
    found = []
    for strategy in model.strategies_:
        members = strategy.members.tolist()
        if len(members) > FEW:
            continue
        held = {i: set(model.encoded_[i].sequence.tolist()) for i in members}
        for event in range(known.n_events):
            without = [i for i in members if event not in held[i]]
            if 0 < len(without) <= len(members) / 2:
                which = f"{'s' * (len(without) > 1)} {', '.join(map(str, without))}"
                verb = "lack" if len(without) > 1 else "lacks"
                found.append(f"demonstration{which} {verb} {short(known.symbols_[event], 200)}")
    return found


def as_text(model: AlignRudder, width: int = 100) -> str:
    """Return events, alignment, consensus and sub-goals of every strategy as text."""
    n, returns = len(model.encoded_), np.array([model.returns_[i] for i in model.used_])
    symbols = list(model.events_.symbols_)
    letters, losses = letters_for(symbols), [s for s in symbols if isinstance(s, Lost)]
    first = random_policy(model)
    lines = [] if first is None else [first]
    lines += [
        f"{n} demonstrations, mean return {returns.mean():g}, "
        f"{np.mean([len(model.encoded_[i].sequence) for i in model.used_]):.1f} events on average, "
        f"{len(symbols) - len(losses)} kinds of event, C = {model.scale_:.4g}"
    ]
    lines += [f"take care: {what} {do}" for what, do in doubts(model)]
    if len(model.outliers_):
        lines.append(f"in no strategy: demonstrations {model.outliers_.tolist()}")
    if not model.strategies_:
        lines += [
            "the demonstrations share no strategy; rewards stay episodic",
            legend(symbols, letters, width),
        ]
    for k, strategy in enumerate(model.strategies_, 1):
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
        for i, goal in enumerate(strategy.subgoals, 1):
            lines.append(
                f"{i:>8}  {strategy.profile.columns[goal.column]:>6}  {goal.share:>6.0%}  "
                f"{goal.reward:>8.4f}  "
                f"{letters[goal.event]} = {short(goal.symbol)}{_unpaid(model, strategy, goal)}"
            )
        lines += _below_threshold(model, strategy, letters)
    return "\n".join(lines)


def _below_threshold(model: AlignRudder, strategy: Strategy, letters: list[str]) -> list[str]:
    """Return the line that names what all demonstrations hold and is paid, but is no sub-goal."""
    profile, rewards = strategy.profile, strategy.column_rewards
    paid = rewards > _NEXT_TO_NOTHING * float(np.maximum(rewards, 0.0).sum())
    left = paid & (profile.conservation >= 1 - 1e-12)
    left[[goal.column for goal in strategy.subgoals]] = False
    if model.subgoal_value is not None or not left.any():
        return []
    named = [
        f"{letters[profile.top_events[t]]} = {short(profile.symbols[profile.top_events[t]])} "
        f"({rewards[t]:.4f})"
        for t in np.flatnonzero(left)
    ]
    return [
        f"no sub-goals, though all demonstrations hold them: {', '.join(named)}; their reward is "
        "not above the threshold. To make them sub-goals, give "
        f"subgoal_threshold={0.9 * rewards[left].min():.2g}"
    ]


def _unpaid(model: AlignRudder, strategy: Strategy, goal: SubGoal) -> str:
    """Return what to say of a sub-goal that is paid next to nothing."""
    if goal.reward > _NEXT_TO_NOTHING * float(np.maximum(strategy.column_rewards, 0.0).sum()):
        return ""
    return " (unpaid)" if model.random_share_ is None else " (unpaid: chance gets there as well)"


def as_data(model: AlignRudder) -> dict[str, Any]:
    """Return what a model found as plain data for JSON."""
    return {
        "demonstrations": len(model.encoded_),
        "returns": model.returns_,
        "events": [str(s) for s in model.events_.symbols_],
        "scale": model.scale_,
        "baseline": model.baseline_,
        "random_share": model.random_share_,
        "last_step_share": last_step_share(model),
        "used": model.used_.tolist(),
        "failures": model.failures_.tolist(),
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
                        "index": i,
                        "column": g.column,
                        "alignment_column": int(s.profile.columns[g.column]),
                        "event": str(g.symbol),
                        "share": g.share,
                        "reward": g.reward,
                    }
                    for i, g in enumerate(s.subgoals)
                ],
            }
            for s in model.strategies_
        ],
    }
