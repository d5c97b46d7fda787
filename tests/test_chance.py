"""What chance reaches is paid less, as measured on episodes that the weights do not know."""

import numpy as np
import pytest

from align_rudder import AlignRudder
from align_rudder.chance import beyond_chance
from align_rudder.events import Encoded
from align_rudder.redistribution import Scorer


def profile(length, score=2.0):
    """Return scores of a profile whose columns hold one event each, and what skipping costs."""
    return np.where(np.eye(length), score, -np.inf), np.full(length, 1.0)


def share_of(pssms, skips, episodes):
    scorer = Scorer(pssms, 0.0, skips)
    demo = scorer.prefix_scores(np.arange(5))[0][-1]
    return np.mean([scorer.prefix_scores(e.events)[0][-1] for e in episodes]) / demo


def test_what_chance_reaches_is_paid_less_and_never_nothing():
    pssm, skips = profile(5)
    # Chance finds the first column always, the second in 12 of 18 episodes, the third in 6.
    random = [Encoded(-1, np.arange(k)) for k in (1, 2, 3) for _ in range(6)]
    demos = [Encoded(-1, np.arange(5))]
    (weighed,), (costs,), share = beyond_chance([pssm], [skips], 0.0, demos, random)
    rare = 1 - np.array([18, 12, 6, 0, 0]) / 19
    assert share_of([pssm], [skips], random) == pytest.approx(0.4)
    # The first power leaves too much to chance.
    assert share_of([pssm * rare], [skips * rare], random) > 0.1
    assert share_of([weighed], [costs], random) <= share <= 0.1
    power = np.log(np.diag(weighed)[0] / 2.0) / np.log(rare[0])
    assert power == pytest.approx(round(power))
    assert round(power) in (2, 3)
    np.testing.assert_allclose(np.diag(weighed), 2.0 * rare**power)
    np.testing.assert_allclose(costs, rare**power)
    assert np.isneginf(weighed[0, 1:]).all()


def test_where_chance_earns_little_scores_stay_as_they_are():
    pssm, skips = profile(5)
    demos = [Encoded(-1, np.arange(5))]
    seldom = [Encoded(-1, np.arange(k < 3)) for k in range(9)]
    for random in ([], [Encoded(-1, np.array([-1, -1]))], seldom):
        (same,), (costs,), share = beyond_chance([pssm], [skips], 0.0, demos, random)
        assert same is pssm
        assert costs is skips
        assert share == pytest.approx(sum(len(e.events) == 1 for e in random) / 5 / 9)


def test_what_chance_gets_is_measured_on_episodes_that_the_weights_do_not_know():
    """Where every random episode reaches other columns, weights learned of some do not help."""
    pssm, skips = np.ones((9, 3)), np.zeros(3)
    rng = np.random.default_rng(0)
    demos = [Encoded(-1, rng.integers(9, size=3)) for _ in range(4)]
    random = [Encoded(-1, rng.integers(9, size=3)) for _ in range(8)]
    *_, share = beyond_chance([pssm], [skips], 0.0, demos, random)
    assert share == pytest.approx(1.0)


def test_a_model_that_knows_chance_pays_it_little():
    demos, played = [list("ABCDE")] * 6, [list("A")] * 3 + [list("AB")] * 3 + [list("ABC")] * 3
    known = AlignRudder().fit_events(demos, random_sequences=played)
    assert known.redistribute_events("ABCDE", 1.0).rewards.sum() == pytest.approx(1.0)
    assert (known.redistribute_events("ABCDE", 1.0).rewards > 0).all()
    assert known.random_share_ <= 0.1  # of five equal columns, it would be 40 %
