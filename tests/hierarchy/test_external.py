"""Sub-agents for environments outside of JAX: replay, PPO by sub-task, main agent."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import align_rudder as ar

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
import jax.numpy as jnp  # noqa: E402

from align_rudder.hierarchy.external import (  # noqa: E402
    Followed,
    Players,
    Replays,
    begin_at,
    play_out,
)
from align_rudder.hierarchy.fine_tuning import (  # noqa: E402
    FineTuning,
    fine_tune,
    fine_tune_manager,
    success_rate,
)
from align_rudder.hierarchy.improvement import PPO  # noqa: E402
from align_rudder.runs.checkpoint import Checkpoint  # noqa: E402
from align_rudder.runs.interrupt import Stop  # noqa: E402

LENGTH = 5
LEFT, RIGHT, USE = range(3)


class Corridor(gym.Env):
    """Wood at the left end; a tool is made of it at the right end, where a gem can then be dug."""

    observation_space = gym.spaces.Dict(
        {name: gym.spaces.Box(0, 99, (), np.int64) for name in ("wood", "tool", "gem", "place")}
    )
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = {"wood": 0, "tool": 0, "gem": 0, "place": int(self.np_random.integers(LENGTH))}
        self.time = 0
        return self._obs(), {}

    def _obs(self):
        return {name: np.array(value) for name, value in self.state.items()}

    def step(self, action):
        s = self.state
        self.time += 1
        if action == LEFT:
            s["place"] = max(s["place"] - 1, 0)
        elif action == RIGHT:
            s["place"] = min(s["place"] + 1, LENGTH - 1)
        elif s["place"] == 0:
            s["wood"] += 1
        elif s["place"] == LENGTH - 1 and s["tool"]:
            s["gem"] += 1
        elif s["place"] == LENGTH - 1 and s["wood"]:
            s["wood"], s["tool"] = s["wood"] - 1, 1
        solved = s["gem"] > 0
        return self._obs(), float(solved), solved, self.time >= 60, {}


class Sight:
    def begin(self):
        pass

    def see(self, obs):
        return np.eye(LENGTH, dtype=np.float32)[obs["place"]]

    def do(self, choice):
        return choice["move"]


class Net(eqx.Module):
    """A table: logits and value by place."""

    move: jax.Array
    value: jax.Array
    who: jax.Array | None

    def __call__(self, task, observation, subtask, cell):
        logits = {"move": observation @ self.move}
        if self.who is not None:
            n = self.who.shape[0] - 1
            prior = 4.0 * jax.nn.one_hot(jnp.minimum(subtask, n - 1), n + 1)
            logits["who"] = self.who + prior
        return logits, observation @ self.value


def net(who=None):
    return Net(jnp.zeros((LENGTH, 3)), jnp.zeros(LENGTH), None if who is None else jnp.zeros(who))


def constant(action):
    return Net(jnp.zeros((LENGTH, 3)).at[:, action].set(20.0), jnp.zeros(LENGTH), None)


def fitted(paid=1.0):
    """Return a model of four demonstrations that were paid so much."""
    episodes = []
    for seed in range(4):
        env = Corridor()
        obs, _ = env.reset(seed=seed)
        rows, actions, rewards, over = [obs], [], [], False
        while not over:
            s = env.state
            to = 0 if not (s["wood"] or s["tool"]) else LENGTH - 1
            action = USE if s["place"] == to else LEFT if s["place"] > to else RIGHT
            obs, reward, over, _, _ = env.step(action)
            rows.append(obs)
            actions.append(action)
            rewards.append(paid * reward)
        observations = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        episodes.append(ar.Episode(observations, actions, rewards, terminated=True))
    keys = ("wood", "tool", "gem")
    return ar.AlignRudder(ar.DeltaEvents(keys=keys), strategies=1).fit(episodes)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture
def env(model):
    return Followed(Corridor(), model, Sight())


def play(env, actions):
    return [env.step({"move": a}) for a in actions]


def path(place):
    return [LEFT] * place + [USE] + [RIGHT] * (LENGTH - 1) + [USE, USE]


def test_an_episode_is_followed_along_the_sub_goals_and_paid_at_each(model, env):
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


def test_what_the_demonstrations_were_paid_does_not_scale_the_reward(model):
    """MineRL's diamond is a reward of 1024 in the data and 1 in the environment."""
    paid = []
    for one in (model, fitted(1024.0)):
        env = Followed(Corridor(), one, Sight())
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
        for m in [LEFT] * int(env.obs["place"]) + [USE] + [RIGHT] * (LENGTH - 1) + [USE]:
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
    fetch = Net(jnp.zeros((LENGTH, 3)).at[1:, LEFT].set(20).at[0, USE].set(20), jnp.zeros(5), None)
    played = begin_at(env, 1, replays, Players([fetch] * 3), rng, patience=20)
    assert env.subtask == 1
    assert played == len(env.done)
    assert len(replays.kept[1]) == 1
    with pytest.raises(ValueError, match=r"no episode came to sub-task 2"):
        begin_at(env, 2, replays, Players([fetch] * 3), rng, patience=8, tries=3)


@pytest.mark.parametrize("fresh", [0.0, 0.5])
def test_earlier_agents_play_as_often_as_asked_for(env, fresh):
    replays, rng = Replays(3), np.random.default_rng(0)
    fetch = Net(jnp.zeros((LENGTH, 3)).at[1:, LEFT].set(20).at[0, USE].set(20), jnp.zeros(5), None)
    begin_at(env, 1, replays, Players([fetch] * 3), rng, patience=20)
    played = [
        begin_at(env, 1, replays, Players([fetch] * 3), rng, patience=20, fresh=fresh) > 0
        for _ in range(100)
    ]
    assert abs(sum(played) - 100 * fresh) <= 15
    assert len({seed for seed, _ in replays.kept[1]}) == min(1 + sum(played), 50)


def test_sub_agents_learn_one_after_the_other_and_play_the_task_together(model):
    envs = [Followed(Corridor(), model, Sight()) for _ in range(4)]
    tuning = FineTuning(
        steps=1600,
        burn_in=64,
        patience=12,
        evaluate_every=800,
        trials=10,
        ppo=PPO(n_envs=1, n_steps=16, minibatches=4, learning_rate=0.1, gamma=0.9, entropy=0.01),
    )
    replays, agents = Replays(3), [net() for _ in range(3)]
    rng = np.random.default_rng(5)
    judged = replace(tuning, trials=20)
    before = success_rate(envs[0], 0, replays, Players(agents), rng, judged)
    for k in range(3):
        agents[k], curve = fine_tune(k, agents, envs, replays, tuning, seed=k)
        assert max(rate for _, rate in curve) >= 0.9
    after = success_rate(envs[0], 0, replays, Players(agents), rng, judged)
    assert after >= 0.9 > before
    solved = [play_out(envs[0], Players(agents), rng, 60)[1] for _ in range(10)]
    assert np.mean(solved) >= 0.8

    # A sub-agent that is broken: the main agent learns to do without it.
    broken = [agents[0], constant(LEFT), agents[2]]
    manager = net(who=4)
    long = FineTuning(
        steps=6400, burn_in=64, patience=25, evaluate_every=3200, trials=10, ppo=tuning.ppo
    )
    tuned = fine_tune_manager(manager, broken, envs, long, seed=0)
    assert tuned.curve[0][1] <= 0.6
    assert max(rate for _, rate in tuned.curve) >= tuned.curve[0][1] + 0.2


def test_the_main_agent_lets_act_or_acts_itself(env):
    env.begin(3)
    players = Players([constant(LEFT), constant(RIGHT), constant(USE)], net(who=4))
    key = jax.random.key(0)
    for who, move in ((0, LEFT), (1, RIGHT), (2, USE)):
        done, own = players.follow(env, {"who": who, "move": LEFT}, key)
        assert done == {"move": move}
        assert own == {"who": who, "move": -1}  # its own move did not count
    done, own = players.follow(env, {"who": 3, "move": USE}, key)
    assert done == {"move": USE}
    assert own == {"who": 3, "move": USE}
    turns = [players.choose(env, jax.random.key(k))["move"] for k in range(40)]
    assert turns.count(LEFT) >= 30  # at first sub-agent 0, whose turn it is


TUNING = FineTuning(
    steps=96,
    burn_in=0,
    patience=12,
    evaluate_every=32,
    trials=2,
    ppo=PPO(n_envs=1, n_steps=32, minibatches=1, epochs=1),
)


@pytest.mark.parametrize(
    ("enough", "least", "steps"), [(0.0, 0, [0]), (0.0, 40, [0, 32, 64]), (2.0, 0, [0, 32, 64, 96])]
)
def test_a_training_ends_when_it_is_good_enough_but_not_too_early(env, enough, least, steps):
    tuning = replace(TUNING, enough=enough, least_steps=least)
    found = fine_tune(0, [net()], [env], Replays(3), tuning)
    assert [at for at, _ in found.curve] == steps


def test_a_sub_agent_is_paid_for_its_subgoal_and_not_for_what_else_it_gains(model, monkeypatch):
    step = Followed.step
    monkeypatch.setattr(Followed, "step", lambda self, do: step(self, do)._replace(reward=99.0))
    env, paid = Followed(Corridor(), model, Sight()), []
    fetch = Net(jnp.zeros((LENGTH, 3)).at[1:, LEFT].set(20).at[0, USE].set(20), jnp.zeros(5), None)
    tuning = replace(TUNING, ppo=replace(TUNING.ppo, learning_rate=1e-9))
    fine_tune(0, [fetch], [env], Replays(3), tuning, log=lambda *x: paid.append(x[2]))
    subgoals = np.array(paid) * 32 / (tuning.ppo.reward_scale * env.worth[0])  # in each batch
    np.testing.assert_allclose(subgoals, np.round(subgoals), atol=1e-4)
    assert (subgoals >= 5).all()


def test_too_few_steps_for_a_batch_are_refused(env):
    with pytest.raises(ValueError, match=r"steps=20 are fewer than a batch of PPO, 1 env.* 32"):
        fine_tune(0, [net()], [env], Replays(3), replace(TUNING, steps=20))


def test_a_training_that_was_stopped_goes_on(env, tmp_path):
    stop, configuration = Stop(), {"seed": 0}

    def unfinished():
        return Checkpoint(tmp_path / "unfinished.npz", configuration, stop)

    def ask(steps, losses, reward):
        stop.asked = steps == 64

    with pytest.raises(KeyboardInterrupt):
        fine_tune(0, [net()], [env], Replays(3), TUNING, log=ask, unfinished=unfinished())
    stop.asked, seen = False, []
    found = fine_tune(
        0,
        [net()],
        [env],
        Replays(3),
        replace(TUNING, enough=2.0),
        log=lambda steps, losses, reward: seen.append(steps),
        unfinished=unfinished(),
    )
    assert seen == [96]  # 32 and 64 were done before
    assert [at for at, _ in found.curve] == [0, 32, 64, 96]
    configuration["seed"] = 1
    with pytest.raises(ValueError, match="seed is 0 there and 1 here"):
        fine_tune(0, [net()], [env], Replays(3), TUNING, unfinished=unfinished())
    unfinished().remove()
    assert not list(tmp_path.iterdir())
