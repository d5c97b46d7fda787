"""MineRL as a Gymnasium environment, over the real pipe, with the small world at the other end."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from small_world import INDEX_ORDER, IRON, TREECHOP, act, count, play, replay, same

from align_rudder.minerl.environment import MineRLEnv, MineRLServerError
from align_rudder.minerl.spaces import BUTTONS, ENUMS, HEADS, HELD, ITEMS


@pytest.mark.parametrize("version", [3, 4])
def test_gymnasiums_judge(version):
    env = gym.make(
        "AlignRudder/MineRL-v0",
        module="scripted",
        module_options={"version": version},
        render_mode="rgb_array",
    )
    with env:
        check_env(env.unwrapped)
        observation, _ = env.reset(seed=0)
        assert np.array_equal(env.render(), observation["pov"])


def test_both_versions_look_alike(shared):
    flat, nested = shared[3], shared[4]
    assert not flat.description["nested"]
    assert nested.description["nested"]
    for key in ("observation", "action"):  # the names agree once they are joined
        assert flat.description[key] == nested.description[key]
    one, other = play(flat, 11), play(nested, 11)
    assert len(one[0]) == len(other[0])
    assert all(same(a, b) for a, b in zip(one[0], other[0]))
    assert one[2:] == other[2:]
    assert all(flat.observation_space.contains(o) for o in one[0])
    assert all(flat.action_space.contains(a) for a in one[1])


@pytest.mark.parametrize("version", [3, 4])
def test_items_travel_by_name(make, trick, version):
    env = make(version, trick=trick("echo"))
    found = env.description["action"]
    assert {head: " ".join(found[head]["values"]) for head in ENUMS} == INDEX_ORDER
    env.reset(seed=0)
    for head, names in INDEX_ORDER.items():
        for index, name in enumerate(names.split()):
            info = env.step(act() | {head: np.int64(index)})[4]
            assert info[head] == f"str {name}"
    info = env.step(act(attack=True, camera=np.array([1.5, -2.0])))[4]
    assert (info["attack"], info["camera"]) == ("int 1", "ndarray [ 1.5 -2. ]")


@pytest.mark.parametrize("version", [3, 4])
def test_craft_planks_crafts_planks(make, version):
    env = make(version, stage="wood")
    before, _ = env.reset(seed=0)
    after, *_ = env.step(act() | {"craft": INDEX_ORDER["craft"].split().index("planks")})
    change = after["inventory"] - before["inventory"]
    assert {item: n for item, n in zip(ITEMS, change) if n} == {"log": -1, "planks": 4}


@pytest.mark.parametrize("version", [3, 4])
def test_diamond_is_obtained_and_paid_once(shared, version):
    observations, _, rewards, ends, info = play(shared[version], 5)
    assert ends == (True, False)
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]
    assert info == {"seed": 5, "steps": len(rewards), "game_reward": 1024.0}
    assert [int(o["diamond"]) for o in observations] == [0] * len(rewards) + [1]
    assert HELD[observations[0]["equipped"]] == "air"
    assert HELD[observations[-1]["equipped"]] == "iron_pickaxe"
    assert observations[-1]["damage"] == 1
    assert observations[-1]["max_damage"] == 250


def test_determinism_and_seeds(make, shared):
    one, other = make(), shared[3]
    actions = [one.action_space.sample() for _ in range(60)]
    queues = [iter(actions), iter(actions)]
    runs = [play(env, 3, 60, lambda _, it=it: next(it)) for env, it in zip((one, other), queues)]
    assert all(same(a, b) for a, b in zip(runs[0][0], runs[1][0]))
    worlds = [env.reset()[1]["seed"] for env in (one, other)]
    assert worlds[0] == worlds[1] != one.reset()[1]["seed"]
    assert same(one.reset(seed=worlds[0])[0], other.reset(seed=worlds[0])[0])
    assert not same(one.reset(seed=1)[0], one.reset(seed=2)[0])


def test_the_same_actions_lead_to_the_same_state(shared):
    """Minecraft cannot be saved: recorded actions are how one returns to a state."""
    env = shared[4]
    observations, actions, *_ = play(env, 8)
    half = len(actions) // 2
    assert same(replay(env, 8, actions[:half]), observations[half])
    assert same(env.step(actions[half])[0], observations[half + 1])


def test_frame_skip_does_once_what_an_action_says(make):
    skipping, plain = make(stage="wood", frame_skip=4, reward="all"), make(stage="wood")
    first = act(craft="planks", camera=np.array([5, 40], np.float32), forward=1)
    held = act(forward=1)
    for env in (skipping, plain):
        env.reset(seed=0)
    seen, reward, *_, info = skipping.step(first)
    for action in (first, held, held, held):
        expected, *_ = plain.step(action)
    assert same(seen, expected)
    assert (reward, info["steps"], info["game_reward"]) == (2, 4, 2)
    assert (count(seen, "log"), count(seen, "planks")) == (5, 4)


def test_truncation(make):
    env = make(limit=6, frame_skip=4)
    env.reset(seed=0)
    assert env.step(act())[2:4] == (False, False)
    *_, terminated, truncated, info = env.step(act())
    assert (terminated, truncated, info["steps"]) == (False, True, 6)
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        env.step(act())
    env.reset()
    assert env.step(act())[2:4] == (False, False)


def test_the_games_own_limit_truncates_too():
    options = {"limit": 3, "version": 3}
    with MineRLEnv(module="scripted", module_options=options) as env:
        assert env.description["limit"] == 3
        env.reset(seed=0)
        ends = [env.step(act())[2:4] for _ in range(3)]
        assert ends == [(False, False), (False, False), (False, True)]


def test_a_diamond_at_the_last_step_terminates(make):
    steps = len(play(make(stage="diamond"), 0)[1])
    assert play(make(stage="diamond", limit=steps), 0)[3] == (True, False)
    assert play(make(stage="diamond", limit=steps - 1), 0)[3] == (False, True)


def test_wrong_actions(shared):
    env = shared[3]
    env.reset(seed=0)
    for change, message in [
        ({"craft": 5}, "craft=5 is not possible; needed is an index: 0 crafting_table, 1 none"),
        ({"craft": "planks"}, "craft='planks' is not possible"),
        ({"jump": 2}, "jump=2 is not possible; needed is 0 or 1"),
        ({"camera": [0.0, 181.0]}, "two angles"),
        ({"camera": [0.0, np.nan]}, "two angles"),
        ({"camera": 1.0}, "two angles"),
        ({"fly": 1}, "no action 'fly'"),
    ]:
        with pytest.raises(ValueError, match=message):
            env.step(act() | change)
    with pytest.raises(ValueError, match="lacks camera, place"):
        env.step(dict.fromkeys((*BUTTONS, *HEADS[10:]), 0))
    env.step(act())  # the episode goes on


def test_actions_that_a_task_lacks(make):
    env = make(task=TREECHOP)
    assert set(env.action_space) == {*BUTTONS, "camera"}
    env.reset(seed=0)
    env.step(act())  # heads that say "none" do no harm
    with pytest.raises(ValueError, match="has no action 'craft'"):
        env.step(act(craft="planks"))


def test_a_game_that_is_lost_ends_the_episode(make, trick):
    env = make(trick=trick("lost"))
    env.reset(seed=0)
    with pytest.raises(MineRLServerError, match="lost Minecraft: Connection timed out!"):
        env.step(act())
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        env.step(act())


def test_wrong_spaces(make, trick):
    with pytest.raises(ValueError, match=r"inventory\.log") as caught:
        make(trick=trick("spaces"))
    for part in ("action nearbySmelt", "value 'stick' of action craft", "obfuscation"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "MineRLNavigate-v0"}, "not known"),
        ({"reward": "dense"}, "reward is 'dense'; one of 'diamond', 'all'"),
        ({"task": IRON}, "has no diamond"),
        ({"frame_skip": 0}, "must be positive"),
        ({"render_mode": "human"}, "one of None, 'rgb_array'"),
        ({"module": "nowhere"}, "file.py:function"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        MineRLEnv(**{"module": "scripted"} | options)
