"""GAIL on events with networks: the discriminator, and what it pays."""

import numpy as np
import pytest

from align_rudder.studies.networks.gail import Discriminator, Imitation
from align_rudder.studies.networks.wrappers import LastEvent
from align_rudder.tasks.minigrid_recipe import MiniGridRecipeEnv

LOG = np.array([[0, 0], [1, 1], [2, 2]])  # events 0, 1, 2, each with the one before it


def trained(played, ends, rounds=300, **options):
    judge = Discriminator([LOG] * 5, 4, 3, **options)
    for _ in range(rounds):
        for known, event in played:
            judge.pay(known, event, False)
        if ends:
            judge.pay(0, -1, True)
        judge.train()
    return judge


def test_events_of_logs_are_told_from_random_ones():
    rng = np.random.default_rng(0)
    judge = trained(rng.integers((4, 3), size=(30, 2)).tolist(), ends=False)
    shown = judge.scores[LOG[:, 0], LOG[:, 1]]
    others = [judge.scores[m, e] for m in range(4) for e in range(3) if [m, e] not in LOG.tolist()]
    assert shown.min() > max(others) + 2
    assert judge.pay(0, 0, False) > 2 * judge.pay(0, 2, False)


def test_the_end_is_worth_more_than_events_until_the_agent_reaches_it():
    never, always = (trained(LOG.tolist(), ends=ends) for ends in (False, True))
    assert never.scores[-1, 0] > 2 > abs(always.scores[-1, 0])
    assert never.pay(2, 2, True) > 10 * never.pay(2, 2, False)


@pytest.mark.parametrize("reward", ["positive", "difference", "negative"])
def test_rewards_are_the_discounted_ones_of_the_absorbing_end(reward):
    judge = Discriminator([LOG], 4, 3, reward=reward, gamma=0.9)
    judge.scores[:] = 1.0
    d = 1 / (1 + np.exp(-1.0))
    r = {"positive": -np.log(1 - d), "negative": np.log(d), "difference": 1.0}[reward]
    assert judge.pay(0, -1, False) == 0
    assert judge.pay(0, 1, False) == pytest.approx(0.1 * r)
    # r now and γ r / (1 − γ) for staying there, all of it times 1 − γ
    assert judge.pay(0, 1, True) == pytest.approx(0.1 * (r + 0.9 * r / 0.1))


def test_the_wrapper_pays_what_was_known_before_the_event():
    level = MiniGridRecipeEnv(2, max_steps=1000)
    judge = Discriminator([LOG], 7, 6, gamma=0.5)
    judge.scores[:] = np.arange(8)[:, None] + 0.1 * np.arange(6)
    env = Imitation(LastEvent(level), judge)
    env.reset(seed=0)
    last, rng = 0, np.random.default_rng(0)
    paid = 0
    for _ in range(300):
        facing, action = level.facing, int(rng.integers(4))
        _, reward, terminated, _, _ = env.step(action)
        if terminated:
            break
        wanted = 0.0
        if action == 3 and facing >= 0:
            wanted = 0.5 * np.logaddexp(0, judge.scores[last, facing])
            last, paid = facing + 1, paid + 1
        assert reward == pytest.approx(wanted)
    assert paid > 3
