"""The level of MiniGrid: its rules, what it shows and hides, the scripted player and its logs."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX
from minigrid.minigrid_env import MiniGridEnv
from stable_baselines3.common.env_checker import check_env as check_env_sb3

from align_rudder.tasks.minigrid_recipe import KINDS, MiniGridRecipeEnv, Player, _way

PICK = 3


def pick(env, kind):
    """Go to an item and pick it; return what the last step returned."""
    while env.facing != kind:
        env.step(_way(env, env.places[kind]))
    return env.step(PICK)


def made(length=4, seed=0, **options):
    env = MiniGridRecipeEnv(length, max_steps=1000, **options)
    env.reset(seed=seed)
    return env


def test_judges():
    env = gym.make("AlignRudder/MiniGridRecipe-v0", render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env.unwrapped)
        check_env_sb3(env.unwrapped)
    env.reset(seed=0)
    assert np.ptp(env.render()) > 100  # a picture with contrast


def test_the_recipe_in_order_is_paid_and_ends_the_episode():
    env = made()
    for n, kind in enumerate(env.recipe, 1):
        _, reward, terminated, truncated, info = pick(env, kind)
        last = n == env.length
        assert (reward, terminated, truncated) == (float(last), last, False)
        assert info == {"happened": KINDS[kind], "is_success": last}
    assert all(a != b for a, b in zip(env.recipe, env.recipe[1:]))


def test_a_wrong_item_is_an_event_and_changes_nothing():
    env = made()
    pick(env, env.recipe[0])
    wrong = next(kind for kind in range(env.items) if kind != env.recipe[1])
    before = env.places, env.grid.encode()
    _, reward, terminated, _, info = pick(env, wrong)
    assert (reward, terminated, env.stage) == (0.0, False, 1)
    assert info["happened"] == KINDS[wrong]
    assert env.places == before[0]
    assert (env.grid.encode() == before[1]).all()  # the item stays where it is
    pick(env, env.recipe[1])
    assert env.stage == 2


def test_picking_nothing_is_no_event_and_time_runs_out():
    env = MiniGridRecipeEnv(2, max_steps=5)
    env.reset(seed=0)
    steps = []
    while not steps or not steps[-1][3]:
        action = 0 if env.facing >= 0 else PICK
        steps.append(env.step(action))
        assert not steps[-1][4]["happened"]
    assert len(steps) == 5
    assert not any(terminated for _, _, terminated, _, _ in steps)


def test_how_far_one_has_come_is_not_seen():
    env = made()
    first, second = env.recipe[:2]
    while env.facing != first:
        env.step(_way(env, env.places[first]))
    before = env.gen_obs()
    after, *_ = env.step(PICK)
    assert env.stage == 1
    assert (after == before).all()
    assert second != first


def test_the_view_is_that_of_minigrid():
    env, rng = made(size=9, items=8), np.random.default_rng(0)
    wall = OBJECT_TO_IDX["wall"]
    kinds = [
        (OBJECT_TO_IDX[shape], COLOR_TO_IDX[color]) for color, shape in map(str.split, env.symbols)
    ]
    seen = set()
    for _ in range(200):
        obs, *_ = env.step(int(rng.integers(3)))
        image = MiniGridEnv.gen_obs(env)["image"].reshape(-1, 3)
        wanted = [[cell[0] == wall, *(tuple(cell[:2]) == kind for kind in kinds)] for cell in image]
        assert (obs[:-4].reshape(49, -1) == np.array(wanted)).all()
        assert obs[-4:].tolist() == np.eye(4)[env.agent_dir].tolist()
        seen |= {i for i in range(8) if obs[:-4].reshape(49, -1)[:, 1 + i].any()}
    assert seen == set(range(8))
    assert len(set(kinds)) == 8


def test_each_episode_is_another_room_and_a_seed_names_one():
    env = MiniGridRecipeEnv()
    rooms = []
    for seed in (1, None, None, 1):
        env.reset(seed=seed)
        rooms.append((env.places, env.agent_pos, env.agent_dir))
    assert rooms[0] == rooms[3]
    assert rooms[0] != rooms[1] != rooms[2]
    recipes = {MiniGridRecipeEnv(recipe_seed=seed).recipe for seed in range(20)}
    assert len(recipes) > 15


@pytest.mark.parametrize("seed", range(5))
def test_every_item_can_be_reached_also_in_a_full_room(seed):
    env = MiniGridRecipeEnv(1, items=9, size=8)
    env.reset(seed=seed)
    for goal in env.places:
        assert _way(env, goal) in (-1, 0, 1, 2)  # raises an error if there is none


@pytest.mark.parametrize("seed", range(5))
def test_logs_hold_the_recipe_and_detours(seed):
    env = MiniGridRecipeEnv(6, recipe_seed=seed)
    wanted = [KINDS[kind] for kind in env.recipe]
    assert env.log(seed, detours=0.0, trips=0.0) == wanted
    logs = [env.log(j) for j in range(10)]
    assert logs == [env.log(j) for j in range(10)]
    for log in logs:
        rest = iter(log)
        assert all(name in rest for name in wanted)
        assert log[-1] == wanted[-1]
    assert np.mean([len(log) for log in logs]) > 8


def test_the_time_limit_is_about_four_times_what_the_player_needs():
    env = MiniGridRecipeEnv(5)
    steps = []
    for seed in range(20):
        env.reset(seed=seed)
        player, done = Player(env, seed), False
        while not done:
            _, _, done, truncated, _ = env.step(player.act())
            assert not truncated
        steps.append(env.step_count)
    assert 3.5 * np.mean(steps) < env.max_steps < 5 * np.mean(steps)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"length": 0}, "length"),
        ({"items": 19}, "items"),
        ({"items": 6, "size": 6}, "bar the ways"),
        ({"view": 4}, "odd number"),
    ],
)
def test_what_cannot_be_is_said(bad, message):
    with pytest.raises(ValueError, match=message):
        MiniGridRecipeEnv(**bad)
