"""What a model refuses: demonstrations, parameters, and being used before it is fitted."""

import numpy as np
import pytest
from small_models import RUNS, fitted, state_episodes

from align_rudder import AlignRudder, AlignRudderWarning, Episode


@pytest.mark.parametrize(
    ("options", "sequences", "returns", "message"),
    [
        ({}, [], None, r"got 0 demonstration\(s\); at least 2"),
        ({}, ["AB"], None, r"got 1 demonstration\(s\); at least 2"),
        ({"top_n": 1}, ["AB", "AB"], None, r"top_n is 1; a whole number of at least 2"),
        ({}, "AB", None, r"got one sequence \('AB'\); a list"),
        ({}, [1, 2], None, r"sequences\[0\].* 1.*sequence.*needed"),
        ({}, [["A"], [["B"]]], None, r"sequence 1 holds \['B'\] of type list.*not hashable"),
        ({}, ["AB", "AB"], [1.0], r"2 sequences but returns of shape \(1,\)"),
        ({}, ["AB", "AB"], [1.0, np.nan], r"a return is nan; every return must be finite"),
        ({}, ["AB", "AB"], [0, 0], r"mean return .* is 0, which is not above the baseline 0"),
        ({}, ["AB", "AB"], [-3, -1], r"mean return .* is -2, .* baseline 0; .*baseline=…"),
        ({"baseline": 5.0}, ["AB", "AB"], [5, 5], r"is 5, which is not above the baseline 5"),
        ({"scoring": "pam"}, ["AB", "AB"], None, r"scoring='pam' is not known"),
        ({"scoring": np.eye(3)}, ["AB", "AB"], None, r"shape \(3, 3\); for 2 events"),
        ({"engine": "pam"}, ["AB", "AB"], None, r"engine is 'pam'; one of 'native', 'clustalw'"),
        ({"engine": "pam"}, ["AB", "CD"], None, r"engine is 'pam'; one of 'native', 'clustalw'"),
        ({"subgoal_threshold": -3}, ["AB", "AB"], None, r"subgoal_threshold is -3; a number at le"),
        (
            {"events": "delta"},
            ["AB", "AB"],
            None,
            r"neither an encoder.*'delta' is DeltaEvents\(\)",
        ),
        ({"gap": -1.0}, ["AB", "AB"], None, r"gap is -1.0; a number at least 0"),
        ({"gap": -1.0}, ["AB", "CD"], None, r"gap is -1.0; a number at least 0"),
    ],
)
def test_bad_demonstrations_and_parameters_are_refused(options, sequences, returns, message):
    with pytest.raises(ValueError, match=message):
        AlignRudder(**options).fit_events(sequences, returns)


def test_what_is_no_list_of_episodes_is_refused():
    episode = state_episodes(1)[0]
    with pytest.raises(ValueError, match=r"episodes is a single Episode; a list"):
        AlignRudder().fit(episode)
    with pytest.raises(ValueError, match=r"episodes\[0\] is a str; an Episode is needed"):
        AlignRudder().fit(["KD", "KD"])
    with pytest.raises(ValueError, match=r"random_episodes\[0\] is a int"):
        AlignRudder().fit([episode, episode], [3])
    with pytest.raises(ValueError, match=r"sequences\[0\] is an Episode; use fit"):
        AlignRudder().fit_events([episode, episode])
    with pytest.raises(ValueError, match=r"got 1 demonstration"):
        AlignRudder().fit([episode])


def test_what_is_no_episode_is_not_redistributed():
    with pytest.raises(ValueError, match=r"str.*Episode"):
        fitted("states").redistribute("KD")


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.redistribute(state_episodes(1)[0]),
        lambda m: m.redistribute_events("KD", 1.0),
        lambda m: m.encode(state_episodes(1)[0]),
        lambda m: m.update(state_episodes(2)),
        lambda m: m.update_events(RUNS),
        lambda m: m.stream(),
        lambda m: m.vector_stream(2),
        lambda m: m.save("nowhere.npz"),
        lambda m: m.kappa(state_episodes(1)),
        lambda m: m.progress_of(np.array([0])),
        lambda m: m.subtasks(),
        lambda m: m.subgoal_table(),
        lambda m: m.next_subgoal(0),
        lambda m: m.summary(),
        lambda m: m.alignment_,
        lambda m: m.profile_,
        lambda m: m.subgoals_,
    ],
)
def test_an_unfitted_model_says_so(use):
    with pytest.raises(ValueError, match="not fitted; call fit or fit_events first"):
        use(AlignRudder())


def test_symbols_are_refused_by_a_model_of_episodes():
    with pytest.raises(ValueError, match=r"fitted to episodes with StateEvents.*Use redistribute"):
        fitted("states").redistribute_events([1, 2], 1.0)


def test_a_model_of_logs_says_that_it_knows_nothing_of_an_episode():
    model = AlignRudder().fit_events([["key", "door", "chest"], ["key", "lamp", "door", "chest"]])
    with pytest.warns(AlignRudderWarning, match="no step has a symbol"):
        model.redistribute(Episode(np.arange(4), np.zeros(3, int), [0.0, 0.0, 1.0]))
    played = Episode(np.array(["", "key", "lamp", "door"]), np.zeros(3, int), [0.0, 0.0, 0.0])
    assert model.redistribute(played).rewards.tolist()[1] == 0.0
    assert model.redistribute(played).rewards.sum() > 0.5
