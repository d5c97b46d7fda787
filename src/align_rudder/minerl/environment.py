"""MineRL as a Gymnasium environment; minerl itself runs in another interpreter (`server.py`).

Observations have the form of the episodes in `convert`, whichever version of minerl is behind, so a
model that was fitted to the dataset reads them. Without Minecraft, `MineRLEnv(module="scripted")`
runs the small world of `testing/scripted.py` through the same server.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np

from align_rudder.files import Choice
from align_rudder.minerl.convert import episode_space
from align_rudder.minerl.process import (
    PYTHON_VARIABLE,
    MineRLServerError,
    ServerProcess,
    server_command,
)
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

__all__ = ["PYTHON_VARIABLE", "MineRLEnv", "MineRLServerError"]

_HAND = "equipped_items.mainhand."


class MineRLEnv(gym.Env[dict[str, Any], dict[str, Any]]):
    """A MineRL task, run by minerl 0.3.7 or 0.4.4 in an interpreter of its own.

    An observation has `inventory` (18,), `equipped`, `damage`, `max_damage`, `diamond` (1 once it
    was mined) and `pov` (64, 64, 3); an action each of `spaces.HEADS` that the task has, enums as
    indices into `spaces.ENUMS`. Treechop shows no inventory: its logs are counted from the reward.

    An episode is truncated at the task's limit of steps and terminated by whatever else ends it:
    the diamond, or death. `info` has `seed` (of the world), `steps` (of the game) and `game_reward`
    (all that the game paid). If the process behind dies, hangs, raises or sends garbage, it is
    ended, that step raises `MineRLServerError`, and `reset` starts a new one. `CrashRecovery`
    (`minerl.crashes`) around it takes the episode up again.

    Args:
        task: Name of the task.
        python: The interpreter that has minerl: a path, or a command as a list. If None, that of
            the variable `ALIGN_RUDDER_MINERL_PYTHON`, else this one, if it has minerl.
        module: None for minerl itself; "scripted" for the small world of `testing/scripted.py`;
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
        step_timeout: Seconds that a step may take, where that is less.
        render_mode: "rgb_array" (the picture of the observation) or None.

    Attributes:
        again: Whether `reset` starts a new process by itself where the old one has died since the
            last episode; `CrashRecovery`, which counts that as a crash, turns it off.

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
        step_timeout: float = 120.0,
        render_mode: str | None = None,
    ) -> None:
        self.task = task_named(task)
        Choice(("diamond", "all")).check(reward, "reward")
        if reward == "diamond" and task != "MineRLObtainDiamond-v0":
            raise ValueError(f'{task} has no diamond, so reward="diamond" pays nothing; use "all"')
        limit = self.task.limit if limit is None else limit
        if frame_skip < 1 or limit < 1 or timeout <= 0 or step_timeout <= 0:
            raise ValueError(
                f"frame_skip={frame_skip}, limit={limit}, timeout={timeout}, "
                f"step_timeout={step_timeout}: each must be positive"
            )
        Choice((None, *self.metadata["render_modes"])).check(render_mode, "render_mode")
        self.reward, self.frame_skip, self.limit = reward, int(frame_skip), int(limit)
        self.timeout, self.step_timeout, self.render_mode = timeout, step_timeout, render_mode
        self.observation_space = episode_space(FRAME_SIZE)
        self.action_space = action_space(task)
        self._command = server_command(python, module, task, module_options or {})
        self._server: ServerProcess | None = None
        self._closed = self._running = False
        self.again = True
        self._observation: dict[str, Any] = {}
        self.description = self._start().description

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode in the world of that seed; without, of one drawn from the last."""
        super().reset(seed=seed)
        world = int(self.np_random.integers(2**31)) if seed is None else int(seed)
        self._running = False
        self._world, self._steps, self._diamond, self._logs = world, 0, False, 0
        request, tried = {"do": "reset", "seed": world}, self._server
        try:
            self._ask(request)
        except MineRLServerError:
            if not self.again or tried is None or self._server is not tried:
                raise
            self._ask(request)  # it may have died since the last episode: a new process
        self._running = True
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
        before = self._diamond
        told, rewards, done = self._ask({"do": "step", "actions": [first] + [held] * (repeats - 1)})
        mined, self._steps = self._diamond and not before, self._steps + len(rewards)
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

    def _ask(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[float], bool]:
        """Send a request and keep what is observed; return info, rewards and whether it is done."""
        what = request["do"]
        server = self._start() if self._server is None or what == "reset" else self._server
        limit = self.timeout if what == "reset" else min(self.timeout, self.step_timeout)
        answer = server.ask(request, limit)
        try:
            told, rewards = dict(answer.get("info", {})), answer.get("rewards", [])
            if "error" not in told:
                if what == "step" and not 0 < len(rewards) <= len(request["actions"]):
                    raise ValueError(f"{len(rewards)} rewards for {len(request['actions'])} steps")
                diamond = self._diamond or max(rewards, default=0.0) >= DIAMOND_REWARD
                logs = self._logs + int(sum(rewards))
                self._observation = self._observe(answer, diamond, logs)
                self._diamond, self._logs = diamond, logs
                return told, rewards, bool(answer.get("done"))
        except Exception as error:
            raise server.failure(f"sent garbage in answer to {what} ({error!r})") from error
        server.kill()
        raise MineRLServerError(
            f"minerl lost Minecraft: {told['error']} It then returns a random observation, which "
            "is not handed on; call reset() to start it again"
        )

    def _start(self) -> ServerProcess:
        """Return the running process, a new one if there is none."""
        if self._closed:
            raise RuntimeError("the environment is closed; make a new one")
        if self._server is not None and self._server.failed:
            self._server = None
        if self._server is None:
            server = ServerProcess(self._command, self.timeout)
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
                numbered = ", ".join(f"{i} {choice}" for i, choice in enumerate(choices))
                options = "0 or 1" if head in BUTTONS else f"an index: {numbered}"
                raise ValueError(f"{head}={value!r} is not possible; needed is {options}")
            named[head] = choices[int(given)]
            if head not in self.task.heads and named.pop(head) not in (0, "none"):
                raise ValueError(f"{self.task.name} has no action {head!r}; leave it out")
        return named

    def _observe(self, answer: Mapping[str, Any], diamond: bool, logs: int) -> dict[str, Any]:
        """Return an answer's observation in the form of `episode_space`."""
        seen, picture = answer["observation"], answer["arrays"]["pov"]
        if picture.shape != (FRAME_SIZE, FRAME_SIZE, 3) or picture.dtype != np.uint8:
            raise ValueError(f"a picture of shape {picture.shape}, {picture.dtype}")
        if self.task.items:
            counts = [seen[f"inventory.{item}"] for item in ITEMS]
            # The empty hand has another name in each version.
            held = "air" if seen[_HAND + "type"] == "none" else seen[_HAND + "type"]
            damage, most = seen[_HAND + "damage"], seen[_HAND + "maxDamage"]
        else:
            counts = [logs if item == "log" else 0 for item in ITEMS]
            held, damage, most = "air", 0, 0
        return {
            "inventory": np.array(counts, np.int32),
            "equipped": np.int64(HELD.index(held)),
            "damage": np.array(damage, np.int32),
            "max_damage": np.array(most, np.int32),
            "diamond": np.int64(diamond),
            "pov": picture,
        }
