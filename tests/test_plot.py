"""Figures show what they should."""

import matplotlib.figure
import numpy as np
import pytest

import align_rudder as ar
from align_rudder.demo import crafting_demonstrations, crafting_episode


@pytest.fixture(scope="module")
def crafting():
    return ar.AlignRudder().fit(crafting_demonstrations(5))


def test_alignment_has_a_letter_for_each_event_and_a_mark_for_each_subgoal(crafting):
    strategy = crafting.strategies_[0]
    ax = ar.plot.alignment(
        strategy.alignment, columns=strategy.profile.columns, subgoals=strategy.subgoals
    )
    assert len(ax.texts) == (strategy.alignment.matrix >= 0).sum()
    marks = [int(line.get_xdata()[0]) for line in ax.lines]
    assert marks == [int(strategy.profile.columns[g.column]) for g in strategy.subgoals]
    letters = strategy.alignment.letters
    text = ax.texts[0]
    column, row = (round(x) for x in text.get_position())
    assert text.get_text() == letters[strategy.alignment.matrix[row, column]]


def test_redistribution_sums_meet_at_the_return(crafting):
    episode = crafting_episode(5, success=False)
    rr = crafting.redistribute(episode)
    ax = ar.plot.redistribution(rr, crafting.events_.symbols_, original=episode.rewards)
    redistributed, original = ax.lines[0].get_ydata(), ax.lines[1].get_ydata()
    assert redistributed[-1] == pytest.approx(original[-1]) == pytest.approx(episode.ret)
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, [*rr.rewards, rr.correction])


def test_colours_of_the_first_events_are_far_apart():
    colours = np.array([ar.plot.event_color(e) for e in range(16)])
    distance = np.abs(colours[:, None] - colours[None]).sum(axis=2) + 9 * np.eye(16)
    assert distance.min() > 0.1
    assert ((colours >= 0) & (colours <= 1)).all()


def test_overview_writes_vector_graphics(crafting, tmp_path):
    rr = crafting.redistribute(crafting_episode(3))
    figure = ar.plot.overview(crafting, [("one", rr, crafting_episode(3).rewards)])
    assert isinstance(figure, matplotlib.figure.Figure)
    figure.savefig(tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    assert "<svg" in text
    assert len(figure.axes) == 2
