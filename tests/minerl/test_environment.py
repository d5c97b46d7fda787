"""MineRL as a Gymnasium environment, over the real pipe, with a scripted world at the other end."""

import ast
import contextlib
import gc
import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import align_rudder as ar
from align_rudder.minerl import environment, server
from align_rudder.minerl.environment import MineRLEnv, MineRLServerError, replay
from align_rudder.minerl.spaces import (
    BUTTONS,
    ENUMS,
    HEADS,
    HELD,
    ITEM_REWARDS,
    ITEMS,
    TASKS,
    action_space,
    observation_space,
)
from align_rudder.minerl.testing import scripted
from align_rudder.minerl.testing.scripted import STAGES, scripted_action

INDEX_ORDER = {  # as printed in MINERL.md
    "craft": "crafting_table none planks stick torch",
    "place": "cobblestone crafting_table dirt furnace none stone torch",
    "equip": "air iron_axe iron_pickaxe none stone_axe stone_pickaxe wooden_axe wooden_pickaxe",
    "nearbyCraft": "furnace iron_axe iron_pickaxe none stone_axe stone_pickaxe wooden_axe "
    "wooden_pickaxe",
    "nearbySmelt": "coal iron_ingot none",
}
DIAMOND, IRON, TREECHOP = TASKS
WAIT = 60  # seconds; only a failing test takes so long

OF_MODULE = ("stage", "distance", "spread", "hits")

TRICKS = """
import importlib.util, os, subprocess, sys, time
spec = importlib.util.spec_from_file_location("scripted", {scripted!r})
scripted = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scripted)

class Env(scripted.ScriptedEnv):
    def __init__(self, task, trick, **options):
        super().__init__(task, **options)
        self.trick = trick
        if trick == "spaces":
            del self.observation_space.spaces["inventory"].spaces["log"]
            del self.action_space.spaces["nearbySmelt"]
            self.action_space.spaces["craft"] = scripted.Enum("none", "planks")
        if trick == "cannot":
            raise OSError("no Java here")

    def step(self, action):
        if self.trick == "noise":
            print("x" * 100000)
            os.write(1, b"\\x00\\xff\\x00\\x00 garbage")
            subprocess.call(["echo", "hello from a child"])
        if self.trick == "crash":
            print("Minecraft is on fire", file=sys.stderr, flush=True)
            os._exit(3)
        if self.trick == "fork":
            if os.fork() == 0:
                time.sleep(5)
            os._exit(3)
        if self.trick == "hang":
            sys.modules["__main__"].GRACE = 0.2
            time.sleep(1000)
        if self.trick == "raise":
            raise ConnectionError("no such block")
        observation, reward, done, info = super().step(action)
        if self.trick == "lost":
            return observation, reward, True, {{"error": "Connection timed out!"}}
        if self.trick == "echo":
            for head, value in action.items():
                info[head] = type(value).__name__ + " " + str(value)
        return observation, reward, done, info
"""


@pytest.fixture
def make():
    """Make environments that are closed in the end."""
    with contextlib.ExitStack() as stack:

        def make(version=3, *, trick=None, task=DIAMOND, **options):
            own = {k: options.pop(k) for k in list(options) if k in OF_MODULE}
            own["version"] = version
            options = {"module": "scripted", "timeout": WAIT, "reward": None} | options
            options["reward"] = options["reward"] or ("diamond" if task == DIAMOND else "all")
            if trick is not None:
                options["module"], own["trick"] = trick.module, trick.name
            return stack.enter_context(MineRLEnv(task, module_options=own, **options))

        yield make


@pytest.fixture(scope="module")
def shared():
    """One environment of each version, for tests that leave them as they were."""
    with contextlib.ExitStack() as stack:
        yield {
            version: stack.enter_context(
                MineRLEnv(module="scripted", module_options={"version": version})
            )
            for version in (3, 4)
        }


class Trick:
    def __init__(self, module, name):
        self.module, self.name = module, name


@pytest.fixture
def trick(tmp_path):
    path = tmp_path / "tricks.py"
    path.write_text(TRICKS.format(scripted=scripted.__file__))
    return lambda name: Trick(f"{path}:Env", name)


def act(**parts):
    """Return an action that does nothing but for what is given; items by name."""
    action = dict.fromkeys(BUTTONS, 0) | {"camera": np.zeros(2, np.float32)}
    action |= {head: values.index(parts.pop(head, "none")) for head, values in ENUMS.items()}
    return action | parts


def count(observation, item):
    return int(observation["inventory"][ITEMS.index(item)])


def same(a, b):
    return a.keys() == b.keys() and all(
        np.array_equal(a[k], b[k]) and np.asarray(a[k]).dtype == np.asarray(b[k]).dtype for k in a
    )


def play(env, seed, steps=None, choose=scripted_action):
    """Return observations, actions, rewards and the last step's end and info."""
    observation, _ = env.reset(seed=seed)
    observations, actions, rewards, ends, info = [observation], [], [], (False, False), {}
    while not any(ends) and (steps is None or len(actions) < steps):
        actions.append(choose(observation))
        observation, reward, *ends, info = env.step(actions[-1])
        observations.append(observation)
        rewards.append(reward)
    return observations, actions, rewards, tuple(ends), info


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid):
    deadline = time.monotonic() + WAIT
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(pid)


@pytest.mark.parametrize("version", [3, 4])
def test_gymnasiums_judge(version):
    env = gym.make(
        "AlignRudder/MineRL-v0",
        module="scripted",
        module_options={"version": version},
        render_mode="rgb_array",
    )
    with env:
        check_env(env.unwrapped)
        observation, _ = env.reset(seed=0)
        assert np.array_equal(env.render(), observation["pov"])


def test_both_versions_look_alike(shared):
    flat, nested = shared[3], shared[4]
    assert not flat.description["nested"]
    assert nested.description["nested"]
    for key in ("observation", "action"):  # the names agree once they are joined
        assert flat.description[key] == nested.description[key]
    one, other = play(flat, 11), play(nested, 11)
    assert len(one[0]) == len(other[0])
    assert all(same(a, b) for a, b in zip(one[0], other[0]))
    assert one[2:] == other[2:]
    assert all(flat.observation_space.contains(o) for o in one[0])
    assert all(flat.action_space.contains(a) for a in one[1])


@pytest.mark.parametrize("version", [3, 4])
def test_items_travel_by_name(make, trick, version):
    env = make(version, trick=trick("echo"))
    found = env.description["action"]
    assert {head: " ".join(found[head]["values"]) for head in ENUMS} == INDEX_ORDER
    env.reset(seed=0)
    for head, names in INDEX_ORDER.items():
        for index, name in enumerate(names.split()):
            info = env.step(act() | {head: np.int64(index)})[4]
            assert info[head] == f"str {name}"
    info = env.step(act(attack=True, camera=np.array([1.5, -2.0])))[4]
    assert (info["attack"], info["camera"]) == ("int 1", "ndarray [ 1.5 -2. ]")


@pytest.mark.parametrize("version", [3, 4])
def test_craft_planks_crafts_planks(make, version):
    env = make(version, stage="wood")
    before, _ = env.reset(seed=0)
    after, *_ = env.step(act() | {"craft": INDEX_ORDER["craft"].split().index("planks")})
    change = after["inventory"] - before["inventory"]
    assert {item: n for item, n in zip(ITEMS, change) if n} == {"log": -1, "planks": 4}


def test_the_scripted_world_declares_what_minerl_declares():
    assert sorted(scripted.ITEMS) == list(ITEMS)
    assert sorted(scripted.HELD) == list(HELD)
    assert set(scripted.BUTTONS) == set(BUTTONS)
    assert {h: tuple(sorted(v)) for h, v in scripted.DECLARED.items()} == ENUMS
    assert scripted.REWARDS == ITEM_REWARDS
    limits = {name: task.limit for name, task in TASKS.items()}
    assert limits == scripted.LIMITS
    assert len(set(scripted.COLOURS.values())) == len(scripted.COLOURS)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("version", [3, 4])
def test_the_scripted_world_has_the_spaces_of_the_package(task, version):
    """Both are written down by hand, as the scripted world must run without the package."""

    def plain(space):
        if hasattr(space, "spaces"):
            return {name: plain(part) for name, part in space.spaces.items()}
        if hasattr(space, "n"):
            return int(space.n)
        return float(space.low.min()), float(space.high.max()), space.shape, np.dtype(space.dtype)

    env = scripted.ScriptedEnv(task, version)
    assert plain(env.observation_space) == plain(observation_space(task, version))
    assert plain(env.action_space) == plain(action_space(task))
    assert env.spec.max_episode_steps == TASKS[task].limit


def test_old_interface_of_the_scripted_world():
    flat, nested = scripted.ScriptedEnv(version=3), scripted.ScriptedEnv(version=4)
    for env in (flat, nested):
        env.seed(1)
    seen, other = flat.reset(), nested.reset()
    assert str(seen["equipped_items.mainhand.type"]) == "none"
    assert other["equipped_items"]["mainhand"]["type"] == "air"
    flat.step({"craft": 2})  # an index, as 0.3.7 takes it
    with pytest.raises(AssertionError, match="must be str"):
        nested.step({"craft": 2})
    with pytest.raises(AssertionError, match="Seed must be an int"):
        flat.seed(None)


@pytest.mark.parametrize("version", [3, 4])
def test_diamond_is_obtained_and_paid_once(shared, version):
    observations, _, rewards, ends, info = play(shared[version], 5)
    assert ends == (True, False)
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]
    assert info == {"seed": 5, "steps": len(rewards), "game_reward": 1024.0}
    assert [int(o["diamond"]) for o in observations] == [0] * len(rewards) + [1]
    assert HELD[observations[0]["equipped"]] == "air"
    assert HELD[observations[-1]["equipped"]] == "iron_pickaxe"
    assert observations[-1]["damage"] == 1
    assert observations[-1]["max_damage"] == 250


def test_all_rewards_are_those_of_the_challenge(make):
    rewards = play(make(reward="all"), 5)[2]
    assert sorted(r for r in rewards if r) == sorted(ITEM_REWARDS.values())


@pytest.mark.parametrize(
    ("stage", "distance", "spread"),
    [*((stage, 1, 360) for stage in STAGES), ("start", 3, 90), ("start", 8, 200)],
)
def test_the_scripted_player_solves_every_world(make, stage, distance, spread):
    env = make(stage=stage, distance=distance, spread=spread, hits=1)
    for seed in range(2):
        rewards, ends = play(env, seed, 400)[2:4]
        assert ends == (True, False)
        assert rewards[-1] == 1


def test_determinism_and_seeds(make, shared):
    one, other = make(), shared[3]
    actions = [one.action_space.sample() for _ in range(60)]
    queues = [iter(actions), iter(actions)]
    runs = [play(env, 3, 60, lambda _, it=it: next(it)) for env, it in zip((one, other), queues)]
    assert all(same(a, b) for a, b in zip(runs[0][0], runs[1][0]))
    worlds = [env.reset()[1]["seed"] for env in (one, other)]
    assert worlds[0] == worlds[1] != one.reset()[1]["seed"]
    assert same(one.reset(seed=worlds[0])[0], other.reset(seed=worlds[0])[0])
    assert not same(one.reset(seed=1)[0], one.reset(seed=2)[0])


def test_replay_reaches_the_same_state(shared):
    env = shared[4]
    observations, actions, rewards, ends, _ = play(env, 8)
    episode = ar.Episode(observations, actions, rewards, *ends)
    half = len(actions) // 2
    reached, info = replay(env, 8, actions[:half])
    assert same(reached, observations[half])
    assert info["steps"] == half
    assert same(env.step(actions[half])[0], observations[half + 1])
    part = {head: values[:half] for head, values in episode.actions.items()}
    assert same(replay(gym.wrappers.OrderEnforcing(env), 8, part)[0], observations[half])
    with pytest.raises(ValueError, match=f"terminated by action {len(actions) - 1} of"):
        replay(env, 8, actions)


def test_frame_skip_does_once_what_an_action_says(make):
    skipping, plain = make(stage="wood", frame_skip=4, reward="all"), make(stage="wood")
    first = act(craft="planks", camera=np.array([5, 40], np.float32), forward=1)
    held = act(forward=1)
    for env in (skipping, plain):
        env.reset(seed=0)
    seen, reward, *_, info = skipping.step(first)
    for action in (first, held, held, held):
        expected, *_ = plain.step(action)
    assert same(seen, expected)
    assert (reward, info["steps"], info["game_reward"]) == (2, 4, 2)
    assert (count(seen, "log"), count(seen, "planks")) == (5, 4)


def test_truncation(make):
    env = make(limit=6, frame_skip=4)
    env.reset(seed=0)
    assert env.step(act())[2:4] == (False, False)
    *_, terminated, truncated, info = env.step(act())
    assert (terminated, truncated, info["steps"]) == (False, True, 6)
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        env.step(act())
    env.reset()
    assert env.step(act())[2:4] == (False, False)


def test_the_games_own_limit_truncates_too():
    options = {"limit": 3, "version": 3}
    with MineRLEnv(module="scripted", module_options=options) as env:
        assert env.description["limit"] == 3
        env.reset(seed=0)
        ends = [env.step(act())[2:4] for _ in range(3)]
        assert ends == [(False, False), (False, False), (False, True)]


def test_a_diamond_at_the_last_step_terminates(make):
    steps = len(play(make(stage="diamond"), 0)[1])
    assert play(make(stage="diamond", limit=steps), 0)[3] == (True, False)
    assert play(make(stage="diamond", limit=steps - 1), 0)[3] == (False, True)


def test_other_tasks(make):
    env = make(task=TREECHOP, hits=1)
    observations, _, rewards, ends, _ = play(env, 0, 300, lambda o: scripted_action(o, "log"))
    assert ends == (True, False)
    assert sum(rewards) == count(observations[-1], "log") == 64
    assert set(env.action_space) == {*BUTTONS, "camera"}
    env.reset(seed=0)
    with pytest.raises(ValueError, match="has no action 'craft'"):
        env.step(act(craft="planks"))
    env = make(task=IRON, hits=1)
    _, _, rewards, ends, _ = play(env, 0, 400, lambda o: scripted_action(o, "iron_pickaxe"))
    assert (ends, sum(rewards)) == ((True, False), 547)


def test_what_is_printed_does_no_harm(make, trick, shared):
    env, plain = make(trick=trick("noise")), shared[3]
    one, other = (play(e, 4, 5) for e in (env, plain))
    assert all(same(a, b) for a, b in zip(one[0], other[0]))


def test_wrong_actions(shared):
    env = shared[3]
    env.reset(seed=0)
    for change, message in [
        ({"craft": 5}, "craft=5 is not possible; needed is an index: 0 crafting_table, 1 none"),
        ({"craft": "planks"}, "craft='planks' is not possible"),
        ({"jump": 2}, "jump=2 is not possible; needed is 0 or 1"),
        ({"camera": [0.0, 181.0]}, "two angles"),
        ({"camera": [0.0, np.nan]}, "two angles"),
        ({"camera": 1.0}, "two angles"),
        ({"fly": 1}, "no action 'fly'"),
    ]:
        with pytest.raises(ValueError, match=message):
            env.step(act() | change)
    with pytest.raises(ValueError, match="lacks camera, place"):
        env.step(dict.fromkeys((*BUTTONS, *HEADS[10:]), 0))
    env.step(act())  # the episode goes on


def test_killed_server(make):
    env = make()
    env.reset(seed=0)
    process = env._server.process
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(MineRLServerError, match=r"exit code -9(.|\n)*reset\(\)"):
        env.step(act())
    assert process.returncode == -signal.SIGKILL  # waited for: no zombie
    with pytest.raises(RuntimeError, match="no running episode"):
        env.step(act())
    env.reset(seed=0)  # starts a new one
    env.step(act())


@pytest.mark.parametrize("name", ["crash", "fork"])
def test_crash(make, trick, name):
    env = make(trick=trick(name))
    env.reset(seed=0)
    start = time.monotonic()
    with pytest.raises(MineRLServerError, match="exit code 3") as caught:
        env.step(act())
    assert time.monotonic() - start < 5
    assert ("Minecraft is on fire" in str(caught.value)) == (name == "crash")


def test_hanging_server(make, trick):
    env = make(trick=trick("hang"))
    env.reset(seed=0)
    env.timeout, pid = 0.5, env._server.process.pid
    with pytest.raises(MineRLServerError, match=r"more than 0\.5 s to step"):
        env.step(act())
    assert not is_running(pid)


def test_errors_of_the_environment(make, trick):
    env = make(trick=trick("raise"))
    env.reset(seed=0)
    with pytest.raises(MineRLServerError, match="ConnectionError: no such block"):
        env.step(act())
    env.reset(seed=0)
    env = make(trick=trick("lost"))
    env.reset(seed=0)
    with pytest.raises(MineRLServerError, match="lost Minecraft: Connection timed out!"):
        env.step(act())
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        env.step(act())
    with pytest.raises(MineRLServerError, match="no Java here"):
        make(trick=trick("cannot"))


def test_wrong_spaces(make, trick):
    with pytest.raises(ValueError, match=r"inventory\.log") as caught:
        make(trick=trick("spaces"))
    for part in ("action nearbySmelt", "value 'stick' of action craft", "obfuscation"):
        assert part in str(caught.value)


def test_the_server_dies_with_its_parent(trick):
    """Also while the environment hangs."""
    code = """
        import sys
        from align_rudder.minerl.environment import MineRLEnv
        from align_rudder.minerl.testing.scripted import scripted_action
        waiting = MineRLEnv(module="scripted")
        hanging = MineRLEnv(module=sys.argv[1], module_options={"trick": "hang"})
        observation, _ = hanging.reset(seed=0)
        print(waiting.description["pid"], hanging.description["pid"], flush=True)
        hanging.step(scripted_action(observation))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), trick("hang").module]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(is_running(pid) for pid in pids)
        time.sleep(0.5)  # until it hangs
        parent.kill()
    assert all(gone(pid) for pid in pids)


def test_closing():
    env = MineRLEnv(module="scripted")
    process = env._server.process
    env.close()
    env.close()
    assert process.returncode == 0
    for call in (env.reset, lambda: env.step(act())):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    forgotten = MineRLEnv(module="scripted")
    process = forgotten._server.process
    del forgotten
    gc.collect()
    assert process.returncode == 0


def test_a_wrapper_around_the_interpreter(make):
    """As xvfb-run: a shell between us and the server, which is killed in place of it."""
    env = make(python=["sh", "-c", '"$@"; true', "sh", sys.executable])
    process, pid = env._server.process, env.description["pid"]
    assert process.pid != pid
    env.reset(seed=0)
    process.kill()
    process.wait()
    with pytest.raises(MineRLServerError, match="exit code -9"):
        play(env, 0)
    assert gone(pid)


def test_missing_interpreter(monkeypatch):
    with pytest.raises(ValueError, match="no such program") as caught:
        MineRLEnv(python="/nowhere/python3.7")
    assert "minerl==0.3.7" in str(caught.value)
    monkeypatch.setenv(environment.PYTHON_VARIABLE, "/nowhere/python3.7 -u")
    with pytest.raises(ValueError, match=f"{environment.PYTHON_VARIABLE}='/nowhere/python3.7 -u'"):
        MineRLEnv()


@pytest.mark.skipif(environment._has_minerl(), reason="minerl is there")
def test_missing_minerl(monkeypatch):
    monkeypatch.delenv(environment.PYTHON_VARIABLE, raising=False)
    for python in (None, sys.executable):
        with pytest.raises(ImportError, match="minerl") as caught:
            MineRLEnv(python=python)
        for part in ("Java 8", "minerl==0.3.7", "3.6 to 3.8", environment.PYTHON_VARIABLE):
            assert part in str(caught.value)


def test_an_interpreter_that_has_minerl(monkeypatch, tmp_path):
    """Stands for the real ones as far as importing and making goes."""
    (tmp_path / "minerl.py").write_text("")
    (tmp_path / "gym.py").write_text(
        f"import sys; sys.path.insert(0, {str(Path(scripted.__file__).parent)!r})\n"
        "import scripted\nmake = scripted.make\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv(environment.PYTHON_VARIABLE, f"env {sys.executable} -u")
    with MineRLEnv() as env:
        assert env.reset(seed=0)[0]["pov"].shape == (64, 64, 3)
    with pytest.raises(ValueError, match="need a module"):
        MineRLEnv(module_options={"stage": "iron"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "MineRLNavigate-v0"}, "not known"),
        ({"reward": "dense"}, "not known"),
        ({"task": IRON}, "has no diamond"),
        ({"frame_skip": 0}, "must be positive"),
        ({"render_mode": "human"}, "not known"),
        ({"module": "nowhere"}, "file.py:function"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        MineRLEnv(**{"module": "scripted"} | options)


@pytest.mark.parametrize("module", [server, scripted])
def test_the_other_side_runs_on_python_3_6(module):
    tree = ast.parse(Path(module.__file__).read_text(), feature_version=(3, 6))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    outside = {name.split(".")[0] for name in names} - sys.stdlib_module_names
    assert outside <= {"numpy", "gym", "minerl", "pkg_resources"}
