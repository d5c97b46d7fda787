"""Rounds through the kinds of event: what counts as a visit, and what is learned."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_recipes import GREEDY, small_recipe

from align_rudder.baselines import learn_rounds
from align_rudder.baselines.rounds import visits


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


def against_the_tour(seed):
    """Return a recipe whose items come in the order opposite to that of their names."""
    for recipe_seed in itertools.count(100 * seed):
        env, logs = small_recipe(recipe_seed, length=3, items=3)
        names = [env.symbols[item] for item in env.recipe]
        if names == sorted(set(names), reverse=True):
            return env, logs


@pytest.mark.parametrize("seed", range(3))
def test_rounds_solve_what_one_tour_does_not(seed):
    env, logs = against_the_tour(seed)
    first, again = (learn_rounds(env.mdp, logs, protocol=GREEDY) for _ in range(2))
    assert first.solved
    np.testing.assert_array_equal(first.q, again.q)
    assert first.q.shape == (3, 16, 4)  # it knows which is next, and not in which round


def test_what_cannot_be_meant_is_refused():
    world, logs = small_recipe()
    with pytest.raises(ValueError, match="share is 0"):
        learn_rounds(world.mdp, logs, share=0.0)
    for none in ([], [[], []], ["ab", "cd"]):
        with pytest.raises(ValueError, match=f"no kind of event is in 80% of the {len(none)} logs"):
            learn_rounds(world.mdp, none)
