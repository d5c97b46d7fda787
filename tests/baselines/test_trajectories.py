"""The memory of whole episodes, and Q(λ) on it with rewards from a table."""

import numpy as np
import pytest
from small_recipes import GREEDY, small_recipe
from toys import corridor

from align_rudder.baselines import Protocol, Trial, learn_ircr, learn_rrd
from align_rudder.baselines.replay import next_slot
from align_rudder.baselines.trajectories import drawn, filled, learn_from, new_memory, play
from align_rudder.tasks.mdp import remembering


def memory_of(n, capacity):
    """Return a trial in a corridor and its memory."""
    mdp, demos = corridor(n, horizon=12)
    trial = Trial(mdp, demos, Protocol(), 0)
    return trial, new_memory(trial, capacity)


def test_demonstrations_stay_and_the_agents_oldest_is_overwritten():
    trial, memory = memory_of(5, 3)
    states, actions, lengths, returns, ends, cursor = memory
    shown = states[:2].copy()
    q, played = np.random.default_rng(0).normal(size=(5, 2)), []
    for _ in range(5):
        slot = next_slot(cursor, 2, 3)
        played.append(slot)
        n = play(q, trial.observed, memory, slot, trial.tables, 0.5, trial.rng)
        assert n == lengths[slot] <= 12
        assert returns[slot] == ends[slot] == (states[slot, n] == 4)
        moved = np.clip(states[slot, :n] + np.where(actions[slot, :n] == 1, 1, -1), 0, None)
        np.testing.assert_array_equal(states[slot, 1 : n + 1], moved)
        assert filled(memory, 2) == min(2 + len(played), 5)
    assert played == [2, 3, 4, 2, 3]
    np.testing.assert_array_equal(states[:2], shown)
    np.testing.assert_array_equal(shown[:, :5], [np.arange(5)] * 2)
    assert returns[:2].tolist() == [1.0, 1.0]


def test_an_episode_that_does_not_end_is_cut_off_by_the_time_limit():
    trial, memory = memory_of(5, 1)
    to_the_left = np.tile([1.0, 0.0], (5, 1))
    assert play(to_the_left, trial.observed, memory, 2, trial.tables, 0.0, trial.rng) == 12
    assert not memory[4][2]


def test_episodes_are_drawn_evenly_and_only_what_is_there():
    trial, memory = memory_of(5, 10)
    memory[5][0] = 1
    found = np.bincount([drawn(memory, 2, trial.rng) for _ in range(3000)])
    assert len(found) == 3
    assert (np.abs(found - 1000) < 150).all()


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("absorbing", [False, True])
@pytest.mark.parametrize("trace", [0.0, 0.7])
def test_learning_from_an_episode_follows_its_equation(trace, absorbing, ended):
    _, memory = memory_of(6, 1)
    memory[4][0] = ended
    rng = np.random.default_rng(0)
    q, rewards = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    learned, g = q.copy(), 0.0
    gains = rewards[:5, 1].copy()
    if absorbing and ended:
        gains[-1] /= 1 - 0.9
    for t in range(4, -1, -1):
        future = trace * g + (1 - trace) * learned[t + 1].max() if t < 4 else 0.0
        g = gains[t] + 0.9 * future
        learned[t, 1] += 0.3 * (g - learned[t, 1])
    room = np.empty(12), np.zeros(12, np.int64)
    learn_from(q, rewards, memory, 0, (0.3, trace, 0.9, absorbing), room)
    np.testing.assert_allclose(q, learned, rtol=1e-12)


@pytest.mark.parametrize("learn", [learn_rrd, learn_ircr])
def test_where_states_are_hidden_only_what_is_seen_is_learned_from(learn):
    """The agent of a small recipe remembers its last event; no log or demonstration is needed."""
    env, _ = small_recipe()
    mdp = remembering(env.mdp)
    first, again = (learn(mdp, [], returns=[1.0], protocol=GREEDY) for _ in range(2))
    assert first.solved
    assert first.q.shape == (mdp.n_observations, 4)
    np.testing.assert_array_equal(first.q, again.q)
