"""Made-up evaluations of trainings."""

GOALS = [
    "did_collect_wood+1 wood+1",
    "wood+1",
    "did_place_table+1 wood-2",
    "iron_pickaxe+1 did_make_iron_pickaxe+1 coal-1 …",
    "diamond+1 did_collect_diamond+1",
]


def stage(reached, worlds=10_000):
    wood, _, table, tool, solved = reached
    deepest = {
        "nothing": worlds - wood,
        "wood": wood - table,
        "table": table - tool,
        "iron pickaxe": tool - solved,
        "diamond": solved,
    }
    return {"worlds": worlds, "solved": solved, "reached": reached, "deepest": deepest}


def with_endings(found, **endings):
    """Return an evaluation in whose stages episodes ended so, but for those that solved it."""
    for counts in found["stages"].values():
        counts["endings"] = {"diamond": counts["solved"], "lava": 0, "time": 0, **endings}
    return found


def evaluation(method="align-rudder", seed=0, steps=8_000_000, **stages):
    return {
        "method": method,
        "steps": steps,
        "seed": seed,
        "max_steps": 10_000,
        "goals": GOALS,
        "demonstrations": {"worlds": 10, "solved": 10, "reached": [10, 10, 10, 9, 10]},
        "stages": {name: stage(reached) for name, reached in stages.items()},
    }


OURS = {
    "cloned": [9000, 8000, 5000, 1, 0],
    "agent": [10_000, 9990, 9900, 4000, 1000],
    "manager": [10_000, 9995, 9950, 4400, 1200],
}
