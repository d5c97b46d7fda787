"""The code in README.md runs, and does what the text says."""

import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.fixture
def blocks():
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_code_runs_from_top_to_bottom(blocks, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "consensus (80 %)" in shown
    rr = names["rr"]
    assert rr.rewards.sum() + rr.correction == pytest.approx(0.0)
    assert (rr.rewards[1:] > 0).all()
    env = names["env"]
    env.reset(seed=0)
    rewards = [env.step(action)[1] for action in (1, 1, 2, 2, 1, 2)]
    assert sum(rewards) == pytest.approx(1.0)
    assert np.count_nonzero(np.array(rewards) > 0.05) >= 5  # no longer only at the end
    assert isinstance(env.unwrapped, gym.Env)


def test_first_example_is_short(blocks):
    lines = [line for line in blocks[0].splitlines() if line.strip()]
    assert len(lines) <= 17  # imports and 15 lines


def test_links_of_the_readme_lead_somewhere():
    text = README.read_text(encoding="utf-8")
    local = [t for t in re.findall(r"\]\(([^)#]+)\)", text) if not t.startswith("http")]
    assert local
    assert [t for t in local if not (README.parent / t).exists()] == []
