"""The small world: what it declares is what minerl declares, and its script finds the diamond."""

import numpy as np
import pytest
from small_world import (
    INDEX_ORDER,
    INVENTORY,
    IRON,
    KEYS,
    REWARDS,
    TREECHOP,
    count,
    play,
)

from align_rudder.minerl.spaces import ENUMS, HELD, ITEMS, TASKS
from align_rudder.minerl.testing import scripted
from align_rudder.minerl.testing.scripted import STAGES, scripted_action


def spaces_of_minerl(task, version):
    """What minerl 0.3.7 and 0.4.4 declare, enums and buttons as the number of their values."""
    actions = dict.fromkeys(KEYS, 2) | {"camera": (-180.0, 180.0, (2,), np.dtype("f4"))}
    observed = {"pov": (0.0, 255.0, (64, 64, 3), np.dtype("u1"))}
    if task == TREECHOP:
        return observed, actions
    actions |= {head: len(values.split()) for head, values in INDEX_ORDER.items()}
    count, damage = (0.0, 2304.0, (), np.dtype("i4")), (-1.0, 1562.0, (), np.dtype("i4"))
    hand = {"damage": damage, "maxDamage": damage, "type": 9}
    observed["inventory"] = dict.fromkeys(INVENTORY, count)
    if version == 3:
        return observed | {f"equipped_items.mainhand.{k}": v for k, v in hand.items()}, actions
    return observed | {"equipped_items": {"mainhand": hand}}, actions


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("version", [3, 4])
def test_its_spaces_are_those_of_minerl(task, version):
    def plain(space):
        if hasattr(space, "spaces"):
            return {name: plain(part) for name, part in space.spaces.items()}
        if hasattr(space, "n"):
            return int(space.n)
        return float(space.low.min()), float(space.high.max()), space.shape, np.dtype(space.dtype)

    env = scripted.ScriptedEnv(task, version)
    observed, actions = spaces_of_minerl(task, version)
    assert plain(env.observation_space) == observed
    assert plain(env.action_space) == actions
    assert env.spec.max_episode_steps == TASKS[task].limit


def test_its_names_are_those_of_minerl():
    assert sorted(scripted.ITEMS) == list(ITEMS)
    assert sorted(scripted.HELD) == list(HELD)
    assert {h: tuple(sorted(v)) for h, v in scripted.DECLARED.items()} == ENUMS
    assert scripted.REWARDS == REWARDS
    assert len(set(scripted.COLORS.values())) == len(scripted.COLORS)


def test_it_has_the_interface_of_old_gym():
    flat, nested = scripted.ScriptedEnv(version=3), scripted.ScriptedEnv(version=4)
    for env in (flat, nested):
        env.seed(1)
    seen, other = flat.reset(), nested.reset()
    assert str(seen["equipped_items.mainhand.type"]) == "none"
    assert other["equipped_items"]["mainhand"]["type"] == "air"
    flat.step({"craft": 2})  # an index, as 0.3.7 takes it
    with pytest.raises(AssertionError, match="must be str"):
        nested.step({"craft": 2})
    with pytest.raises(AssertionError, match="Seed must be an int"):
        flat.seed(None)


@pytest.mark.parametrize(
    ("stage", "distance", "spread"),
    [*((stage, 1, 360) for stage in STAGES), ("start", 3, 90), ("start", 8, 200)],
)
def test_its_script_finds_the_diamond_from_every_stage(make, stage, distance, spread):
    env = make(stage=stage, distance=distance, spread=spread, hits=1)
    for seed in range(2):
        rewards, ends = play(env, seed, 400)[2:4]
        assert ends == (True, False)
        assert rewards[-1] == 1


def test_all_rewards_are_those_of_the_challenge(make):
    rewards = play(make(reward="all"), 5)[2]
    assert sorted(r for r in rewards if r) == sorted(REWARDS.values())


def test_other_tasks_end_with_what_they_ask_for(make):
    env = make(task=TREECHOP, hits=1)
    observations, _, rewards, ends, _ = play(env, 0, 300, lambda o: scripted_action(o, "log"))
    assert ends == (True, False)
    assert sum(rewards) == count(observations[-1], "log") == 64
    env = make(task=IRON, hits=1)
    _, _, rewards, ends, _ = play(env, 0, 400, lambda o: scripted_action(o, "iron_pickaxe"))
    assert (ends, sum(rewards)) == ((True, False), 547)
