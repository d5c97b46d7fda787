"""Sub-tasks: which columns are sub-goals, how demonstrations are cut, how far an episode is."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder import (
    Alignment,
    AlignRudder,
    Episode,
    Profile,
    Segment,
    StateEvents,
    SubGoal,
    SubTask,
)
from align_rudder.events import Encoded
from align_rudder.presets import PAPER
from align_rudder.subtasks import cut_segments, find_subgoals

prop = settings(max_examples=60, deadline=None, derandomize=True)
RUNS = [list("KDSC"), list("KADSC"), list("KDBSC"), list("KDSAC")]
BACK = [list("CSDK"), list("CASDK"), list("CSDBK")]


@cache
def two_strategies():
    return AlignRudder(strategies=2, **PAPER).fit_events(RUNS + BACK)


@pytest.fixture
def two():
    """Two strategies of four and three demonstrations."""
    return two_strategies()


# Sub-goals


ROWS = np.array(
    [[0, 1, 2, -1, -1, 3], [0, 1, 2, -1, -1, 3], [0, 1, -1, 4, -1, 3], [0, 1, -1, -1, 5, 3]]
)
PROFILE = Profile.from_alignment(Alignment(ROWS, "ABCDXY", np.eye(6)))
REWARDS = np.array([0.4, 0.1, 0.05, 0.1, 0.02, 0.3])


def test_the_profile_is_as_the_tests_below_take_it():
    assert PROFILE.conservation.tolist() == [1.0, 1.0, 0.5, 0.25, 0.25, 1.0]
    assert "".join(PROFILE.symbols[e] for e in PROFILE.top_events) == "ABCXYD"


def columns(goals):
    return [goal.column for goal in goals]


def test_subgoals_above_a_threshold():
    assert columns(find_subgoals(PROFILE, REWARDS, threshold=0.1)) == [0, 5]
    assert columns(find_subgoals(PROFILE, REWARDS, threshold=0.09)) == [0, 1, 3, 5]
    assert find_subgoals(PROFILE, REWARDS, threshold=1.0) == []


def test_subgoals_by_conservation():
    assert columns(find_subgoals(PROFILE, REWARDS, conservation=1.0)) == [0, 1, 5]
    assert columns(find_subgoals(PROFILE, REWARDS, conservation=0.5)) == [0, 1, 2, 5]


def test_subgoals_of_a_certain_reward():
    assert columns(find_subgoals(PROFILE, REWARDS, value=0.1)) == [1, 3]
    assert columns(find_subgoals(PROFILE, REWARDS, value=0.1000999)) == [1, 3]
    assert find_subgoals(PROFILE, REWARDS, value=0.1003) == []


def test_by_default_the_threshold_is_half_the_reward_weighted_mean():
    mean = sum(r * r for r in REWARDS) / sum(REWARDS)
    expected = [t for t, r in enumerate(REWARDS) if r > mean / 2]
    assert columns(find_subgoals(PROFILE, REWARDS)) == expected == [0, 5]
    # Any number of weak columns leaves the strong ones where they are.
    assert columns(find_subgoals(PROFILE, np.array([1, 1e-3, 1e-3, 1e-3, 1e-3, 1.0]))) == [0, 5]


def test_negative_rewards_are_no_subgoals_and_do_not_move_the_threshold():
    rewards = np.array([0.4, -5.0, 0.05, 0.1, 0.02, 0.3])
    assert columns(find_subgoals(PROFILE, rewards)) == [0, 5]
    assert find_subgoals(PROFILE, -REWARDS) == []
    assert find_subgoals(PROFILE, np.zeros(6)) == []


def test_a_subgoal_tells_event_reward_and_share():
    goal = find_subgoals(PROFILE, REWARDS, threshold=0.35)[0]
    assert goal == SubGoal(0, PROFILE.symbols.index("A"), "A", 0.4, 1.0)


@pytest.mark.parametrize("rules", [{"threshold": 1, "value": 1}, {"conservation": 1, "value": 1}])
def test_several_rules_are_refused(rules):
    with pytest.raises(ValueError, match="one of threshold, conservation and value"):
        find_subgoals(PROFILE, REWARDS, **rules)


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5])
def test_conservation_must_be_a_share(share):
    with pytest.raises(ValueError, match=rf"conservation={share} is a share, above 0 up to 1"):
        find_subgoals(PROFILE, REWARDS, conservation=share)


def test_the_model_passes_its_rules_on():
    runs = ["ABCD", "ABCD", "ABXD", "ABYD"]
    strict = AlignRudder(subgoal_conservation=1.0).fit_events(runs)
    assert [g.symbol for g in strict.subgoals_] == list("ABD")
    loose = AlignRudder(subgoal_conservation=0.5, min_conservation=0.4).fit_events(runs)
    assert [g.symbol for g in loose.subgoals_] == list("ABCD")
    rewards = loose.strategies_[0].column_rewards
    least = float(rewards[loose.profile_.conservation == 1.0].min())
    above = AlignRudder(subgoal_threshold=least - 1e-9, min_conservation=0.4).fit_events(runs)
    assert columns(above.subgoals_) == np.flatnonzero(rewards > least - 1e-9).tolist()
    with pytest.raises(ValueError, match="one of threshold, conservation and value"):
        AlignRudder(subgoal_threshold=0.1, subgoal_conservation=0.5).fit_events(runs)


def test_column_rewards_add_up_to_what_the_members_get(two):
    for strategy in two.strategies_:
        total = np.zeros(strategy.alignment.n_columns)
        demos = [(RUNS + BACK)[i] for i in strategy.members]
        for row, demo in zip(strategy.alignment.matrix, demos):
            rewards = iter(two.redistribute_events(demo, 1.0).rewards)
            for t, event in enumerate(row):
                if event >= 0:
                    total[t] += next(rewards)
        expected = total[strategy.profile.columns] / len(demos)
        np.testing.assert_allclose(strategy.column_rewards, expected, atol=1e-15)


# Segments


def goals_at(*at):
    return [SubGoal(column, 0, "x", 1.0, 1.0) for column in at]


def test_segments_by_hand():
    segments = cut_segments(
        goals_at(1, 3, 4),
        [
            np.array([0, 1, -1, 3, 4, -1]),  # all three
            np.array([-1, 1, 2, 4]),  # misses the second: the third's begins earlier
            np.array([-1, -1]),  # none
            np.array([3, 4]),  # not the first
        ],
    )
    assert segments == [
        (Segment(0, 0, 2), Segment(1, 0, 2)),
        (Segment(0, 2, 4), Segment(3, 0, 1)),
        (Segment(0, 4, 5), Segment(1, 2, 4), Segment(3, 1, 2)),
    ]


def test_without_subgoals_there_are_no_segments():
    assert cut_segments([], [np.array([0, 1])]) == []


@prop
@given(
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.lists(st.lists(st.sampled_from([-1, -1, 0, 1, 2, 3, 4, 5]), max_size=9), max_size=4),
)
def test_segments_cover_the_steps_up_to_the_last_subgoal_without_overlap(chosen, drawn):
    goals = goals_at(*np.flatnonzero(chosen).tolist())
    # Columns rise along an episode.
    episodes = []
    for steps in drawn:
        rising, high = [], -1
        for column in steps:
            rising.append(column if column > high else -1)
            high = max(high, column)
        episodes.append(np.array(rising, int))
    segments = cut_segments(goals, episodes)
    for i, steps in enumerate(episodes):
        own = [(s, goals[k]) for k, part in enumerate(segments) for s in part if s.episode == i]
        at = 0
        for segment, goal in own:
            assert segment.start == at < segment.stop
            assert steps[segment.stop - 1] == goal.column
            at = segment.stop
        reached = np.flatnonzero(np.isin(steps, columns(goals)))
        assert at == (reached[-1] + 1 if len(reached) else 0)


@pytest.mark.parametrize("strategy", [0, 1])
def test_demonstrations_are_cut_at_the_events_of_the_subgoals(two, strategy):
    chosen = two.strategies_[strategy]
    tasks = two.subtasks(strategy=strategy)
    consensus = ["KDSC", "CSDK"][strategy]
    assert "".join(task.goal.symbol for task in tasks) == consensus
    for i in chosen.members:
        demo, at = (RUNS + BACK)[i], 0
        for task in tasks:
            (segment,) = [s for s in task.segments if s.episode == i]
            assert segment.start == at
            assert demo[segment.stop - 1] == task.goal.symbol
            at = segment.stop
        assert at == len(demo)


def test_demonstrations_of_states_are_cut_at_the_step_into_the_region():
    rng = np.random.default_rng(0)
    demos = []
    for _ in range(6):
        states = [0]
        while states[-1] < 14:
            states.append(max(states[-1] + int(rng.choice([1, 1, 1, -1])), 0))
        demos.append(Episode(states, np.zeros(len(states) - 1, int), _last(len(states) - 1)))
    model = AlignRudder(StateEvents(max_events=6, preference=5.0), strategies=1).fit(demos)
    tasks = model.subtasks()
    assert len(tasks) >= 3
    assert tasks == model.subtasks(demos)
    for i, demo in enumerate(demos):
        events = model.encode(demo).events
        at = 0
        for task in tasks:
            for segment in task.segments:
                if segment.episode == i:
                    assert segment.start == at
                    assert events[segment.stop - 1] == task.goal.event
                    at = segment.stop
    assert sum(len(task.segments) for task in tasks) >= 0.8 * len(tasks) * len(demos)


def _last(n, value=1.0):
    rewards = np.zeros(n)
    rewards[-1] = value
    return rewards


def test_subtasks_follow_each_other(two):
    tasks = two.subtasks()
    assert [task.index for task in tasks] == [0, 1, 2, 3]
    assert [task.after for task in tasks] == [-1, *(task.goal.column for task in tasks[:-1])]


@pytest.mark.parametrize("strategy", [-1, 2])
def test_a_strategy_that_is_not_there_is_refused(two, strategy):
    with pytest.raises(ValueError, match=rf"strategy={strategy}, but there are 2 strategies"):
        two.subtasks(strategy=strategy)


def test_initiation_and_termination():
    task = SubTask(1, SubGoal(5, 0, "x", 1.0, 1.0), 2, ())
    assert [task.initiation(c) for c in range(-1, 8)] == [c in (2, 3, 4) for c in range(-1, 8)]
    assert [task.termination(c) for c in range(-1, 8)] == [c >= 5 for c in range(-1, 8)]


def test_at_every_column_one_subtask_may_start_until_all_are_done(two):
    for k, strategy in enumerate(two.strategies_):
        tasks = two.subtasks(strategy=k)
        last = strategy.subgoals[-1].column
        for column in range(-1, len(strategy.profile)):
            may = [task.index for task in tasks if task.initiation(column)]
            done = [task.index for task in tasks if task.termination(column)]
            assert len(may) == (column < last)
            assert done == list(range(may[0] if may else len(tasks)))


# Progress


def test_progress_of_a_growing_demonstration(two):
    for k, demo in [(0, list("KADSC")), (1, list("CASDK"))]:
        goals = [g.symbol for g in two.strategies_[k].subgoals]
        events = two.encode_events(demo)
        # The first event alone is worth as much in the other strategy, and the second is noise.
        for t in range(3, len(demo) + 1):
            progress = two.progress_of(events[:t])
            reached = [i for i, symbol in enumerate(goals) if symbol in demo[:t]]
            assert progress.strategy == k
            assert progress.done == tuple(reached)
            assert progress.next == (len(reached) if len(reached) < len(goals) else None)
            assert progress.score == two.redistribute_events(demo[:t], 1.0).scores[-1]


def test_progress_before_anything_happened(two):
    progress = two.progress_of(np.empty(0, int))
    assert (progress.column, progress.done, progress.next, progress.score) == (-1, (), 0, 0.0)


def test_progress_at_the_start_state_counts_the_start_state():
    """Before the first step, an episode stands where a stream stands after its reset."""
    demos = [Episode([0, 1, 2, 3, 4], [0] * 4, _last(4)) for _ in range(3)]
    model = AlignRudder(StateEvents(preference=None)).fit(demos)
    encoded = model.encode(demos[0])
    assert encoded.start == 0
    stream = model.stream()
    stream.reset(0)
    at_start = model.scorer_.column_of(stream.cell)
    assert at_start == 0
    assert model.progress_of(Encoded(encoded.start, np.array([-1]))).column == at_start
    assert model.progress_of(Encoded(encoded.start, encoded.events[:0])).column == at_start


def test_a_missed_subgoal_is_not_done_and_not_next(two):
    progress = two.progress_of(two.encode_events(list("KSC")))
    goals = [g.symbol for g in two.subgoals_]
    assert [goals[i] for i in progress.done] == ["K", "S", "C"]
    assert progress.next is None


@prop
@given(st.lists(st.sampled_from([*"KDSCAB", "unseen", None]), max_size=12))
def test_progress_fits_the_redistribution(sequence):
    model = two_strategies()
    rr = model.redistribute_events(sequence, 0.0)
    progress = model.progress_of(model.encode_events(sequence))
    cell = int(rr.cells[-1]) if sequence else 0
    strategy = model.strategies_[progress.strategy]
    assert progress.strategy == model.scorer_.strategy_of(cell)
    assert progress.column == model.scorer_.column_of(cell)
    goals = strategy.subgoals
    left = model.next_subgoal(cell)
    assert progress.next == (left if left < len(goals) else None)
    assert all(goals[i].column <= progress.column for i in progress.done)
    assert (len(progress.done) > 0) <= (progress.score > 0)


@pytest.mark.parametrize("sequence", ["K", "KD", "CK", "CKD", "SK", "DK", "KSD", "CSDK"])
def test_what_is_done_and_where_the_episode_stands_are_of_one_alignment(sequence):
    """Events out of order give ties: "C" alone is worth as much as "K" alone."""
    model = AlignRudder(strategies=1).fit_events(RUNS)
    progress = model.progress_of(model.encode_events(sequence))
    goals = model.subgoals_
    assert goals[progress.done[-1]].column == progress.column
    behind = [i for i, goal in enumerate(goals) if goal.column > progress.column]
    assert progress.next == (behind[0] if behind else None)


def test_subgoal_table_is_the_first_subgoal_behind_each_cell(two):
    table = two.subgoal_table()
    assert len(table) == two.scorer_.n_cells == sum(len(s.profile) + 1 for s in two.strategies_)
    for cell in range(len(table)):
        k, column = two.scorer_.strategy_of(cell), two.scorer_.column_of(cell)
        behind = [i for i, g in enumerate(two.strategies_[k].subgoals) if g.column > column]
        expected = behind[0] if behind else len(two.strategies_[k].subgoals)
        assert table[cell] == two.next_subgoal(cell) == expected


def test_subgoals_of_a_given_value_in_the_model():
    runs = ["KDSC", "KDSC", "KDxSC"]
    plain = AlignRudder().fit_events(runs)
    value = plain.subgoals_[0].reward
    model = AlignRudder(subgoal_value=value).fit_events(runs)
    expected = np.isclose(plain.strategies_[0].column_rewards, value, rtol=1e-3, atol=0)
    assert [goal.column for goal in model.subgoals_] == np.flatnonzero(expected).tolist()
    assert expected.any()
