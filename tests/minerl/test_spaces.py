"""Names and orders of MineRL's format."""

import numpy as np
import pytest
from small_world import INDEX_ORDER, INVENTORY, KEYS, TREECHOP

from align_rudder.minerl.spaces import (
    BUTTONS,
    DO_NOTHING,
    ENUMS,
    HEADS,
    HELD,
    ITEMS,
    action_space,
    array_names,
    enum_indices,
)


def test_all_have_the_order_of_the_tables():
    assert {head: tuple(values.split()) for head, values in INDEX_ORDER.items()} == ENUMS
    assert list(HEADS) == [*KEYS, "camera", "place", "equip", "craft", "nearbyCraft", "nearbySmelt"]
    assert list(ITEMS) == INVENTORY
    assert list(BUTTONS) == KEYS
    assert list(HELD) == sorted(HELD)
    assert len(HELD) == 9
    assert {ENUMS[head][i] for head, i in DO_NOTHING.items()} == {"none"}


def test_strings_become_indices_in_sorted_order():
    for head, values in ENUMS.items():
        indices = enum_indices(head, np.array(values[::-1]))
        assert [ENUMS[head][i] for i in indices] == list(values[::-1])
    with pytest.raises(ValueError, match="craft has the value 'cake' at step 1; known are craft"):
        enum_indices("craft", np.array(["none", "cake"]))


def test_what_a_task_has():
    assert action_space()["craft"].n == 5
    assert set(action_space(TREECHOP)) == {*KEYS, "camera"}
    with pytest.raises(ValueError, match=r"version 5 .* versions 3 and 4"):
        array_names(TREECHOP, 5)
    with pytest.raises(ValueError, match="the task 'Chess' is not known"):
        action_space("Chess")
