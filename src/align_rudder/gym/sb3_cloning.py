"""Stable-Baselines3: a policy begins as a clone of demonstrations, then its values catch up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from tqdm import tqdm

from align_rudder.episodes import Episode, tree_index

try:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.policies import ActorCriticPolicy
except ImportError as error:
    raise ImportError('this needs Stable-Baselines3; in a clone: pip install ".[sb3]"') from error

__all__ = ["ValueBurnIn", "clone"]


def clone(
    learner: BaseAlgorithm,
    demos: Sequence[Episode],
    *,
    epochs: int = 100,
    batch_size: int = 64,
    learning_rate: float = 1e-3,
    seed: int = 0,
    progress: bool = False,
) -> list[float]:
    """Train a policy to do what demonstrations did, by maximum likelihood.

    The value function is not trained: let it catch up with `ValueBurnIn` before the policy learns
    from it. Observations must be those that the learner sees; if it has wrappers that the
    demonstrations were recorded without, play them again first:
    `clone(ppo, ar.replay(env, demos, seeds))`.

    Args:
        learner: PPO, A2C or another one with a policy of actions and values.
        demos: The demonstrations.
        epochs: Passes over all their steps.
        batch_size: Steps of a gradient step.
        learning_rate: Step size of Adam.
        seed: Seed of the order of the steps.
        progress: Whether to show a progress bar.

    Returns:
        The loss −mean log π(a|s) of each epoch.

    Notes:
        The loss is −(1/N) Σ log π_θ(a_i | s_i) over the N steps of all demonstrations.
    """
    policy = _actor_critic(learner)
    if not demos or epochs < 1 or batch_size < 1 or not learning_rate > 0:
        raise ValueError(
            f"got {len(demos)} demonstrations, epochs={epochs}, batch_size={batch_size}, "
            f"learning_rate={learning_rate}; each must be above 0"
        )
    observations, actions = _steps(learner, demos)
    optimizer = torch.optim.Adam(policy.parameters(), learning_rate)
    order = torch.Generator().manual_seed(seed)
    losses = []
    policy.set_training_mode(True)
    for _ in tqdm(range(epochs), "cloning", disable=not progress):
        total = 0.0
        for batch in torch.randperm(len(actions), generator=order).split(batch_size):
            seen = _at(observations, batch.to(policy.device))
            log_prob = policy.evaluate_actions(seen, actions[batch.to(policy.device)])[1]
            optimizer.zero_grad()
            (-log_prob.mean()).backward()
            optimizer.step()
            total -= float(log_prob.sum().detach())
        losses.append(total / len(actions))
    policy.set_training_mode(False)
    return losses


class ValueBurnIn(BaseCallback):
    """Holds the policy still at first, while the value function learns.

    A cloned policy has a value function that knows nothing. Learning from it at once would spoil
    the policy; so until that many steps were made, only what belongs to the value function alone
    is trained: `ppo.learn(100_000, callback=ValueBurnIn(10_000))`. Features that policy and
    value function share are held still as well, as the policy would move with them.

    Args:
        steps: Environment steps, in all environments together. Updates are made of whole rollouts;
            those that begin before this step are the value function's alone.
    """

    def __init__(self, steps: int) -> None:
        super().__init__()
        if steps < 0:
            raise ValueError(f"steps={steps}; environment steps, 0 or more, are needed")
        self.steps = steps
        self._held: list[torch.nn.Parameter] = []

    def _on_training_start(self) -> None:
        policy = _actor_critic(self.model)
        parts: list[Any] = [policy.value_net, getattr(policy.mlp_extractor, "value_net", None)]
        if not policy.share_features_extractor:
            parts.append(policy.vf_features_extractor)
        own = {id(p) for part in parts if part is not None for p in part.parameters()}
        self._held = [p for p in policy.parameters() if id(p) not in own and p.requires_grad]

    def _on_rollout_start(self) -> None:
        self._hold(self.num_timesteps < self.steps)

    def _on_training_end(self) -> None:
        self._hold(False)

    def _hold(self, still: bool) -> None:
        for parameter in self._held:
            parameter.requires_grad_(not still)

    def _on_step(self) -> bool:
        return True


def _actor_critic(learner: BaseAlgorithm) -> ActorCriticPolicy:
    policy = getattr(learner, "policy", None)
    if not isinstance(policy, ActorCriticPolicy):
        raise ValueError(
            f"the policy of {type(learner).__name__} is a {type(policy).__name__}, which gives no "
            "likelihood of given actions; a learner of actions and values such as PPO or A2C is "
            "needed. For replay buffers there is fill_replay_buffer"
        )
    return policy


def _steps(learner: BaseAlgorithm, demos: Sequence[Episode]) -> tuple[Any, torch.Tensor]:
    """Return all observations that were acted upon, and the actions."""
    policy: Any = learner.policy
    parts = [tree_index(demo.observations, np.s_[:-1]) for demo in demos]
    if isinstance(parts[0], dict):
        seen: Any = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    else:
        seen = np.concatenate(parts)
    _check(learner.observation_space, seen)
    if (normalised := learner.get_vec_normalize_env()) is not None:
        seen = normalised.normalize_obs(seen)
    tensors, vectorised = policy.obs_to_tensor(seen)
    assert vectorised
    actions = np.concatenate([np.asarray(demo.actions) for demo in demos])
    return tensors, torch.as_tensor(actions, device=policy.device)


def _check(space: Any, seen: Any) -> None:
    """Raise an error if demonstrations show other observations than the learner sees."""
    parts = space.spaces if hasattr(space, "spaces") else {None: space}
    for key, needed in parts.items():
        part = seen if key is None else seen.get(key) if isinstance(seen, dict) else None
        if isinstance(part, np.ndarray) and _fits(part, needed):
            continue
        where = "" if key is None else f"[{key!r}]"
        found = f"shape {part.shape[1:]}" if isinstance(part, np.ndarray) else "none alike"
        raise ValueError(
            f"the learner observes {needed}{where}, the demonstrations have {found}. If the "
            "learner's environment has wrappers that the demonstrations were recorded without, "
            "play them again in it: clone(learner, ar.replay(env, demos, seeds))"
        )


def _fits(part: np.ndarray, space: Any) -> bool:
    """Return whether a batch of observations is of a space, numbers of a `Discrete` in range."""
    if part.shape[1:] != space.shape:
        return False
    if not isinstance(space, spaces.Discrete):
        return True
    return bool(((part >= space.start) & (part < space.start + space.n)).all())


def _at(observations: Any, batch: torch.Tensor) -> Any:
    if isinstance(observations, dict):
        return {key: part[batch] for key, part in observations.items()}
    return observations[batch]
