"""Tables of environments, and the optimal policy."""

import gymnasium as gym
import numpy as np
import pytest

from align_rudder.baselines import TabularMDP, optimal_policy, rollout
from align_rudder.tasks import RecipesEnv, RoomsEnv
from align_rudder.tasks.mdp import remembering

TAXI = "Taxi-v4" if "Taxi-v4" in gym.registry else "Taxi-v3"


@pytest.mark.parametrize(
    ("name", "options"),
    [("FrozenLake-v1", {"is_slippery": True}), (TAXI, {}), ("CliffWalking-v1", {})],
)
def test_tables_of_toy_text_are_the_environment(name, options):
    """Transitions drawn from the environment itself agree with the tables."""
    env = gym.make(name, **options)
    mdp = TabularMDP.from_gymnasium(env, horizon=50)
    rng = np.random.default_rng(0)
    state, _ = env.reset(seed=0)
    assert mdp.starts[state] > 0
    for _ in range(500):
        action = int(rng.integers(env.action_space.n))
        reached, reward, terminated, truncated, _ = env.step(action)
        outcomes = zip(
            mdp.probabilities[state, action],
            mdp.next_states[state, action],
            mdp.rewards[state, action],
            mdp.terminal[state, action],
        )
        assert any(p > 0 and (s, r, e) == (reached, reward, terminated) for p, s, r, e in outcomes)
        state = env.reset()[0] if terminated or truncated else reached


def test_optimal_policy_of_cliff_walking_is_the_known_one():
    mdp = TabularMDP.from_gymnasium(gym.make("CliffWalking-v1"), horizon=100)
    episode = rollout(mdp, optimal_policy(mdp), np.random.default_rng(0))
    assert episode.ret == -13.0
    assert episode.terminated


def test_optimal_policy_of_slippery_frozen_lake_reaches_the_known_success_rate():
    mdp = TabularMDP.from_gymnasium(gym.make("FrozenLake-v1", is_slippery=True))
    rng, policy = np.random.default_rng(0), optimal_policy(mdp, gamma=0.9999)
    wins = sum(rollout(mdp, policy, rng).ret for _ in range(2000)) / 2000
    assert 0.70 < wins < 0.78  # 0.74 with the limit of 100 steps


def test_values_agree_with_linear_programming():
    from scipy.optimize import linprog

    rng = np.random.default_rng(0)
    n, a = 6, 3
    outcomes = [
        [
            [
                (0.5, int(rng.integers(n)), float(rng.normal()), False),
                (0.5, int(rng.integers(n)), float(rng.normal()), bool(rng.random() < 0.3)),
            ]
            for _ in range(a)
        ]
        for _ in range(n)
    ]
    mdp = TabularMDP.from_outcomes(outcomes, np.full(n, 1 / n), 10)
    gamma = 0.9
    rows, bounds = [], []
    for s in range(n):
        for action in range(a):
            row, reward = np.zeros(n), 0.0
            row[s] -= 1
            for p, s2, r, end in outcomes[s][action]:
                reward += p * r
                if not end:
                    row[s2] += gamma * p
            rows.append(row)
            bounds.append(-reward)
    solution = linprog(np.ones(n), A_ub=rows, b_ub=bounds, bounds=[(None, None)] * n)
    policy = optimal_policy(mdp, gamma)
    matrix, reward = np.eye(n), np.zeros(n)
    for s in range(n):
        for p, s2, r, end in outcomes[s][policy[s]]:
            reward[s] += p * r
            if not end:
                matrix[s, s2] -= gamma * p
    np.testing.assert_allclose(np.linalg.solve(matrix, reward), solution.x, atol=1e-8)


def test_rollouts_repeat_and_explore():
    mdp = TabularMDP.from_gymnasium(gym.make("FrozenLake-v1", is_slippery=False))
    policy = optimal_policy(mdp)
    first, second = (
        [rollout(mdp, policy, np.random.default_rng(s), 0.5).actions.tolist() for s in range(9)]
        for _ in range(2)
    )
    assert first == second
    greedy = rollout(mdp, policy, np.random.default_rng(4)).actions.tolist()
    assert len(greedy) == 6
    assert sum(actions != greedy for actions in first) > 3


def test_bad_tables_are_refused():
    with pytest.raises(ValueError, match="no tables P"):
        TabularMDP.from_gymnasium(gym.make("CartPole-v1"))
    lake = gym.make("FrozenLake-v1").unwrapped
    lake.spec = None
    with pytest.raises(ValueError, match="give horizon"):
        TabularMDP.from_gymnasium(lake)
    one = np.ones(1)
    with pytest.raises(ValueError, match="sum to 1"):
        TabularMDP.from_outcomes([[[(0.5, 0, 0.0, False)]]], one, 3)
    with pytest.raises(ValueError, match="holds 4; at most 0 is allowed"):
        TabularMDP.from_outcomes([[[(1.0, 4, 0.0, False)]]], one, 3)
    with pytest.raises(ValueError, match="starts"):
        TabularMDP.from_outcomes([[[(1.0, 0, 0.0, False)]]], np.zeros(1), 3)
    with pytest.raises(ValueError, match="same number of actions"):
        TabularMDP.from_outcomes([[[(1.0, 0, 0.0, False)]], []], np.ones(2) / 2, 3)
    with pytest.raises(ValueError, match=r"time_factor. has shape \(2,\); \(4,\) is needed"):
        TabularMDP.from_outcomes([[[(1.0, 0, 0.0, False)]]], one, 3, np.ones(2))


def test_an_agent_that_remembers_walks_as_before_and_knows_what_happened_last():
    mdp = RecipesEnv(length=3, size=4, items=2, distractors=1, wrong="undo").mdp
    memory = remembering(mdp)
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(20):
        state, last = int(mdp.starts.argmax()), 0
        assert memory.starts.argmax() == state
        both = state
        for t in range(1, mdp.horizon + 1):
            assert memory.observed[both] == last * mdp.n_observations + mdp.observed[state]
            action = int(rng.integers(4))
            label = mdp.labels[state, action, 0]
            assert memory.labels[both, action, 0] == label
            last = label + 1 if label >= 0 else last
            state, *outcome = mdp.step(state, action, t, 0.5)
            both, *same = memory.step(both, action, t, 0.5)
            assert outcome == same
            assert both == last * mdp.n_states + state
            seen.add(last)
            if outcome[1]:
                break
    assert len(seen) > 3
    with pytest.raises(ValueError, match="names nothing that happens"):
        remembering(RoomsEnv(4).mdp)
