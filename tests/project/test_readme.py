"""The code in README.md and in the docs runs, and does what the text says."""

import ast
import importlib.util
import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def tool(name):
    """Return a script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


docs_blocks = tool("docs_blocks")
PAGES = [page for page in docs_blocks.pages() if page != README]


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
    # The default learns where plain reward fails, and the page shows it.
    assert shown.startswith(re.search(r"```text\n(.*?)```", README.read_text("utf-8"), re.S)[1])
    plain, settled = (int(share) for share in re.findall(r"paid .*: (\d+)%", shown))
    assert plain < 10
    assert settled > 90
    rr = names["rr"]
    assert rr.rewards.sum() + rr.correction == pytest.approx(0.0)
    assert (rr.rewards[1:] > 0).all()
    env = names["env"]
    env.reset(seed=0)
    rewards = [env.step(action)[1] for action in (1, 1, 2, 2, 1, 2)]
    assert sum(rewards) == pytest.approx(2.0)  # the return, and the shares that it is lent
    assert np.count_nonzero(np.array(rewards) > 0.05) >= 5  # no longer only at the end
    assert isinstance(env.unwrapped, gym.Env)


def test_first_example_is_short(blocks):
    lines = [line for line in blocks[0].splitlines() if line.strip()]
    assert len(lines) <= 30  # a learner of its own included


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_show_what_their_code_prints(page):
    text = page.read_text(encoding="utf-8")
    now, _ = docs_blocks.run(text, page.name)
    assert now == text, f"run python tools/docs_blocks.py {page.relative_to(ROOT)}"


@pytest.mark.parametrize("page", ["README.md", "docs/start.md", "docs/own-environment.md"])
def test_ppo_is_shown_with_the_settings_that_were_measured(page):
    # With Stable-Baselines3's own rate, 3e-4, a sparse task may not be learned at all.
    study = (ROOT / "tools" / "deep_study.py").read_text(encoding="utf-8")
    learned = ast.literal_eval(re.search(r'"ppo": (\{"learning_rate".*?\})', study)[1])
    measured = {**learned, "batch_size": 256, "n_epochs": 4}
    text = (ROOT / page).read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    calls = [
        {k.arg: ast.literal_eval(k.value) for k in node.keywords}
        for node in ast.walk(ast.parse("\n".join(code)))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "PPO"
    ]
    assert calls
    for call in calls:
        assert measured.items() <= call.items()


def test_pages_with_code_are_the_known_ones():
    assert {"start.md", "event-logs.md", "method.md"} <= {page.name for page in PAGES}


def test_a_page_that_shows_something_else_is_noticed():
    page = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    assert docs_blocks.run(page)[0] == page.replace("3", "2")
    assert docs_blocks.run("<!-- not run -->\n" + page)[0] == "<!-- not run -->\n" + page
