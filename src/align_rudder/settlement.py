"""Settlement: where the rest of the return goes, so that redistributing leads nobody astray.

A step earns the environment's own reward r and its share R of the redistribution. Paid both, an
episode would earn more than its return. What becomes of the surplus is the settlement:

- ``"annealed"``: r + w·R, where w falls from 1 to 0 with the successes so far. An agent that fails
  is paid for how far it comes; after `successes` episodes as good as the demonstrations, or a
  hundred times as many failures, the reward is the environment's own, for any learner, any γ and
  any time limit. For learners that learn while they play.
- ``"even"``: the last reward less all shares, r_T − Σ R, is spread evenly over the steps. The sum
  of an episode is its return, which now comes where the shares are. For episodes that are complete
  before they are learned from: datasets. Online, where the end is not known, every step pays the
  mean rate of the episodes before, and the last step the rest, which makes failing early look good.
- ``"mean"``: r + R less the mean of all R: shares are taken back evenly, and what the environment
  pays stays where it is, success too. The sum of an episode is its return. Where demonstrations are
  poor, shares are small beside the return of a good episode, which "even" would then smear over
  its steps. For learners of whole episodes; online as "even".
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

__all__ = [
    "ENOUGH",
    "FAILURE",
    "MEMORY",
    "SETTLEMENTS",
    "Account",
    "Accounts",
    "Past",
    "Settlement",
    "success",
]

SETTLEMENTS = ("annealed", "even", "mean", "potential", "last", "beside")
ENOUGH = 0.8  # of what demonstrations return, to be a success
FAILURE = 0.01  # what a failure counts for: where shares lead nowhere, they end as well
MEMORY = 0.99  # of the mean rate, per episode: about the last hundred count


@dataclass(frozen=True)
class Settlement:
    """One of the ways to settle.

    Attributes:
        kind: "annealed", "even", "mean", "potential", "last" or "beside".
        gamma: The learner's discount, for "potential".
        fade: By which share the potential falls with each step, for "potential".
        successes: After how many successes "annealed" pays no shares any more, for each
            environment that is played. A failure counts for a hundredth of a success.

    Example:
        >>> own, shares = np.array([0, 0, 0, 1.0]), np.array([0.5, 0, 0, 0])
        >>> for kind in SETTLEMENTS:
        ...     rewards = Settlement(kind, gamma=1.0, fade=0.0).rewards(own, shares)
        ...     print(kind, rewards.tolist())
        annealed [0.5, 0.0, 0.0, 1.0]
        even [0.625, 0.125, 0.125, 0.125]
        mean [0.375, -0.125, -0.125, 0.875]
        potential [0.5, 0.0, 0.0, 0.5]
        last [0.5, 0.0, 0.0, 0.5]
        beside [0.5, 0.0, 0.0, 1.0]
    """

    kind: str = "annealed"
    gamma: float = 0.99
    fade: float = 0.01
    successes: float = 100

    def __post_init__(self) -> None:
        check_values(
            settlement=(self.kind, Choice(SETTLEMENTS)),
            gamma=(self.gamma, Number(0, 1)),
            fade=(self.fade, Number(0, 1)),
            successes=(self.successes, Number(0)),
        )

    @classmethod
    def of(cls, settlement: Settlement | str) -> Settlement:
        """Return the settlement, made from its kind where only that is given."""
        return settlement if isinstance(settlement, Settlement) else cls(settlement)

    @property
    def spreads(self) -> bool:
        """Whether the surplus is taken back over all steps of an episode."""
        return self.kind in ("even", "mean")

    def weight(self, repaid: float) -> float:
        """Return what "annealed" pays of a share after that many successes."""
        return max(0.0, 1.0 - repaid / self.successes) if self.successes else 0.0

    def rewards(
        self,
        own: np.ndarray,
        shares: np.ndarray,
        terminated: bool = True,
        weight: float = 1.0,
    ) -> np.ndarray:
        """Return the rewards of a whole episode (T,).

        Args:
            own: The environment's rewards (T,).
            shares: The redistributed rewards (T,).
            terminated: Whether the environment ended the episode, not a time limit.
            weight: What "annealed" pays of a share: 1 before the first success.
        """
        own, shares = np.asarray(own, float), np.asarray(shares, float)
        if own.shape != shares.shape:
            raise ValueError(f"{own.shape} rewards and {shares.shape} shares; one of each per step")
        if not len(own):
            raise ValueError("the episode has no step, so there is none to pay")
        out = own + (weight if self.kind == "annealed" else 1.0) * shares
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


def success(ret: float, low: float, high: float) -> float:
    """Return how much of a success an episode was.

    Args:
        ret: Its return.
        low: What an episode returns that fails.
        high: What one returns that is as good as the demonstrations.

    Notes:
        x = (ret − low) / (high − low), at most 1; 0 if x is less than 0.8. Where rewards come on
        the way, an agent that only survives for a while has not succeeded.

    Example:
        >>> [success(ret, 0.0, 10.0) for ret in (5.0, 7.9, 8.0, 12.0)]
        [0.0, 0.0, 0.8, 1.0]
    """
    x = (ret - low) / (high - low) if high > low else 0.0
    return min(1.0, x) if x >= ENOUGH else 0.0


@dataclass
class Past:
    """What is remembered of the episodes that have ended.

    Attributes:
        low: What an episode returns that fails.
        high: What one returns that is as good as the demonstrations.
        surplus: What was to be taken back of the episodes, older ones counting less.
        steps: Their steps, likewise.
        repaid: How many successes there were, as `success` counts them, and a hundredth of the
            failures.
    """

    low: float = 0.0
    high: float = 1.0
    surplus: float = 0.0
    steps: float = 0.0
    repaid: float = 0.0

    @property
    def rate(self) -> float:
        """What a step pays back, on average; 0 before the first episode."""
        return self.surplus / self.steps if self.steps else 0.0

    def add(self, surplus: float, steps: float, ret: float) -> None:
        """Count an episode that has ended."""
        self.surplus = MEMORY * self.surplus + surplus
        self.steps = MEMORY * self.steps + steps
        self.repaid += success(ret, self.low, self.high) or FAILURE


class Account:
    """Settles one running episode at a time, step by step.

    Args:
        settlement: How.
        returns: What an episode returns that fails, and one as good as the demonstrations
            (`model.return_range_`).
    """

    def __init__(self, settlement: Settlement, returns: tuple[float, float] = (0.0, 1.0)) -> None:
        self.settlement = settlement
        self.past = Past(*returns)
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._level = self._given = self._ret = 0.0
        self._steps = 0
        self._charge = self.past.rate if self.settlement.spreads else 0.0
        annealed = self.settlement.kind == "annealed"
        self._weight = self.settlement.weight(self.past.repaid) if annealed else 1.0

    @property
    def weight(self) -> float:
        """What of a share is paid in this episode: 1, less with each success of "annealed"."""
        return self._weight

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
        if kind == "potential":
            before = self._level
            level = 0.0 if terminated else (1.0 - settlement.fade) * before + share
            self._level = level
            return own + settlement.gamma * level - before
        self._ret += own
        self._given += share
        self._steps += 1
        if kind == "annealed":
            reward = own + self._weight * share
        else:
            reward = own + share - self._charge
        if terminated or truncated:
            if kind not in ("annealed", "beside"):
                reward += self._charge * self._steps - self._given
            surplus = self._given - (own if kind == "even" else 0.0)
            self.past.add(surplus, self._steps, self._ret)
        return reward


class Accounts:
    """Settles n running episodes, in arrays; what is remembered is that of all of them.

    Args:
        settlement: How.
        n: Number of episodes.
        returns: What an episode returns that fails, and one as good as the demonstrations.
    """

    def __init__(
        self, settlement: Settlement, n: int, returns: tuple[float, float] = (0.0, 1.0)
    ) -> None:
        self.settlement = settlement
        self.past = Past(*returns)
        self._level, self._given, self._charge = np.zeros(n), np.zeros(n), np.zeros(n)
        self._ret, self._weight = np.zeros(n), np.ones(n)
        self._steps = np.zeros(n, np.int64)

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Begin the episodes of `mask` (default: all)."""
        where: Any = slice(None) if mask is None else mask
        for values in (self._level, self._given, self._ret, self._steps):
            values[where] = 0
        self._charge[where] = self.past.rate if self.settlement.spreads else 0.0
        if self.settlement.kind == "annealed":
            self._weight[where] = self.settlement.weight(self.past.repaid / len(self._steps))

    @property
    def weights(self) -> np.ndarray:
        """What of a share is paid in each running episode."""
        return self._weight.copy()

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
        if settlement.kind == "potential":
            before = self._level
            level = np.where(terminated, 0.0, (1.0 - settlement.fade) * before + shares)
            self._level = np.where(stepped, level, before)
            out = own + settlement.gamma * level - before
            return np.where(stepped, out, 0.0)
        self._ret += np.where(stepped, own, 0.0)
        self._given += np.where(stepped, shares, 0.0)
        self._steps += stepped
        ended = (terminated | truncated) & stepped
        if settlement.kind == "annealed":
            out = own + self._weight * shares
        else:
            out = own + shares - self._charge
        if settlement.kind not in ("annealed", "beside"):
            out += np.where(ended, self._charge * self._steps - self._given, 0.0)
        for i in np.flatnonzero(ended):
            surplus = self._given[i] - (own[i] if settlement.kind == "even" else 0.0)
            self.past.add(float(surplus), float(self._steps[i]), float(self._ret[i]))
        return np.where(stepped, out, 0.0)
