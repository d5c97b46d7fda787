"""Environments outside of JAX: episodes are tracked, recorded and replayed; sub-agents play."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
from corridor import LEFT, LENGTH, RIGHT, USE, constant, fetch, followed, net  # noqa: E402

from align_rudder.hierarchy.external import Players, begin_at  # noqa: E402
from align_rudder.hierarchy.replays import Replays  # noqa: E402


def play(env, actions):
    return [env.step({"move": a}) for a in actions]


def path(place):
    return [LEFT] * place + [USE] + [RIGHT] * (LENGTH - 1) + [USE, USE]


def test_an_episode_is_followed_along_the_sub_goals_and_paid_at_each(env):
    env.begin(0)
    moved = play(env, path(int(env.obs["place"])))
    assert env.n_subtasks == 3
    assert [m.reached for m in moved].count(True) == 3
    assert moved[-1].solved
    assert env.ended
    assert env.subtask == 3
    assert sum(m.reward for m in moved) == pytest.approx(1.0)
    assert all((m.reward > 0) == m.reached for m in moved)
    with pytest.raises(ValueError, match="call begin"):
        env.step({"move": 0})


def test_what_the_demonstrations_were_paid_does_not_scale_the_reward():
    """MineRL's diamond is a reward of 1024 in the data and 1 in the environment."""
    paid = []
    for in_all in (1.0, 1024.0):
        env = followed(in_all)
        env.begin(0)
        paid.append([m.reward for m in play(env, path(int(env.obs["place"])))])
    np.testing.assert_allclose(paid[0], paid[1], rtol=1e-6)
    assert sum(paid[1]) == pytest.approx(1.0)


def test_recordings_are_saved_and_loaded(env, tmp_path):
    replays = Replays(3, size=4)
    replays.save(tmp_path / "none.npz")
    assert Replays.load(tmp_path / "none.npz", 3).kept == [[], [], []]
    for seed in range(3):
        env.begin(seed)
        for m in path(int(env.obs["place"]))[:-1]:
            if env.step({"move": m}).reached:
                replays.add(env)
    replays.save(tmp_path / "replays.npz")
    again = Replays.load(tmp_path / "replays.npz", 3, size=4)
    assert again.kept == replays.kept
    assert [len(kept) for kept in again.kept] == [0, 3, 3]
    assert again.begin(env, 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="recordings of 3 sub-tasks; 4 are needed"):
        Replays.load(tmp_path / "replays.npz", 4)


def test_replays_lead_back_to_the_state_they_were_kept_at(env):
    replays, rng = Replays(3, size=2), np.random.default_rng(0)
    assert not replays.begin(env, 1, rng)
    kept = []
    for seed in range(3):
        env.begin(seed)
        play(env, [LEFT] * int(env.obs["place"]) + [USE])
        kept.append({name: int(value) for name, value in env.obs.items()})
        replays.add(env)
    assert len(replays.kept[1]) == 2  # the oldest went
    assert replays.begin(env, 1, rng)
    assert env.subtask == 1
    assert env.idle == 0
    assert not env.ended
    assert {name: int(value) for name, value in env.obs.items()} in kept[1:]


def test_no_world_crowds_out_the_recordings_of_others(env):
    replays, rng = Replays(3, size=6), np.random.default_rng(0)
    for seed in (7, 8, *[9] * 30):
        env.begin(seed)
        play(env, [LEFT] * int(env.obs["place"]) + [USE])
        replays.add(env)
    assert [seed for seed, _ in replays.kept[1]] == [7, 8, 9, 9, 9, 9]
    begun = []
    for _ in range(300):
        assert replays.begin(env, 1, rng)
        begun.append(env.seed)
    assert min(begun.count(seed) for seed in (7, 8, 9)) >= 75  # 100 each but for chance


def test_a_recording_that_leads_elsewhere_is_dropped(env):
    replays = Replays(3)
    replays.kept[1] = [(0, [{"move": RIGHT}])]
    assert not replays.begin(env, 1, np.random.default_rng(0))
    assert replays.kept[1] == []


def test_where_there_is_no_recording_the_earlier_agents_play(env):
    replays, rng = Replays(3), np.random.default_rng(0)
    played = begin_at(env, 1, replays, Players([fetch()] * 3), rng, patience=20)
    assert env.subtask == 1
    assert played == len(env.done)
    assert len(replays.kept[1]) == 1
    with pytest.raises(ValueError, match=r"no episode came to sub-task 3"):
        begin_at(env, 2, replays, Players([fetch()] * 3), rng, patience=8, tries=3)


@pytest.mark.parametrize("fresh", [0.0, 0.5])
def test_earlier_agents_play_as_often_as_asked_for(env, fresh):
    replays, rng = Replays(3), np.random.default_rng(0)
    begin_at(env, 1, replays, Players([fetch()] * 3), rng, patience=20)
    played = [
        begin_at(env, 1, replays, Players([fetch()] * 3), rng, patience=20, fresh=fresh) > 0
        for _ in range(100)
    ]
    assert abs(sum(played) - 100 * fresh) <= 15
    assert len({seed for seed, _ in replays.kept[1]}) == min(1 + sum(played), 50)


def test_a_manager_lets_act_or_acts_itself(env):
    env.begin(3)
    players = Players([constant(LEFT), constant(RIGHT), constant(USE)], net(who=4))
    key = jax.random.key(0)
    for who, move in ((0, LEFT), (1, RIGHT), (2, USE)):
        done, own = players.carry_out(env, {"who": who, "move": LEFT}, key)
        assert done == {"move": move}
        assert own == {"who": who, "move": -1}  # its own move did not count
    done, own = players.carry_out(env, {"who": 3, "move": USE}, key)
    assert done == {"move": USE}
    assert own == {"who": 3, "move": USE}
    turns = [players.choose(env, jax.random.key(k))["move"] for k in range(40)]
    assert turns.count(LEFT) >= 30  # at first sub-agent 0, whose turn it is
