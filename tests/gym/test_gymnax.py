"""The wrapper for gymnax-style environments pays, step by step, what that of Gymnasium pays."""

from typing import NamedTuple

import gymnasium
import numpy as np
import pytest
from settled import COST, KINDS, arguments, check_settled

import align_rudder as ar

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from align_rudder.gym.gymnax import RedistributeReward  # noqa: E402
from align_rudder.gym.spaces import in_blocks  # noqa: E402

SIZE, KEY, DOOR, LIMIT = 7, 5, 1, 40


class State(NamedTuple):
    place: jax.Array
    held: jax.Array
    time: jax.Array


class Params(NamedTuple):
    max_steps_in_episode: int = LIMIT


class Space:
    def __init__(self, low, high, shape, dtype):
        self.low, self.high, self.shape, self.dtype = low, high, shape, dtype


class Corridor:
    """Take the key on the right, open the door on the left; the agent sees place and key.

    As gymnax 0.0 has environments: `step_env` says when an episode ends, also by its time limit.
    """

    default_params = Params()

    def observation_space(self, params):
        return Space(0.0, float(SIZE), (2,), jnp.float32)

    def look(self, state):
        return jnp.stack([state.place, state.held]).astype(jnp.float32)

    def reset_env(self, key, params):
        place = jax.random.randint(key, (), 2, KEY)
        state = State(place, jnp.int32(0), jnp.int32(0))
        return self.look(state), state

    def step_env(self, key, state, action, params):
        moved = jnp.where(jax.random.uniform(key) < 0.1, 0, action)
        place = jnp.clip(state.place + moved, 0, SIZE - 1)
        held = jnp.maximum(state.held, place == KEY).astype(jnp.int32)
        opened = (place == DOOR) & (held > 0)
        state = State(place, held, state.time + 1)
        return (
            self.look(state),
            state,
            opened * 1.0,
            self.over(state, opened, params),
            {"wind": moved},
        )

    def over(self, state, opened, params):
        return opened | (state.time >= params.max_steps_in_episode)

    def reset(self, key, params=None):
        return self.reset_env(key, self.default_params)

    def step(self, key, state, action, params=None):
        key_step, key_reset = jax.random.split(key)
        last = self.step_env(key_step, state, action, self.default_params)
        first = self.reset_env(key_reset, self.default_params)
        obs, state = jax.tree.map(lambda a, b: jnp.where(last[3], a, b), first, last[:2])
        return obs, state, *last[2:]


class NewCorridor(Corridor):
    """As gymnax has them from 1.0 on: the time limit is told by `is_truncated`."""

    def over(self, state, opened, params):
        return opened

    def is_truncated(self, state, params):
        return state.time >= params.max_steps_in_episode


class Costly(NewCorridor):
    """Every step costs a little."""

    def step_env(self, key, state, action, params):
        obs, state, reward, *rest = super().step_env(key, state, action, params)
        return obs, state, reward - COST, *rest


class States(Corridor):
    """What is seen is one number."""

    def look(self, state):
        return state.place + SIZE * state.held


class Replayed(gymnasium.Env):
    """Plays back what happened, episode after episode."""

    action_space = gymnasium.spaces.Discrete(3, start=-1)

    def __init__(self, space, episodes):
        self.observation_space, self.episodes = space, iter(episodes)

    def reset(self, *, seed=None, options=None):
        first, steps = next(self.episodes)
        self.steps = iter(steps)
        return first, {}

    def step(self, action):
        return next(self.steps)


def demonstrations(look):
    """Return episodes that take the key and open the door."""
    env, out = look(), []
    for start in (2, 3, 4):
        state = State(jnp.int32(start), jnp.int32(0), jnp.int32(0))
        seen, actions = [np.asarray(env.look(state))], []
        while state.place != DOOR or not state.held:
            actions.append(-1 if state.held else 1)
            place = state.place + actions[-1]
            held = jnp.maximum(state.held, place == KEY).astype(jnp.int32)
            state = State(place, held, state.time + 1)
            seen.append(np.asarray(env.look(state)))
        rewards = np.zeros(len(actions))
        rewards[-1] = 1.0
        out.append(ar.Episode(np.array(seen), actions, rewards, terminated=True))
    return out


def play(env, steps=300, seed=0, n=3):
    """Return what n environments gave over many steps and episodes, all in one jitted scan.

    That is: first observations, actions, observations, rewards, ends (T, 1 or 2, n), infos.
    """
    run_key, reset_key = jax.random.split(jax.random.key(seed))
    first, start = jax.vmap(env.reset)(jax.random.split(reset_key, n))

    def step(state, key):
        k_act, k_step = jax.random.split(key)
        action = jax.random.choice(k_act, jnp.array([-1, 1, 1, -1, 0]), (n,))
        obs, state, reward, *ends, info = jax.vmap(env.step)(
            jax.random.split(k_step, n), state, action
        )
        return state, (action, obs, reward, jnp.stack(ends), info)

    scan = jax.jit(lambda s: jax.lax.scan(step, s, jax.random.split(run_key, steps))[1])
    return jax.tree.map(np.asarray, (first, *scan(start)))


def watched(kind):
    """Return the environment with what is seen after each step, which at an end is hidden."""

    class Watched(kind):
        def step_env(self, key, state, action, params):
            obs, *step, info = super().step_env(key, state, action, params)
            return obs, *step, {**info, "seen": obs}

    return Watched()


def fitted(kind, **options):
    events = None if kind is not States else ar.StateEvents()
    return ar.AlignRudder(events, strategies=1, **options).fit(demonstrations(kind))


@pytest.mark.parametrize("settlement", KINDS)
@pytest.mark.parametrize(("kind", "gap"), [(Corridor, 0.05), (States, 0.0), (Costly, 0.0)])
def test_steps_are_paid_as_by_the_wrapper_of_gymnasium(kind, settlement, gap):
    """Over several episodes, so that what "even" carries on from one to the next is the same."""
    model, options = fitted(kind, gap=gap), arguments(settlement) | {"observe_progress": False}
    first, actions, obs, rewards, ends, infos = play(
        RedistributeReward(watched(kind), model, **options)
    )
    terminated, cut = ends[:, 0], ends[:, 1] if ends.shape[1] > 1 else np.zeros_like(ends[:, 0])
    reached, done, ended = infos["seen"], terminated | cut, 0
    space = (
        gymnasium.spaces.Discrete(2 * SIZE)
        if kind is States
        else gymnasium.spaces.Box(0, SIZE, (2,), np.float32)
    )
    for i in range(done.shape[1]):
        starts = np.concatenate([first[None, i], obs[:, i][done[:, i]]])
        whole, before = [], []
        bounds = np.flatnonzero(done[:, i]) + 1
        for k, steps in enumerate(np.split(np.arange(len(done)), bounds)):
            own = infos["original_reward"][steps, i].astype(float)
            rows = zip(reached[steps, i], own, terminated[steps, i], cut[steps, i], strict=True)
            whole.append((starts[k], [(o, r, bool(e), bool(c), {}) for o, r, e, c in rows]))
            if k < len(bounds):
                seen = np.concatenate([starts[None, k], reached[steps, i]])
                over = bool(terminated[steps[-1], i]), bool(cut[steps[-1], i])
                rr = model.redistribute(ar.Episode(seen, actions[steps, i], own, *over))
                check_settled(
                    settlement,
                    rewards[steps, i],
                    rr,
                    before,
                    atol=2e-5,
                    returns=model.return_range_,
                )
                before.append((rr.own, rr.rewards))
        env = ar.RedistributeReward(Replayed(space, whole), model, **options)
        over = True
        for t in range(len(done)):
            if over:
                env.reset()
            _, reward, *ends_here, info = env.step(int(actions[t, i]))
            over = any(ends_here)
            assert over == done[t, i]
            assert reward == pytest.approx(rewards[t, i], abs=2e-5)
            for key in (
                "original_reward",
                "redistributed",
                "event",
                "score",
                "subgoal",
                "strategy",
            ):
                assert info[key] == pytest.approx(infos[key][t, i], abs=1e-4), key
            assert info.get("correction", 0.0) == pytest.approx(infos["correction"][t, i], abs=1e-5)
            ended += over
    assert ended > 20
    assert (np.asarray(infos["original_reward"]) > 0).sum() > 3
    assert (done & (infos["original_reward"] <= 0)).sum() > 3


def test_an_explicit_reset_begins_with_a_new_account():
    """Resets are pure functions: what "even" learned lives in the state that `step` returns."""
    env = RedistributeReward(Corridor(), fitted(Corridor))
    _, state = env.reset(jax.random.key(0))
    step = jax.jit(env.step)
    for t in range(LIMIT):
        _, state, *_ = step(jax.random.key(t), state, 1)
    assert float(state.account.charge) > 0
    assert float(env.reset(jax.random.key(1))[1].account.charge) == 0


def test_worlds_and_chances_are_those_without_the_wrapper():
    env = RedistributeReward(Corridor(), fitted(Corridor), observe_progress=False)
    wrapped, bare = play(env), play(Corridor())
    for mine, theirs in zip(wrapped[:3], bare[:3], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(wrapped[5]["original_reward"], bare[3])
    np.testing.assert_array_equal(wrapped[4], bare[4])
    np.testing.assert_array_equal(wrapped[5]["wind"], bare[5]["wind"])


def test_the_sum_of_an_episode_is_its_return():
    _, _, _, rewards, ends, infos = play(RedistributeReward(Corridor(), fitted(Corridor), "mean"))
    for i in range(3):
        for part in np.split(np.arange(300), np.flatnonzero(ends[:, 0, i]) + 1)[:-1]:
            ret = infos["original_reward"][part, i].sum()
            assert rewards[part, i].sum() == pytest.approx(ret, abs=1e-5)
            assert np.count_nonzero(rewards[part, i]) > 1


def test_environments_that_end_in_two_ways_keep_both():
    model = fitted(Corridor)
    new, old = (
        RedistributeReward(kind(), model, observe_progress=False)
        for kind in (NewCorridor, Corridor)
    )
    _, _, obs, rewards, ends, infos = play(new)
    _, _, same, expected, done, plain = play(old)
    np.testing.assert_array_equal(obs, same)
    np.testing.assert_allclose(rewards, expected, atol=1e-6)
    np.testing.assert_array_equal(ends.any(axis=1), done[:, 0])
    np.testing.assert_array_equal(infos["terminated"], ends[:, 0])
    np.testing.assert_array_equal(infos["truncated"], ends[:, 1])
    np.testing.assert_array_equal(infos["correction"], plain["correction"])
    assert ends[:, 0].any()
    assert ends[:, 1].any()
    last = infos["final_observation"]
    np.testing.assert_array_equal(last[~done[:, 0]], obs[~done[:, 0]])
    assert (last[ends[:, 0]] == [DOOR, 1]).all()


def test_step_env_does_not_begin_anew():
    env = RedistributeReward(Corridor(), fitted(Corridor), "mean", observe_progress=False)
    obs, state = env.reset(jax.random.key(0))
    step, total = jax.jit(env.step_env), 0.0
    while not state.env_state.held:
        obs, state, reward, done, _ = step(jax.random.key(1), state, 1, env.default_params)
        total += reward
    while not done:
        obs, state, reward, done, info = step(jax.random.key(1), state, -1, env.default_params)
        total += reward
    assert obs.tolist() == [DOOR, 1]
    assert float(total) == pytest.approx(1.0)
    assert int(info["subgoal"]) == len(fitted(Corridor).subgoals_)


@pytest.mark.parametrize("kind", [Corridor, States])
def test_observed_progress_is_the_cell(kind):
    env = RedistributeReward(kind(), fitted(kind))
    bare = RedistributeReward(kind(), fitted(kind), observe_progress=False)
    n = env.stream.tables.n_cells
    key = jax.random.key(0)
    (obs, state), (plain, other) = env.reset(key), bare.reset(key)
    for action in [1] * 4 + [-1] * 2:
        cell = int(state.stream.tracker.cell)
        if kind is States:
            assert int(obs) == int(plain) * n + cell
        else:
            np.testing.assert_array_equal(obs, in_blocks(np.asarray(plain), cell, n))
        obs, state, *_ = env.step(key, state, action)
        plain, other, *_ = bare.step(key, other, action)
    assert cell > 0
    if kind is Corridor:
        space = env.observation_space(env.default_params)
        assert space.shape == obs.shape
        assert space.high.tolist() == [SIZE] * 2 + [SIZE, SIZE, 1] * n
        assert bare.observation_space(env.default_params).shape == (2,)


def test_a_function_of_jax_gives_the_events():
    def event(obs, action, reward, next_obs, info):
        took = next_obs[1] > obs[1]
        return jnp.where(took, 1, jnp.where(reward > 0, 0, -1))

    def in_python(obs, action, reward, next_obs, info):
        return "key" if next_obs[1] > obs[1] else "door" if reward > 0 else None

    model = ar.AlignRudder(in_python).fit(demonstrations(Corridor))
    assert model.events_.symbols_ == ["door", "key"]
    with pytest.raises(ValueError, match="FunctionEvents cannot be expressed in JAX"):
        RedistributeReward(Corridor(), model)
    env = RedistributeReward(Corridor(), model, "beside", function=event)
    _, _, _, rewards, _, infos = play(env)
    np.testing.assert_array_equal(rewards > 0, infos["event"] >= 0)
    assert set(np.unique(infos["event"])) == {-1, 0, 1}


def test_the_paid_step_is_an_event_beside_those_of_a_function():
    def key(obs, action, reward, next_obs, info):
        return jnp.where(next_obs[1] > obs[1], 0, -1)

    def in_python(obs, action, reward, next_obs, info):
        return "key" if next_obs[1] > obs[1] else None

    model = ar.AlignRudder(in_python).fit(demonstrations(Corridor))
    assert model.events_.symbols_ == ["key", "done"]
    env = RedistributeReward(Corridor(), model, "beside", function=key)
    _, _, _, rewards, _, infos = play(env)
    paid = infos["original_reward"] > 0
    assert paid.sum() > 3
    np.testing.assert_array_equal(infos["event"] == 1, paid)
    assert (infos["event"] == 0).sum() > 3
    assert (rewards - infos["original_reward"])[paid].min() > 0.1


def test_what_cannot_be_wrapped_is_refused():
    model = fitted(Corridor)

    class Log:
        def __init__(self, env):
            self.env = env

        def __getattr__(self, name):
            return getattr(self.env, name)

    with pytest.raises(ValueError, match=r"Log has no step_env .* put other wrappers around"):
        RedistributeReward(Log(Corridor()), model)
    with pytest.raises(ValueError, match="settlement is 'none'; one of 'annealed'"):
        RedistributeReward(Corridor(), model, "none")
    with pytest.raises(ValueError, match="give a fitted AlignRudder"):
        RedistributeReward(Corridor(), ar.AlignRudder())
    assert Log(RedistributeReward(Corridor(), model)).default_params == Params()


def test_an_environment_of_reset_and_step_alone_is_told_what_is_missing():
    class Bare:
        def reset(self, key, params):
            return jnp.zeros(2), State(jnp.int32(2), jnp.int32(0), jnp.int32(0))

        def step(self, key, state, action, params):
            return jnp.zeros(2), state, 0.0, False, {}

    with pytest.raises(ValueError, match=r"Bare has no step_env .* give it reset_env\(key, params"):
        RedistributeReward(Bare(), fitted(Corridor))


def test_without_default_params_they_must_be_given():
    class Bare:
        observation_space, look, over = Corridor.observation_space, Corridor.look, Corridor.over
        reset_env, step_env = Corridor.reset_env, Corridor.step_env

    env, key = RedistributeReward(Bare(), fitted(Corridor)), jax.random.key(0)
    with pytest.raises(ValueError, match="Bare has no default_params; give params"):
        env.reset(key)
    _, state = env.reset(key, Params())
    with pytest.raises(ValueError, match="Bare has no default_params; give params"):
        env.step(key, state, 1)
    expected = RedistributeReward(Corridor(), fitted(Corridor)).step(key, state, 1)
    np.testing.assert_array_equal(env.step(key, state, 1, Params())[0], expected[0])


def test_entries_of_the_environments_info_are_not_replaced_in_silence():
    class Loud(Corridor):
        def step_env(self, key, state, action, params):
            *step, info = super().step_env(key, state, action, params)
            return *step, {**info, "score": 7}

    env = RedistributeReward(Loud(), fitted(Corridor))
    _, state = env.reset(jax.random.key(0))
    with pytest.warns(ar.AlignRudderWarning, match=r"info has \['score'\]"):
        env.step(jax.random.key(0), state, 0)


@pytest.mark.parametrize("name", ["CartPole-v1", "Catch-bsuite"])
def test_environments_of_gymnax_itself(name):
    gymnax = pytest.importorskip("gymnax")
    env, _ = gymnax.make(name)
    model = ar.AlignRudder().fit_events([["end", "move"], ["end", "move"]])

    def event(obs, action, reward, next_obs, info):
        return jnp.where(reward != 0, 0, jnp.where((obs != next_obs).any(), 1, -1))

    tracked = RedistributeReward(env, model, observe_progress=False, function=event)
    wrapped, bare = play(tracked), play(env)
    for mine, theirs in zip(wrapped[:3], bare[:3], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(wrapped[4], bare[4])
    done, rewards = wrapped[4].any(axis=1), bare[3]
    assert done.any()
    for i in range(3):
        for part in np.split(np.arange(300), np.flatnonzero(done[:, i]) + 1)[:-1]:
            assert wrapped[3][part, i].sum() == pytest.approx(rewards[part, i].sum(), abs=1e-5)
