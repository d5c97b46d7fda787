"""The report's data are the library's numbers."""

import json

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import leaves_list

import align_rudder as ar
from align_rudder.show.report import report_data


@pytest.fixture(scope="module")
def data(crafting, episodes):
    return json.loads(json.dumps(report_data(crafting, episodes), allow_nan=False))


def dense(shown, values):
    out = np.zeros(shown["steps"])
    out[np.cumsum(shown["t"]) - 1] = values
    return out


def test_episodes_have_the_redistribution_of_the_library(crafting, episodes, data):
    for episode, shown in zip(episodes, data["episodes"], strict=True):
        rr = crafting.redistribute(episode)
        np.testing.assert_allclose(dense(shown, shown["r"]), rr.rewards, rtol=1e-5, atol=1e-12)
        events = np.full(len(rr.events), -1)
        events[np.cumsum(shown["t"]) - 1] = shown["e"]
        np.testing.assert_array_equal(events, rr.events)
        at = np.cumsum(shown["t"]) - 1
        np.testing.assert_allclose(shown["s"], rr.scores[at], rtol=1e-5)
        assert shown["correction"] == pytest.approx(rr.correction, rel=1e-5)
        assert shown["ret"] == episode.ret
        original = np.zeros(shown["steps"])
        original[np.cumsum(shown["original"]["t"], dtype=int) - 1] = shown["original"]["r"]
        np.testing.assert_allclose(original, episode.rewards)
        done = crafting.progress_of(crafting.encode(episode)).done
        assert [goal for goal, _ in shown["goals"]] == list(done)


def test_demonstrations_are_cut_as_the_sub_tasks_are(crafting, data):
    for task in crafting.subtasks():
        for segment in task.segments:
            reached = dict(data["demonstrations"][segment.episode]["goals"])
            assert reached[task.index] == segment.stop


def test_strategy_is_the_alignment_and_the_profile(crafting, data):
    strategy, shown = crafting.strategies_[0], data["strategies"][0]
    matrix = np.full((len(shown["members"]), shown["n_columns"]), -1)
    for row, (member, columns) in enumerate(zip(shown["members"], shown["rows"], strict=True)):
        demo = data["demonstrations"][member]
        sequence = ([demo["start"]] if demo["start"] >= 0 else []) + demo["e"]
        matrix[row, np.cumsum(columns)] = sequence
    np.testing.assert_array_equal(matrix, strategy.alignment.matrix)
    for t, column in enumerate(shown["columns"]):
        assert column["at"] == strategy.profile.columns[t]
        np.testing.assert_allclose(
            column["q"], strategy.profile.frequencies[column["e"], t], rtol=1e-3
        )
        np.testing.assert_allclose(column["s"], strategy.profile.pssm[column["e"], t], rtol=1e-3)
        assert column["r"] == pytest.approx(strategy.column_rewards[t], rel=1e-5)
    goals = [(g["column"], g["event"]) for g in shown["subgoals"]]
    assert goals == [(g.column, g.event) for g in strategy.subgoals]
    names = [data["events"][e]["name"] for e in shown["consensus"]]
    assert names == [str(s) for s in strategy.profile.consensus()]
    assert data["tree"]["leaves"] == leaves_list(crafting.tree_).tolist()
    colors = [ar.plot.event_color(e) for e in range(crafting.events_.n_events)]
    given = [[int(e["color"][i : i + 2], 16) / 255 for i in (1, 3, 5)] for e in data["events"]]
    np.testing.assert_allclose(given[:-1], colors, atol=0.003)


def test_start_states_stand_in_the_rows():
    env = gym.make("AlignRudder/FourRooms-v0").unwrapped
    model = ar.AlignRudder(ar.StateEvents(max_events=15)).fit(env.demonstrations(5, 0))
    shown = report_data(model, env.demonstrations(2, 1), env=env)
    strategy = shown["strategies"][0]
    for member, columns in zip(strategy["members"], strategy["rows"], strict=True):
        demo = shown["demonstrations"][member]
        assert len(columns) == len(demo["e"]) + (demo["start"] >= 0)
    grid = shown["map"]
    assert len(grid["events"]) == np.prod(grid["shape"])
    assert set(grid["events"]) <= set(range(-1, model.events_.n_events))
    for episode, data in zip(env.demonstrations(2, 1), shown["episodes"], strict=True):
        cells = [env.map.cell(s)[0] for s in episode.observations]
        assert data["path"] == [r * grid["shape"][1] + c for r, c in cells]
        assert data["at"] == [data["path"][t] for t in np.cumsum(data["t"])]


@pytest.fixture(scope="module")
def lettered():
    runs = ["ABCD", "ABD", "ABCCD"]
    return {gap: ar.AlignRudder(gap=gap).fit_events(runs, [1.0, 1.0, 2.0]) for gap in (0, 0.3)}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from("ABCDX"), max_size=12), st.floats(-3, 3), st.sampled_from([0, 0.3]))
def test_sums_meet_at_the_return(lettered, symbols, ret, gap):
    shown = report_data(lettered[gap], [(symbols, ret)])["episodes"][0]
    assert sum(shown["r"]) + shown["correction"] == pytest.approx(ret, abs=1e-4)
    assert sum(shown["t"]) <= shown["steps"] == len(symbols)
    assert shown["original"] is None


def test_map_needs_states_and_the_same_environment(crafting):
    lake = gym.make("FrozenLake-v1")
    with pytest.raises(ValueError, match="only clusters of states"):
        report_data(crafting, env=lake)
    rooms = gym.make("AlignRudder/FourRooms-v0").unwrapped
    model = ar.AlignRudder(ar.StateEvents()).fit(rooms.demonstrations(5, 0))
    with pytest.raises(ValueError, match="same environment"):
        report_data(model, env=lake)
    with pytest.raises(ValueError, match="no map of CartPole"):
        report_data(model, env=gym.make("CartPole-v1"))
    with pytest.raises(ValueError, match="not fitted"):
        report_data(ar.AlignRudder())
