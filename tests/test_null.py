"""The null: chains, their samples, and what random and failed episodes change in a model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noise import KEYS, NOTHING, keys_in_noise, line_walk, ring_walk, share_on_keys

import align_rudder as ar
from align_rudder import AlignRudder
from align_rudder.null import Null, directedness, mixed_background
from align_rudder.presets import PAPER

RUNS = [list("KADSC"), list("KDBSC"), list("KDSC"), list("AKDSBC")]


def test_the_null_of_demonstrations_goes_back_as_often_as_forth():
    sequences = [np.array([0, 1, 2, 0, 2]), np.array([2, 1, 1, 0])]
    null = Null.of(sequences, np.full(3, 1 / 3))
    np.testing.assert_allclose(null.transition.sum(axis=1), 1.0)
    forth = np.zeros((3, 3))
    for s in sequences:
        np.add.at(forth, (s[:-1], s[1:]), 1)
    counts = forth + forth.T + np.full((3, 3), 1 / 3)
    np.testing.assert_allclose(null.transition, counts / counts.sum(1, keepdims=True))


def test_samples_have_the_transitions_of_the_chain():
    rng = np.random.default_rng(0)
    null = Null.of([rng.integers(0, 4, 30), np.array([0, 1, 0, 1, 2])], np.full(4, 0.25))
    counts, first = np.zeros((4, 4)), np.zeros(4)
    for s in null.sample([40] * 2000, rng):
        np.add.at(counts, (s[:-1], s[1:]), 1)
        first[s[0]] += 1
    np.testing.assert_allclose(counts / counts.sum(1, keepdims=True), null.transition, atol=0.02)
    np.testing.assert_allclose(first / first.sum(), null.start, atol=0.04)


def test_recorded_episodes_are_the_samples_cut_to_length():
    recorded = [np.array([0, 1, 2, 3]), np.array([3, 3])]
    null = Null.of([np.array([0, 1])], np.full(4, 0.25), recorded)
    drawn = {tuple(s) for s in null.sample([3] * 50, np.random.default_rng(0))}
    assert drawn == {(0, 1, 2), (3, 3)}


def test_walks_go_back_and_strategies_do_not():
    assert directedness([np.arange(9), np.arange(9)[::-1]]) == 1.0
    assert directedness([np.array([0, 1, 0, 1, 0])]) == 0.0
    assert directedness([np.array([0, 1, 2, 1]), np.array([5])]) == pytest.approx(1 / 3)
    rng = np.random.default_rng(0)
    assert directedness([np.array(w) for w in ring_walk(rng, 30, 10)]) < 0.6


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.integers(0, 4), max_size=9), max_size=4))
def test_directedness_is_what_counting_gives(lists):
    net = moves = 0
    for one in lists:
        counts = np.zeros((5, 5), int)
        np.add.at(counts, (one[:-1], one[1:]), 1)
        np.fill_diagonal(counts, 0)
        net, moves = net + np.abs(counts - counts.T).sum() // 2, moves + counts.sum()
    expected = net / moves if moves else 1.0
    assert directedness([np.array(one, np.int32) for one in lists]) == pytest.approx(expected)


def test_an_event_that_a_random_policy_does_all_the_time_is_frequent():
    demos = [np.array([0, 1, 2])] * 3
    p = mixed_background(demos, np.array([98, 0, 2]), 3)
    assert p.sum() == pytest.approx(1.0)
    assert p[0] > 0.9 > 0.1 > p[2] > p[1] > 0
    np.testing.assert_array_equal(mixed_background(demos, None, 3), [1 / 3] * 3)


def random_sequences(rng, n=30):
    """Return a random policy's sequences: much walking, a key now and then, never a chest."""
    return [rng.choice(["walk", "turn", "key"], 12, p=[0.5, 0.45, 0.05]).tolist() for _ in range(n)]


def demonstrations(rng, n=8):
    out = []
    for _ in range(n):
        steps = rng.choice(["walk", "turn"], 9).tolist()
        out.append([*steps[:3], "key", *steps[3:6], "door", *steps[6:], "chest"])
    return out


def test_random_episodes_say_what_is_chance():
    rng = np.random.default_rng(0)
    demos, random = demonstrations(rng), random_sequences(rng)
    model = AlignRudder().fit_events(demos, random_sequences=random)
    assert [g.symbol for g in model.subgoals_] == ["key", "door", "chest"]
    paid = np.zeros(5)
    for run in demos:
        rr = model.redistribute_events(run, 1.0)
        np.add.at(paid, rr.events, rr.rewards)
    by_name = dict(zip(model.events_.symbols_, paid / paid.sum(), strict=True))
    assert by_name["key"] + by_name["door"] + by_name["chest"] > 0.95
    assert by_name["chest"] > by_name["key"]  # the random policy has a key now and then


def test_the_random_share_is_what_random_episodes_are_paid():
    rng = np.random.default_rng(1)
    random = random_sequences(rng)
    model = AlignRudder().fit_events(demonstrations(rng), random_sequences=random)
    paid = [model.redistribute_events(s, 0.0).rewards.sum() for s in random]
    # Returns of 1, a baseline of 0; half of them are a little dearer with weights of the others.
    assert np.mean(paid) <= model.random_share_ == pytest.approx(np.mean(paid), rel=0.1)
    assert 0 < model.random_share_ < 0.1
    assert model.summary().startswith(f"a random policy earns {model.random_share_:.0%} of this")
    without = AlignRudder().fit_events(RUNS)
    assert without.random_share_ is None
    assert "random policy" not in without.summary()


def test_the_baseline_is_the_mean_return_of_random_episodes():
    rng = np.random.default_rng(0)
    demos, random = demonstrations(rng), random_sequences(rng, 4)
    model = AlignRudder().fit_events(
        demos, [5.0] * 8, random_sequences=random, random_returns=[-3.0, -2.0, -1.0, 0.0]
    )
    assert model.baseline_ == -1.5
    given = [model.redistribute_events(s, 5.0).rewards.sum() for s in demos]
    assert np.mean(given) == pytest.approx(6.5)
    fixed = AlignRudder(baseline=1.0).fit_events(demos, [5.0] * 8, random_sequences=random)
    assert fixed.baseline_ == 1.0


def test_what_failures_do_too_is_paid_little():
    demos = [["key", "door", "chest"] + ["walk"] * k for k in range(6)]
    failures = [["walk", "key", "door", "walk"], ["key", "door"], ["key", "walk", "door"]] * 3
    model = AlignRudder(strategies=1).fit_events(demos, failures=failures)
    rr = model.redistribute_events(["key", "door", "chest"], 1.0)
    plain = AlignRudder(strategies=1).fit_events(demos).redistribute_events(demos[0], 1.0)
    assert rr.rewards[2] / rr.rewards.sum() > plain.rewards[2] / plain.rewards.sum()
    assert rr.rewards.argmax() == 2


@pytest.mark.filterwarnings("ignore:demonstrations .8. of")
def test_random_and_failed_episodes_are_kept_in_files_and_updates(tmp_path):
    rng = np.random.default_rng(3)
    model = AlignRudder().fit_events(
        [*demonstrations(rng), ["nothing"]],
        [1.0] * 8 + [0.0],
        random_sequences=random_sequences(rng),
        failures=[["key", "walk"]],
        random_returns=[0.1] * 30,
    )
    model.save(tmp_path / "m.npz")
    loaded = AlignRudder.load(tmp_path / "m.npz")
    assert loaded.random_share_ == model.random_share_
    assert loaded.baseline_ == pytest.approx(0.1)
    assert loaded.failures_.tolist() == [8]
    assert loaded.used_.tolist() == list(range(8))
    np.testing.assert_array_equal(loaded.profile_.columns, model.profile_.columns)
    assert loaded.summary() == model.summary()
    for one in (model, loaded):
        one.update_events([["walk", "key", "lamp", "door", "chest"]])
    assert loaded.random_share_ == model.random_share_
    np.testing.assert_array_equal(loaded.alignment_.matrix, model.alignment_.matrix)


def test_the_random_episodes_of_fit_are_the_null(four_states):
    demos, random = four_states
    model = AlignRudder(ar.StateEvents(preference=None)).fit(demos, random)
    paid = [model.redistribute(e).rewards.sum() for e in random]
    gain = np.mean([e.ret for e in demos]) - model.baseline_
    assert model.baseline_ == pytest.approx(np.mean([e.ret for e in random]))
    share = np.mean(paid) / gain
    assert share <= model.random_share_ == pytest.approx(share, rel=0.1)


@pytest.fixture
def four_states():
    """Return walks straight to the end of a line, and random ones on it."""
    rng = np.random.default_rng(0)

    def episode(states):
        rewards = np.zeros(len(states) - 1)
        rewards[-1] = float(states[-1] == 7)
        return ar.Episode(np.array(states), np.zeros(len(states) - 1, int), rewards)

    walks = [w[: w.index(7) + 1] if 7 in w else w for w in line_walk(rng, 12, 8, 20)]
    return [episode([4, 5, 6, 7])] * 4 + [episode([4, 3, 4, 5, 6, 7])], [episode(w) for w in walks]


# Keys in noise, noise, walks: a sample of `tools/noise_study.py`


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.filterwarnings("ignore:25 events")
def test_the_reward_is_on_the_keys(name):
    shares = []
    for seed in range(4):
        sequences = keys_in_noise(np.random.default_rng(seed), *KEYS[name])
        shares.append(share_on_keys(AlignRudder().fit_events(sequences), sequences))
    assert np.mean(shares) >= 0.9
    paper = AlignRudder(**PAPER, strategies=1).fit_events(sequences)
    assert share_on_keys(paper, sequences) < 0.5


@pytest.mark.parametrize("name", NOTHING)
@pytest.mark.filterwarnings("ignore::align_rudder.AlignRudderWarning")
def test_noise_and_random_walks_are_no_strategy(name):
    make, length, kinds = NOTHING[name]
    found = sum(
        bool(AlignRudder().fit_events(make(np.random.default_rng(s), length, kinds)).strategies_)
        for s in range(12)
    )
    assert found <= 1


def test_more_poor_demonstrations_help():
    """Half of the events are noise and a fifth of the keys is left out."""

    def poor(rng, n):
        out = []
        for _ in range(n):
            kept = [f"key {k}" for k in range(6) if rng.random() > 0.2]
            for _ in range(12):
                kept.insert(int(rng.integers(len(kept) + 1)), int(rng.integers(8)))
            out.append(kept)
        return out

    shares = {n: [] for n in (3, 6, 20)}
    for seed in range(6):
        runs = poor(np.random.default_rng(seed), 20)
        for n, found in shares.items():
            found.append(share_on_keys(AlignRudder(strategies=1).fit_events(runs[:n]), runs))
    means = [np.mean(found) for found in shares.values()]
    assert means == sorted(means)
    assert means[-1] > 0.95
