"""Rounds through the kinds of event: which states follow, what is paid, and what is learned."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_recipes import GREEDY, small_recipe

from align_rudder.baselines import Protocol, learn_rounds
from align_rudder.baselines.rounds import (
    _anew,
    collecting,
    common_symbols,
    losing,
    touring,
    visits,
)
from align_rudder.tasks import RecipesEnv
from align_rudder.tasks.mdp import TabularMDP


@given(st.text("abcd", max_size=12), st.integers(1, 3))
def test_visits_are_the_longest_beginning_of_the_tour_that_is_a_subsequence(sequence, n):
    kinds = "abc"[:n]
    tour = list(itertools.islice(itertools.cycle(kinds), len(sequence)))
    fits = []
    for m in range(len(tour) + 1):
        rest = iter(sequence)
        if all(symbol in rest for symbol in tour[:m]):
            fits.append(m)
    assert visits(sequence, kinds) == max(fits)


def paid_along(tables, sequence):
    following, paid = tables
    state, out = 0, []
    for kind in sequence:
        out.append(paid[state, kind])
        state = following[state, kind]
    return out


@given(st.lists(st.integers(0, 3), max_size=30))
def test_a_tour_is_paid_for_the_next_kind_alone(sequence):
    out, following = [], 0
    for kind in sequence:
        out.append(float(kind == following))
        following = (following + out[-1]) % 4
    assert paid_along(touring(4), sequence) == out
    assert sum(out) == visits(sequence, range(4))


@given(st.lists(st.integers(0, 3), max_size=30), st.integers(1, 4))
def test_each_kind_is_collected_once_in_a_round(sequence, n):
    sequence = [kind for kind in sequence if kind < n]
    seen, out = set(), []
    for kind in sequence:
        out.append(float(kind not in seen))
        seen |= {kind}
        seen = set() if len(seen) == n else seen
    assert paid_along(collecting(n), sequence) == out


def test_kinds_are_those_that_most_logs_hold_and_two_at_least():
    logs = ["abc", "abd", "ab", "ac", "ae"]
    assert common_symbols(logs, 1.0) == ["a", "b"]
    assert common_symbols(logs, 0.6) == ["a", "b"]
    assert common_symbols(logs, 0.4) == ["a", "b", "c"]
    assert common_symbols(["a", "a"]) == ["a"]
    assert common_symbols(["", ""]) == common_symbols([]) == []


def against_the_tour(seed):
    """Return a recipe whose items come in the order opposite to that of their names."""
    for recipe_seed in itertools.count(100 * seed):
        env, logs = small_recipe(recipe_seed, length=3, items=3)
        names = [env.symbols[item] for item in env.recipe]
        if names == sorted(set(names), reverse=True):
            return env, logs


@pytest.mark.parametrize("any_order", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_rounds_solve_what_one_does_not(seed, any_order):
    env, logs = against_the_tour(seed)
    options = {"any_order": any_order, "share": 1.0, "protocol": GREEDY}
    first, again = (learn_rounds(env.mdp, logs, **options) for _ in range(2))
    assert first.solved
    np.testing.assert_array_equal(first.q, again.q)
    # It knows which is next, or which there were, and not in which round.
    kinds = len(common_symbols(logs, 1.0))
    assert first.q.reshape(-1, 4).shape[0] == (2**kinds - 1 if any_order else kinds) * 16


def test_a_single_kind_is_paid_each_time():
    env, _ = small_recipe(length=1)
    name = env.symbols[env.recipe[0]]
    for any_order in (False, True):
        assert learn_rounds(env.mdp, [[name]] * 2, any_order=any_order, protocol=GREEDY).solved


def test_it_begins_anew_with_the_same_and_with_more_kinds():
    assert list(_anew(lambda share: round(share, 3), 1.0))[:4] == [1.0, 0.9, 1.0, 0.9]
    assert list(_anew(lambda share: round(share, 3), 0.55))[:2] == [0.55, 0.5]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=30))
def test_what_is_lost_leaves_the_set_and_is_paid_back(happened):
    held, state, total = set(), 0, 0.0
    (following, paid), (back, repaid) = collecting(4), losing(4)
    for kind, lost in happened:
        pair = (back, repaid) if lost else (following, paid)
        total += pair[1][state, kind]
        state = pair[0][state, kind]
        held = held - {kind} if lost else held | {kind}
        rounds = len(held) == 4
        held = set() if rounds else held
        assert state == sum(2**k for k in held)
        assert total % 4 == len(held)


def test_of_a_tour_only_the_last_kind_can_be_lost():
    following, paid = losing(3, any_order=False)
    assert following.tolist() == [[0, 0, 2], [0, 1, 1], [2, 1, 2]]
    assert paid.tolist() == [[0, 0, -1], [-1, 0, 0], [0, -1, 0]]


def test_without_losses_being_told_of_them_changes_nothing():
    env, logs = small_recipe(wrong="undo")
    free = TabularMDP(
        **{**vars(env.mdp), "labels": np.where(env.mdp.labels > 2, -1, env.mdp.labels)}
    )
    plain, told = (
        learn_rounds(free, logs, any_order=True, undo=undo, protocol=GREEDY)
        for undo in (None, env.undo)
    )
    np.testing.assert_array_equal(plain.q, told.q)


def test_a_turn_with_more_kinds_than_are_learned_keeps_those_of_the_first():
    names = RecipesEnv(2, items=13, distractors=0, size=5).symbols
    logs = [names[:12]] * 3 + [names] * 17
    env = RecipesEnv(2, items=13, distractors=0, size=5)
    short = Protocol(max_episodes=60, evaluation_epsilon=0.0, evaluation_episodes=1)
    found, twelve = (
        learn_rounds(env.mdp, some, any_order=True, share=0.9, turns=10, protocol=short)
        for some in (logs, [names[:12]] * 20)
    )
    np.testing.assert_array_equal(found.q, twelve.q)


def test_what_cannot_be_meant_is_refused():
    world, logs = small_recipe()
    with pytest.raises(ValueError, match="share is 0"):
        learn_rounds(world.mdp, logs, share=0.0)
    with pytest.raises(ValueError, match="turns is 0"):
        learn_rounds(world.mdp, logs, turns=0)
    with pytest.raises(ValueError, match="any_order is 2"):
        learn_rounds(world.mdp, logs, any_order=2)
    for none in ([], [[], []]):
        with pytest.raises(ValueError, match=f"the {len(none)} logs hold no event"):
            learn_rounds(world.mdp, none)
    many = RecipesEnv(2, items=13, distractors=0)
    with pytest.raises(ValueError, match=r"13 kinds of event .* at most 12 .*any_order=False"):
        learn_rounds(many.mdp, ["ABCDEFGHIJKLM"] * 2, any_order=True)
    with pytest.raises(ValueError, match=r"13 kinds of event .* larger share \(all logs hold 12\)"):
        learn_rounds(many.mdp, ["ABCDEFGHIJKLM"] * 5 + ["ABCDEFGHIJKL"], any_order=True)
    with pytest.raises(ValueError, match="mdp is RecipesEnv; a TabularMDP is needed; give its mdp"):
        learn_rounds(world, logs)
    with pytest.raises(ValueError, match="logs is None"):
        learn_rounds(world.mdp, None)
    with pytest.raises(ValueError, match="undo names 'lost Q', which the table does not name"):
        learn_rounds(world.mdp, logs, undo={"lost Q": "A"})
    with pytest.raises(ValueError, match="told by a dict"):
        learn_rounds(world.mdp, logs, undo="auto")
    spoiled, _ = small_recipe(wrong="undo")
    with pytest.raises(ValueError, match="they lose again"):
        learn_rounds(spoiled.mdp, [["A", "lost A"]] * 2, undo=spoiled.undo)
    with pytest.raises(ValueError, match="logs hold 'q', 'w', which the table does not name; it"):
        learn_rounds(world.mdp, [["q", "w"]] * 3)
    with pytest.raises(ValueError, match=r"logs\[0\] is 1; a sequence of symbols"):
        learn_rounds(world.mdp, [1, 2])
    with pytest.raises(ValueError, match="logs is a mapping"):
        learn_rounds(world.mdp, {"run": logs[0]})
