"""The step that is paid is an event of its own, whatever the encoder."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import align_rudder as ar
from align_rudder._warnings import AlignRudderWarning
from align_rudder.events import DoneEvents
from align_rudder.events.done import pay_level

prop = settings(max_examples=60, deadline=None, derandomize=True)


def walk(states, reward=1.0, cost=0.0):
    rewards = np.full(len(states) - 1, -cost)
    rewards[-1] += reward
    return ar.Episode(states, [0] * len(rewards), rewards)


def there_and_back(k):
    """Return a walk to the end of a line, back and there again; only the second time is paid."""
    out = [*range(0, 7, 2), 7]
    return walk([0] * k + out + [4, 1] + [3] * k + [5, 7])


def by_state(obs, action, reward, next_obs, info):
    return int(next_obs) if next_obs != obs else None


def fitted(**options):
    demos = [there_and_back(k) for k in range(1, 6)]
    return ar.AlignRudder(by_state, strategies=1, **options).fit(demos), demos


def test_the_last_column_is_done_and_only_a_paid_step_is_it():
    model, demos = fitted()
    assert isinstance(model.events_, DoneEvents)
    assert model.subgoals_[-1].symbol == "7, paid"
    done = model.events_.done
    for demo in demos:
        events = model.encode(demo).events
        assert (events == done).nonzero()[0].tolist() == [len(demo) - 1]
    unpaid = walk(demos[0].observations, 0.0)
    assert done not in model.encode(unpaid).events


@pytest.mark.parametrize("settlement", ["even", "potential", "last", "beside"])
@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_who_does_everything_but_finish_earns_less(settlement, gap):
    model, demos = fitted(gap=gap)
    settled = ar.Settlement(settlement, gamma=1.0)
    for demo in demos:
        paid = model.redistribute(demo)
        unpaid = model.redistribute(walk(demo.observations, 0.0))
        assert paid.rewards.sum() > unpaid.rewards.sum() + 0.05
        assert paid.settled(settled).sum() > unpaid.settled(settled).sum() + 0.5


def test_an_end_that_is_an_event_already_stays_what_it_is():
    demos = [walk([0, *[1] * k, 2, 3]) for k in range(1, 6)]
    model = ar.AlignRudder(by_state).fit(demos)
    assert not isinstance(model.events_, DoneEvents)
    assert model.subgoals_[-1].symbol == 3


def test_without_done_nothing_is_added():
    model, _ = fitted(done=False)
    assert not isinstance(model.events_, DoneEvents)


@prop
@given(st.lists(st.sampled_from([0, 2, 4, 6, 7, 1, 3, 5, 99]), min_size=2, max_size=15), st.data())
def test_a_stream_sees_the_same_events(states, data):
    model, _ = fitted()
    rewards = data.draw(
        st.lists(
            st.sampled_from([0.0, 0.05, 1.0]), min_size=len(states) - 1, max_size=len(states) - 1
        )
    )
    episode = ar.Episode(states, [0] * len(rewards), rewards)
    rr, stream = model.redistribute(episode), model.stream()
    many = model.vector_stream(2)
    stream.reset(states[0])
    many.reset(np.array([states[0]] * 2))
    for t, reward in enumerate(rewards):
        share = stream.step(states[t], 0, reward, states[t + 1], {})
        both = many.step(
            np.array([states[t]] * 2),
            np.zeros(2, int),
            np.array([reward] * 2),
            np.array([states[t + 1]] * 2),
            [{}] * 2,
        )
        assert stream.event == rr.events[t] == many.events[0]
        assert share == both[1] == pytest.approx(rr.rewards[t])


def test_saved_and_loaded_it_is_the_same(tmp_path):
    model, demos = fitted()
    model.save(tmp_path / "m.npz")
    loaded = ar.AlignRudder.load(tmp_path / "m.npz", function=by_state)
    assert list(loaded.events_.symbols_) == list(model.events_.symbols_)
    for demo in (*demos, walk([0, 4, 7, 99], 1.0), walk([0, 4, 7], 0.0)):
        np.testing.assert_array_equal(
            loaded.redistribute(demo).rewards, model.redistribute(demo).rewards
        )


def test_symbols_that_come_later_do_not_take_its_place():
    model, _ = fitted()
    new = walk([0, 2, 55, 4, 6, 7, 4, 1, 3, 5, 7])
    model.update([new, new])
    assert model.events_.symbols_[model.events_.done] == "7, paid"
    assert model.encode(new).events[-1] == model.events_.done
    assert model.redistribute(new).rewards[-1] > 0
    assert [model.encoded_[i].events[-1] for i in range(7)] == [model.events_.done] * 7


def test_event_logs_end_with_done_where_the_return_was_paid():
    runs = [list("ABAC"), list("AXBAC"), list("ABYAC"), list("ABAZC")]
    model = ar.AlignRudder().fit_events([[*run, "A"] for run in runs])
    assert model.subgoals_[-1].symbol == "A, paid"
    sequence = list("ABACA")
    good, bad = (model.redistribute_events(sequence, ret) for ret in (1.0, 0.0))
    assert good.rewards[-1] > 0 == bad.rewards[-1]
    np.testing.assert_array_equal(good.rewards[:-1], bad.rewards[:-1])
    stream = model.stream()
    stream.reset()
    shares = [stream.step_event(symbol, float(t == 4)) for t, symbol in enumerate(sequence)]
    np.testing.assert_allclose(shares, good.rewards)


# Which step is paid


@pytest.mark.parametrize(
    ("rewards", "level", "steps"),
    [
        ([[0, 0, 1.0], [0, 1.0]], 0.1, [2, 1]),
        ([[0, 0, 0.9], [0, 0.4]], 0.04, [2, 1]),
        ([[-1, -1, 10.0], [-1, 10.0]], 1.0, [2, 1]),  # costs on the way
        ([[0.5, 0, 1.0], [0, 0.5, 1.0]], 0.55, [2, 2]),  # something on the way
        ([[0, 1.0, 0, 0], [0, 1.0]], 0.1, [1, 1]),  # it goes on after it
        ([[1.0, 1.0], [1.0, 1.0]], None, [1, 1]),  # every step is paid alike
        ([[-1, -1], [-1, -1]], None, [1, 1]),  # nothing is paid
        ([[0, 2.0, 1.0], [0, 1.0]], None, [1, 1]),  # what one was paid is another's way
    ],
)
def test_the_level_from_which_a_step_is_the_one_that_is_paid(rewards, level, steps):
    found = pay_level([np.array(r, float) for r in rewards])
    assert found[1] == steps
    assert found[0] == (None if level is None else pytest.approx(level))


def test_demonstrations_that_go_on_long_after_they_are_paid_are_named():
    demos = [there_and_back(k) for k in range(1, 6)]
    long = [
        ar.Episode(
            np.concatenate([d.observations, [d.observations[-1]] * 30]),
            [0] * (len(d) + 30),
            np.concatenate([d.rewards, np.zeros(30)]),
        )
        for d in demos
    ]
    with pytest.warns(AlignRudderWarning, match="30 steps after the last one that is paid"):
        ar.AlignRudder(by_state, strategies=1).fit(long)
