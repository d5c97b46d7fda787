"""Symbols of events survive JSON."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder.files import decode_symbol, encode_symbol

examples = settings(deadline=None, max_examples=100, derandomize=True)

_ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()
)
_SYMBOLS = st.recursive(
    _ATOMS,
    lambda part: st.lists(part, max_size=3).map(tuple) | st.frozensets(part, max_size=3),
    max_leaves=6,
)


def _types(symbol):
    """Return a symbol with the types of its parts, which == does not compare (True == 1 == 1.0)."""
    if isinstance(symbol, tuple):
        return tuple(_types(part) for part in symbol)
    if isinstance(symbol, frozenset):
        return frozenset(_types(part) for part in symbol)
    return type(symbol), symbol


@given(_SYMBOLS)
@examples
def test_a_symbol_survives_json(symbol):
    loaded = decode_symbol(json.loads(json.dumps(encode_symbol(symbol))))
    assert _types(loaded) == _types(symbol)


@pytest.mark.parametrize("value", [np.int32(3), np.float64(0.5), np.str_("a"), np.bool_(True)])
def test_a_numpy_scalar_is_its_value(value):
    assert _types(decode_symbol(encode_symbol(value))) == _types(value.item())
    assert _types(decode_symbol(encode_symbol((value,)))) == _types((value.item(),))


@pytest.mark.parametrize("symbol", [object(), 1j, ("a", (1, object())), frozenset([1j]), range(3)])
def test_a_symbol_that_cannot_be_stored_is_named(symbol):
    with pytest.raises(ValueError, match=r"of type (object|complex|range) cannot be stored.*use"):
        encode_symbol(symbol)
