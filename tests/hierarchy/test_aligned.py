"""What agents are paid, sub-goals as the tracker has them, and when an episode is cut off."""

import numpy as np
import pytest

import align_rudder as ar
from align_rudder.data.crafting import crafting_demonstrations
from align_rudder.presets import PAPER

jax = pytest.importorskip("jax")
pytest.importorskip("equinox")
import equinox as eqx  # noqa: E402
import workshop  # noqa: E402

from align_rudder.hierarchy.aligned import PAYS, AlignedTask, PlainTask, tables_of  # noqa: E402

TASK = workshop.Workshop()
K = workshop.K
BESIDE = ("subgoal", "step", "goals")


@pytest.fixture(scope="module")
def replayed(known):
    """Noisy runs, some of them in vain, as every pay sees them; and their actions."""
    runs = [workshop.play(TASK, 100 + i, noise=0.2 + 0.1 * i) for i in range(6)]
    tasks = {pay: AlignedTask(TASK, known.tables, pay) for pay in PAYS}
    tasks |= {f"plain {pay}": PlainTask(TASK, known.tables, pay) for pay in PAYS}
    tasks |= {f"{pay} and 1": AlignedTask(TASK, known.tables, pay, beside=True) for pay in BESIDE}

    @jax.jit
    def replay(state, actions):
        def step(carry, action):
            steps = {n: t.step(jax.random.key(0), carry[n], action) for n, t in tasks.items()}
            return {n: s for n, (s, _) in steps.items()}, steps

        start = {n: t.begin(jax.random.key(0))._replace(state=state) for n, t in tasks.items()}
        return jax.lax.scan(step, start, actions)[1]

    out = []
    for states, actions in runs:
        first = jax.tree.map(lambda x: x[0], states)
        padded = np.pad(actions, (0, TASK.max_steps - len(actions)))
        whole, n = jax.device_get(replay(first, padded)), len(actions)
        out.append((states, actions, jax.tree.map(lambda x, n=n: x[:n], whole)))
    assert {bool(states.items[-1, workshop.GEM]) for states, _, _ in out} == {True, False}
    return out


def test_gains_are_the_redistributed_reward(replayed, known):
    for states, actions, found in replayed:
        rewards = np.zeros(len(actions))
        rewards[-1] = states.items[-1, workshop.GEM] > 0
        observations = {n: states.items[:, i] for i, n in enumerate(workshop.FEATURES)}
        episode = ar.Episode(observations, actions, rewards, terminated=True)
        expected = known.model.redistribute(episode).rewards
        _, out = found["step"]
        np.testing.assert_allclose(out.gain, expected, atol=2e-3)
        np.testing.assert_array_equal(out.gain > 1e-6, expected > 1e-6)
        np.testing.assert_array_equal(out.reward, out.gain)


def test_subgoals_pay_what_was_pending(replayed):
    """At any time, what was paid and what is pending is what was given."""
    for _, _, found in replayed:
        s, out = found["subgoal"]
        paid = np.cumsum(out.reward)
        np.testing.assert_allclose(paid + s.pending, s.given, atol=1e-6)
        np.testing.assert_allclose(s.given, np.cumsum(found["step"][1].reward), atol=1e-6)
        assert not out.reward[~out.reached].any()
        assert not s.pending[out.reached].any()
        assert (out.reward[out.reached] > 0).all()


def test_the_task_pays_once_and_goals_pay_the_same(replayed):
    for states, _, found in replayed:
        solved = float(states.items[-1, workshop.GEM] > 0)
        for pay in ("task", "plain task"):
            reward = np.asarray(found[pay][1].reward)
            assert reward[-1] == solved
            assert not reward[:-1].any()
        s, out = found["goals"]
        np.testing.assert_allclose(np.cumsum(out.reward), s.reached.sum(axis=1) / K, rtol=1e-6)


@pytest.mark.parametrize("pay", BESIDE)
def test_beside_the_subgoals_the_task_pays_1_at_the_end_and_nothing_else(replayed, pay):
    for states, _, found in replayed:
        more = np.asarray(found[f"{pay} and 1"][1].reward) - found[pay][1].reward
        assert more[-1] == pytest.approx(float(states.items[-1, workshop.GEM] > 0))
        assert not more[:-1].any()


def test_a_plain_task_knows_no_subgoals(replayed):
    for _, _, found in replayed:
        for pay in ("subgoal", "step", "goals"):
            s, out = found[f"plain {pay}"]
            assert not out.reward.any()
            assert not out.reached.any()
            assert not s.subtask.any()
        np.testing.assert_array_equal(found["plain dense"][1].reward, found["dense"][1].reward)
        assert found["dense"][1].reward.any()


def test_an_unknown_pay_is_refused(known):
    with pytest.raises(ValueError, match="pay is 'nothing'; one of 'subgoal'"):
        AlignedTask(TASK, known.tables, "nothing")


def test_an_episode_without_progress_is_cut_off(task, worlds):
    impatient = AlignedTask(TASK, task.tables, patience=5)

    def step(s, _):
        new, out = impatient.step(jax.random.key(0), s, 0)
        return new, out.cut

    start = jax.tree.map(lambda x: x[0], worlds)
    _, cut = jax.lax.scan(step, start, None, 7)
    assert cut.tolist() == [False] * 4 + [True] * 3


def test_the_tables_hold_what_subgoals_are_worth():
    model = ar.AlignRudder(ar.DeltaEvents(), strategies=1).fit(crafting_demonstrations(8))
    tables = tables_of(model)
    assert (tables.n_subtasks, tables.n_cells) == (len(model.subgoals_), model.scorer_.n_cells)
    np.testing.assert_allclose(tables.worth, [goal.reward for goal in model.subgoals_], rtol=1e-6)


def test_the_name_of_an_alignment_tells_alignments_apart():
    names = {
        tables_of(ar.AlignRudder(ar.DeltaEvents(), strategies=1, **options).fit(demos)).digest
        for demos in (crafting_demonstrations(8), crafting_demonstrations(8, 3))
        for options in (PAPER, {**PAPER, "subgoal_conservation": 1.0})
    }
    assert len(names) == 4


def test_models_that_cannot_be_used_are_refused(model):
    with pytest.raises(ValueError, match="DeltaEvents, not StateEvents"):
        tables_of(model)
    demos = crafting_demonstrations(4)
    with pytest.raises(ValueError, match="2 strategies; sub-tasks are those of one"):
        tables_of(ar.AlignRudder(ar.DeltaEvents(), strategies=2).fit(demos))
    with pytest.raises(ValueError, match="no sub-goals; lower its subgoal_threshold"):
        tables_of(ar.AlignRudder(ar.DeltaEvents(), strategies=1, subgoal_threshold=9).fit(demos))


def items(*changes):
    """Return what is held after each of the changes, from nothing on."""
    one = {"wood": [1, 0, 0], "tool": [-2, 1, 0], "gem": [0, 0, 1]}
    return np.cumsum([[0, 0, 0], *(one.get(change, [0, 0, 0]) for change in changes)], axis=0)


@pytest.mark.parametrize(
    ("changes", "subtasks", "reached"),
    [
        (["wood", "", "wood", "tool", "gem"], [1, 1, 2, 3, 4], [True] * K),
        (["wood", "wood", "wood", "tool"], [1, 2, 2, 3], [True] * 3 + [False]),
        # A gem that was found without the tool: what this world does not have is passed by.
        (["wood", "wood", "gem"], [1, 2, 4], [True, True, False, True]),
        (["", "wood"], [0, 1], [True] + [False] * 3),
    ],
)
def test_subtask_and_goals_reached_are_those_of_the_tracker(changes, subtasks, reached):
    known = workshop.known()
    features, follow = items(*changes), eqx.filter_jit(known.task.follow)
    s, stream = known.task.start(None), known.model.stream()
    stream.reset(dict(zip(workshop.FEATURES, features[0], strict=True)))
    goal_at = {goal.column: k for k, goal in enumerate(known.model.subgoals_)}
    for t, subtask in enumerate(subtasks):
        before = int(s.subtask)
        s, out = follow(s, features[t], features[t + 1])
        old, new = (dict(zip(workshop.FEATURES, features[t + i], strict=True)) for i in (0, 1))
        gain = stream.step(old, 0, 0.0, new, {})
        assert int(s.subtask) == stream.subgoal == subtask
        assert int(out.goal) == goal_at.get(stream.column, -1)
        assert bool(out.reached) == (subtask > before)
        assert float(out.gain) == pytest.approx(gain, abs=1e-5)
    assert s.reached.tolist() == reached
