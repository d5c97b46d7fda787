"""MineRL: tables as they are printed, what generated data holds, playing in the small world."""

import numpy as np

from align_rudder.minerl.events import OWNED
from align_rudder.minerl.spaces import BUTTONS, ENUMS, ITEMS, TASKS
from align_rudder.minerl.testing.scripted import scripted_action

DIAMOND, IRON, TREECHOP = TASKS
INDEX_ORDER = {
    "craft": "crafting_table none planks stick torch",
    "place": "cobblestone crafting_table dirt furnace none stone torch",
    "equip": "air iron_axe iron_pickaxe none stone_axe stone_pickaxe wooden_axe wooden_pickaxe",
    "nearbyCraft": "furnace iron_axe iron_pickaxe none stone_axe stone_pickaxe wooden_axe "
    "wooden_pickaxe",
    "nearbySmelt": "coal iron_ingot none",
}
INVENTORY = """coal cobblestone crafting_table dirt furnace iron_axe iron_ingot iron_ore
    iron_pickaxe log planks stick stone stone_axe stone_pickaxe torch wooden_axe
    wooden_pickaxe""".split()  # noqa: SIM905
KEYS = ["forward", "left", "back", "right", "jump", "sneak", "sprint", "attack"]
REWARDS = {
    "log": 1,
    "planks": 2,
    "stick": 4,
    "crafting_table": 4,
    "wooden_pickaxe": 8,
    "cobblestone": 16,
    "furnace": 32,
    "stone_pickaxe": 32,
    "iron_ore": 64,
    "iron_ingot": 128,
    "iron_pickaxe": 256,
    "diamond": 1024,
}


def act(**parts):
    """Return an action that does nothing but for what is given; items by name."""
    action = dict.fromkeys(BUTTONS, 0) | {"camera": np.zeros(2, np.float32)}
    action |= {head: values.index(parts.pop(head, "none")) for head, values in ENUMS.items()}
    return action | parts


def count(observation, item):
    return int(observation["inventory"][ITEMS.index(item)])


def same(a, b):
    return a.keys() == b.keys() and all(
        np.array_equal(a[k], b[k]) and np.asarray(a[k]).dtype == np.asarray(b[k]).dtype for k in a
    )


def play(env, seed, steps=None, choose=scripted_action):
    """Return observations, actions, rewards and the last step's end and info."""
    observation, _ = env.reset(seed=seed)
    observations, actions, rewards, ends, info = [observation], [], [], (False, False), {}
    while not any(ends) and (steps is None or len(actions) < steps):
        actions.append(choose(observation))
        observation, reward, *ends, info = env.step(actions[-1])
        observations.append(observation)
        rewards.append(reward)
    return observations, actions, rewards, tuple(ends), info


def replay(env, seed, actions):
    """Return the observation to which actions lead: a list of dicts, or a dict of arrays."""
    if isinstance(actions, dict):
        actions = [dict(zip(actions, row)) for row in zip(*actions.values())]
    observation, _ = env.reset(seed=seed)
    for action in actions:
        observation, _, terminated, truncated, _ = env.step(action)
        assert not terminated
        assert not truncated
    return observation


def planted(trajectory):
    """The change of what is owned at each step (T, 19), read from the file by itself."""
    with np.load(trajectory.path / "rendered.npz") as stored:
        rewards = stored["reward"]
        changes = np.zeros((len(rewards), len(OWNED)), np.int64)
        if trajectory.task == TREECHOP:
            changes[:, OWNED.index("log")] = rewards
        else:
            for i, item in enumerate(ITEMS):
                changes[:, i] = np.diff(stored[f"observation$inventory${item}"])
        changes[:, -1] = rewards >= 1024
    return changes
