"""Recipes: layouts and logs, what wrong items do, and that the default learns from logs alone."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import align_rudder as ar
from align_rudder.baselines import Protocol, learn_align_rudder, learn_q
from align_rudder.tasks import RecipesEnv

ways = pytest.mark.parametrize("wrong", ["nothing", "undo"])


@ways
@pytest.mark.parametrize("hidden", [True, False])
def test_gymnasiums_judge(wrong, hidden):
    check_env(gym.make("AlignRudder/Recipes-v0", length=4, wrong=wrong, hidden=hidden).unwrapped)


def spelled(log, undo):
    """Return what is left of a log when losses have struck what was lost."""
    left = []
    for symbol in log:
        if symbol in undo:
            at = len(left) - 1 - left[::-1].index(undo[symbol])
            del left[at]
        else:
            left.append(symbol)
    return left


@ways
@pytest.mark.parametrize("seed", range(8))
def test_a_log_holds_the_recipe_in_order_and_ends_with_it(wrong, seed):
    env = RecipesEnv(6, seed=seed, recipe_seed=seed, wrong=wrong)
    log = env.log(seed)
    recipe = [env.symbols[item] for item in env.recipe]
    rest = iter(spelled(log, env.undo))
    assert all(item in rest for item in recipe)
    assert log[-1] == recipe[-1]
    assert log == env.log(seed)


@ways
def test_playing_a_recipe_is_paid_at_its_end(wrong):
    """The optimal policy visits the items in order; what happens is named."""
    env = RecipesEnv(5, seed=3, recipe_seed=3, wrong=wrong, hidden=False)
    policy = env.optimal_policy()
    obs, _ = env.reset(seed=0)
    happened, rewards, over = [], [], False
    while not over:
        obs, reward, over, cut, info = env.step(policy[obs])
        assert not cut
        happened.append(info["happened"])
        rewards.append(reward)
    assert sum(rewards) == rewards[-1] == 1.0
    left = iter(spelled([h for h in happened if h], env.undo))
    assert all(env.symbols[item] in left for item in env.recipe)


def test_a_wrong_item_undoes_the_last_right_one():
    env = RecipesEnv(3, items=3, distractors=1, seed=1, wrong="undo")
    first, second = env.recipe[:2]
    other = next(i for i in range(3) if i not in (second, first)) if first != second else None
    assert env._visit(0, first) == (1, first)
    lost = env.symbols.index(f"lost {env.symbols[first]}")
    assert env._visit(1, first if other is None else other) == (0, lost)
    assert env._visit(0, second)[0] == 0
    assert env._visit(1, 3) == (1, 3)  # a distractor does no harm
    assert RecipesEnv(3, items=3, distractors=1, seed=1)._visit(1, first)[0] == 1


def test_another_layout_has_the_same_recipe_elsewhere():
    one, other = RecipesEnv(6, seed=0), RecipesEnv(6, seed=1)
    assert one.recipe == other.recipe
    assert one.stations.tolist() != other.stations.tolist()
    assert RecipesEnv(6, seed=0, recipe_seed=1).recipe != one.recipe


@pytest.mark.parametrize("length", [6, 8])
@pytest.mark.parametrize("seed", range(3))
def test_the_default_learns_from_logs_of_other_layouts_where_plain_reward_does_not(length, seed):
    """What is visited before is hidden: states and actions cannot be copied, only the order."""
    logs = [RecipesEnv(length, seed=[seed, j], recipe_seed=seed).log(j) for j in range(10)]
    env = RecipesEnv(length, seed=seed, recipe_seed=seed)
    protocol = Protocol(max_episodes=500, evaluation_epsilon=0.0, evaluation_episodes=1)
    model = ar.AlignRudder().fit_events(logs)
    assert learn_align_rudder(env.mdp, [], model=model, seed=seed, protocol=protocol).solved
    assert not learn_q(env.mdp, [], returns=[1.0], seed=seed, protocol=protocol).solved


@pytest.mark.parametrize("seed", range(2))
def test_the_default_learns_where_wrong_items_undo(seed):
    options = {"length": 4, "recipe_seed": seed, "wrong": "undo"}
    logs = [RecipesEnv(seed=[seed, j], **options).log(j) for j in range(10)]
    env = RecipesEnv(seed=seed, **options)
    protocol = Protocol(max_episodes=1000, evaluation_epsilon=0.0, evaluation_episodes=1)
    model = ar.AlignRudder(undo=env.undo).fit_events(logs)
    assert learn_align_rudder(env.mdp, [], model=model, seed=seed, protocol=protocol).solved


@pytest.mark.parametrize("seed", range(2))
def test_what_is_lost_is_found_where_items_are_seen(seed):
    """As above, but nobody says what undoes what: the inventory shows it."""
    options = {"length": 5, "recipe_seed": seed, "wrong": "undo"}
    demos = []
    for j in range(10):
        other = RecipesEnv(seed=[seed, j], **options)
        log = other.log(j)
        demos.append(ar.Episode(other.held(log), np.zeros(len(log), int), np.eye(len(log))[-1]))
    env = RecipesEnv(seed=seed, **options)
    protocol = Protocol(max_episodes=300, evaluation_epsilon=0.0, evaluation_episodes=1)
    model = ar.AlignRudder(ar.DeltaEvents(max_share=1.0)).fit(demos)
    events = env.events_of(model.events_)
    found = learn_align_rudder(
        env.mdp, [], model=model, events=events, seed=seed, protocol=protocol
    )
    assert found.solved
    with pytest.raises(ValueError, match="an event id for each outcome"):
        learn_align_rudder(env.mdp, [], model=model, events=events[0], protocol=protocol)


def test_the_inventory_of_a_log_is_what_the_table_says():
    """Step by step on the table, events are those of the changes of what is held."""
    env = RecipesEnv(4, items=3, distractors=1, seed=3, wrong="undo")
    encoder = ar.DeltaEvents(max_share=1.0).fit(
        [
            ar.Episode(env.held(env.log(j)), [0] * len(env.log(j)), [0.0] * len(env.log(j)))
            for j in range(3)
        ]
    )
    table = env.events_of(encoder)
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    happened, events, over = [], [], False
    while not over:
        action, state = int(rng.integers(4)), env._state
        *_, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        if info["happened"]:
            happened.append(info["happened"])
            events.append(table[state, action, 0])
    n = len(happened)
    assert any(symbol in env.undo for symbol in happened)
    seen = encoder.encode(ar.Episode(env.held(happened), [0] * n, [0.0] * n)).events
    np.testing.assert_array_equal(events, seen)


def test_the_wrapper_sees_what_happens_by_a_function():
    """For a model of logs, `events` names what happened; the wrapper pays as the log is worth."""
    env = RecipesEnv(5, seed=9, hidden=False)
    model = ar.AlignRudder().fit_events([RecipesEnv(5, seed=j).log(j) for j in range(1, 9)])
    wrapped = ar.RedistributeReward(
        env, model, "beside", events=lambda o, a, r, n, info: info["happened"] or None
    )
    policy = env.optimal_policy()
    wrapped.reset(seed=0)
    happened, paid, own, over = [], [], [], False
    while not over:
        _, reward, over, _, info = wrapped.step(policy[env._state])
        happened.append(info["happened"] or None)
        paid.append(reward)
        own.append(info["original_reward"])
    shares = model.redistribute_events(happened, 1.0).rewards
    np.testing.assert_allclose(np.array(paid) - own, shares, atol=1e-12)
    assert shares.sum() > 0.9


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"length": 0}, "length is 0"),
        ({"wrong": "explode"}, "'nothing', 'undo'"),
        ({"size": 3, "items": 6, "distractors": 4}, "do not fit"),
        ({"seed": -1}, "seed is -1; a whole number from 0"),
        ({"seed": None}, "seed is None"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": [1, -2]}, "seed is -2"),
        ({"recipe_seed": None}, "recipe_seed is None"),
        ({"horizon": 2.5}, "horizon is 2.5; a whole number of at least 1"),
        ({"horizon": 0}, "horizon is 0"),
    ],
)
def test_wrong_arguments_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        RecipesEnv(**wrong)


@pytest.mark.parametrize("detours", [-1, 2, float("nan"), "x"])
def test_a_log_takes_a_share_of_detours(detours):
    with pytest.raises(ValueError, match=r"detours is .*at least 0 and at most 1"):
        RecipesEnv(2).log(detours=detours)
    with pytest.raises(ValueError, match="seed is -1"):
        RecipesEnv(2).log(-1)


@pytest.mark.parametrize("action", [-1, 4, 1.5, np.float64(1.0), np.array([0, 1]), "x", None])
def test_an_action_that_there_is_not_is_named_and_nothing_happens(action):
    env = RecipesEnv(2, horizon=1)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(action)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action is .*; a whole number from 0 to 3 is needed"):
        env.step(action)
    assert env.step(np.array([1]))[3]  # the first step that counts
