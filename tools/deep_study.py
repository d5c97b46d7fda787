"""Compare the ways to pay for learners with networks: DQN and PPO of Stable-Baselines3.

    python tools/deep_study.py --tune             # one small grid for each learner, other seeds
    python tools/deep_study.py                    # three seeds of every task, learner and way
    python tools/deep_study.py --table            # the table in docs/method.md again

A finished trial is a line of `results/settlement/deep.jsonl` and is not run again: stop and go on
as you like, `--minutes` stops by itself. A trial is solved when 90 % of 100 episodes in a row were
successes; it ends when that has held for 30,000 steps, or with its steps.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import gymnasium as gym  # noqa: E402
import numpy as np  # noqa: E402
from deep_tasks import TASKS, Task  # noqa: E402
from joblib import Parallel, delayed  # noqa: E402

import align_rudder as ar  # noqa: E402
from align_rudder.gym.spaces import ProgressSpace  # noqa: E402
from align_rudder.runs.lock import only_here  # noqa: E402
from align_rudder.runs.rows import JsonRows  # noqa: E402
from align_rudder.settlement import Account, Settlement  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "results" / "settlement"
TUNING = 11  # first seed; those of the study are another (`Task.first`)
GAMMA, POINT, WINDOW, HELD = 0.99, 10_000, 100, 3
SHARE = {"ppo": 1.0, "dqn": 0.75}  # of the steps of a task
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {"learning_rate": 1e-3, "ent_coef": 0.03},
    "dqn": {"learning_rate": 3e-4, "n_steps": 10},
}
DQN_OPTIONS: dict[str, Any] = {
    "batch_size": 64,
    "gradient_steps": 2,
    "target_update_interval": 500,
    "exploration_fraction": 0.3,
}
GRIDS: dict[str, list[dict[str, Any]]] = {  # one number at a time, around the middle
    "ppo": [
        {"learning_rate": r, "ent_coef": e}
        for r, e in (
            (1e-3, 0.03),
            (3e-4, 0.03),
            (3e-3, 0.03),
            (1e-3, 0.01),
            (1e-3, 0.1),
            (1e-3, 0.3),
        )
    ],
    "dqn": [
        {"learning_rate": r, "n_steps": n}
        for r, n in ((3e-4, 5), (1e-4, 5), (1e-3, 5), (3e-4, 1), (3e-4, 3), (3e-4, 10), (1e-4, 10))
    ],
}
TUNED_ON = {
    "ppo": ("FourRooms", "Recipes, L = 8", "DoorKey", "MuJoCo maze", "Workshop"),
    "dqn": ("FourRooms", "Recipes, L = 8", "DoorKey", "KeyCorridor", "UnlockPickup", "Workshop"),
}
WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "plain reward": {"plain": True},
    "plain reward, its own settings": {
        "plain": True,
        "ppo": {"learning_rate": 3e-4},
        "dqn": {"learning_rate": 1e-4, "n_steps": 5},
    },
    "last": {"settlement": "last"},
    "events without aligning": {"once": True},
    "even": {"settlement": "even"},
    "mean": {"settlement": "mean"},
    "potential": {"settlement": "potential"},
    "beside": {"settlement": "beside"},
    "progress not observed": {"progress": False},
    "progress as a one-hot": {"one_hot": True},
    "order not paid (skip=0)": {"skip": 0.0},
    "even, in the replay buffer": {"buffer": True},
    "default, the level's settings": {"level": True},
    "plain reward, the level's settings": {"plain": True, "level": True},
    "events without aligning, the level's settings": {"once": True, "level": True},
}
ONLY = {way: "dqn" for way, what in WAYS.items() if "buffer" in what or "level" in what}
MARKS = ("<!-- settlement: networks -->\n", "<!-- end of networks -->\n")


class Plain(gym.Wrapper):
    """Pays the environment's own reward again: the control, which observes progress as well."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step with the original reward."""
        obs, _, terminated, truncated, info = self.env.step(action)
        return obs, info["original_reward"], terminated, truncated, info


class Once(gym.Wrapper):
    """Pays each kind of event that 80 % of the demonstrations hold once, in any order.

    The control without aligning: how many of them were seen is observed as the position is, and
    what they are paid is annealed as by default.
    """

    def __init__(self, env: gym.Env, model: ar.AlignRudder) -> None:
        super().__init__(env)
        held = [set(model.encoded_[i].events.tolist()) for i in model.used_]
        known = range(model.events_.n_events)
        self.kinds = {e for e in known if np.mean([e in events for events in held]) >= 0.8}
        low, high = model.return_range_
        self.share = (high - low) / max(len(self.kinds), 1)
        self.account = Account(Settlement("annealed"), (low, high))
        self.seen: set[int] = set()
        self.progress = ProgressSpace(env.observation_space, len(self.kinds) + 1)
        self.observation_space = self.progress.space

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = self.env.reset(**options)
        self.seen = set()
        self.account.reset()
        return self.progress.append(obs, 0), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step, and pay an event that is new."""
        obs, _, terminated, truncated, info = self.env.step(action)
        new = info["event"] in self.kinds - self.seen
        self.seen |= {info["event"]} & self.kinds
        paid = self.account.pay(info["original_reward"], self.share * new, terminated, truncated)
        return self.progress.append(obs, len(self.seen)), paid, terminated, truncated, info


class OneHotPosition(gym.ObservationWrapper):
    """Shows the position as a one-hot behind the observation, not in blocks."""

    def __init__(self, env: gym.Env, n_cells: int) -> None:
        super().__init__(env)
        space: Any = env.observation_space
        self.numbers = isinstance(space, gym.spaces.Discrete)
        entries = int(space.n) if self.numbers else space.shape[0] - n_cells
        self.size = entries // (n_cells if self.numbers else 1 + n_cells)
        self.n_cells = n_cells
        shape = (self.size + n_cells,)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, shape, np.float32)

    def observation(self, observation: Any) -> np.ndarray:
        """Return the observation and a one-hot."""
        if self.numbers:
            state, cell = divmod(int(observation), self.n_cells)
            seen = np.eye(1, self.size, state)[0]
        else:
            seen, rest = observation[: self.size], observation[self.size :]
            cell = int(rest.reshape(self.n_cells, self.size + 1)[:, -1].argmax())
        return np.append(seen, np.eye(1, self.n_cells, cell)).astype(np.float32)


def settings_of(learner: str, way: str, task: str) -> dict[str, Any]:
    """Return the learner's settings: the common ones, those of a way to pay or of a level."""
    if WAYS[way].get("level"):
        return dict(TASKS[task]().dqn or {})
    return {**SETTINGS[learner], **WAYS[way].get(learner, {})}


def environment(task: Task, model: ar.AlignRudder, way: dict[str, Any], seed: int) -> gym.Env:
    """Return the environment as a learner has it."""
    progress = way.get("progress", not way.get("once", False))
    chosen = {"settlement": way["settlement"]} if "settlement" in way else {}
    env: gym.Env = ar.RedistributeReward(
        task.make(seed), model, gamma=GAMMA, observe_progress=progress, events=task.events, **chosen
    )
    if way.get("plain"):
        env = Plain(env)
    n_cells = model.scorer_.n_cells if progress else 0
    if way.get("once"):
        env = Once(env, model)
        n_cells = env.progress.n_cells
    if task.seen is not None:
        env = task.seen(env, n_cells)
    return OneHotPosition(env, n_cells) if way.get("one_hot") else env


def model_of(name: str, task: Task, way: dict[str, Any], seed: int) -> ar.AlignRudder:
    """Return the model of a seed, kept in a file for the other trials of the seed."""
    options = {"skip": way["skip"]} if "skip" in way else {}
    path = ROOT / "runs" / "deep" / f"{list(TASKS).index(name)}-{seed}-{options}.npz"
    if path.exists():
        return ar.AlignRudder.load(path, function=task.function)
    path.parent.mkdir(parents=True, exist_ok=True)
    model = task.fit(seed, **options)
    model.save(path)
    return model


def trial(name: str, learner: str, way: str, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Train once; return the success rate of the last 100 episodes after every 10,000 steps."""
    import torch
    from stable_baselines3 import DQN, PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(1)
    started, task = time.perf_counter(), TASKS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = model_of(name, task, WAYS[way], seed)
    n = 16 if learner == "ppo" else 8
    venv = DummyVecEnv([lambda: environment(task, model, WAYS[way], seed) for _ in range(n)])
    venv.seed(10_000 * seed)
    won: list[bool] = []
    curve: list[float] = []

    class Watch(BaseCallback):
        def _on_step(self) -> bool:
            for over, info in zip(self.locals["dones"], self.locals["infos"], strict=True):
                if over:
                    won.append(bool(info["original_reward"] > 0))
            if self.num_timesteps >= POINT * (len(curve) + 1):
                curve.append(float(np.mean(won[-WINDOW:])) if len(won) >= WINDOW else 0.0)
            return len(curve) < HELD or min(curve[-HELD:]) < 0.9

    common: dict[str, Any] = {"gamma": GAMMA, "device": "cpu", "seed": seed}
    common["policy_kwargs"] = {"net_arch": [64, 64]}
    if learner == "ppo":
        agent: Any = PPO(
            "MlpPolicy", venv, n_steps=128, batch_size=256, n_epochs=4, **settings, **common
        )
    else:
        if WAYS[way].get("buffer"):
            from align_rudder.gym.sb3 import RedistributedNStepReplayBuffer

            settings_now = {k: v for k, v in settings.items() if k != "n_steps"}
            common |= {
                "replay_buffer_class": RedistributedNStepReplayBuffer,
                "replay_buffer_kwargs": {
                    "model": model, "settlement": "even", "events": task.events, "wrapped": True,
                    "n_steps": settings["n_steps"], "gamma": GAMMA,
                },
            }  # fmt: skip
        else:
            settings_now = settings
        agent = DQN(
            "MlpPolicy",
            venv,
            buffer_size=100_000,
            learning_starts=2_000,
            train_freq=1,
            **DQN_OPTIONS | settings_now,
            **common,
        )
    share = 1.0 if WAYS[way].get("level") else SHARE[learner]
    agent.learn(int(share * task.steps), callback=Watch())
    reached = [k for k, rate in enumerate(curve) if rate >= 0.9]
    return {
        "task": name,
        "learner": learner,
        "way": way,
        "seed": seed,
        "settings": settings,
        "solved": (reached[0] + 1) * POINT if reached else None,
        "end": curve[-1],
        "curve": [round(rate, 3) for rate in curve],
        "steps": int(agent.num_timesteps),
        "seconds": round(time.perf_counter() - started, 1),
    }


def attempt(job: tuple[Any, ...], until: float) -> dict[str, Any] | None:
    """Run a trial, or none if it is too late to begin."""
    return trial(*job) if time.time() < until else None


def run(path: Path, jobs: Iterable[tuple[Any, ...]], n_jobs: int, until: float) -> None:
    """Run the trials that the file does not hold, and add each to it as it ends."""
    with only_here(path.parent):
        rows = JsonRows(path)
        there = {_identity(*(r[k] for k in _KEYS)) for r in rows.read()}
        todo = [job for job in jobs if _identity(*job) not in there]
        print(f"{len(todo)} trials to run, {len(there)} there already", flush=True)
        found = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch=n_jobs)(
            delayed(attempt)(job, until) for job in todo
        )
        for i, row in enumerate(found, 1):
            if row is not None:
                rows.append(row)
                what = f"{row['task']:16} {row['learner']} {row['way']:24} {row['seed']}"
                told = f"solved {row['solved']}, end {row['end']:.2f}, {row['seconds']:.0f} s"
                print(f"{i}/{len(todo)} {what} {told}", flush=True)


_KEYS = ("task", "learner", "way", "seed", "settings")


def _identity(*job: Any) -> str:
    return repr([sorted(x.items()) if isinstance(x, dict) else x for x in job])


def table(rows: list[dict[str, Any]], learner: str, ways: Iterable[str] = WAYS) -> str:
    """Return the trials solved and the mean thousand steps until then, as Markdown."""
    lines = [f"| {learner.upper()} | " + " | ".join(TASKS) + " |", "|---" * (len(TASKS) + 1) + "|"]
    for way in ways:
        if ONLY.get(way, learner) != learner:
            continue
        cells = []
        for task in TASKS:
            mine = [
                r
                for r in rows
                if (r["task"], r["learner"], r["way"]) == (task, learner, way)
                and r["settings"] == settings_of(learner, way, task)
            ]
            solved = [r["solved"] for r in mine if r["solved"] is not None]
            after = f", {np.mean(solved) / 1000:.0f}" if solved else ""
            cells.append(f"{len(solved)}/{len(mine)}{after}" if mine else "–")
        lines.append(
            f"| {'**default**' if way == 'default' else way} | " + " | ".join(cells) + " |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tune", action="store_true", help="the grids, on other seeds")
    parser.add_argument("--table", action="store_true", help="only write the table")
    parser.add_argument("--seeds", type=int, help="3, or 1 for the grids")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--learners", nargs="+", choices=list(SHARE), default=list(SHARE))
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none after")
    parser.add_argument("--out", type=Path, default=FOLDER)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / ("deep-tune.jsonl" if given.tune else "deep.jsonl")
    first = {task: TUNING if given.tune else TASKS[task]().first for task in TASKS}
    n_seeds = given.seeds or (1 if given.tune else 3)
    jobs = [
        (task, learner, way, first[task] + k, settings)
        for way in given.ways
        for k in range(n_seeds)
        for learner in given.learners
        for task in given.tasks
        for settings in (GRIDS[learner] if given.tune else [settings_of(learner, way, task)])
        if ONLY.get(way, learner) == learner
        and (task in TUNED_ON[learner] or not given.tune)
        and (TASKS[task]().dqn is not None or "level" not in WAYS[way])
    ]
    if not given.table:
        run(path, jobs, given.jobs, time.time() + 60 * given.minutes)
    rows = list(JsonRows(path).read())
    if not given.tune:
        rows = [r for r in rows if r["seed"] < first[r["task"]] + n_seeds]
    text = "\n\n".join(table(rows, learner) for learner in SHARE)
    print(text)
    if not given.tune:
        _write(ROOT / "docs" / "method.md", MARKS[0], text)
        _write(ROOT / "README.md", "<!-- networks -->\n", table(rows, "ppo", list(WAYS)[:5]))


def _write(page: Path, mark: str, text: str) -> None:
    """Put a table between two marks of a page, if it has them."""
    before, begin, rest = page.read_text("utf-8").partition(mark)
    _, end, after = rest.partition(MARKS[1])
    if begin and end:
        page.write_text(f"{before}{begin}\n{text}\n\n{end}{after}", "utf-8")


if __name__ == "__main__":
    main()
