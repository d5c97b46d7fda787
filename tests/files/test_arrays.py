"""Arrays are held to type, shape and range; sizes of one name agree."""

import numpy as np
import pytest

from align_rudder.files import Array, Bytes, Flags, Floats, Ints, check_arrays

NEEDED = {
    "names": Ints("n", high=9),
    "merges": Floats("n-1", 4),
    "index": Ints(None, high="n"),
    "weights": Floats("n", "2*hidden", dtype=np.float32),
    "head": Floats("hidden+1", optional=True),
}


def arrays(**changes):
    found = {
        "names": np.arange(3, dtype=np.uint8),
        "merges": np.zeros((2, 4)),
        "index": np.array([2, 0]),
        "weights": np.ones((3, 4)),
    }
    return {k: v for k, v in (found | changes).items() if v is not None}


def test_arrays_come_in_their_types_and_sizes_agree():
    found = check_arrays(arrays(head=np.zeros(3)), NEEDED)
    assert found["names"].dtype == np.int64
    assert found["weights"].dtype == np.float32
    assert check_arrays(arrays(), NEEDED).keys() == arrays().keys()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": None}, "it has no array 'names'; there are"),
        ({"more": np.zeros(1)}, "it has an array 'more', which is not known there"),
        ({"names": np.zeros(3)}, "'names' holds numbers; whole numbers are needed"),
        ({"names": np.array(["a"])}, "'names' holds text; whole numbers are needed"),
        ({"names": np.array([1, 2, 10])}, "'names' holds 10; at most 9 is allowed"),
        ({"names": np.array([1, -2, 0])}, "'names' holds -2; at least 0 is needed"),
        ({"names": np.array(3)}, r"'names' has shape \(\); \(n,\) is needed"),
        ({"merges": np.zeros((3, 4))}, r"'merges' has shape \(3, 4\); \(2, 4\) is needed"),
        ({"merges": np.zeros((2, 3))}, r"'merges' has shape \(2, 3\); \(2, 4\) is needed"),
        ({"index": np.array([3])}, "'index' holds 3; at most 2 is allowed"),
        ({"weights": np.ones((3, 5))}, r"'weights' has shape \(3, 5\); \(3, 2\*hidden\) is needed"),
        ({"weights": np.full((3, 4), np.nan)}, "'weights' holds nan; finite numbers are needed"),
        ({"weights": np.full((3, 4), np.inf)}, "'weights' holds inf; at most 1e"),
        ({"weights": np.full((3, 4), 1e300)}, r"'weights' holds 1e\+300; at most 1e"),
        ({"head": np.zeros(4)}, r"'head' has shape \(4,\); \(3,\) is needed"),
    ],
)
def test_what_does_not_fit_is_said(changes, message):
    with pytest.raises(ValueError, match=message):
        check_arrays(arrays(**changes), NEEDED)


def test_truth_values_may_be_numbers_and_bytes_may_not():
    assert Flags("n").check(np.array([0.0, 1.0]), "it", {}).tolist() == [False, True]
    for wrong in ([2], [-1], [np.nan], ["x"]):
        with pytest.raises(ValueError, match="it holds"):
            Flags("n").check(np.array(wrong), "it", {})
    assert Bytes().check(np.frombuffer(b"ab", np.uint8), "it", {}).tobytes() == b"ab"
    with pytest.raises(ValueError, match="it holds numbers"):
        Bytes().check(np.zeros(2), "it", {})


def test_infinite_numbers_are_taken_where_they_are_asked_for():
    array = np.array([-np.inf, 0.0])
    assert Floats("n", low=-np.inf, high=np.inf).check(array, "it", {}) is array
    nothing = np.array([np.nan])
    with pytest.raises(ValueError, match="nan"):
        Floats("n", low=-np.inf, high=np.inf).check(nothing, "it", {})
    assert Array("n", kinds="f").check(nothing, "it", {}) is nothing
