"""Models that take turns: a wrong consensus does not hold an agent up for ever."""

import numpy as np
import pytest
from small_recipes import small_recipe

import align_rudder as ar
from align_rudder.baselines import Protocol, learn_align_rudder

PROTOCOL = Protocol(max_episodes=2000, evaluation_epsilon=0.0, evaluation_episodes=1)


def lacking(length=5, seed=0):
    """Return a recipe, and a model of logs whose consensus lacks one of its items.

    Nine of ten logs were written where nobody noted the second item.
    """
    env, _ = small_recipe(seed, length=length, items=5, distractors=1)
    recipe = [env.symbols[item] for item in env.recipe]
    poor = [recipe[:1] + recipe[2:]] * 9
    return env, recipe, ar.AlignRudder().fit_events([*poor, recipe])


@pytest.fixture(scope="module")
def tasks():
    return [lacking(seed=seed) for seed in range(4)]


def test_the_consensus_lacks_an_item_and_an_alternative_has_it(tasks):
    for _, recipe, model in tasks:
        found = [str(goal.symbol).removesuffix(", paid") for goal in model.subgoals_]
        assert found == recipe[:1] + recipe[2:]
        others = model.alternatives()
        assert len(others) == 2  # nine are equal
        for other, wanted in zip(others, (found, recipe), strict=True):
            rr = other.redistribute_events(wanted, ret=1.0)
            assert (rr.rewards > 0).all()
            assert rr.correction == pytest.approx(0.0)
            # Out of order nothing is paid.
            early = [symbol for symbol in wanted if symbol != wanted[0]]
            assert not other.redistribute_events(early, ret=0.0).rewards.any()


def test_alternatives_get_an_agent_past_what_the_consensus_lacks(tasks):
    stays = [learn(task, turns=None) for task in tasks]
    moves = [learn(task, turns=100) for task in tasks]
    assert all(found.solved for found in moves)
    assert np.mean([found.episodes for found in moves]) < 0.5 * np.mean(
        [found.episodes for found in stays]
    )
    assert not all(found.solved for found in stays)


def test_of_many_demonstrations_a_sample_gives_alternatives():
    """All pairs of thousands would take hours."""
    rng = np.random.default_rng(0)
    logs = [[*"abc", *map(int, rng.integers(9, size=3)), "d"] for _ in range(1000)]
    others = ar.AlignRudder().fit_events(logs).alternatives()
    assert 100 < len(others) <= 200


def learn(task, **options):
    env, _, model = task
    return learn_align_rudder(env.mdp, [], model=model, protocol=PROTOCOL, **options)


def test_where_the_model_is_right_there_is_no_turn():
    env, logs = small_recipe(length=3)
    model = ar.AlignRudder().fit_events(logs)
    one, other = (
        learn_align_rudder(env.mdp, [], model=model, turns=turns, protocol=PROTOCOL)
        for turns in (None, 300)
    )
    assert one.solved
    assert (one.episodes, one.steps) == (other.episodes, other.steps)
    np.testing.assert_array_equal(one.q, other.q)


def test_several_models_take_turns_and_come_back_to_the_first(tasks):
    """The right one, given last, has its turn after the others had theirs."""
    env, _, model = tasks[0]
    wrong, right = model.alternatives()
    found = learn_align_rudder(
        env.mdp, [], model=[wrong, wrong, right], turns=50, protocol=PROTOCOL
    )
    assert found.solved
    assert found.episodes > 100
    short = learn_align_rudder(env.mdp, [], model=[right], turns=50, protocol=PROTOCOL)
    assert short.solved
    assert found.episodes == 100 + short.episodes


def test_no_model_or_no_turn_is_refused(tasks):
    env, _, model = tasks[0]
    with pytest.raises(ValueError, match="no model was given; give one, several"):
        learn_align_rudder(env.mdp, [], model=[])
    with pytest.raises(ValueError, match="turns is 0; a whole number of at least 1"):
        learn_align_rudder(env.mdp, [], model=model, turns=0)


def test_a_first_model_that_is_right_has_every_third_turn():
    """One that is right but needs several turns is not crowded out by many that are wrong."""
    env, _, model = lacking(length=8, seed=1)
    wrong, right = model.alternatives()
    alone = learn_align_rudder(env.mdp, [], model=[right], turns=20, trace=0.0, protocol=PROTOCOL)
    among = learn_align_rudder(
        env.mdp, [], model=[right] + [wrong] * 30, turns=20, trace=0.0, protocol=PROTOCOL
    )
    assert alone.solved
    assert among.solved
    assert 20 < alone.episodes < among.episodes <= 3 * alone.episodes


@pytest.mark.parametrize(
    ("model", "word"),
    [
        ([ar.AlignRudder()], "model 0 of 1 is AlignRudder, which is not fitted"),
        ("x.npz", "model 0 of 1 is str; fitted models are needed"),
        (3, "model 0 of 1 is int"),
        ([None], "model 0 of 1 is NoneType"),
    ],
)
def test_what_is_no_fitted_model_is_refused_at_once(tasks, model, word):
    env, *_ = tasks[0]
    with pytest.raises(ValueError, match=word):
        learn_align_rudder(env.mdp, [], model=model)


def test_a_later_model_that_is_not_fitted_costs_no_training(tasks):
    env, _, model = tasks[0]
    with pytest.raises(ValueError, match="model 1 of 2 is AlignRudder, which is not fitted"):
        learn_align_rudder(env.mdp, [], model=[model, ar.AlignRudder()])


def test_alternatives_begin_with_what_half_of_the_logs_hold():
    """The consensus is sure of less; a model of few logs or of the same has no median string."""
    logs = ["ABCDE", "AXCDE", "ABCYE", "ABDEZ", "ACDE", "ABCDE"] * 2
    model = ar.AlignRudder(min_conservation=0.9).fit_events(logs)
    first, *others = model.alternatives()
    rr = first.redistribute_events("ABCDE", ret=1.0)
    assert (rr.rewards > 0).all()
    assert len(others) == len({*logs}) - 1  # one of them is the median string
    assert len(model.alternatives(median=False)) == len({*logs})
    sure = ar.AlignRudder().fit_events(["ABCDE"] * 4)
    assert len(sure.alternatives()) == 1
