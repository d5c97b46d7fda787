"""Values are held to what is said of them, and the message says what is needed."""

from dataclasses import dataclass

import numpy as np
import pytest

from align_rudder.files import (
    Choice,
    Each,
    Flag,
    Many,
    Maybe,
    Number,
    Table,
    Text,
    Whole,
    kind_like,
    shown,
)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Whole(1), [1, 2**31 - 1, np.int8(5)], [0, 1.0, True, "1", None, 2**31, 10**30]),
        (Number(0, 1), [0, 1, 0.5, np.float32(0.5)], [-1e-9, 2, np.nan, np.inf, True, "0", 1j]),
        (Number(), [-1e50, 10**20, -0.0], [1e51, 10**400, -np.inf, None, [1.0]]),
        (Number(above=0, below=1), [1e-320, 0.999], [0, 1]),
        (Flag(), [True, np.bool_(False)], [0, 1, "true", None]),
        (Text(), ["", "x"], [b"x", 1, None]),
        (Choice(("a", 1)), ["a", 1], ["b", True, 1.0, None]),
        (Maybe(Whole()), [None, 0], [-1, "x"]),
        (Many(Whole(), 1, 2), [[0], (1, 2)], [[], [1, 2, 3], [-1], ["x"], "12", {1: 2}]),
        (Each(Whole()), [{}, {"a": 1}], [{"a": -1}, {1: 1}, [1], None]),
        (Table({"a": Whole(), "b": Text()}, ("b",)), [{"a": 1}, {"a": 1, "b": "x"}], [{}, [], 1]),
    ],
)
def test_what_is_of_a_kind_is_taken_and_nothing_else(kind, good, bad):
    for value in good:
        assert kind.check(value, "it") is value
    for value in bad:
        with pytest.raises(ValueError, match="it"):
            kind.check(value, "it")


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Whole(2), 1, r"--n is 1; a whole number of at least 2 \(and below 2\^31\) is needed"),
        (Whole(0, 9), 10, "--n is 10; a whole number from 0 to 9 is needed"),
        (
            Number(0, 1e6),
            1e308,
            r"--n is 1e\+308; a number at least 0 and at most 1e\+06 is",
        ),
        (Number(0, below=1), 1, "--n is 1; a number at least 0 and below 1 is needed"),
        (Number(), float("nan"), r"--n is nan; a finite number \(up to 1e\+50\) is needed"),
        (Choice(("a", "b")), "c", "--n is 'c'; one of 'a', 'b' is needed"),
        (Many(Whole()), [1, "x"], r"--n\[1\] is 'x'; a whole number"),
        (Table({"a": Table({"b": Flag()})}), {"a": {"b": 1}}, r"--n\['a'\]\['b'\] is 1; true or"),
        (Table({"a": Flag()}), {"b": 1}, "--n has no 'a'; an object with a is needed"),
        (Table({"a": Flag()}), {"a": True, "b": 1}, "--n has 'b', which is not known there"),
    ],
)
def test_the_message_says_what_was_given_and_what_is_needed(kind, value, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        kind.check(value, "--n")


def test_what_is_long_is_cut_in_messages():
    assert len(shown("x" * 10_000)) == 60
    assert shown(10**5000) == "a int too long to show"
    nested = []
    for _ in range(100_000):
        nested = [nested]
    assert "too long to show" in shown(nested)


def test_a_kind_like_a_default_takes_what_could_stand_there():
    @dataclass
    class Settings:
        steps: int = 3
        rate: float = 0.5
        name: str = "x"
        on: bool = False
        layers: tuple[int, ...] = (1, 2)
        model: object = None

    good = {"steps": 9, "rate": 1, "name": "", "on": True, "layers": [4], "model": 3}
    kind = kind_like(Settings())
    assert kind.check(good, "it") == good
    for name, bad in (("steps", 1.5), ("rate", "x"), ("name", 1), ("on", 0), ("layers", [0.5])):
        with pytest.raises(ValueError, match=name):
            kind.check({**good, name: bad}, "it")
