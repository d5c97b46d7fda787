"""How far work has come."""

import pytest

from align_rudder.runs.progress import tracked


@pytest.mark.parametrize(("total", "lines"), [(0, 0), (3, 3), (25, 12), (200, 10)])
def test_without_a_bar_there_are_few_lines(capsys, total, lines):
    assert list(tracked(range(total), "trials", total, bar=False)) == list(range(total))
    said = capsys.readouterr().err.splitlines()
    assert len(said) == lines
    assert not said or said[-1].endswith(f"of {total} trials")


def test_a_bar_counts_to_its_end(capsys):
    assert list(tracked(range(7), "trials", 7, bar=True)) == list(range(7))
    assert "7/7" in capsys.readouterr().err
