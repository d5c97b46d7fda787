"""The page: safe, whole and small."""

import json
import re

import numpy as np
import pytest
from show.parsed import Parsed

import align_rudder as ar
from align_rudder.data.crafting import crafting_episode
from align_rudder.show.report import report_data, write_report
from align_rudder.show.report.page import page

HOSTILE = ["</script><script>alert(1)</script>", "\"'&<b>", "<!--", "\u2028\ud800", "{{data}}"]


def test_no_symbol_and_no_title_can_leave_its_place():
    model = ar.AlignRudder().fit_events([HOSTILE, HOSTILE])
    data = report_data(model, [(HOSTILE, 1.0)], title=HOSTILE[0])
    plain = report_data(ar.AlignRudder().fit_events(["ABCDE", "ABCDE"]), [("ABCDE", 1.0)])
    text, other = page(data), page(plain)
    parsed = Parsed(text)
    assert [t for t, _ in parsed.tags] == [t for t, _ in Parsed(other).tags]
    assert json.loads(parsed.scripts["data"]) == data
    assert parsed.title == HOSTILE[0]
    assert "alert(1)</script>" not in text


def test_page_refers_to_nothing_outside(crafting, episodes):
    text = page(report_data(crafting, episodes))
    links = set(re.findall(r"https?://[^\"'\s<)]+", text))
    assert links == {"http://www.w3.org/2000/svg"}  # a name, never fetched
    for tag, attributes in Parsed(text).tags:
        assert "src" not in attributes
        assert tag != "link"
        assert attributes.get("href", "#").startswith("#")
    assert "default-src 'none'" in text


def test_a_demonstration_of_500_events_takes_less_than_50_kb(rng, tmp_path):
    base = rng.integers(0, 12, 500)
    runs = [np.where(rng.random(500) < 0.1, rng.integers(0, 12, 500), base) for _ in range(20)]
    runs = [[f"event {e}" for e in run] for run in runs]
    model = ar.AlignRudder(refine=0).fit_events(runs)
    write_report(model, [(run, 1.0) for run in runs[:4]], tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 20 * 50e3


@pytest.mark.parametrize("episodes", ["demos.npz", 3, crafting_episode(3)])
def test_episodes_that_are_no_list_are_refused(crafting, tmp_path, episodes):
    with pytest.raises(ValueError, match="a list of episodes is needed"):
        write_report(crafting, episodes, tmp_path / "r.html")


def test_model_and_episodes_cannot_be_mixed_up(crafting, tmp_path):
    with pytest.raises(ValueError, match=r"model is a list; .* write_report\(model, episodes"):
        write_report([crafting_episode(3)], crafting, tmp_path / "r.html")


def test_no_episodes_at_all_are_fine(crafting, tmp_path):
    verdict = write_report(crafting, None, tmp_path / "r.html")
    data = json.loads(Parsed((tmp_path / "r.html").read_text()).scripts["data"])
    assert data["episodes"] == []
    assert data["verdict"] == verdict
