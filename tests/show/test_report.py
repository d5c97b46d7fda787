"""The report's data are the library's numbers, and the page is safe, whole and small."""

import json
import re
from html.parser import HTMLParser

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import leaves_list

import align_rudder as ar
from align_rudder.cli.main import main
from align_rudder.data.crafting import crafting_demonstrations, crafting_episode
from align_rudder.show.report import report_data, write_report
from align_rudder.show.report.page import page

HOSTILE = ["</script><script>alert(1)</script>", "\"'&<b>", "<!--", "\u2028\ud800", "{{data}}"]


@pytest.fixture(scope="module")
def crafting():
    return ar.AlignRudder().fit(crafting_demonstrations(6))


@pytest.fixture(scope="module")
def episodes():
    return [crafting_episode(500), crafting_episode(500, success=False)]


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


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from("ABCDX"), max_size=12), st.floats(-3, 3), st.sampled_from([0, 0.3]))
def test_sums_meet_at_the_return(symbols, ret, gap):
    model = ar.AlignRudder(gap=gap).fit_events(["ABCD", "ABD", "ABCCD"], [1.0, 1.0, 2.0])
    shown = report_data(model, [(symbols, ret)])["episodes"][0]
    assert sum(shown["r"]) + shown["correction"] == pytest.approx(ret, abs=1e-4)
    assert sum(shown["t"]) <= shown["steps"] == len(symbols)
    assert shown["original"] is None


def test_verdict_of_a_shared_strategy(crafting, data):
    verdict = data["verdict"]
    assert verdict["state"] == "good"
    assert "All 6 demonstrations share one strategy" in verdict["headline"]
    assert verdict["warnings"] == []
    numbers = verdict["numbers"]
    assert numbers["redistributed"] == pytest.approx(1.0)
    assert numbers["columns"] == [len(crafting.profile_)]
    assert numbers["conservation"][0] == pytest.approx(crafting.profile_.conservation.mean(), 1e-3)
    assert 0.3 < numbers["agreement"][0] <= 1


def warned(shown):
    return " ".join(w["what"] + w["do"] for w in shown["verdict"]["warnings"])


def test_warnings_say_what_is_wrong_and_what_to_do(rng):
    with pytest.warns(ar.AlignRudderWarning):
        none = ar.AlignRudder().fit_events([list(rng.permutation(8)) for _ in range(4)])
    shown = report_data(none)
    assert shown["verdict"]["state"] == "bad"
    assert "No common strategy" in warned(shown)
    assert shown["strategies"] == []
    assert shown["verdict"]["numbers"]["redistributed"] == 0

    with pytest.warns(ar.AlignRudderWarning):
        many = ar.AlignRudder().fit_events([range(30), range(30)])
    assert "Too many events: 30" in warned(report_data(many))
    assert "max_events" in warned(report_data(many))

    with pytest.warns(ar.AlignRudderWarning):
        outlier = ar.AlignRudder().fit_events(["ABCDEF", "ABCDEF", "ABCDEF", "XYZXYZ"])
    assert "agree with no other one: 3" in warned(report_data(outlier))

    pair = ar.AlignRudder().fit_events(["ABC", "ABC"])
    shown = report_data(pair, [("QQ", 0.0), ("ABC", 1.0), ("ABC", 1.0)], max_episodes=2)
    assert "only two demonstrations" in warned(shown)
    assert "Episode 0: no event that the model knows" in warned(shown)
    assert "1 more episodes were given and are not shown" in warned(shown)
    assert "Both demonstrations" in shown["verdict"]["headline"]
    uneven = ar.AlignRudder().fit_events(["ABC", "ABC", "ABC"], [0.1, 1.0, 4.0])
    assert "do not explain how the returns differ" in warned(report_data(uneven))


def test_two_strategies():
    first, second = "ABCDEFAB", "UVWXYZUV"
    model = ar.AlignRudder().fit_events([first] * 4 + [second] * 3)
    shown = report_data(model, [(second, 1.0)])
    assert "2 strategies, of 4 and 3" in shown["verdict"]["headline"]
    assert shown["episodes"][0]["strategy"] == 1
    assert [d["strategy"] for d in shown["demonstrations"]] == [0] * 4 + [1] * 3


class Parsed(HTMLParser):
    """The scripts of a page by id, and every tag with its attributes."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.scripts, self.tags, self.title, self._inside = {}, [], "", None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id", tag)

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "title":
            self.title += data
        elif self._inside is not None:
            self.scripts[self._inside] = self.scripts.get(self._inside, "") + data


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


def test_page_refers_to_nothing_outside(data):
    text = page(data)
    links = set(re.findall(r"https?://[^\"'\s<)]+", text))
    assert links == {"http://www.w3.org/2000/svg"}  # a name, never fetched
    for tag, attributes in Parsed(text).tags:
        assert "src" not in attributes
        assert tag != "link"
        assert attributes.get("href", "#").startswith("#")
    assert "default-src 'none'" in text


def test_a_hundred_demonstrations_of_500_events_are_under_5_mb(rng, tmp_path):
    base = rng.integers(0, 12, 500)
    runs = [[f"event {e}" for e in np.where(rng.random(500) < 0.1, rng.integers(0, 12, 500), base)]]
    for _ in range(99):
        kept = base[rng.random(500) > 0.1]
        extra = rng.integers(0, 12, 500 - len(kept))
        at = np.sort(rng.integers(0, len(kept), len(extra)))
        runs.append([f"event {e}" for e in np.insert(kept, at, extra)])
    assert {len(run) for run in runs} == {500}
    model = ar.AlignRudder(refine=0).fit_events(runs)
    write_report(model, [(run, 1.0) for run in runs[:20]], tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 5e6


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


def test_command(tmp_path, capsys, monkeypatch, crafting, episodes):
    monkeypatch.chdir(tmp_path)
    crafting.save("m.npz")
    ar.save_episodes("new.npz", episodes)
    assert main(["report", "m.npz"]) == 0
    assert "report.html" in capsys.readouterr().out
    given = ["--title", "Crafting", "--max-episodes", "1"]
    assert main(["report", "m.npz", "new.npz", "-o", "two.html", *given]) == 0
    shown = json.loads(Parsed((tmp_path / "two.html").read_text()).scripts["data"])
    assert shown["title"] == "Crafting"
    assert len(shown["episodes"]) == 1
    assert shown == json.loads(
        json.dumps(report_data(crafting, episodes, title="Crafting", max_episodes=1))
    )
    (tmp_path / "logs.jsonl").write_text('["a", "b"]\n{"events": ["a"], "return": 0.5}\n')
    ar.AlignRudder().fit_events(["ab", "ab"]).save("s.npz")
    assert main(["report", "s.npz", "logs.jsonl", "-o", "s.html"]) == 0
    env = gym.make("FrozenLake-v1", is_slippery=False)
    walks = [ar.Episode([0, 4, 8, 9, 13, 14, 15], [1, 1, 2, 1, 2, 2], [0, 0, 0, 0, 0, 1])] * 2
    ar.AlignRudder(ar.StateEvents()).fit(walks).save("lake.npz")
    ar.save_episodes("walks.npz", walks)
    assert env.spec.id == "FrozenLake-v1"
    assert main(["report", "lake.npz", "walks.npz", "-o", "l.html", "--env", env.spec.id]) == 0
    assert json.loads(Parsed((tmp_path / "l.html").read_text()).scripts["data"])["map"][
        "shape"
    ] == [
        4,
        4,
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.npz"], "none.npz"),
        (["m.npz", "none.jsonl"], "there is no file"),
        (["m.npz", "-o", "missing/r.html"], "missing does not exist; create it"),
        (["m.npz", "--max-episodes", "-1"], "at least 0"),
        (["m.npz", "--env", "Nowhere-v0"], "no environment Nowhere-v0"),
        (["m.npz", "logs.jsonl"], r"redistribute\(episode\)"),
    ],
)
def test_mistakes_are_told_in_one_line(tmp_path, monkeypatch, capsys, crafting, arguments, message):
    monkeypatch.chdir(tmp_path)
    crafting.save("m.npz")
    (tmp_path / "logs.jsonl").write_text('["a", "b"]\n')
    before = sorted(p.name for p in tmp_path.iterdir())
    assert main(["report", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert len(error.strip().splitlines()) == 1
    assert re.search(message, error)
    assert sorted(p.name for p in tmp_path.iterdir()) == before


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
        none = ar.AlignRudder().fit_events([list(rng.permutation(8)) for _ in range(4)])
    assert "share no strategy" in none._repr_html_()


@pytest.mark.parametrize("episodes", ["demos.npz", 3, crafting_episode(3)])
def test_episodes_that_are_no_list_are_refused(crafting, tmp_path, episodes):
    with pytest.raises(ValueError, match="a list of episodes is needed"):
        write_report(crafting, episodes, tmp_path / "r.html")


def test_no_episodes_at_all_are_fine(crafting, tmp_path):
    verdict = write_report(crafting, None, tmp_path / "r.html")
    data = json.loads(Parsed((tmp_path / "r.html").read_text()).scripts["data"])
    assert data["episodes"] == []
    assert data["verdict"] == verdict


def test_the_terminal_says_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ar.AlignRudder().fit_events(["abc", "abc", "abc"]).save("m.npz")
    (tmp_path / "logs.jsonl").write_text('["x", "y"]\n')
    assert main(["report", "m.npz", "logs.jsonl"]) == 0
    assert "Episode 0: no event that the model knows" in capsys.readouterr().err
