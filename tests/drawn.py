"""What Hypothesis draws for several tests."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def alignments(draw, max_symbols=62):
    """Draw symbols and an alignment over them."""
    if draw(st.booleans()):
        visible = st.characters(max_codepoint=0x2FF, categories="LNPS", exclude_characters="->")
        symbols = draw(st.lists(visible, min_size=1, max_size=9, unique=True))
    else:
        symbols = list(range(draw(st.integers(1, max_symbols))))
    n, length = draw(st.integers(1, 5)), draw(st.integers(0, 90))
    seed = draw(st.integers(0, 2**32 - 1))
    matrix = np.random.default_rng(seed).integers(-1, len(symbols), (n, length)).astype(np.int32)
    if length and draw(st.booleans()):
        matrix[:, :: draw(st.integers(1, 5))] = 0
    return symbols, matrix
