"""Figures show what they should."""

import warnings

import gymnasium as gym
import numpy as np
import pytest

import align_rudder as ar
from align_rudder.data.crafting import crafting_episode
from align_rudder.events.names import goal_names


def test_alignment_has_a_letter_for_each_event_and_a_mark_for_each_subgoal(crafting):
    strategy = crafting.strategies_[0]
    ax = ar.plot.alignment(
        strategy.alignment, columns=strategy.profile.columns, subgoals=strategy.subgoals
    )
    assert len(ax.texts) == (strategy.alignment.matrix >= 0).sum()
    marks = [int(line.get_xdata()[0]) for line in ax.lines]
    assert marks == [int(strategy.profile.columns[g.column]) for g in strategy.subgoals]
    letters = strategy.alignment.letters
    text = ax.texts[0]
    column, row = (round(x) for x in text.get_position())
    assert text.get_text() == letters[strategy.alignment.matrix[row, column]]


def test_redistribution_sums_meet_at_the_return(crafting):
    episode = crafting_episode(5, success=False)
    rr = crafting.redistribute(episode)
    ax = ar.plot.redistribution(rr, crafting.events_.symbols_, original=episode.rewards)
    redistributed, original = ax.lines[0].get_ydata(), ax.lines[1].get_ydata()
    assert redistributed[-1] == pytest.approx(original[-1]) == pytest.approx(episode.ret)
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, [*rr.rewards, rr.correction])


def test_colours_of_the_first_events_are_far_apart():
    colours = np.array([ar.plot.event_color(e) for e in range(24)])
    distance = np.abs(colours[:, None] - colours[None]).sum(axis=2) + 9 * np.eye(24)
    assert distance.min() > 0.15
    assert ((colours >= 0) & (colours <= 1)).all()


@pytest.fixture(scope="module")
def rooms():
    env = gym.make("AlignRudder/FourRooms-v0").unwrapped
    demos = env.demonstrations(6, 0)
    return env, demos, ar.AlignRudder(ar.StateEvents(max_events=15)).fit(demos)


def test_logo_is_as_high_as_the_column_tells(crafting):
    profile = crafting.profile_
    heights = ar.plot.logo_heights(profile)
    q, p = profile.frequencies, profile.background
    for t in range(len(profile)):
        bits = sum(x * np.log2(x / y) for x, y in zip(q[:, t], p) if x > 0)
        assert heights[:, t].sum() == pytest.approx(max(bits, 0.0))
        assert heights[:, t].argmax() == profile.top_events[t]
    ax = ar.plot.logo(profile, subgoals=crafting.subgoals_)
    assert len(ax.lines) == len(crafting.subgoals_)
    assert len(ax.patches) == 2 * np.count_nonzero(heights)  # a ground and a letter each
    cut = ar.plot.logo(profile, subgoals=crafting.subgoals_, max_columns=3)
    assert "first 3 of" in cut.get_title("left")
    single = ar.AlignRudder(done=False).fit_events(["AAA", "AAA"])
    assert ar.plot.logo_heights(single.profile_).sum() == pytest.approx(3.0)


def test_pssm_shows_every_finite_score(crafting):
    ax = ar.plot.pssm(crafting.profile_, subgoals=crafting.subgoals_)
    shown = ax.images[0].get_array()
    finite = np.isfinite(crafting.profile_.pssm)
    np.testing.assert_array_equal(~np.ma.getmaskarray(shown), finite)
    np.testing.assert_allclose(shown[finite], crafting.profile_.pssm[finite])
    low, high = ax.images[0].get_clim()
    assert low == -high  # zero in the middle of the colours


def test_guide_tree_has_a_colour_for_each_strategy():
    model = ar.AlignRudder().fit_events(["ABCDEFAB"] * 3 + ["UVWXYZUV"] * 2)
    ax = ar.plot.guide_tree(model)
    labels = {int(t.get_text()): t.get_color() for t in ax.get_yticklabels()}
    assert sorted(labels) == [0, 1, 2, 3, 4]
    assert labels[0] == labels[1] == labels[2] != labels[3] == labels[4]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "strategy 1 (3)",
        "strategy 2 (2)",
    ]


def test_clusters_lie_where_the_states_are(rooms):
    env, demos, model = rooms
    ax = ar.plot.clusters(model, env, demos)
    image = ax.images[0].get_array()
    visited = {env.map.cell(s)[0] for demo in demos for s in demo.observations}
    for cell in np.ndindex(*env.map.shape):
        assert (image[cell] == 1).all() == (cell not in visited)
    end = env.map.target
    (label,) = {model.events_.start_event(int(d.observations[-1])) for d in demos}
    np.testing.assert_allclose(image[end], ar.plot.event_color(label))
    paid = {(round(p.center[1]), round(p.center[0])) for p in ax.patches}
    expected = {
        env.map.cell(d.observations[t + 1])[0]
        for d in demos
        for t in np.flatnonzero(model.redistribute(d).rewards)
    }
    assert paid == expected


def test_clusters_on_other_maps(lake, demos):
    model = ar.AlignRudder(ar.StateEvents()).fit(demos)
    assert ar.plot.clusters(model, lake).images[0].get_array().shape == (4, 4, 3)
    corridor = gym.make("AlignRudder/KeyChest-v0")
    walks = corridor.unwrapped.demonstrations(4, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ar.AlignRudderWarning)
        found = ar.AlignRudder(ar.StateEvents()).fit(walks)
    assert ar.plot.clusters(found, corridor).images[0].get_array().shape[:2] == (3, 9)
    with pytest.raises(ValueError, match="no map of CartPole"):
        ar.plot.clusters(model, gym.make("CartPole-v1"))


@pytest.mark.parametrize("band", ["error", "deviation", "range"])
def test_curves_have_mean_and_band(band, rng):
    x, y = np.arange(5), rng.normal(size=(8, 5))
    ax = ar.plot.curves({"ours": (x, y), "one seed": (x, y[0])}, band=band)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), y.mean(axis=0))
    np.testing.assert_allclose(ax.lines[1].get_ydata(), y[0])
    (filled,) = ax.collections
    corners = filled.get_paths()[0].vertices
    spread = {"error": y.std(axis=0, ddof=1) / np.sqrt(8), "deviation": y.std(axis=0, ddof=1)}
    high = y.max() if band == "range" else (y.mean(axis=0) + spread[band]).max()
    assert corners[:, 1].max() == pytest.approx(high)


def test_curves_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="x \\(points,\\)"):
        ar.plot.curves({"ours": ([0, 1], [[1, 2, 3]])})
    with pytest.raises(ValueError, match="band="):
        ar.plot.curves({}, band="wide")


def test_alignment_shows_the_consensus_and_names_its_subgoals(crafting):
    strategy = crafting.strategies_[0]
    above, below = ar.plot.consensus(crafting).axes
    letters = dict(zip(strategy.alignment.symbols, strategy.alignment.letters, strict=True))
    consensus = [letters[symbol] for symbol in strategy.profile.consensus(0.8)]
    assert [text.get_text() for text in below.texts] == consensus
    assert len(above.texts) == (strategy.alignment.matrix >= 0).sum()
    names = goal_names([goal.symbol for goal in strategy.subgoals])
    assert [text.get_text() for text in below.get_xticklabels()] == names
    columns = [int(strategy.profile.columns[goal.column]) for goal in strategy.subgoals]
    assert [int(line.get_xdata()[0]) for line in below.lines] == columns


def test_overview_has_the_alignment_and_one_scale_for_all_episodes(crafting):
    shown = [crafting_episode(3), crafting_episode(3, success=False)]
    episodes = [(str(e.ret), crafting.redistribute(e), e.rewards) for e in shown]
    aligned, *parts = ar.plot.overview(crafting, episodes).axes
    assert len(aligned.texts) == (crafting.alignment_.matrix >= 0).sum()
    assert [ax.get_title("left") for ax in parts] == [str(e.ret) for e in shown]
    assert parts[0].get_ylim() == parts[1].get_ylim()


def test_every_figure_is_drawn_as_vectors(crafting, rooms, tmp_path):
    env, demos, model = rooms
    rr = crafting.redistribute(crafting_episode(3))
    axes = {
        "alignment": ar.plot.alignment(crafting.alignment_),
        "logo": ar.plot.logo(crafting.profile_),
        "pssm": ar.plot.pssm(crafting.profile_),
        "guide_tree": ar.plot.guide_tree(crafting),
        "redistribution": ar.plot.redistribution(rr),
        "clusters": ar.plot.clusters(model, env, demos),
        "curves": ar.plot.curves({"ours": ([0, 1], [[0, 1], [0, 2]])}),
    }
    for name, ax in axes.items():
        ax.figure.savefig(tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").read_text().count("<path") > 5
