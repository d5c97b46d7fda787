"""Shared by the tests of Minari: a folder for datasets, one of FrozenLake, and a model of it."""

import pytest


@pytest.fixture
def root(tmp_path, monkeypatch):
    path = tmp_path / "datasets"
    path.mkdir()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(path))
    return path


@pytest.fixture
def lake_runs(root):
    from collected import LAKE_RUNS, collect, lake

    about = {
        "author": {"Ada", "Bob"},
        "author_email": "ada@example.org",
        "description": "walks",
        "algorithm_name": "by hand",
        "code_permalink": "https://example.org/code",
        "requirements": ["gymnasium>=1.0"],
        "eval_env": "FrozenLake8x8-v1",
    }
    return collect(lake(), LAKE_RUNS, "lake/walks-v0", about=about)


@pytest.fixture
def lake_model(lake_runs):
    from collected import model_for

    from align_rudder.data.minari import load_minari

    return model_for(load_minari("lake/walks-v0", episodes=range(4)))
