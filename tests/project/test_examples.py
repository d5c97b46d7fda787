"""Every example runs with --smoke, in an empty folder, and prints what it is there to show."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import align_rudder as ar
from align_rudder.settlement import Settlement

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))

# Beyond the alignment, which every example prints: what only it can show.
SHOWN = {
    "jax_environment": ["E = chest+1", "chests opened", "as it is"],
    "minigrid_ppo": ["= unlock door", "subgoals/4_take_ball", "fresh worlds"],
}


OWN = {"agent_turns": ["leave out check_policy", "advantages of the turns", "check_policy +"]}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs(example, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    environment["MINARI_DATASETS_PATH"] = str(tmp_path / "minari")
    done = subprocess.run(
        [sys.executable, "-W", "error::align_rudder.AlignRudderWarning", example, "--smoke"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    usual = ["demonstrations, mean return", "consensus", "sub-goal", *SHOWN.get(example.stem, [])]
    for text in OWN.get(example.stem, usual):
        assert text in done.stdout
    for page in tmp_path.rglob("*.html"):
        assert page.read_text("utf-8").rstrip().endswith("</html>")


@pytest.fixture(scope="module")
def minigrid():
    spec = importlib.util.spec_from_file_location("minigrid_ppo", FOLDER / "minigrid_ppo.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


TASKS = ("KeyCorridorS3R3", "UnlockPickup", "BlockedUnlockPickup", "ObstructedMaze-1Dlhb")


@pytest.mark.parametrize("task", TASKS)
def test_remembered_views_are_the_views_of_minigrid(minigrid, task):
    ours, theirs = minigrid.make(f"MiniGrid-{task}-v0"), gym.make(f"MiniGrid-{task}-v0")
    rng = np.random.default_rng(0)
    for seed in range(4):
        obs, other, done = ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0], False
        while not done:
            assert np.array_equal(obs["image"], other["image"])
            assert obs["direction"] == other["direction"]
            action = int(rng.choice([0, 1, 2, 2, 2, 3, 4, 5]))  # changes the world now and then
            obs, reward, terminated, truncated, _ = ours.step(action)
            other, *same, _ = theirs.step(action)
            assert [reward, terminated, truncated] == same
            done = terminated or truncated


@pytest.mark.parametrize("task", TASKS)
def test_the_expert_succeeds_and_its_events_tell_the_strategy(minigrid, task):
    demos = minigrid.demonstrate(f"MiniGrid-{task}-v0", 6, seed=3)
    assert all(demo.ret > 0.8 for demo in demos)
    model = ar.AlignRudder(minigrid.changes).fit(demos)
    found = [goal.symbol for goal in model.subgoals_]
    end = ["take key", "unlock door"]
    assert [symbol for symbol in found if symbol in end] == end
    if task == "ObstructedMaze-1Dlhb":  # a ball in the way first, the one that pays at the end
        assert found[:2] == ["take ball", "open box"]
        assert found[-1] == "take ball, paid"
    else:
        assert found[-1] == ("take ball" if task == "KeyCorridorS3R3" else "take box")


def test_events_of_failed_attempts_are_none(minigrid):
    env = minigrid.make("MiniGrid-UnlockPickup-v0")
    rng, found = np.random.default_rng(1), set()
    for seed in range(5):
        obs, done = env.reset(seed=seed)[0], False
        while not done:
            world = env.unwrapped
            held = world.carrying
            doors = [c.is_open for c in world.grid.grid if c and c.type == "door"]
            action = int(rng.choice([0, 1, 2, 2, 3, 4, 5]))
            before = obs
            obs, reward, terminated, truncated, info = env.step(action)
            event = minigrid.changes(before, action, reward, obs, info)
            now = [c.is_open for c in world.grid.grid if c and c.type == "door"]
            took = held is None and world.carrying is not None
            opened = any(open_now and not was for open_now, was in zip(now, doors, strict=True))
            assert (event is not None) == (took or opened) or event == "open box"
            found.add(event)
            done = terminated or truncated
    assert {"take key", None} <= found


def test_cloning_a_demonstration_makes_the_policy_do_it(minigrid):
    args = minigrid.Args(demos=1, epochs=200, steps=0, envs=1, n_steps=2)
    demos = minigrid.demonstrate(args.env, 2, args.seed)
    model = ar.AlignRudder(minigrid.changes).fit(demos)
    ppo = minigrid.train(args, demos[:1], model, [])
    env = minigrid.wrapped(minigrid.make(args.env), model, args)
    obs, _ = env.reset(seed=minigrid.demo_seed(args.seed, 0))
    for wanted in demos[0].actions:
        action, _ = ppo.predict(obs, deterministic=True)
        assert action == wanted
        obs, _, terminated, _, info = env.step(int(action))
    assert terminated
    assert info["original_reward"] == demos[0].ret


def test_what_the_learner_is_paid_and_sees(minigrid):
    demos = minigrid.demonstrate("MiniGrid-KeyCorridorS3R3-v0", 2, 0)
    model = ar.AlignRudder(minigrid.changes).fit(demos)

    def play(**options):
        args = minigrid.Args(**options)
        env = minigrid.wrapped(minigrid.make(args.env), model, args)
        env.reset(seed=minigrid.demo_seed(0, 0))
        return [env.step(int(a)) for a in demos[0].actions]

    rr = model.redistribute(demos[0])
    paid = [step[1] for step in play()]  # the first episode: nothing is paid back yet
    np.testing.assert_allclose(paid, rr.own + rr.rewards)
    assert sum(paid) > 1.5 * demos[0].ret
    for kind in ("potential", "last", "beside"):
        expected = rr.settled(Settlement(kind, gamma=0.9))
        steps = play(settlement=kind, gamma=0.9)
        np.testing.assert_allclose([step[1] for step in steps], expected)
    for progress in (True, False):
        steps = play(redistribute=False, progress=progress)
        np.testing.assert_allclose([step[1] for step in steps], demos[0].rewards)
    seen = np.array([step[0] for step in play(redistribute=False)])
    view, blocks = np.array([step[0] for step in steps]), model.scorer_.n_cells
    blocks = seen[:, view.shape[1] :].reshape(len(view), blocks, -1)
    assert np.array_equal(seen[:, : view.shape[1]], view)
    mine = blocks[np.arange(len(view)), rr.cells]
    assert np.array_equal(mine[:, :-1], view)
    assert (mine[:, -1] == 1).all()
    assert np.array_equal(blocks.any(axis=2).sum(axis=1), np.ones(len(view)))
