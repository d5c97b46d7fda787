"""Figures of the rooms show the numbers that they are given."""

import numpy as np
from rooms_trials import trial_record

from align_rudder.baselines import Protocol
from align_rudder.studies.rooms.figures import demonstration_figure, learning_curves
from align_rudder.studies.rooms.trials import curve_points
from align_rudder.studies.statistics import summarise


def test_learning_curves_are_read_back_from_what_was_kept():
    values = np.linspace(0.0, 0.74, 75)
    one = trial_record(0, 750, curve=tuple(values[curve_points(75)]))
    (ax,) = learning_curves([one], [2], Protocol(max_episodes=20_000)).axes
    (line,) = ax.lines
    whole = np.interp(line.get_xdata(), np.arange(1, 76) * 10, values)  # after its end, the last
    np.testing.assert_allclose(line.get_ydata(), whole, atol=1e-12)


def test_lines_are_the_means_in_order():
    records = [
        trial_record(0, 10 * n, method=m, demos=n)
        for m in ("bc-q", "align-rudder")
        for n in (10, 2, 5)
    ]
    found = summarise(records, [r.setting for r in records])
    (ax,) = demonstration_figure([("FourRooms", found)], 20_000).axes
    assert [line.get_label() for line in ax.lines] == ["BC+Q", "Align-RUDDER"]
    assert [list(line.get_xdata()) for line in ax.lines] == [[2, 5, 10]] * 2
    assert [list(line.get_ydata()) for line in ax.lines] == [[20.0, 50.0, 100.0]] * 2
