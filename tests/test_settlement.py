"""Settlement: what the ways to settle keep, online and for whole episodes."""

import copy
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder.settlement import SETTLEMENTS, Account, Accounts, Settlement

prop = settings(max_examples=80, deadline=None, derandomize=True)
numbers = st.floats(-10, 10).map(lambda x: round(x, 3))
episodes = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12)
kinds = pytest.mark.parametrize("kind", SETTLEMENTS)


def split(steps):
    return np.array([own for own, _ in steps]), np.array([share for _, share in steps])


def play(account, own, shares, terminated=True):
    """Return what is paid step by step."""
    account.reset()
    last = len(own) - 1
    return np.array(
        [
            account.pay(float(r), float(x), terminated and t == last, not terminated and t == last)
            for t, (r, x) in enumerate(zip(own, shares))
        ]
    )


# Sums


@pytest.mark.parametrize("kind", ["even", "mean", "last"])
@prop
@given(episodes, st.booleans())
def test_the_sum_of_an_episode_is_its_return(kind, steps, terminated):
    own, shares = split(steps)
    paid = Settlement(kind).rewards(own, shares, terminated)
    assert paid.sum() == pytest.approx(own.sum(), abs=1e-9)


@pytest.mark.parametrize("kind", ["even", "mean", "last"])
@prop
@given(st.lists(episodes, min_size=1, max_size=4), st.booleans())
def test_online_every_episode_sums_to_its_return(kind, several, terminated):
    account = Account(Settlement(kind))
    for steps in several:
        own, shares = split(steps)
        paid = play(account, own, shares, terminated)
        assert paid.sum() == pytest.approx(own.sum(), abs=1e-9)


@prop
@given(episodes, st.floats(0.5, 1), st.floats(0, 0.5))
def test_the_discounted_sum_of_the_potential_form_is_that_of_the_environment(steps, gamma, fade):
    own, shares = split(steps)
    paid = Settlement("potential", gamma, fade).rewards(own, shares)
    powers = gamma ** np.arange(len(own))
    assert (powers * paid).sum() == pytest.approx((powers * own).sum(), abs=1e-8)


@prop
@given(episodes)
def test_beside_is_both(steps):
    own, shares = split(steps)
    np.testing.assert_allclose(Settlement("beside").rewards(own, shares), own + shares)


@kinds
@prop
@given(steps=episodes)
def test_rewards_on_the_way_stay_where_they_are(kind, steps):
    """A cost at an early step is paid at that step, and not by the others."""
    own, shares = split([(0.0, 0.0), *steps])
    other = own.copy()
    other[0] -= 5.0
    settled = Settlement(kind, 0.9, 0.1)
    change = settled.rewards(other, shares) - settled.rewards(own, shares)
    np.testing.assert_allclose(change, [-5.0] + [0.0] * len(steps), atol=1e-9)


@pytest.mark.parametrize("kind", ["annealed", "mean"])
@prop
@given(steps=episodes, at=st.integers(0, 100))
def test_every_own_reward_stays_where_it_is(kind, steps, at):
    own, shares = split(steps)
    other, wanted = own.copy(), np.zeros(len(own))
    wanted[at % len(own)] = 5.0
    other += wanted
    settled = Settlement(kind)
    change = settled.rewards(other, shares) - settled.rewards(own, shares)
    np.testing.assert_allclose(change, wanted, atol=1e-9)


def test_even_spreads_what_is_left_over_the_steps():
    paid = Settlement("even").rewards(np.array([0, 0, 0, 1.0]), np.array([0.5, 0, 0.5, 0.4]))
    np.testing.assert_allclose(paid, [0.4, -0.1, 0.4, 0.3])


def test_the_mean_of_shares_is_taken_back():
    paid = Settlement("mean").rewards(np.array([0, 0, 0, 1.0]), np.array([0.5, 0, 0.5, 0.4]))
    np.testing.assert_allclose(paid, [0.15, -0.35, 0.15, 1.05])


# Online


@pytest.mark.parametrize("kind", ["potential", "last", "beside"])
@prop
@given(episodes, st.booleans())
def test_step_by_step_as_for_the_whole_episode(kind, steps, terminated):
    own, shares = split(steps)
    settled = Settlement(kind, 0.9, 0.05)
    whole = settled.rewards(own, shares, terminated)
    np.testing.assert_allclose(play(Account(settled), own, shares, terminated), whole, atol=1e-9)


@pytest.mark.parametrize(("kind", "end"), [("even", 0.0), ("mean", 0.0), ("mean", 2.0)])
def test_after_many_equal_episodes_online_is_as_for_the_whole(kind, end):
    """The mean rate is then that of the episode: nothing is left for the last step."""
    own, shares = np.array([0, -0.1, 0, 0, end]), np.array([0.3, 0, 0, 0.2, 0])
    account = Account(Settlement(kind))
    for _ in range(5):
        paid = play(account, own, shares)
    np.testing.assert_allclose(paid, Settlement(kind).rewards(own, shares), atol=1e-12)


def test_the_first_episode_takes_back_at_its_end_and_later_ones_on_the_way():
    own, shares = np.zeros(4), np.array([0.4, 0, 0, 0])
    account = Account(Settlement("even"))
    np.testing.assert_allclose(play(account, own, shares), [0.4, 0, 0, -0.4])
    np.testing.assert_allclose(play(account, own, shares), [0.3, -0.1, -0.1, -0.1])
    better = play(account, np.array([0, 0, 0, 1.0]), np.array([0.4, 0.2, 0.2, 0.2]))
    np.testing.assert_allclose(better, [0.3, 0.1, 0.1, 0.5])


# Annealed


@prop
@given(st.lists(episodes, min_size=1, max_size=6))
def test_annealed_pays_own_rewards_and_a_part_of_the_shares_that_never_grows(several):
    account, weights = Account(Settlement("annealed", successes=2), (0.0, 10.0)), [1.0]
    for steps in several:
        own, shares = split(steps)
        paid = play(account, own, shares)
        np.testing.assert_allclose(paid, own + weights[-1] * shares, atol=1e-9)
        done = min(own.sum() / 10.0, 1.0) if own.sum() >= 8.0 else 0.01
        weights.append(max(0.0, weights[-1] - done / 2))


@pytest.mark.parametrize("gamma", [0.9, 0.97, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_after_its_successes_annealed_has_the_best_policy_of_the_environment(seed, gamma):
    account = Account(Settlement("annealed", successes=3), (0.0, 1.0))
    tree = Tree(seed)
    wanted = action_values(tree.root, gamma, environment)
    before = action_values(tree.root, gamma, paying(account))
    for _ in range(3):
        play(account, np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    account.reset()
    assert action_values(tree.root, gamma, paying(account)) == wanted
    assert before != wanted  # it was not so from the beginning


def test_failures_pay_back_a_hundredth_so_that_no_loan_is_for_ever():
    """An agent that is content with its shares is left with what the environment pays."""
    account = Account(Settlement("annealed", successes=2), (0.0, 1.0))
    shares = np.array([0.2, 0.3, 0])
    for k in range(201):
        paid = play(account, np.zeros(3), shares, terminated=False)
        np.testing.assert_allclose(paid, (1 - k / 200) * shares, atol=1e-9)
    np.testing.assert_allclose(paid, 0.0, atol=1e-9)


def test_a_success_is_what_the_demonstrations_return():
    """Returns from −100 (random) to −20 (demonstrated): one of −36 is 0.8 of a success."""
    account = Account(Settlement("annealed", successes=2), (-100.0, -20.0))
    play(account, np.array([-20.0, -17.0]), np.array([1.0, 1.0]))
    assert account.past.repaid == pytest.approx(0.01)  # less is a failure
    play(account, np.array([-20.0, -16.0]), np.array([1.0, 1.0]))
    assert account.past.repaid == pytest.approx(0.81)
    np.testing.assert_allclose(play(account, np.zeros(1), np.ones(1)), [1 - 0.81 / 2])


def test_without_successes_to_wait_for_only_the_environment_pays():
    account = Account(Settlement("annealed", successes=0))
    np.testing.assert_allclose(play(account, np.array([0, 1.0]), np.array([0.7, 0.1])), [0, 1.0])


@kinds
@prop
@given(st.lists(episodes, min_size=2, max_size=2), st.booleans())
def test_many_at_once_as_each_alone(kind, two, terminated):
    """Two episodes side by side; the shorter one stands still when it has ended."""
    settled = Settlement(kind, 0.9, 0.05)
    both = Accounts(settled, 2)
    both.reset()
    parts = [split(steps) for steps in two]
    length = max(len(own) for own, _ in parts)
    padded = np.zeros((2, 2, length))
    for i, (own, shares) in enumerate(parts):
        padded[i, 0, : len(own)], padded[i, 1, : len(own)] = own, shares
    paid = np.zeros((2, length))
    lengths = np.array([len(own) for own, _ in parts])
    for t in range(length):
        ends, stepped = lengths - 1 == t, t < lengths
        cut = np.zeros(2, bool) if terminated else ends
        paid[:, t] = both.pay(padded[:, 0, t], padded[:, 1, t], ends & ~cut, cut, stepped)
    for i, (own, shares) in enumerate(parts):
        alone = play(Account(settled), own, shares, terminated)
        np.testing.assert_allclose(paid[i, : len(own)], alone, atol=1e-9)
        assert not paid[i, len(own) :].any()


def test_the_mean_rate_is_that_of_all():
    both = Accounts(Settlement("even"), 2)
    both.reset()
    ends, never = np.array([True, True]), np.array([False, False])
    both.pay(np.zeros(2), np.array([0.2, 0.6]), ends, never)
    assert both.past.rate == pytest.approx((0.99 * 0.2 + 0.6) / 1.99)
    both.reset(np.array([True, False]))
    paid = both.pay(np.zeros(2), np.zeros(2), never, never, np.array([True, False]))
    np.testing.assert_allclose(paid, [-both.past.rate, 0.0])


# Policies


class Tree:
    """All histories of a small world that ends at depth `depth`: two actions, two outcomes each.

    Rewards and the potential of each history are random numbers; a fade makes the potential a
    function of the whole history.
    """

    def __init__(self, seed, depth=4):
        self.rng, self.depth = np.random.default_rng(seed), depth
        self.root = self._node(0)

    def _node(self, level):
        if level == self.depth:
            return None
        return [
            [
                (
                    self.rng.uniform(0.2, 0.8),
                    self.rng.normal(),
                    self.rng.normal(0, 3),
                    ended := bool(level == self.depth - 1 or self.rng.random() < 0.2),
                    None if ended else self._node(level + 1),
                )
                for _ in range(2)
            ]
            for _ in range(2)
        ]


def action_values(node, gamma, pay):
    """Return the best policy's values of the root's actions and the best actions everywhere."""
    q, best = [], []
    for outcomes in node:
        chances = np.array([outcome[0] for outcome in outcomes])
        values = []
        for _, own, share, ended, below in outcomes:
            reward, state = pay(own, share, ended)
            value = 0.0
            if below is not None:
                below_q, below_best = action_values(below, gamma, state)
                value, best = max(below_q), best + below_best
            values.append(reward + gamma * value)
        q.append(float((chances / chances.sum() * np.array(values)).sum()))
    return q, [int(np.argmax(q)), *best]


def paying(account):
    """Return a function that pays a step from where the account stands, and goes on from there."""

    def pay(own, share, ended):
        after = copy.deepcopy(account)
        return after.pay(own, share, ended, False), paying(after)

    return pay


def environment(own, share, ended):
    return own, environment


@pytest.mark.parametrize("gamma", [0.9, 0.97, 1.0])
@pytest.mark.parametrize("fade", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(6))
def test_the_potential_form_keeps_the_best_policy(seed, gamma, fade):
    tree = Tree(seed)
    q, best = action_values(tree.root, gamma, environment)
    shaped, same = action_values(
        tree.root, gamma, paying(Account(Settlement("potential", gamma, fade)))
    )
    assert same == best
    np.testing.assert_allclose(shaped, q, atol=1e-9)  # Φ is zero at the start and at every end


def test_another_discount_than_the_learners_does_not_keep_it():
    """The test above can fail."""
    wrong = [
        action_values(Tree(seed).root, 0.9, paying(Account(Settlement("potential", 0.5, 0.0))))[1]
        != action_values(Tree(seed).root, 0.9, environment)[1]
        for seed in range(6)
    ]
    assert any(wrong)


@pytest.mark.parametrize("fade", [0.0, 0.1])
def test_at_a_time_limit_a_learner_that_bootstraps_is_right(fade):
    """With V − Φ for the value of the state that was cut off, the step is worth r + γV − Φ."""
    gamma, value = 0.9, 7.0
    account = Account(Settlement("potential", gamma, fade))
    account.pay(0.0, 2.0, False, False)
    after = (1 - fade) * 2.0 + 1.5
    paid = account.pay(0.25, 1.5, False, True)
    assert paid + gamma * (value - after) == pytest.approx(0.25 + gamma * value - 2.0)


# Arguments


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "info"}, "settlement is 'info'; one of 'annealed', 'even', 'mean', 'potential'"),
        ({"successes": -1}, "successes is -1"),
        ({"gamma": 1.5}, "gamma is 1.5"),
        ({"fade": -0.1}, "fade is -0.1"),
        ({"gamma": float("nan")}, "gamma is nan"),
    ],
)
def test_wrong_arguments_are_named(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Settlement(**given)


@kinds
def test_an_episode_without_steps_cannot_be_paid(kind):
    with pytest.raises(ValueError, match="no step"):
        Settlement(kind).rewards(np.empty(0), np.empty(0))
    with pytest.raises(ValueError, match=r"\(2,\) rewards and \(3,\) shares"):
        Settlement(kind).rewards(np.zeros(2), np.zeros(3))
