"""Events of Craftax are named by what they give."""

from align_rudder.tasks.diamond.names import event_names, goal_names


def test_goals_are_named_by_what_they_give():
    tool = "iron_pickaxe+1 did_make_iron_pickaxe+1 coal-1 …"
    goals = ["did_collect_wood+1 wood+1", "did_place_table+1 wood-2", "wood+1", tool]
    assert goal_names(goals) == ["wood", "table", "wood 2", "iron pickaxe"]
    others = ["stick+4 plank-2", "did_defeat_zombie+1", "wood-2", "go home", "did_defeat_zombie+1"]
    named = ["stick +4", "defeat zombie", "wood −2", "go home", "defeat zombie 2"]
    assert goal_names(others) == named


def test_what_is_placed_is_not_taken_for_what_is_collected():
    placed = [
        "did_place_stone+1 stone-1",
        "did_place_table+1 wood-2",
        "did_collect_stone+1 stone+1",
    ]
    assert event_names(placed) == ["place stone", "table", "stone"]


def test_no_two_events_have_the_same_name():
    symbols = ["did_collect_wood+1 wood+1", "wood+1", "diamond+1", "did_find+1 wood+1", "wood-1"]
    names = event_names(symbols)
    assert names[1:3] == ["wood", "diamond"]
    assert len(set(names)) == len(names)
