"""Events without aligning: what is paid, against plain Python, and what is learned."""

import numpy as np
import pytest
from small_recipes import GREEDY, small_recipe

import align_rudder as ar
from align_rudder.baselines import Protocol, learn_unordered
from align_rudder.baselines.positions import note_kind
from align_rudder.baselines.unordered import common_kinds


def kinds_there(events, undoes):
    """Return after each event which are there, struck ones left out."""
    left, out = [], []
    for event in events:
        if undoes is not None and undoes[event]:
            struck = next((i for i in reversed(range(len(left))) if left[i] in undoes[event]), None)
            left = [e for i, e in enumerate(left) if i != struck]
        else:
            left.append(event)
        out.append(set(left))
    return out


@pytest.mark.parametrize("undo", [None, {4: {0}, 5: {1, 2}}])
@pytest.mark.parametrize("seed", range(5))
def test_each_kind_is_paid_once_in_any_order_and_taken_back_if_it_is_lost(seed, undo):
    n, paid = 6, {0, 1, 3}
    rng = np.random.default_rng(seed)
    events = rng.integers(0, n + 1, 60)
    wide = np.zeros((n + 1, 1))
    wide[[*paid]] = 1.0
    undoes = np.full((n + 1 if undo else 0, 2), -1, np.int64)
    for event, struck in (undo or {}).items():
        undoes[event, : len(struck)] = sorted(struck)
    struck_by = None if undo is None else [undo.get(e, set()) for e in range(n + 1)]
    row, history = np.zeros(n + 1), np.empty(60, np.int64)
    score, cell, count = 0.0, 0, 0
    for event, there in zip(events, kinds_there(events, struck_by), strict=True):
        score, cell, count = note_kind(row, history, count, event, score, cell, undoes, wide)
        assert score == cell == len(there & paid)


def test_kinds_are_those_that_most_demonstrations_hold():
    logs = ["abcdefgh", "agbcdefh", "abcdhefg", "abgcdef", "abcdef"]
    model = ar.AlignRudder(done=False).fit_events(logs)
    for share in (0.7, 0.8, 0.9, 1.0):
        expected = {s for s in "abcdefgh" if np.mean([s in log for log in logs]) >= share}
        assert {model.events_.symbols_[k] for k in common_kinds(model, share)} == expected


def test_a_small_recipe_is_learned_from_logs():
    for seed in range(3):
        env, logs = small_recipe(seed)
        model = ar.AlignRudder(strategies=1).fit_events(logs)
        first, again = (
            learn_unordered(env.mdp, [], model=model, seed=seed, protocol=GREEDY) for _ in range(2)
        )
        assert first.solved
        assert first.q.shape == (len(common_kinds(model)) + 1, 16, 4)
        np.testing.assert_array_equal(first.q, again.q)


def test_the_rooms_are_learned_and_progress_may_be_hidden(rooms):
    env, demos = rooms
    for progress in (True, False):
        protocol = Protocol(max_episodes=1000)
        assert learn_unordered(env.mdp, demos, progress=progress, protocol=protocol).solved


def test_what_cannot_be_meant_is_refused(rooms):
    env, demos = rooms
    with pytest.raises(ValueError, match="share is 0"):
        learn_unordered(env.mdp, demos, share=0.0)
    with pytest.raises(ValueError, match="not fitted"):
        learn_unordered(env.mdp, demos, model=ar.AlignRudder())
