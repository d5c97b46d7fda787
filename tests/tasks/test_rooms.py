"""Rooms: geometry, rewards and shortest paths."""

import gymnasium as gym
import numpy as np
import pytest

import align_rudder as ar
from align_rudder.tasks import RoomsEnv, RoomsMap


def test_paper_sizes():
    four, eight = RoomsMap(4), RoomsMap(8)
    assert four.shape == (12, 12)
    assert eight.shape == (12, 24)
    assert len(four.entries) == len(set(four.entries)) == 20
    assert four.room_of(four.target) == 3
    assert eight.room_of(eight.target) == 7
    assert four.room_of(four.start) == eight.room_of(eight.start) == 0


@pytest.mark.parametrize("rooms", [2, 4, 8, 16])
def test_states_are_cells_and_back(rooms):
    world = RoomsMap(rooms)
    places = set()
    for state in range(world.n_states):
        cell, entry = world.cell(state)
        assert world.state(cell, entry if entry is not None else 7) == state
        places.add((cell, entry))
    assert len(places) == world.n_states


@pytest.mark.parametrize("rooms", [2, 4, 8, 16])
def test_rooms_are_left_only_by_doors_and_portal(rooms):
    """Count the ways between rooms in the tables: a door each way, and the portal."""
    env = RoomsEnv(rooms, slip=0.0)
    world, mdp = env.map, env.mdp
    ways = {}
    for state in range(mdp.n_states):
        cell, entry = world.cell(state)
        for action in range(4):
            reached, _ = world.cell(mdp.next_states[state, action, action])
            pair = world.room_of(cell), world.room_of(reached)
            if pair[0] != pair[1]:
                ways.setdefault((*pair, entry), []).append((cell, reached))
    chain = {(k, k + 1) for k in range(1, rooms - 1)}
    doors = {(a, b) for a, b, entry in ways if entry is None}
    assert doors == chain | {(b, a) for a, b in chain}
    assert all(len(ways[a, b, None]) == 1 for a, b in doors)
    for entry, place in enumerate(world.entries):
        assert {reached for _, reached in ways[0, 1, entry]} == {world.arrival}
        assert all(
            abs(cell[0] - place[0]) + abs(cell[1] - place[1]) == 1 for cell, _ in ways[0, 1, entry]
        )


@pytest.mark.parametrize("rooms", [4, 8, 16])
def test_every_start_is_solved_by_the_optimal_policy_on_a_shortest_path(rooms):
    env = RoomsEnv(rooms, slip=0.0)
    mdp, policy = env.mdp, env.optimal_policy()
    target = env.map.state(env.map.target, 0)
    distance = np.full(mdp.n_states, np.inf)  # breadth-first search from the target, by brute force
    distance[target] = 0
    for _ in range(mdp.n_states):
        best = distance[mdp.next_states[:, range(4), range(4)]].min(axis=1) + 1
        best[target] = 0
        if (best == distance).all():
            break
        distance = np.minimum(distance, best)
    starts = np.flatnonzero(mdp.starts)
    assert len(starts) == 20
    for start in starts:
        episode = ar.tabular.rollout(mdp, policy, np.random.default_rng(0), start=start)
        assert episode.terminated
        assert len(episode) == distance[start]
        assert episode.ret == pytest.approx((env.horizon - len(episode) + 1) / env.horizon)


def test_reward_comes_at_the_end_only_and_falls_with_time():
    env = gym.make("AlignRudder/FourRooms-v0", slip=0.0)
    policy = env.unwrapped.optimal_policy()
    returns = []
    for wait in (0, 10, 50):
        obs, _ = env.reset(seed=0)
        rewards = []
        for t in range(200):
            action = 0 if t < wait and t % 2 == 0 else 1 if t < wait else policy[obs]
            obs, reward, terminated, _, _ = env.step(action)
            rewards.append(reward)
            if terminated:
                break
        assert np.count_nonzero(rewards) == 1
        returns.append(rewards[-1])
    assert returns[0] > returns[1] > returns[2] > 0


def test_time_is_up_without_reward():
    env = gym.make("AlignRudder/FourRooms-v0")
    env.reset(seed=1)
    rewards, ends = [], []
    for _ in range(200):
        _, reward, terminated, truncated, _ = env.step(0)
        rewards.append(reward)
        ends.append((terminated, truncated))
        if truncated or terminated:
            break
    assert len(rewards) <= 200
    if ends[-1] == (False, True):
        assert len(rewards) == 200
        assert sum(rewards) == 0.0


def test_slip_moves_at_random_as_often_as_it_says():
    mdp = RoomsEnv(4, slip=0.4).mdp
    p = mdp.probabilities
    for action in range(4):
        np.testing.assert_allclose(p[:, action, action], 0.7)
        np.testing.assert_allclose(np.delete(p[:, action], action, axis=1), 0.1)
