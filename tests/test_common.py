"""The longest common subsequence: against all subsequences of short sequences, and by its terms."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder.common import common_subsequence

SHORT = st.lists(st.text("ABC", max_size=7), min_size=1, max_size=4)
LONG = st.lists(st.text("ABCDE", max_size=30), min_size=1, max_size=6)


def holds(sequence, wanted):
    """Return whether a sequence holds symbols in this order."""
    rest = iter(sequence)
    return all(symbol in rest for symbol in wanted)


def longest(sequences):
    """Return how long the longest common subsequence is, of all subsequences of the first."""
    first = sequences[0]
    return max(
        n
        for n in range(len(first) + 1)
        if any(all(holds(s, c) for s in sequences) for c in combinations(first, n))
    )


@settings(deadline=None, derandomize=True)
@given(SHORT)
def test_it_is_the_longest_of_short_sequences(sequences):
    assert len(common_subsequence(sequences)) == longest(sequences)


@settings(deadline=None, derandomize=True)
@given(LONG, st.integers(1, 20))
def test_every_sequence_holds_it_and_it_can_not_be_continued(sequences, beam):
    found = common_subsequence(sequences, beam)
    assert found == common_subsequence(sequences, beam)
    assert all(holds(sequence, found) for sequence in sequences)
    assert not any(all(holds(s, (*found, x)) for s in sequences) for x in "ABCDE")


def test_symbols_are_anything_hashable():
    assert common_subsequence([[(1, 2), None, "x"], ["x", (1, 2), None]]) == ((1, 2), None)


def test_what_is_hidden_in_noise_is_found():
    rng = np.random.default_rng(0)
    recipe = [*"AFCBDEFACDBE"]
    noisy = [[s for x in recipe for s in (*rng.choice([*"ABCDEFabcd"], 1), x)] for _ in range(10)]
    assert len(common_subsequence(noisy)) >= len(recipe)


def test_one_sequence_is_its_own_and_none_is_refused():
    assert common_subsequence(["ABBA"]) == (*"ABBA",)
    assert common_subsequence(["AB", ""]) == ()
    with pytest.raises(ValueError, match="give one or more"):
        common_subsequence([])
    with pytest.raises(ValueError, match="beam"):
        common_subsequence(["AB"], beam=0)
