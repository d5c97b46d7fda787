"""MineRL as a Gymnasium environment; minerl itself runs in another interpreter (`server.py`).

Observations have the form of the episodes in `convert`, whichever version of minerl is behind, so a
model that was fitted to the dataset reads them. Without Minecraft, `MineRLEnv(module="scripted")`
runs the small world of `scripted.py` through the same server.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import select
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np

from align_rudder.episodes import tree_index
from align_rudder.minerl.convert import episode_space
from align_rudder.minerl.server import LENGTHS, pack, unpack
from align_rudder.minerl.spaces import (
    BUTTONS,
    DIAMOND_REWARD,
    ENUMS,
    FRAME_RATE,
    FRAME_SIZE,
    HEADS,
    HELD,
    ITEMS,
    action_space,
    task_named,
)

__all__ = ["PYTHON_VARIABLE", "MineRLEnv", "MineRLServerError", "replay"]

PYTHON_VARIABLE = "ALIGN_RUDDER_MINERL_PYTHON"
"""Environment variable with the command of the interpreter that has minerl."""
INSTALL = f"""minerl runs the real Minecraft and needs Java 8 and an old Python (3.6 to 3.8):
    apt install openjdk-8-jdk          (and xvfb, on a machine without a screen)
    python3.7 -m venv minerl-env
    minerl-env/bin/pip install "gym==0.19.0" "minerl==0.3.7"      (or minerl==0.4.4)
Then give python="minerl-env/bin/python", or set {PYTHON_VARIABLE} to it; without a screen
python=["xvfb-run", "-a", "minerl-env/bin/python"]. To try things out without Minecraft:
MineRLEnv(module="scripted"). On the command line these are --environment.python and
--environment.module scripted."""

_HERE = Path(__file__).parent
_CLOSING = 20.0  # seconds that an environment has to close
_TAIL = 4000  # characters of the server's output that are kept
_HAND = "equipped_items.mainhand."


class MineRLServerError(RuntimeError):
    """The process that runs the environment failed; the message says what it last printed."""


class MineRLEnv(gym.Env[dict[str, Any], dict[str, Any]]):
    """A MineRL task, run by minerl 0.3.7 or 0.4.4 in an interpreter of its own.

    An observation has `inventory` (18,), `equipped`, `damage`, `max_damage`, `diamond` (1 once it
    was mined) and `pov` (64, 64, 3); an action each of `spaces.HEADS` that the task has, enums as
    indices into `spaces.ENUMS`. Treechop shows no inventory: its logs are counted from the reward.

    An episode is truncated at the task's limit of steps and terminated by whatever else ends it:
    the diamond, or death. `info` has `seed` (of the world), `steps` (of the game) and `game_reward`
    (all that the game paid). If the process behind fails, that step raises `MineRLServerError`, and
    `reset` starts a new one.

    Args:
        task: Name of the task.
        python: The interpreter that has minerl: a path, or a command as a list. If None, that of
            the variable `ALIGN_RUDDER_MINERL_PYTHON`, else this one, if it has minerl.
        module: None for minerl itself; "scripted" for the small world of `scripted.py`;
            "package.module:function" or "file.py:function" for a function that is called with the
            name of the task and returns an environment with the same spaces and the interface of
            old gym.
        module_options: Further arguments of that function, for example
            `{"version": 4, "stage": "iron"}`.
        reward: "diamond" pays 1 for the diamond and nothing else, as in the paper; "all" pays what
            the game does.
        frame_skip: Steps of the game that an action lasts. Buttons are held; the camera turns and
            items are crafted, placed, equipped and smelted in the first of them only, so that an
            action does once what it says. Rewards are summed.
        limit: Steps of the game after which an episode is truncated; that of the task if None.
        timeout: Seconds that may pass until the process answers. Minecraft takes minutes to start.
        render_mode: "rgb_array" (the picture of the observation) or None.

    Example:
        >>> with MineRLEnv(module="scripted", module_options={"stage": "diamond"}) as env:
        ...     observation, info = env.reset(seed=7)
        >>> observation["pov"].shape, int(observation["inventory"][ITEMS.index("iron_pickaxe")])
        ((64, 64, 3), 1)
    """

    metadata: ClassVar[dict[str, Any]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        "render_modes": ["rgb_array"],
        "render_fps": FRAME_RATE,
    }

    def __init__(
        self,
        task: str = "MineRLObtainDiamond-v0",
        *,
        python: str | os.PathLike[str] | Sequence[str] | None = None,
        module: str | None = None,
        module_options: Mapping[str, Any] | None = None,
        reward: Literal["diamond", "all"] = "diamond",
        frame_skip: int = 1,
        limit: int | None = None,
        timeout: float = 600.0,
        render_mode: str | None = None,
    ) -> None:
        self.task = task_named(task)
        if reward not in ("diamond", "all"):
            raise ValueError(f'reward={reward!r} is not known; use "diamond" or "all"')
        if reward == "diamond" and task != "MineRLObtainDiamond-v0":
            raise ValueError(f'{task} has no diamond, so reward="diamond" pays nothing; use "all"')
        limit = self.task.limit if limit is None else limit
        if frame_skip < 1 or limit < 1 or timeout <= 0:
            raise ValueError(
                f"frame_skip={frame_skip}, limit={limit}, timeout={timeout}: each must be positive"
            )
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f'render_mode={render_mode!r} is not known; use "rgb_array" or None')
        self.reward, self.frame_skip, self.limit = reward, int(frame_skip), int(limit)
        self.timeout, self.render_mode = timeout, render_mode
        self.observation_space = episode_space(FRAME_SIZE)
        self.action_space = action_space(task)
        self._command = _command(python, module, task, module_options or {})
        self._server: _Server | None = None
        self._closed = self._running = False
        self._observation: dict[str, Any] = {}
        self.description = self._start().description

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode in the world of that seed; without, of one drawn from the last."""
        super().reset(seed=seed)
        world = int(self.np_random.integers(2**31)) if seed is None else int(seed)
        self._running = False
        answer = self._start().ask({"do": "reset", "seed": world}, self.timeout)
        self._running, self._world, self._steps = True, world, 0
        self._diamond, self._logs = False, 0
        self._observation = self._observe(answer)
        return self._observation, {"seed": world, "steps": 0, "game_reward": 0.0}

    def step(
        self, action: Mapping[str, Any]
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Take an action for `frame_skip` steps of the game."""
        if self._closed:
            raise RuntimeError("the environment is closed; make a new one")
        if not self._running or self._server is None:
            raise RuntimeError("there is no running episode; call reset() first")
        first = self._named(action)
        held = {head: value for head, value in first.items() if head in BUTTONS}
        held |= {head: "none" for head in first if head in ENUMS} | {"camera": [0.0, 0.0]}
        repeats = min(self.frame_skip, self.limit - self._steps)
        self._running = False  # until it is known to go on
        answer = self._server.ask(
            {"do": "step", "actions": [first] + [held] * (repeats - 1)}, self.timeout
        )
        told = answer["info"]
        if "error" in told:
            raise MineRLServerError(
                f"minerl lost Minecraft: {told['error']} It then returns a random observation, "
                "which is not handed on; call reset() for a new episode"
            )
        rewards, done = answer["rewards"], answer["done"]
        self._steps += len(rewards)
        mined = not self._diamond and max(rewards) >= DIAMOND_REWARD
        self._diamond |= mined
        self._logs += int(sum(rewards))
        self._observation = self._observe(answer)
        late = self._steps >= min(self.limit, self.description["limit"] or self.limit)
        late |= bool(told.get("TimeLimit.truncated"))
        terminated = done and (mined or not late)
        self._running = not (done or late)
        info = told | {
            "seed": self._world,
            "steps": self._steps,
            "game_reward": float(sum(rewards)),
        }
        paid = float(mined) if self.reward == "diamond" else info["game_reward"]
        return self._observation, paid, terminated, late and not terminated, info

    def render(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the picture of the last observation."""
        if self.render_mode is None:
            return None
        if not self._observation:
            raise RuntimeError("there is nothing to render yet; call reset() first")
        return self._observation["pov"]

    def close(self) -> None:
        """End the process behind; may be called again."""
        self._closed, self._running = True, False
        if self._server is not None:
            self._server.close()
            self._server = None

    def _start(self) -> _Server:
        """Return the running process, a new one if there is none."""
        if self._closed:
            raise RuntimeError("the environment is closed; make a new one")
        if self._server is not None and self._server.failed:
            self._server = None
        if self._server is None:
            server = _Server(self._command, self.timeout)
            # Also when this object is collected, or the interpreter ends.
            weakref.finalize(self, server.close)
            try:
                self._check_spaces(server.description)
            except ValueError:
                server.close()
                raise
            self._server = server
        return self._server

    def _check_spaces(self, found: Mapping[str, Any]) -> None:
        needed = ["pov", *(f"inventory.{item}" for item in self.task.items)]
        if self.task.items:
            needed += [_HAND + part for part in ("type", "damage", "maxDamage")]
        wrong = [f"observation {k}" for k in needed if k not in found["observation"]]
        wrong += [f"action {head}" for head in self.task.heads if head not in found["action"]]
        for head in set(self.task.heads) & set(ENUMS) & set(found["action"]):
            lacking = set(ENUMS[head]) - set(found["action"][head].get("values", ()))
            wrong += [f"value {value!r} of action {head}" for value in sorted(lacking)]
        shape = found["observation"].get("pov", {}).get("shape")
        if shape not in (None, [FRAME_SIZE, FRAME_SIZE, 3]):
            wrong.append(f"pov of shape {[FRAME_SIZE, FRAME_SIZE, 3]} (it is {shape})")
        if wrong:
            raise ValueError(
                f"{found['environment']} (minerl {found['minerl']}) lacks {', '.join(wrong)}; "
                f"needed are the spaces of {self.task.name} as in minerl 0.3.7 or 0.4.4, without "
                "obfuscation. It has the observations "
                f"{', '.join(found['observation'])} and the actions {', '.join(found['action'])}"
            )

    def _named(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Return an action as it travels: enums by name, buttons as int, camera as a list."""
        missing = [head for head in self.task.heads if head not in action]
        if missing:
            raise ValueError(f"the action lacks {', '.join(missing)}; give every head")
        named: dict[str, Any] = {}
        for head, value in action.items():
            given = np.asarray(value)
            if head == "camera":
                turn = given.astype(float).ravel().tolist() if given.dtype.kind in "iuf" else []
                if given.shape != (2,) or not all(abs(x) <= 180 for x in turn):
                    raise ValueError(
                        f"camera={value!r}; two angles (pitch, yaw) between -180 and 180 are needed"
                    )
                named[head] = turn
                continue
            if head not in HEADS:
                raise ValueError(f"there is no action {head!r}; known are {', '.join(HEADS)}")
            choices: Sequence[Any] = (0, 1) if head in BUTTONS else ENUMS[head]
            whole = given.ndim == 0 and given.dtype.kind in "biu"
            if not whole or not 0 <= int(given) < len(choices):
                options = "0 or 1" if head in BUTTONS else _listed(choices)
                raise ValueError(f"{head}={value!r} is not possible; needed is {options}")
            named[head] = choices[int(given)]
            if head not in self.task.heads and named.pop(head) not in (0, "none"):
                raise ValueError(f"{self.task.name} has no action {head!r}; leave it out")
        return named

    def _observe(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return an answer's observation in the form of `episode_space`."""
        seen = answer["observation"]
        if self.task.items:
            counts = [seen[f"inventory.{item}"] for item in ITEMS]
            # The empty hand has another name in each version.
            held = "air" if seen[_HAND + "type"] == "none" else seen[_HAND + "type"]
            damage, most = seen[_HAND + "damage"], seen[_HAND + "maxDamage"]
        else:
            counts = [self._logs if item == "log" else 0 for item in ITEMS]
            held, damage, most = "air", 0, 0
        return {
            "inventory": np.array(counts, np.int32),
            "equipped": np.int64(HELD.index(held)),
            "damage": np.array(damage, np.int32),
            "max_damage": np.array(most, np.int32),
            "diamond": np.int64(self._diamond),
            "pov": answer["arrays"]["pov"],
        }


def replay(
    env: gym.Env[Any, Any], seed: int, actions: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Bring an environment to where recorded actions lead; returns observation and info there.

    Minecraft cannot be saved, so this is how the paper returns to states. It leads to the same
    state only as far as the world repeats itself for the same seed.

    Args:
        env: A `MineRLEnv`, or a wrapper around one.
        seed: Seed of the world, `info["seed"]` of the recording.
        actions: The actions in order: a list of dicts, or a dict of arrays as in `Episode.actions`.
    """
    if isinstance(actions, Mapping):
        n = len(next(iter(actions.values())))
        actions = [tree_index(dict(actions), t) for t in range(n)]
    observation, info = env.reset(seed=seed)
    for t, action in enumerate(actions):
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            raise ValueError(
                f"the episode of seed {seed} was {'terminated' if terminated else 'truncated'} by "
                f"action {t} of {len(actions)}, so nothing can go on from there; replay "
                f"at most the first {t}, in the world in which they were recorded"
            )
    return observation, info


def _listed(values: Sequence[Any]) -> str:
    return "an index: " + ", ".join(f"{i} {value}" for i, value in enumerate(values))


def _small_world() -> ModuleType:
    """Return the module that `module="scripted"` names."""
    return importlib.import_module("align_rudder.minerl.testing.scripted")


def _check_world(task: str, options: Mapping[str, Any]) -> None:
    """Say what is wrong with options of the small world, before a process is started for it."""
    world = _small_world().ScriptedEnv
    known = [name for name in inspect.signature(world).parameters if name != "task"]
    if unknown := [name for name in options if name not in known]:
        raise ValueError(
            f"the small world has no option {', '.join(unknown)}; it has {', '.join(known)}"
        )
    world(task, **options)


def _has_minerl() -> bool:
    """Return whether this interpreter has minerl; a mere folder of that name is none."""
    found = importlib.util.find_spec("minerl")
    return found is not None and found.origin is not None


def _command(
    python: str | os.PathLike[str] | Sequence[str] | None,
    module: str | None,
    task: str,
    options: Mapping[str, Any],
) -> list[str]:
    """Return the command of the server, but for its file descriptor."""
    given, asked = os.environ.get(PYTHON_VARIABLE, ""), "python"
    if isinstance(python, (str, os.PathLike)):
        command = [os.fspath(python)]
    elif python is not None:
        command = [os.fspath(part) for part in python]
    elif module is None and given:
        asked = PYTHON_VARIABLE
        command = [given] if Path(given).exists() else shlex.split(given)
    elif module is None and not _has_minerl():
        raise ImportError(f"this interpreter ({sys.executable}) has no minerl. {INSTALL}")
    else:
        command = [sys.executable]
    if not command or shutil.which(command[0]) is None:
        raise ValueError(
            f"{asked}={shlex.join(command)!r}: there is no such program. It must be the "
            f"interpreter that has minerl. {INSTALL}"
        )
    if module == "scripted":
        _check_world(task, options)
        module = f"{_small_world().__file__}:make"
    if module is not None and ":" not in module:
        raise ValueError(
            f'module={module!r}; needed is "scripted", "package.module:function" or '
            '"file.py:function"'
        )
    command += [os.fspath(_HERE / "server.py"), "--environment", task]
    if module is not None:
        command += ["--module", module, "--options", json.dumps(dict(options))]
    elif options:
        raise ValueError(f"module_options={dict(options)!r} need a module; minerl takes none")
    return command


class _Server:
    """The process that runs an environment, and our end of the socket pair to it."""

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        if os.name != "posix":
            raise NotImplementedError(
                "minerl is run over an inherited socket, which needs Linux or macOS; on Windows "
                "use the Linux subsystem (WSL)"
            )
        self.failed, self.command, self._owner = False, shlex.join(command), os.getpid()
        self._socket, theirs = socket.socketpair()
        with theirs:
            # In a session of its own: Ctrl-C is for us, and closing then ends the game in order.
            try:
                self.process = subprocess.Popen(
                    [*command, "--descriptor", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except OSError as error:
                self._socket.close()
                raise ValueError(f"{self.command} cannot be started: {error}. {INSTALL}") from error
        self._printed = bytearray()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.description = self._receive(timeout, "start")

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Send a request and return the answer, its arrays under "arrays"."""
        what = str(request["do"])
        if self.failed:
            raise self._failure(f"cannot {what}, the process is gone")
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(pack(request))
        except OSError as error:
            raise self._failure(f"ended before {what} ({error})") from error
        except BaseException:
            self.kill()
            raise
        return self._receive(timeout, what)

    def _receive(self, timeout: float, what: str) -> dict[str, Any]:
        try:
            deadline = time.monotonic() + timeout
            head, body = LENGTHS.unpack(self._read(LENGTHS.size, deadline))
            answer, arrays = unpack(self._read(head, deadline), self._read(body, deadline))
        except TimeoutError as error:
            raise self._failure(f"took more than {timeout:g} s to {what}") from error
        except (EOFError, OSError) as error:
            raise self._failure(f"ended during {what}") from error
        except BaseException:  # an answer may still be on its way, which must not be read later
            self.kill()
            raise
        if "error" not in answer:
            return answer | {"arrays": arrays}
        kind, text = answer["error"]["type"], answer["error"]["text"]
        if what == "start":
            self.kill()
            if kind == "MissingMinerl":
                raise ImportError(f"{self.command} cannot import minerl ({text}). {INSTALL}")
        raise MineRLServerError(f"the environment failed during {what}: {text}{self._tail()}")

    def _read(self, n: int, deadline: float) -> bytes:
        parts = bytearray()
        while len(parts) < n:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            # A child of a dead server may hold the other end open, so that there is no end of file.
            dead = self.process.poll() is not None
            if select.select([self._socket], [], [], 0 if dead else min(left, 0.5))[0]:
                part = self._socket.recv(n - len(parts))
                if not part:
                    raise EOFError
                parts += part
            elif dead:
                raise EOFError
        return bytes(parts)

    def _listen(self) -> None:
        """Keep the end of what the process prints."""
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            while part := os.read(stream.fileno(), 65536):
                self._printed += part
                del self._printed[:-_TAIL]

    def _tail(self) -> str:
        self._listener.join(0.5 if self.process.poll() is None else 2.0)
        lines = bytes(self._printed).decode("utf-8", "replace").strip().splitlines()[-15:]
        if not lines:
            return "; it printed nothing"
        return "\nThe last lines that it printed:\n    " + "\n    ".join(lines)

    def _failure(self, what: str) -> MineRLServerError:
        try:
            code = self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            code = None
        self.kill()
        ended = "" if code is None else f" (exit code {code})"
        if what.endswith("start"):
            advice = f"\nIt needs an interpreter with NumPy. {INSTALL}"
        else:
            advice = "\nCall reset() to start it again."
        return MineRLServerError(
            f"the process that runs the environment ({self.command}) {what}{ended}{self._tail()}"
            f"{advice}"
        )

    def kill(self) -> None:
        """End the process at once; minerl then ends Minecraft itself."""
        self.failed = True
        self._socket.close()
        if os.getpid() != self._owner:  # a copy in a forked process
            return
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End the process in order, or at once where that takes too long."""
        if not self.failed and os.getpid() == self._owner:
            try:
                self._socket.settimeout(_CLOSING)
                self._socket.sendall(pack({"do": "close"}))
                self.process.wait(_CLOSING)
            except (OSError, subprocess.TimeoutExpired):
                pass
        self.kill()
