"""Settlement: where the rest of the return goes, so that redistributing changes no return.

A step earns the environment's own reward r and its share R of the redistribution. Paid both, an
episode would earn more than its return. What becomes of the surplus is the settlement:

- ``"even"``: the last reward less all shares, r_T − Σ R, is spread evenly over the steps. The sum
  of an episode is its return. Online, where the end is not known, every step pays the mean rate of
  the episodes before, and the last step the small rest.
- ``"mean"``: r + R less the mean of all R: shares are taken back evenly, and what the environment
  pays stays where it is, success too. The sum of an episode is its return. Where demonstrations are
  poor, shares are small beside the return of a good episode, which "even" would then smear over
  its steps. Online as "even".
- ``"potential"``: r + γΦ′ − Φ with Φ = C·S, zero at terminal states. Its best policies are those of
  r, for any task and any γ: shaping by a potential. At a time limit Φ stays, as a learner that
  bootstraps goes on from there. `fade` lets Φ fall by that share with each step, which is a
  potential too; it keeps early progress from weighing on all that follows.
- ``"last"``: r_T − Σ R on the last step, the paper's correction. The sum is the return, but the
  steps before a time limit are blamed for everything.
- ``"beside"``: r + R, nothing taken back. Not return-equivalent.

Rewards of the environment before the last step (step costs, say) stay at their step in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from align_rudder.files import Choice, Number, check_values

__all__ = ["MEMORY", "SETTLEMENTS", "Account", "Accounts", "Rate", "Settlement"]

SETTLEMENTS = ("even", "mean", "potential", "last", "beside")
MEMORY = 0.99  # of the mean rate, per episode: about the last hundred count


@dataclass(frozen=True)
class Settlement:
    """One of the ways to settle.

    Attributes:
        kind: "even", "mean", "potential", "last" or "beside".
        gamma: The learner's discount, for "potential".
        fade: By which share the potential falls with each step, for "potential".

    Example:
        >>> own, shares = np.array([0, 0, 0, 1.0]), np.array([0.5, 0, 0, 0])
        >>> for kind in SETTLEMENTS:
        ...     rewards = Settlement(kind, gamma=1.0, fade=0.0).rewards(own, shares)
        ...     print(kind, rewards.tolist())
        even [0.625, 0.125, 0.125, 0.125]
        mean [0.375, -0.125, -0.125, 0.875]
        potential [0.5, 0.0, 0.0, 0.5]
        last [0.5, 0.0, 0.0, 0.5]
        beside [0.5, 0.0, 0.0, 1.0]
    """

    kind: str = "even"
    gamma: float = 0.99
    fade: float = 0.01

    def __post_init__(self) -> None:
        check_values(
            settlement=(self.kind, Choice(SETTLEMENTS)),
            gamma=(self.gamma, Number(0, 1)),
            fade=(self.fade, Number(0, 1)),
        )

    @classmethod
    def of(cls, settlement: Settlement | str) -> Settlement:
        """Return the settlement, made from its kind where only that is given."""
        return settlement if isinstance(settlement, Settlement) else cls(settlement)

    @property
    def takes_back(self) -> bool:
        """Whether every step pays back some, of which only the end tells how much."""
        return self.kind in ("even", "mean")

    def rewards(self, own: np.ndarray, shares: np.ndarray, terminated: bool = True) -> np.ndarray:
        """Return the rewards of a whole episode (T,).

        Args:
            own: The environment's rewards (T,).
            shares: The redistributed rewards (T,).
            terminated: Whether the environment ended the episode, not a time limit.
        """
        own, shares = np.asarray(own, float), np.asarray(shares, float)
        if own.shape != shares.shape:
            raise ValueError(f"{own.shape} rewards and {shares.shape} shares; one of each per step")
        if not len(own):
            raise ValueError("the episode has no step, so there is none to pay")
        out = own + shares
        if self.kind == "even":
            out[-1] -= own[-1]
            out += (own[-1] - shares.sum()) / len(own)
        elif self.kind == "mean":
            out -= shares.mean()
        elif self.kind == "last":
            out[-1] -= shares.sum()
        elif self.kind == "potential":
            after = np.empty(len(own))
            level = 0.0
            for t, share in enumerate(shares):
                after[t] = level = (1.0 - self.fade) * level + share
            if terminated:
                after[-1] = 0.0
            out = own + self.gamma * after - np.concatenate([[0.0], after[:-1]])
        return out


@dataclass
class Rate:
    """How much is taken back per step, on average over the episodes before.

    Attributes:
        surplus: Σ R − r_T of the episodes (Σ R for "mean"), older ones counting less.
        steps: Their steps, likewise.
    """

    surplus: float = 0.0
    steps: float = 0.0

    @property
    def value(self) -> float:
        """The mean rate; 0 before the first episode."""
        return self.surplus / self.steps if self.steps else 0.0

    def add(self, surplus: float, steps: float) -> None:
        """Count an episode that has ended."""
        self.surplus = MEMORY * self.surplus + surplus
        self.steps = MEMORY * self.steps + steps


class Account:
    """Settles one running episode at a time, step by step.

    Args:
        settlement: How.
    """

    def __init__(self, settlement: Settlement) -> None:
        self.settlement = settlement
        self.rate = Rate()
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._level = self._given = 0.0
        self._steps = 0
        self._charge = self.rate.value

    def pay(self, own: float, share: float, terminated: bool, truncated: bool) -> float:
        """Return the reward of a step.

        Args:
            own: The environment's reward.
            share: The redistributed reward.
            terminated: Whether the environment ended the episode with it.
            truncated: Whether the episode was cut off with it.
        """
        settlement = self.settlement
        kind = settlement.kind
        if kind == "beside":
            return own + share
        if kind == "potential":
            before = self._level
            level = 0.0 if terminated else (1.0 - settlement.fade) * before + share
            self._level = level
            return own + settlement.gamma * level - before
        self._given += share
        self._steps += 1
        reward = own + share - self._charge
        if terminated or truncated:
            reward += self._charge * self._steps - self._given
            if kind != "last":
                self.rate.add(self._given - (own if kind == "even" else 0.0), self._steps)
        return reward


class Accounts:
    """Settles n running episodes, in arrays; the mean rate is that of all of them.

    Args:
        settlement: How.
        n: Number of episodes.
    """

    def __init__(self, settlement: Settlement, n: int) -> None:
        self.settlement = settlement
        self.rate = Rate()
        self._level, self._given, self._charge = np.zeros(n), np.zeros(n), np.zeros(n)
        self._steps = np.zeros(n, np.int64)

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Begin the episodes of `mask` (default: all)."""
        where: Any = slice(None) if mask is None else mask
        for values in (self._level, self._given, self._steps):
            values[where] = 0
        self._charge[where] = self.rate.value

    def pay(
        self,
        own: np.ndarray,
        shares: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        mask: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the rewards of a step of each episode (of `mask`; zero for the others)."""
        settlement = self.settlement
        stepped = np.ones(len(own), bool) if mask is None else mask
        if settlement.kind == "beside":
            out = own + shares
        elif settlement.kind == "potential":
            before = self._level
            level = np.where(terminated, 0.0, (1.0 - settlement.fade) * before + shares)
            self._level = np.where(stepped, level, before)
            out = own + settlement.gamma * level - before
        else:
            self._given += np.where(stepped, shares, 0.0)
            self._steps += stepped
            ended = (terminated | truncated) & stepped
            rest = self._charge * self._steps - self._given
            out = own + shares - self._charge + np.where(ended, rest, 0.0)
            if settlement.kind != "last":
                kept = own if settlement.kind == "even" else np.zeros(len(own))
                for i in np.flatnonzero(ended):
                    self.rate.add(float(self._given[i] - kept[i]), float(self._steps[i]))
        return np.where(stepped, out, 0.0)
