"""(III) Strategies: are planted ones told apart, and is chance not taken for one?"""

import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder import AlignRudder, AlignRudderWarning
from align_rudder.alignment import guide_tree, pairwise_scores
from align_rudder.scoring import background, inverse_frequency
from align_rudder.strategies import agreement, find_strategies
from align_rudder.tasks import RecipesEnv

FORWARD, BACKWARD, OTHER = range(8), range(7, -1, -1), range(10, 18)


def planted(seed, noise, *strategies):
    """Return noisy copies of strategies, shuffled, and the strategy of each.

    Args:
        seed: Seed.
        noise: Probability of an irrelevant event before each event; half of it, of losing it.
        strategies: Events and number of copies of each.
    """
    rng = np.random.default_rng(seed)
    sequences, labels = [], []
    for label, (events, copies) in enumerate(strategies):
        for _ in range(copies):
            sequence = []
            for event in events:
                while rng.random() < noise:
                    sequence.append(20 + int(rng.integers(4)))
                if rng.random() >= noise / 2:
                    sequence.append(event)
            sequences.append(sequence)
            labels.append(label)
    order = rng.permutation(len(sequences))
    return [np.array(sequences[i]) for i in order], np.array(labels)[order]


def find(sequences, n_strategies=None, gap=0.0):
    n_events = 1 + max((int(s.max()) for s in sequences if len(s)), default=0)
    scores = inverse_frequency(background(sequences, n_events))
    pairs = pairwise_scores(sequences, scores, gap)
    return find_strategies(sequences, pairs, guide_tree(pairs), scores, gap, n_strategies)


def as_sets(groups):
    return {frozenset(g.tolist()) for g in groups}


def truth(labels):
    return {frozenset(np.flatnonzero(labels == k).tolist()) for k in set(labels.tolist())}


@pytest.mark.parametrize("other", [BACKWARD, OTHER], ids=["same events", "other events"])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(8))
def test_two_planted_strategies_are_separated(seed, noise, other):
    sequences, labels = planted(seed, noise, (FORWARD, 6), (other, 5))
    assert as_sets(find(sequences)) == truth(labels)


@pytest.mark.parametrize("other", [BACKWARD, OTHER], ids=["same events", "other events"])
@pytest.mark.parametrize("noise", [0.2, 0.3, 0.4])
@pytest.mark.parametrize("seed", range(8))
def test_in_more_noise_strategies_are_never_mixed(seed, noise, other):
    sequences, labels = planted(seed, noise, (FORWARD, 6), (other, 5))
    groups = find(sequences)
    assert all(len(set(labels[g])) == 1 for g in groups)
    assert {int(labels[g[0]]) for g in groups[:2]} == {0, 1}
    assert sum(len(g) for g in groups[:2]) >= 7


@pytest.mark.parametrize("other", [BACKWARD, OTHER], ids=["same events", "other events"])
@pytest.mark.parametrize("noise", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("seed", range(8))
def test_given_their_number_strategies_are_separated(seed, noise, other):
    sequences, labels = planted(seed, noise, (FORWARD, 6), (other, 5))
    assert as_sets(find(sequences, n_strategies=2)) == truth(labels)


@pytest.mark.parametrize("seed", range(4))
def test_three_planted_strategies_are_separated(seed):
    sequences, labels = planted(seed, 0.1, (FORWARD, 4), (BACKWARD, 5), (OTHER, 6))
    assert as_sets(find(sequences)) == truth(labels)
    assert as_sets(find(sequences, n_strategies=3)) == truth(labels)


@pytest.mark.parametrize("seed", range(6))
def test_strategies_with_a_common_beginning_are_separated(seed):
    """They agree beyond chance, but far less than each within itself."""
    branch = [*range(5), *range(10, 15)]
    sequences, labels = planted(seed, 0.05, (range(10), 6), (branch, 5))
    assert as_sets(find(sequences)) == truth(labels)


@pytest.mark.parametrize("number", [None, 2])
def test_the_largest_strategy_comes_first(number):
    small, large = np.arange(6), np.arange(5, -1, -1)
    groups = find([small, small, large, large, large], n_strategies=number)
    assert [g.tolist() for g in groups] == [[2, 3, 4], [0, 1]]


@pytest.mark.parametrize("gap", [0.25, 1.0])
def test_strategies_are_separated_with_gap_costs(gap):
    sequences, labels = planted(0, 0.1, (FORWARD, 6), (BACKWARD, 5))
    assert as_sets(find(sequences, gap=gap)) == truth(labels)


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("seed", range(6))
def test_one_strategy_stays_one(seed, noise):
    sequences, _ = planted(seed, noise, (FORWARD, 7))
    assert as_sets(find(sequences)) == {frozenset(range(7))}


@pytest.mark.parametrize(("seed", "distractors"), [(4003, 10), (4017, 10), (4023, 10), (4033, 4)])
@pytest.mark.filterwarnings("ignore::align_rudder.AlignRudderWarning")
def test_a_recipe_is_found_that_only_the_second_look_shows(seed, distractors):
    """In these, neither score along its own tree has a column that is more than chance."""
    envs = [
        RecipesEnv(seed=[seed, j], recipe_seed=seed, length=8, distractors=distractors)
        for j in range(10)
    ]
    model = AlignRudder().fit_events([env.log(j) for j, env in enumerate(envs)])
    assert model.profile_ is not None
    names = [str(model.events_.symbols_[e]).split(",")[0] for e in model.profile_.top_events]
    assert names == [envs[0].symbols[item] for item in envs[0].recipe]


def test_random_sequences_are_no_strategy():
    """Of 20 sets, at most one has more than half of its sequences in strategies."""
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        groups = find([rng.integers(0, 10, 20) for _ in range(6)])
        found += sum(len(g) for g in groups) > 3
    assert found <= 1


@pytest.mark.parametrize("n", [2, 5])
def test_sequences_without_a_common_event_share_nothing(n):
    assert find([np.arange(3 * i, 3 * i + 3) for i in range(n)]) == []


def test_sequences_without_events_share_nothing():
    assert find([np.empty(0, int)] * 4) == []


def test_an_outlier_is_in_no_strategy():
    sequences, _ = planted(0, 0.0, (FORWARD, 5))
    groups = find([*sequences, np.array([20, 21, 22, 23])])
    assert as_sets(groups) == {frozenset(range(5))}


def test_of_one_kind_of_event_all_repetitions_are_one_strategy():
    assert as_sets(find([np.zeros(k, int) for k in (3, 4, 5)])) == {frozenset(range(3))}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_a_given_number_of_strategies_is_kept_and_parts_all(data):
    sequences = data.draw(
        st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=2, max_size=7)
    )
    k = data.draw(st.integers(1, len(sequences)))
    groups = find([np.array(s) for s in sequences], n_strategies=k)
    assert len(groups) == k
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(sequences)))
    sizes = [len(g) for g in groups]
    assert sizes == sorted(sizes, reverse=True)


def test_three_strategies_that_share_nothing_make_two_when_two_are_asked_for():
    sequences = [np.array(s) for s in ([0, 1], [0, 1], [2, 3], [2, 3], [4, 5], [4, 5])]
    groups = as_sets(find(sequences, n_strategies=2))
    pairs = [{0, 1}, {2, 3}, {4, 5}]
    assert groups in [
        {frozenset(pairs[i]), frozenset().union(*pairs[:i], *pairs[i + 1 :])} for i in range(3)
    ]


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "strategies is 0; .* at least 1"),
        (-1, "strategies is -1; .* at least 1"),
        (4, "4 strategies asked for 3 demo.*use 1 to 3"),
    ],
)
def test_an_impossible_number_of_strategies_is_refused(number, said):
    with pytest.raises(ValueError, match=said):
        AlignRudder(strategies=number).fit_events(["ABC"] * 3)


def test_strategies_come_by_size_and_each_has_its_own_consensus():
    sequences, labels = planted(3, 0.0, (BACKWARD, 3), (FORWARD, 5))
    model = AlignRudder(done=False).fit_events(sequences)
    assert [len(s.members) for s in model.strategies_] == [5, 3]
    for strategy, label, events in zip(model.strategies_, (1, 0), (FORWARD, BACKWARD)):
        assert (labels[strategy.members] == label).all()
        assert strategy.profile.consensus() == list(events)
        assert [goal.symbol for goal in strategy.subgoals] == list(events)
    assert model.profile_ is model.strategies_[0].profile
    assert model.alignment_ is model.strategies_[0].alignment
    assert model.subgoals_ is model.strategies_[0].subgoals


def test_each_strategy_is_scored_by_its_own_profile():
    sequences, labels = planted(3, 0.0, (BACKWARD, 3), (FORWARD, 5))
    model = AlignRudder(done=False).fit_events(sequences)
    for sequence, label in zip(sequences, labels):
        rr = model.redistribute_events(sequence.tolist(), 1.0)
        assert model.scorer_.strategy_of(rr.cells[-1]) == 1 - label
        assert (rr.rewards > 0).all()


def test_an_outlier_is_reported():
    with pytest.warns(AlignRudderWarning, match=r"demonstrations \[3\] of 4 agree with no other"):
        model = AlignRudder().fit_events(["ABCDEF"] * 3 + ["XYZ"])
    assert model.outliers_.tolist() == [3]
    assert len(model.strategies_) == 1


# Agreement


def agree(sequences, **options):
    n_events = 1 + max(int(s.max()) for s in sequences)
    scores = inverse_frequency(background(sequences, n_events))
    pairs = np.array(list(combinations(range(len(sequences)), 2)))
    return agreement(sequences, pairs, pairwise_scores(sequences, scores), scores, **options)


def test_identical_sequences_agree_fully():
    value, z = agree([np.random.default_rng(0).integers(0, 5, 20)] * 4)
    assert value == pytest.approx(1.0)
    assert z > 5


def test_shuffled_sequences_agree_by_chance_only():
    values = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        sequence = rng.integers(0, 6, 30)
        value, z = agree([rng.permutation(sequence) for _ in range(6)])
        assert abs(z) < 4
        values.append(value)
    assert abs(np.mean(values)) < 0.05


def test_agreement_falls_with_noise():
    values = [
        np.mean([agree(planted(seed, noise, (FORWARD, 6))[0])[0] for seed in range(5)])
        for noise in (0.0, 0.2, 0.4, 0.6)
    ]
    assert values == sorted(values, reverse=True)


def test_agreement_repeats_with_its_seed():
    sequences, _ = planted(1, 0.4, (FORWARD, 5))
    assert agree(sequences, seed=3) == agree(sequences, seed=3)
    assert agree(sequences, seed=3) != agree(sequences, seed=4)


def test_of_one_kind_of_event_there_is_nothing_to_disagree_about():
    assert agree([np.zeros(3, int), np.zeros(5, int)]) == (1.0, np.inf)


def test_few_logs_that_go_back_agree_more_than_walks_do():
    """Five logs of a recipe, whose items come again: no column is evident, and yet they agree."""
    found, recipes = 0, 10
    for seed in range(recipes):
        envs = [RecipesEnv(12, seed=[seed, j], recipe_seed=seed) for j in range(5)]
        with warnings.catch_warnings(action="ignore", category=AlignRudderWarning):
            model = AlignRudder().fit_events([env.log(j) for j, env in enumerate(envs)])
        found += len(model.strategies_) > 0
    assert found >= 0.8 * recipes
    silent, sets = 0, 20
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        places = [np.cumsum(rng.choice([-1, 1], 40)) for _ in range(5)]
        with warnings.catch_warnings(action="ignore", category=AlignRudderWarning):
            model = AlignRudder().fit_events([(np.abs(walk) % 10).tolist() for walk in places])
        silent += not any(len(strategy.members) > 1 for strategy in model.strategies_)
    assert silent >= 0.9 * sets
