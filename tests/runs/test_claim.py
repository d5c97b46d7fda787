"""A folder belongs to one configuration; what is another one is said in words."""

import json

import pytest

from align_rudder.runs.claim import OtherConfigurationError, claim, differences

CONFIG = {"protocol": {"max_episodes": 100, "cap": None}, "methods": ("a", "b")}


def test_the_same_configuration_comes_in_again(tmp_path):
    claim(tmp_path, CONFIG, empty=True)
    before = (tmp_path / "config.json").stat().st_mtime_ns
    claim(tmp_path, CONFIG, empty=False)
    claim(tmp_path, CONFIG, empty=True)
    assert (tmp_path / "config.json").stat().st_mtime_ns == before


def test_another_configuration_is_refused_with_the_difference_and_nothing_changes(tmp_path):
    claim(tmp_path, CONFIG, file="training.json", empty=True)
    before = (tmp_path / "training.json").read_bytes()
    other = {**CONFIG, "protocol": {"max_episodes": 200, "cap": None}}
    with pytest.raises(
        OtherConfigurationError,
        match=r"belongs to another configuration: protocol\.max_episodes is 100 there and 200 here"
        r"; use that one again, or give another folder \(--out\)",
    ):
        claim(tmp_path, other, file="training.json", empty=False)
    assert (tmp_path / "training.json").read_bytes() == before


def test_a_folder_with_nothing_finished_changes_hands(tmp_path):
    claim(tmp_path, CONFIG, empty=True)
    claim(tmp_path, {"seed": 1}, empty=True)
    assert json.loads((tmp_path / "config.json").read_text()) == {"seed": 1}


def test_results_that_say_not_how_they_were_made_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"has results but no config\.json"):
        claim(tmp_path, CONFIG, empty=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 100_000])
def test_a_damaged_configuration_is_named_and_stays(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    for empty in (False, True):
        with pytest.raises(ValueError, match=r"config\.json is damaged .*--out"):
            claim(tmp_path, CONFIG, empty=empty)
    assert (tmp_path / "config.json").read_text() == text


def test_differences_are_readable():
    found = {"seed": 0, "ppo": {"gamma": 0.9, "clip": 0.2}, "old": 1, "model": "0" * 16}
    wanted = {"seed": 0, "ppo": {"gamma": 0.99, "clip": 0.2}, "new": None, "model": "f" * 16}
    assert differences(found, wanted) == [
        "model is another one there",
        "new is not known there and None here",
        "old is 1 there and not known here",
        "ppo.gamma is 0.9 there and 0.99 here",
    ]
    assert differences(found, found) == []


def test_many_differences_are_counted():
    error = OtherConfigurationError("there", [f"x{i} is 1 there and 2 here" for i in range(9)])
    assert "x4 is 1 there and 2 here; and 4 more;" in str(error)
    assert "x5" not in str(error)
