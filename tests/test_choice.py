"""Which events are chosen: by held-out demonstrations and chance, and what the type suggests."""

from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from encoders import episode_of

import align_rudder as ar
from align_rudder.choice import Trial, _longest_unpaid, chosen_events, forth_and_back, held_out
from align_rudder.data.crafting import crafting_demonstrations, crafting_episode
from align_rudder.events import Encoded, NoEvents, candidates
from align_rudder.events.candidates import is_continuous
from align_rudder.redistribution import Scorer

pytestmark = pytest.mark.filterwarnings("ignore:.*(inconsistency|belong to|agree with)")


def mountain_car(n, seed, random=False):
    """Return episodes of a car that is pushed the way it rolls, or at random."""
    env, found = gym.make("MountainCarContinuous-v0"), []
    rng = np.random.default_rng([seed, random])
    for i in range(n):
        obs, done, force = env.reset(seed=1000 * seed + i)[0], False, rng.uniform(0.8, 1.0)
        seen, rewards, ended = [obs], [], False
        while not done:
            push = rng.uniform(-1, 1) if random else force * (1 if obs[1] >= 0 else -1)
            obs, reward, ended, cut, _ = env.step(np.array([push], np.float32))
            seen.append(obs)
            rewards.append(float(reward))
            done = ended or cut
        found.append(ar.Episode(np.array(seen), np.zeros(len(rewards)), rewards, terminated=ended))
    return found


@pytest.mark.parametrize("known", [True, False])
def test_a_random_policy_earns_little_on_a_mountain_car(known, tmp_path):
    demos, random = mountain_car(8, 1), mountain_car(8, 1, random=True)
    model = ar.AlignRudder(baseline=None if known else -30.0).fit(demos, random if known else ())
    base = model.events_.base
    assert isinstance(base, ar.FeatureEvents)
    assert 2 <= len(model.subgoals_) <= 15
    assert all("≈" in str(goal.symbol) or goal.symbol == "done" for goal in model.subgoals_)
    gain = np.mean([e.ret for e in demos]) - model.baseline_

    def share(episodes):
        return np.mean([model.redistribute(e).rewards.sum() for e in episodes]) / gain

    fresh = mountain_car(5, 2, random=True)
    assert share(fresh) < 0.2
    assert share(mountain_car(4, 3)) > 0.8
    if known:
        assert model.random_share_ < 0.2
    changes = ar.AlignRudder(ar.DeltaEvents(), baseline=model.baseline_).fit(demos)
    paid = np.mean([changes.redistribute(e).rewards.sum() for e in fresh]) / gain
    assert paid > 0.2
    model.save(tmp_path / "m.npz")
    again = ar.AlignRudder.load(tmp_path / "m.npz")
    for episode in (fresh[0], demos[0]):
        np.testing.assert_array_equal(
            model.redistribute(episode).rewards, again.redistribute(episode).rewards
        )


def test_the_same_choice_each_time():
    demos = mountain_car(6, 4)
    one, other = (ar.AlignRudder(baseline=-30.0).fit(demos) for _ in range(2))
    assert repr(one.events_.base) == repr(other.events_.base)
    assert one.events_.symbols_ == other.events_.symbols_
    assert one.events is None


# What stays as it is


def test_inventories_keep_their_changes():
    demos = crafting_demonstrations(6)
    assert type(chosen_events(ar.AlignRudder(), demos, ())) is ar.DeltaEvents
    idle = [crafting_episode(i, False) for i in range(90, 96)]
    rng = np.random.default_rng(0)
    idle = [  # items come and go without an order
        ar.Episode(
            {k: rng.permutation(v) for k, v in e.observations.items()}, e.actions, 0 * e.rewards
        )
        for e in idle
    ]
    assert type(chosen_events(ar.AlignRudder(), demos, idle)) is ar.DeltaEvents


@pytest.mark.parametrize(
    "observations", [np.arange(9), np.array(list("abcdefghi")), np.arange(9).astype(float)]
)
def test_single_states_are_not_asked_about(observations):
    demos = [episode_of(observations)] * 4
    found = candidates(demos)
    assert len(found) == 1
    assert chosen_events(ar.AlignRudder(), demos, demos) is not None


def test_an_encoder_that_is_given_is_taken():
    given = ar.DeltaEvents(3)
    assert chosen_events(ar.AlignRudder(given), mountain_car(2, 0), ()) is given


# Candidates


def mixed(seed, direction=1):
    """Return an episode of a position and a counter; the counter grows at the ends of the way."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([np.linspace(0, 5, 20), np.linspace(5, 0, 20)]) + rng.normal(0, 0.05, 40)
    coins = np.repeat([0, 1], [20, 20])
    return episode_of({"coins": coins, "x": x[::direction]})


def test_counters_and_positions_are_told_apart():
    demos = [mixed(i) for i in range(4)]
    assert is_continuous(demos)
    assert is_continuous(demos, "x")
    assert not is_continuous(demos, "coins")
    found = candidates(demos)
    assert any(isinstance(one, ar.CombinedEvents) for one in found)
    for one in found:
        one.fit(demos)
    keys = [one.keys for one in found if isinstance(one, ar.DeltaEvents)]
    assert ["coins"] in keys


def test_goals_are_candidates():
    at = np.random.default_rng(0).normal(size=(30, 2))
    obs = {"achieved_goal": at, "desired_goal": at * 0, "observation": np.hstack([at, at])}
    goals = {getattr(one, "goal", None) for one in candidates([episode_of(obs)] * 2)}
    assert goals == {None, "difference", "distance"}


# The criterion


def test_held_out_is_by_episodes_that_the_encoder_did_not_see():
    class Spy(ar.DeltaEvents):
        fitted: ClassVar = []

        def fit(self, episodes, random_episodes=()):
            self.fitted.append({id(e) for e in (*episodes, *random_episodes)})
            return super().fit(episodes, random_episodes)

    demos = crafting_demonstrations(6)
    random = [crafting_episode(i, False) for i in range(4)]
    held_out(ar.AlignRudder(), Spy(), demos, random)
    assert len(Spy.fitted) == 2
    assert not Spy.fitted[0] & Spy.fitted[1]
    assert Spy.fitted[0] | Spy.fitted[1] == {id(e) for e in (*demos, *random)}


def test_demonstrations_that_share_an_order_are_worth_more_than_chance():
    demos = crafting_demonstrations(8)
    trial = held_out(ar.AlignRudder(), ar.DeltaEvents(), demos)
    assert trial.held_out > 0.8
    same = [ar.Episode(e.observations, e.actions, 0 * e.rewards) for e in demos]
    itself = held_out(ar.AlignRudder(), ar.DeltaEvents(), demos, same)
    assert itself.by_chance >= itself.held_out
    assert not itself.good


def test_the_value_of_a_trial():
    good = Trial(1.0, 0.0, 0.2, 4.0, 0.0)
    assert good.good
    assert good.value == pytest.approx(0.8)
    assert Trial(1.0, 0.0, 0.2, 30.0, 0.0).value == pytest.approx(0.4)
    assert Trial(1.0, 0.3, 0.2, 4.0, 0.2).good  # little of the whole, which "done" is part of
    assert not Trial(1.0, 0.1, 0.2, 4.0, 0.3).good
    assert not Trial(0.5, 0.0, 0.2, 4.0, 0.0).good
    assert Trial(0.0, 0.0, 1.0, 0.0, 0.0).value == 0
    assert Trial(1.0, 0.0, 1.0, 1.0, 0.0).value == 0  # nothing is paid before "done"


def test_the_longest_stretch_that_is_not_paid():
    class Paid:
        scorer_ = Scorer([np.eye(3)])

    for events, part in (([0, 1, 2], 1 / 3), ([-1, 0, -1, -1, 1, 2], 0.5), ([-1] * 4, 1.0)):
        assert _longest_unpaid(Paid(), Encoded(-1, np.array(events))) == pytest.approx(part)


# Regions that chance enters now and then


def corridor(seed, reach=10.0):
    """Return a way along a corridor of length 10, whose end pays; or so far and back again."""
    rng = np.random.default_rng(seed)
    far = reach * np.linspace(0, 1, 60) if reach == 10 else reach * np.sin(np.linspace(0, 3.1, 60))
    at = np.column_stack([far, np.zeros(60)]) + rng.normal(0, 0.1, (60, 2))
    return ar.Episode(at, np.zeros(59), np.eye(59)[-1] * (reach == 10), terminated=reach == 10)


def wanderers(n, seed):
    """Return random episodes: most get to the middle of the corridor, none to its end."""
    reach = np.random.default_rng(seed).permutation(np.linspace(3, 7.5, n))
    return [corridor([seed, i], r) for i, r in enumerate(reach)]


def first_place(model):
    """Return how far along the corridor the first paid region is, and the share on the last."""
    rewards = model.redistribute(corridor(99)).rewards
    return np.flatnonzero(rewards > 0.02)[0] / 59 * 10, rewards[-1]


def test_the_reward_begins_where_chance_gets_now_and_then():
    demos, random = [corridor(i) for i in range(8)], wanderers(16, 1)
    strict = ar.AlignRudder(ar.FeatureEvents(15, max_samples=200)).fit(demos, random)
    model = ar.AlignRudder().fit(demos, random)
    assert isinstance(model.events_.base, ar.FeatureEvents)
    assert model.events_.base.max_random > 0.2
    (late, strict_end), (early, end) = first_place(strict), first_place(model)
    assert early < late - 0.5
    assert end < strict_end
    fresh = [model.redistribute(e).rewards.sum() for e in wanderers(30, 2)]
    assert 0 < np.mean(fresh) <= 0.2
    assert model.random_share_ <= 0.2


def test_going_forth_and_back_is_never_done_where_every_step_costs():
    demos = [corridor(i) for i in range(6)]
    costs = [ar.Episode(e.observations, e.actions, e.rewards - 1, terminated=True) for e in demos]
    anywhere = ar.FeatureEvents(15, max_samples=200, max_random=1.0)
    free = held_out(ar.AlignRudder(), anywhere, demos)
    dear = held_out(ar.AlignRudder(baseline=-80.0), anywhere, costs)
    assert free.by_chance > 0.2
    assert dear.by_chance == pytest.approx(free.by_chance)
    assert dear.at_most == pytest.approx(free.at_most)


def test_without_random_episodes_regions_are_chosen_as_strictly_as_before():
    demos = [corridor(i) for i in range(4)]
    shares = [{one.max_random for one in candidates(demos, known) if hasattr(one, "max_random")}
              for known in (False, True)]  # fmt: skip
    assert shares[0] == {0.2}
    assert max(shares[1]) > 0.5


def test_chance_is_judged_by_the_whole_reward_and_with_a_margin():
    demos, random = [corridor(i) for i in range(8)], wanderers(16, 1)
    events = ar.FeatureEvents(15, max_samples=200, max_random=0.8)
    trial = held_out(ar.AlignRudder(), events, demos, random, whole=True)
    shares, without = [], []
    for part in (0, 1):
        for done, found in ((True, shares), (False, without)):
            model = ar.AlignRudder(events, done=done).fit(demos, random[part::2])
            assert not len(model.outliers_)
            found += [model.redistribute(e).rewards.sum() for e in random[1 - part :: 2]]
    error = np.std(shares, ddof=1) / len(shares) ** 0.5
    assert trial.at_most == pytest.approx(np.mean(shares) + 2 * error)
    assert trial.by_chance == pytest.approx(np.mean(without), abs=0.06)
    assert np.mean(shares) < trial.by_chance


def test_chance_is_never_judged_by_episodes_that_regions_were_fitted_to():
    class Spy(ar.DeltaEvents):
        fitted: ClassVar = []

        def fit(self, episodes, random_episodes=()):
            self.fitted.append({id(e) for e in random_episodes})
            return super().fit(episodes, random_episodes)

    demos = crafting_demonstrations(6)
    random = [crafting_episode(i, False) for i in range(4)]
    held_out(ar.AlignRudder(), Spy(), demos, random, whole=True)
    one, other = Spy.fitted
    assert not one & other
    assert one | other == {id(e) for e in random}


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_forth_and_back_never_leaves_the_first_half(n):
    episode = episode_of(np.arange(n + 1))
    found = forth_and_back(episode)
    assert len(found) == n
    assert found.observations[0] == 0
    assert found.observations.max() <= max(1, n // 2)
    assert (np.abs(np.diff(found.observations)) == 1).all()
    assert found.ret == 0


def test_no_events_are_saved_and_streamed(tmp_path):
    rng = np.random.default_rng(0)
    noise = [ar.Episode(rng.normal(size=(40, 2)), np.zeros(39), np.eye(39)[-1]) for _ in range(5)]
    with pytest.warns(ar.AlignRudderWarning, match=r"no events were found|nothing can be"):
        model = ar.AlignRudder().fit(noise)
    assert isinstance(model.events_.base, NoEvents)
    model.save(tmp_path / "m.npz")
    again = ar.AlignRudder.load(tmp_path / "m.npz")
    for one in (model, again):
        rr = one.redistribute(noise[0])
        assert rr.rewards.sum() == 0
        assert rr.correction == 1


def test_an_observation_that_is_no_number_is_named_among_all_episodes():
    demos = mountain_car(5, 0)
    broken = np.array(demos[3].observations)
    broken[7] = np.nan
    demos[3] = ar.Episode(broken, demos[3].actions, demos[3].rewards)
    with pytest.raises(ValueError, match=r"observation 7 of demonstration 3 \(after step 6\)"):
        ar.AlignRudder(baseline=-30.0).fit(demos)
    with pytest.raises(ValueError, match=r"observation 7 of random episode 0"):
        ar.AlignRudder(baseline=-30.0).fit(mountain_car(4, 0), [demos[3]])


def test_episodes_of_other_shapes_are_refused():
    demos = [episode_of(np.random.default_rng(0).normal(size=(9, n))) for n in (2, 2, 3, 2)]
    with pytest.raises(ValueError, match=r"episode 2 .*\(3,\).* episode 0 .*\(2,\); give"):
        ar.AlignRudder().fit(demos)
