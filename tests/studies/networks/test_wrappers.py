"""What agents of the study observe and are paid, and what they learn from."""

import numpy as np
import pytest

from align_rudder.gym.spaces import in_blocks
from align_rudder.gym.wrapper import RedistributeReward
from align_rudder.studies.networks.settings import Setting
from align_rudder.studies.networks.trials import LEARNERS
from align_rudder.studies.networks.worlds import (
    demonstrations,
    level,
    logs_of,
    model_of,
    stage_pairs,
)
from align_rudder.studies.networks.wrappers import (
    Inventory,
    LastEvent,
    Rounds,
    Unordered,
    happened,
)
from align_rudder.studies.recipes.worlds import median_of
from align_rudder.tasks.minigrid_recipe import KINDS, Player, _way

SETTING = Setting(length=4, logs=10)


def picked(env, *kinds):
    """Pick items one after the other; return the last observation and the reward of each."""
    room, paid, obs = env.unwrapped, [], None
    for kind in kinds:
        while room.facing != kind:
            obs, reward, *_ = env.step(_way(room, room.places[kind]))
            assert reward == 0
        obs, reward, *_ = env.step(3)
        paid.append(reward)
    return obs, paid


def begun(wrap, seed=0):
    env = wrap(level(SETTING, seed, max_steps=1000))
    env.reset(seed=0)
    return env


def test_logs_are_events_of_the_recipe_and_nothing_else():
    recipe = [KINDS[kind] for kind in level(SETTING, 3).recipe]
    logs = logs_of(SETTING, 3)
    assert len({*logs}) == 10
    for log in logs:
        rest = iter(log)
        assert all(name in rest for name in recipe)
        assert {*log} <= {*KINDS}
    assert logs_of(SETTING, 4) != logs


def test_the_model_of_the_logs_pays_the_recipe_in_order():
    env = begun(lambda env: RedistributeReward(env, model_of(SETTING, 0), events=happened))
    recipe = env.unwrapped.recipe
    wrong = next(kind for kind in range(6) if kind not in recipe[:2])
    _, paid = picked(env, recipe[0], wrong, recipe[1])
    assert paid[0] > 0.1 < paid[2]
    assert paid[1] < 0.05


@pytest.mark.parametrize("name", ["shortest-log", "median"])
def test_one_sequence_is_paid_in_its_order_and_nothing_else(name):
    shortest = min(logs_of(SETTING, 0), key=len)
    wanted = {"shortest-log": shortest, "median": median_of(logs_of(SETTING, 0))}[name]
    env = begun(LEARNERS[name](SETTING, 0).wrap)
    recipe, picks = env.unwrapped.recipe, [KINDS.index(kind) for kind in wanted]
    for position, kind in enumerate(picks[:-1], 1):  # the level ends with the last
        wrong = next(k for k in range(6) if k not in (kind, *recipe))
        obs, paid = picked(env, wrong, kind)
        assert paid[0] == 0 < paid[1]
        assert (obs == in_blocks(env.unwrapped.gen_obs(), position, len(picks) + 1)).all()


def test_the_median_string_of_the_logs_lacks_most_of_their_detours():
    """On these seeds it has the recipe in it, and little else."""
    for seed in range(5):
        logs = logs_of(SETTING, seed)
        median, recipe = median_of(logs), [KINDS[kind] for kind in level(SETTING, seed).recipe]
        rest = iter(median)
        assert all(name in rest for name in recipe)
        assert len(median) <= SETTING.length + 2


def test_the_last_event_is_observed_in_blocks():
    env = begun(LastEvent)
    obs, _ = picked(env, 2, 4)
    assert (obs == in_blocks(env.unwrapped.gen_obs(), 5, 7)).all()
    obs, *_ = env.step(0)  # nothing happens, which is not remembered
    assert (obs == in_blocks(env.unwrapped.gen_obs(), 5, 7)).all()
    obs, _ = env.reset()
    assert (obs == in_blocks(env.unwrapped.gen_obs(), 0, 7)).all()


def test_the_inventory_counts_what_is_right():
    env = begun(Inventory)
    recipe = env.unwrapped.recipe
    wrong = next(kind for kind in range(6) if kind not in recipe[:2])
    obs, _ = picked(env, recipe[0], wrong)
    assert (obs == in_blocks(env.unwrapped.gen_obs(), 1, 5)).all()


def test_without_aligning_each_kind_is_paid_once_in_any_order():
    a, b, c = KINDS[:3]
    logs = [[a, b], [b, a], [a, b, a], [b, c, a], [a, b]]
    env = begun(lambda env: Unordered(env, logs))
    assert env.kinds == {a, b}  # c is in one of five logs
    _, paid = picked(env, 1, 2, 1, 0, 0)
    assert paid == pytest.approx([0.5, 0, 0, 0.5, 0])


def test_demonstrations_are_the_episodes_of_the_logs():
    env = LastEvent(level(SETTING, 3, max_steps=1000))
    demos = demonstrations(env, SETTING, 3)
    for episode, log in zip(demos, logs_of(SETTING, 3), strict=True):
        width = env.unwrapped.observation_space.shape[0]
        blocks = episode.observations[:, width:].reshape(-1, 7, width + 1)
        last = blocks[:, :, -1].argmax(axis=1)  # which block holds the 1
        picks = np.flatnonzero((episode.actions == 3) & (last[1:] > 0))
        assert [KINDS[i - 1] for i in last[picks + 1]] == list(log)
        assert episode.rewards.sum() == episode.rewards[-1] == 1


def test_stages_of_a_log_are_those_of_the_level():
    env = level(SETTING, 3, max_steps=1000)
    env.reset(seed=0)
    player, pairs, log, done = Player(env, 0, detours=1.0), [], [], False
    while not done:
        stage, facing, action = env.stage, env.facing, player.act()
        _, _, done, _, info = env.step(action)
        if info["happened"]:
            pairs.append((stage, facing))
            log.append(info["happened"])
    assert stage_pairs(env, tuple(log)).tolist() == [list(pair) for pair in pairs]


def test_a_tour_through_the_kinds_is_paid_round_and_round():
    a, b, c = sorted(KINDS[:3])
    logs = [[a, b, a], [b, a, b], [a, b], [a, b, a, b], [b, c, a, b]]
    env = begun(lambda env: Rounds(env, logs))
    assert env.kinds == [a, b]  # c is in one of five logs
    each = 1 / np.mean([3, 2, 2, 4, 2])
    first, second = (KINDS.index(kind) for kind in (a, b))
    obs, paid = picked(env, second, first, first, second, first)
    assert paid == pytest.approx([0, each, 0, each, each])
    assert (obs == in_blocks(env.unwrapped.gen_obs(), 1, 2)).all()
    env.reset()
    assert picked(env, first)[1] == pytest.approx([each])
