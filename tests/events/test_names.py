"""Events have short names, and no two the same."""

import numpy as np

from align_rudder.events.names import event_names, goal_names, region_names


def test_goals_are_named_by_what_they_give_and_numbered():
    goals = ["stick+4 plank-2", "wood-2", "go home", "iron_ore+1", "iron_ore+1", "x+1 y+1"]
    assert goal_names(goals) == [
        "stick +4",
        "wood −2",
        "go home",
        "iron ore",
        "iron ore 2",
        "x and y",
    ]


def test_no_two_events_have_the_same_name():
    symbols = ["wood+1", "wood+1 stone-1", "stone+1", ("a", 1), 3]
    names = event_names(symbols)
    assert names[2] == "stone"
    assert len(set(names)) == len(names)


def test_a_task_may_have_names_of_its_own():
    assert goal_names(["wood+1", "wood+2"], lambda symbol: "log") == ["log", "log 2"]
    assert event_names(["wood+1", "wood+2"], lambda symbol: "log") == ["wood+1", "wood+2"]


def test_regions_of_one_inventory_are_told_apart_by_where_they_are():
    """What is held varies less than the place, but it is the same in three of the regions."""
    rng = np.random.default_rng(0)
    corners = np.array([[0.8, 0.8], [-0.8, 0.8], [0.8, -0.8], [0.0, 0.0]])
    held = np.array([[1, 0, 0]] * 3 + [[0, 1, 1]])
    labels = np.repeat(np.arange(4), 20)
    places = corners[labels] + rng.normal(0, 0.1, (80, 2))
    vectors = np.concatenate([places, held[labels]], axis=1)
    names = region_names(vectors, labels, 4, ["x", "y", "water", "onion", "fire"])
    assert len(set(names)) == 4
    assert all("x≈" in name and "y≈" in name for name in names[:3])
    assert not any("(" in name for name in names)
