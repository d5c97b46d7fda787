"""A run of trained agents, as an animated picture with its sub-goals beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from craftax.craftax_classic.constants import BLOCK_PIXEL_SIZE_IMG
from PIL import Image, ImageDraw, ImageFont

from align_rudder.files import check_writable, write_whole
from align_rudder.hierarchy.agents import Policy
from align_rudder.hierarchy.aligned import AlignedState, AlignedTask
from align_rudder.hierarchy.evaluation import new_worlds
from align_rudder.hierarchy.settings import Training
from align_rudder.studies.diamond.goals import subgoals_of
from align_rudder.studies.diamond.results import load_stage, read_training
from align_rudder.tasks.diamond.demos import Setup, Traces
from align_rudder.tasks.diamond.names import goal_names
from align_rudder.tasks.diamond.pictures import painter

__all__ = ["Run", "marked", "record", "record_folder", "save_video"]

_PANEL = 168  # width in pixels
_BACK, _TEXT, _FAINT = (24, 24, 24), (235, 235, 235), (125, 125, 125)
_DONE, _NOW, _GOLD = (60, 210, 160), (230, 159, 0), (240, 228, 66)
_FLASHES = 3
_DARKEST = 0.5  # below, Craftax draws noise over the picture; what the agent is told has none


class Run(NamedTuple):
    """A run, from a new world to its end.

    Attributes:
        states: States of the task, stacked (T + 1, …), as NumPy arrays.
        actions: What the agent chose (T,); a manager's choices are sub-agents, then actions.
        subtasks: The next sub-goal (T + 1,); -1 if it may be any that is left.
        reached: Which sub-goals are reached (T + 1, K).
        failed: How it ended, if the task was not solved; else empty.
    """

    states: Any
    actions: np.ndarray
    subtasks: np.ndarray
    reached: np.ndarray
    failed: str = ""


@eqx.filter_jit
def _step(task: AlignedTask, agent: Policy, s: AlignedState, key: jax.Array) -> Any:
    """Return the states after a step of each world, choices, and which are over and solved."""
    k_act, k_step = jax.random.split(key)
    seen = jax.vmap(task.task.observe)(s.state)
    logits, _ = jax.vmap(agent, (None, 0, 0, 0))(task, seen, s.subtask, s.position.cell)
    action = jax.random.categorical(k_act, logits)
    keys = jax.random.split(k_step, s.subtask.shape[0])
    new, out = jax.vmap(task.step)(keys, s, action)
    # A weak type would compile the step twice.
    new = jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype), new)
    return new, action, out.over, out.solved


def record(
    task: AlignedTask,
    agent: Policy,
    key: jax.Array,
    n_worlds: int = 16,
    max_steps: int = 1000,
    told: Callable[[int, int], None] = lambda step, goal: None,
) -> Run | None:
    """Play new worlds side by side until one is solved; None if none is.

    As all take their steps together, the first to be solved is the shortest run. A single world is
    played to its end, whatever that is. States of the worlds still going on are kept: with Craftax,
    25 kB for each step of each world.

    Args:
        task: The task; with its sub-agents if `agent` is a manager.
        agent: The agent; its actions are sampled.
        key: Random key.
        n_worlds: Number of worlds.
        max_steps: Steps after which all are given up.
        told: Is called with the step and each sub-goal that the first world reaches.
    """
    if n_worlds < 1 or max_steps < 1:
        raise ValueError(
            f"n_worlds={n_worlds}, max_steps={max_steps}: at least 1 is needed of each"
        )

    k_worlds, k_play = jax.random.split(key)
    s = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), new_worlds(task, k_worlds, n_worlds))
    going, traces, actions = np.arange(n_worlds), Traces(), []

    def run_of(world: int, failed: str) -> Run:
        traces.add((s.state, s.subtask, s.reached), np.array([world]))
        states, subtasks, reached = traces.of(world)
        return Run(states, np.array([a[world] for a in actions]), subtasks, reached, failed)

    for t in range(max_steps):
        traces.add((s.state, s.subtask, s.reached), going)
        before, now = s, jax.random.fold_in(k_play, t)
        s, action, over, solved = _step(task, agent, s, now)
        actions.append(np.asarray(action))
        for goal in np.flatnonzero(np.asarray(s.reached[0] & ~before.reached[0])).tolist():
            told(t + 1, goal)
        found = going[np.asarray(solved)[going]]
        if len(found):
            return run_of(int(found[0]), "")
        ended, going = going, going[~np.asarray(over)[going]]
        if not len(going):
            if n_worlds > 1:
                return None
            states = (jax.tree.map(lambda x: x[0], x.state) for x in (before, s))
            return run_of(int(ended[0]), task.task.endings[int(task.task.ending(*states))])
    return run_of(0, "given up") if n_worlds == 1 else None


def record_folder(
    folder: str | Path, setup: Setup, path: str | os.PathLike[str], seed: int = 1
) -> Run | None:
    """Record a run of a training's agents that finds a diamond, as an animated GIF.

    Args:
        folder: Folder of the training.
        setup: Task, demonstrations and model, as `prepare` returns them.
        path: The file.
        seed: Seed of the worlds.

    Returns:
        The run; None if none of 16 found a diamond in 1,000 steps: then nothing is written.
    """
    training, (task, agent) = read_training(folder)[0], load_stage(folder, setup)
    with jax.default_matmul_precision(training.precision):
        run = record(task, agent, jax.random.key(seed))
    if run is not None:
        save_video(path, marked(run, training), subgoals_of(setup, training.goals).symbols)
    return run


def marked(run: Run, training: Training) -> Run:
    """Return a run as it is shown: where any sub-goal that is left is the next, none is marked."""
    if training.goals != "kinds":
        return run
    return run._replace(subtasks=np.full_like(run.subtasks, -1))


# Pictures


@cache
def _font(size: int, bold: bool = False) -> Any:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


def _panel(height: int, names: Sequence[str], run: Run, t: int) -> Image.Image:
    """Return the list of sub-goals at time t: reached ones ticked, the current one in a bar."""
    panel = Image.new("RGB", (_PANEL, height), _BACK)
    draw = ImageDraw.Draw(panel)
    draw.text((12, 8), f"step {t}", font=_font(15, bold=True), fill=_TEXT)
    top, line = 34, min(22.0, (height - 40) / len(names))
    size = max(min(int(line * 0.66), 13), 6)
    font, tick = _font(size), _font(size + 2, bold=True)
    for k, name in enumerate(names):
        middle = top + (k + 0.5) * line
        done, now = bool(run.reached[t, k]), k == run.subtasks[t]
        if now:
            box = (6, middle - line / 2 + 0.5, _PANEL - 7, middle + line / 2 - 1)
            draw.rounded_rectangle(box, radius=4, fill=_NOW)
        if done:
            draw.text((20, middle), "✓", font=tick, fill=_DONE, anchor="mm")
        color = (0, 0, 0) if now else _TEXT if done else _FAINT
        draw.text((34, middle), name, font=font, fill=color, anchor="lm")
    return panel


def _shine(frame: Image.Image, width: int, light: float) -> Image.Image:
    """Return a frame in a golden border, its picture brightened."""
    frame = frame.copy()
    box = (0, 0, width, frame.height)
    gold = Image.new("RGB", (width, frame.height), _GOLD)
    frame.paste(Image.blend(frame.crop(box), gold, light), box)
    draw = ImageDraw.Draw(frame)
    draw.rectangle((0, 0, frame.width - 1, frame.height - 1), outline=_GOLD, width=5)
    return frame


def _faded(frame: Image.Image, width: int, word: str) -> Image.Image:
    """Return a frame whose picture is dark, with a word on it."""
    frame = frame.copy()
    box = (0, 0, width, frame.height)
    dark = Image.new("RGB", (width, frame.height), _BACK)
    frame.paste(Image.blend(frame.crop(box), dark, 0.6), box)
    middle = (width / 2, frame.height / 2)
    ImageDraw.Draw(frame).text(middle, word, font=_font(26, bold=True), fill=_TEXT, anchor="mm")
    return frame


def _frames(run: Run, names: Sequence[str], scale: int) -> list[Image.Image]:
    """Return a frame for each state, then how it ended: flashes and gold, or a word."""
    paint, frames = painter(BLOCK_PIXEL_SIZE_IMG, _DARKEST), []
    for t in range(len(run.subtasks)):
        pixels = np.asarray(paint(jax.tree.map(lambda x, t=t: x[t], run.states.world)))
        height, width = (scale * n for n in pixels.shape[:2])
        picture = Image.fromarray(pixels).resize((width, height), Image.Resampling.NEAREST)
        frame = Image.new("RGB", (width + _PANEL, height))
        frame.paste(picture, (0, 0))
        frame.paste(_panel(height, names, run, t), (width, 0))
        frames.append(frame)
    last = frames[-1]
    if run.failed:
        return [*frames, _faded(last, last.width - _PANEL, run.failed)]
    flash, gold = (_shine(last, last.width - _PANEL, light) for light in (0.55, 0.0))
    return [*frames, *[flash, last] * (_FLASHES - 1), flash, gold]


def save_video(
    path: str | os.PathLike[str],
    run: Run,
    goals: Sequence[object],
    scale: int = 3,
    step_ms: int = 100,
    hold_ms: int = 3000,
) -> None:
    """Write a run as an animated GIF: the player's view, and the sub-goals beside it.

    A frame for each state; at the diamond the picture flashes and stands still for a while. A run
    that fails fades, and says how it ended.

    Args:
        path: The file; it is written whole or not at all.
        run: The run.
        goals: Symbols of the sub-goals.
        scale: Pixels of the screen for each of Craftax's; a block has 16 of these.
        step_ms: Milliseconds of each step.
        hold_ms: Milliseconds of the last picture.
    """
    if check_writable(path).suffix.lower() != ".gif":
        raise ValueError(f"cannot write {path}: an animated GIF is written; end its name in .gif")
    if len(goals) != run.reached.shape[1]:
        raise ValueError(f"the run has {run.reached.shape[1]} sub-goals; {len(goals)} were given")
    frames = _frames(run, goal_names([str(goal) for goal in goals]), scale)
    flashes = 0 if run.failed else 2 * _FLASHES - 1
    durations = [step_ms] * (len(frames) - flashes - 1) + [150] * flashes + [hold_ms]
    palette = _palette(frames)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    options = {"save_all": True, "append_images": small[1:], "duration": durations, "loop": 0}
    write_whole(path, lambda file: small[0].save(file, format="GIF", **options))


def _palette(frames: Sequence[Image.Image]) -> Image.Image:
    """Return one palette for all frames.

    Rare colours, such as that of a heart, count more than their share of the pixels.
    """
    chosen = [*frames[::10], *frames[-3:]]
    pixels = np.concatenate([np.asarray(frame)[::2, ::2].reshape(-1, 3) for frame in chosen])
    packed = pixels.astype(np.int32) @ np.array([1 << 16, 1 << 8, 1], np.int32)
    colors, counts = np.unique(packed, return_counts=True)
    weighted = np.repeat(colors, np.ceil(np.sqrt(counts)).astype(int))
    image = np.stack([weighted >> 16, weighted >> 8 & 255, weighted & 255], axis=1).astype(np.uint8)
    return Image.fromarray(image[None]).quantize(128, method=Image.Quantize.MEDIANCUT)
