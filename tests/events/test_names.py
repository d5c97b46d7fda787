"""Events that are changes have short names."""

from align_rudder.events.names import event_names, goal_names


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
