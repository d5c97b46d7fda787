"""What notebooks show: whole, bounded, and safe."""

import numpy as np
import pytest

import align_rudder as ar

HOSTILE = ["</script><script>alert(1)</script>", "\"'&<b>", "<!--", "\u2028\ud800"]


def test_notebook_shows_model_alignment_and_redistribution(crafting, episodes):
    text = crafting._repr_html_()
    assert text.count("▾") == len(crafting.subgoals_)
    assert "stone_pickaxe+1" in text
    aligned = crafting.alignment_._repr_html_()
    assert aligned.count("<tr>") == len(crafting.alignment_)
    rr = crafting.redistribute(episodes[1])
    picture = rr._repr_html_()
    assert picture.count("<rect") == np.count_nonzero(rr.rewards) + 1
    assert "<pre>AlignRudder()" in ar.AlignRudder()._repr_html_()


def test_notebook_is_bounded_and_escapes(rng):
    big = ar.align([list(rng.integers(0, 3, 400)) for _ in range(50)], refine=0)
    text = big._repr_html_()
    assert "first 30 of 50 sequences" in text
    assert "first 200 of" in text
    assert len(text) < 600_000
    hostile = ar.AlignRudder().fit_events([HOSTILE, HOSTILE])
    for shown in (hostile._repr_html_(), hostile.alignment_._repr_html_()):
        assert "<script" not in shown
        assert "<!--" not in shown
        shown.encode()
    long = ar.AlignRudder().fit_events([["a"] * 600 + ["b"], ["a"] * 600 + ["b"]])
    picture = long.redistribute_events(["a"] * 600, 1.0)._repr_html_()
    assert "400 largest" in picture
    with pytest.warns(ar.AlignRudderWarning):
        none = ar.AlignRudder().fit_events([[f"{k}{i}" for k in "abcd"] for i in range(4)])
    assert "share no strategy" in none._repr_html_()
