"""Logs and models of recipes."""

import numpy as np
import pytest

from align_rudder.studies.recipes.settings import Setting
from align_rudder.studies.recipes.worlds import (
    environment,
    in_order,
    logs_of,
    model_of,
    recall,
    stage_pairs,
)


def test_the_first_of_more_logs_are_those_of_fewer():
    two, five = (logs_of(Setting(4, logs=n), 7) for n in (2, 5))
    assert five[:2] == two
    assert len({*five}) > 2
    assert logs_of(Setting(4, logs=2, detours=0.0), 7) != two


def test_events_are_lost_at_random_and_the_last_logs_are_shuffled():
    whole, lossy, mixed = (
        logs_of(Setting(12, logs=6, **noise), 7) for noise in ({}, {"missing": 0.1}, {"foreign": 2})
    )
    for log, rest in zip(whole, lossy, strict=True):
        events = iter(log)
        assert all(event in events for event in rest)
    share = sum(map(len, lossy)) / sum(map(len, whole))
    assert 0.8 < share < 1
    assert mixed[:4] == whole[:4]
    for log, shuffled in zip(whole[4:], mixed[4:], strict=True):
        assert log != shuffled
        assert sorted(log) == sorted(shuffled)


@pytest.mark.parametrize("seed", range(5))
def test_a_single_log_pays_its_next_event_and_no_other(seed):
    """Whatever comes between, and however rare what comes too early is."""
    rng = np.random.default_rng(seed)
    log = [*rng.choice([*"AABCDEFgh"], 15)]
    model = in_order(log)
    played = [*rng.choice([*"ABCDEFghx"], 200)]
    rewards = model.redistribute_events(played, ret=0.0).rewards
    at = 0
    for symbol, reward in zip(played, rewards, strict=True):
        # The last event of a log is "done", which only its end is.
        right = at < len(log) - 1 and symbol == log[at]
        assert (reward > 0) == right
        assert reward >= 0
        at += right
    whole = model.redistribute_events(log, ret=1.0).rewards
    assert (whole > 0).all()
    assert whole.sum() == pytest.approx(1.0)


def test_stages_are_what_a_walk_through_the_layout_has():
    setting = Setting(4, "undo")
    env = environment(setting, 3)
    cells, state = env.size**2, int(env.mdp.starts.argmax())
    rng, log, stages, events = np.random.default_rng(0), [], [], []
    for t in range(1, 400):
        action = int(rng.integers(4))
        label = int(env.mdp.labels[state, action, 0])
        if label >= 0:
            log.append(env.symbols[label])
            stages.append(state // cells)
            events.append(label)
        state, _, ended = env.mdp.step(state, action, min(t, env.mdp.horizon), 0.5)
        if ended:
            break
    assert max(stages) > 0
    assert stage_pairs(env, log).tolist() == [list(pair) for pair in zip(stages, events)]


def test_models_and_tables_of_a_task_are_made_once():
    setting = Setting(4, logs=5)
    assert model_of(setting, 3) is model_of(setting, 3)
    assert recall(setting, 3) is recall(setting, 3)
    assert recall(setting, 3).n_observations == 64 * 11
