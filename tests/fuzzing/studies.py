"""Files of trainings, studies and datasets, and how each is read."""

import json
import os
import warnings
from dataclasses import asdict

import jax
import jax.numpy as jnp
import numpy as np

import align_rudder as ar
from align_rudder.data.minari import load_minari
from align_rudder.hierarchy.replays import Replays
from align_rudder.hierarchy.settings import Training
from align_rudder.minerl.autoencoder import AutoEncoder, train_autoencoder
from align_rudder.minerl.events import InventoryEvents
from align_rudder.minerl.testing.synthetic import simulate, write_trajectory
from align_rudder.minerl.trajectory import Trajectory
from align_rudder.runs.checkpoint import load_tree, save_tree
from align_rudder.runs.claim import claim
from align_rudder.runs.rows import JsonRows, Rows, read_rows
from align_rudder.studies.diamond.results import read_evaluation, read_training
from align_rudder.studies.rooms.settings import settings_of
from align_rudder.studies.rooms.trials import TrialRecord
from align_rudder.studies.statistics import summarise
from align_rudder.studies.trials import Trials
from align_rudder.tasks.diamond.demos import (
    Demonstration,
    load_demonstrations,
    save_demonstrations,
)
from align_rudder.tasks.diamond.task import DiamondTask
from fuzzing import mutations
from fuzzing.subjects import Subject, WrongError, archive, of_model, text, whole_json

CONFIGURATION = {"seed": 0, "ppo": {"gamma": 0.9}, "goals": ["log+1"]}
TASK = "MineRLObtainDiamond-v0"


def tree():
    return {
        "key": jax.random.key(3),
        "weights": jnp.arange(6.0).reshape(2, 3),
        "map": jnp.arange(4, dtype=jnp.int32),
        "bytes": jnp.arange(3, dtype=jnp.uint8),
        "flag": jnp.array([True, False]),
    }


def use_checkpoint(path):
    like = tree()
    found, notes = load_tree(path, like, CONFIGURATION)
    for name, leaf in like.items():
        if found[name].dtype != leaf.dtype or found[name].shape != leaf.shape:
            raise WrongError(f"{name} is {found[name]}")
    if np.isnan(found["weights"]).any() or not isinstance(notes, dict):
        raise WrongError(f"{found}, {notes}")


def use_replays(path):
    replays = Replays.load(path, 3)
    for kept in replays.kept:
        for seed, choices in kept:
            np.random.default_rng(seed)
            if any(not isinstance(at, int) for choice in choices for at in choice.values()):
                raise WrongError(f"{choices}")


def use_trials(path):
    found = Trials(path.parent, TrialRecord).found
    for one in summarise(found.values(), settings_of("four-rooms")):
        if not np.isfinite([one.mean, one.low, one.high]).all():
            raise WrongError(f"{one}")


def use_log(path):
    Rows(path, ["phase", "updates", "loss"]).read()
    read_rows(path, ("phase",))


def use_trajectory(path):
    trajectory = Trajectory(path.parent, TASK, 3)
    try:
        arrays = trajectory.arrays()
        steps, lead = len(trajectory), trajectory.lead_frames
    except ValueError as error:  # which names the trajectory
        raise ValueError(f"{path.name}: {error}") from error
    if len(arrays["reward"]) != steps or lead < 0:
        raise WrongError(f"{steps} steps, {lead} frames before")


def use_minari(path):
    try:
        episodes = load_minari(path.parent.parent)
    except ValueError as error:  # which names the dataset
        raise ValueError(f"{path.name}: {error}") from error
    for episode in episodes:
        if not np.isfinite(episode.ret):
            raise WrongError(f"return {episode.ret}")


def all_subjects(folder, rng):
    """Yield all of them."""
    yield from training_subjects(folder)
    yield from network_subjects(folder)
    yield from study_subjects()
    yield from dataset_subjects(folder, rng)


def training_subjects(folder):
    """Yield the files of trainings: checkpoints, recordings, configurations, logs."""
    path = folder / "made"
    save_tree(path, tree(), CONFIGURATION, {"phase": "agents", "steps": 5})
    yield Subject("checkpoint", "checkpoint.npz", path.read_bytes(), use_checkpoint, archive)
    replays = Replays(3, 4)
    chosen = [{"a": 1, "b": 2}, {"a": 0, "b": 3}]
    replays.kept = [[], [(7, chosen)], [(8, []), (2**31, chosen[:1])]]
    replays.save(path)
    yield Subject("replays", "replays.npz", path.read_bytes(), use_replays, archive)
    configured = json.dumps({**asdict(Training()), "alignment": "0" * 16}).encode()

    def training(path):
        read_training(path.parent)

    yield Subject("training", "training.json", configured, training, whole_json)
    counts = {"worlds": 9, "solved": 2, "reached": [9, 2], "episode_steps": 99}
    stage = {"player": "x", **counts, "deepest": {"wood": 7, "diamond": 2}}
    stage["endings"] = {"diamond": 2, "lava": 6}
    counted = {"worlds": 9, "goals": ["a", "b"], "stages": {"agent": stage, "cloned": stage}}
    yield Subject(
        "evaluation", "evaluation.json", json.dumps(counted).encode(), read_evaluation, whole_json
    )
    log = b"phase,updates,loss\nagents,1,0.5\nagents,2,nan\nmanager,1,1e-3\n"
    yield Subject("log", "updates.csv", log, use_log, text)


def network_subjects(folder):
    """Yield what networks and trainings in JAX begin with: auto-encoders, expert runs."""
    encoder = train_autoencoder(
        np.zeros((8, 16, 16, 3), np.uint8), size=16, latent=2, steps=1, batch=4, buffer=8
    )
    encoder.save(folder / "made.npz")
    content = (folder / "made.npz").read_bytes()

    def encode(path):
        features = AutoEncoder.load(path).encode(np.zeros((1, 16, 16, 3), np.uint8))
        if np.isnan(features).any():
            raise WrongError(f"features {features}")

    yield Subject("auto-encoder", "encoder.npz", content, encode, archive)
    task = DiamondTask()
    demo = load_demonstrations(None, task)[0]
    few = jax.tree.map(lambda leaf: leaf[-4:], demo.states)
    save_demonstrations(folder / "made.npz", [Demonstration(few, demo.actions[-3:], True)] * 2)
    content = (folder / "made.npz").read_bytes()

    def begin(path):
        for one in load_demonstrations(path, task):
            one.episode(task)

    yield Subject("expert runs", "demonstrations.npz", content, begin, archive)


def study_subjects():
    """Yield the files of studies: what a folder belongs to, trials."""

    def claimed(path):
        claim(path.parent, CONFIGURATION, empty=False)

    config = json.dumps(CONFIGURATION).encode()
    yield Subject("claim", "config.json", config, claimed, whole_json)
    settings = settings_of("four-rooms", ["bc-q", "control"], [2, 5])
    records = [
        TrialRecord(setting, seed, 100 + seed, True, 999, (0.5, 1.0))
        for setting in settings
        for seed in (0, 1)
    ]
    lines = [",".join(TrialRecord.COLUMNS), *(",".join(record.row()) for record in records)]
    trials = ("\n".join(lines) + "\n").encode()
    yield Subject("trials", "trials.csv", trials, use_trials, text)
    rows = b'{"method": "x", "seed": 0, "returns": [0.5, null]}\n{"method": "y"}\n'
    yield Subject("JSON rows", "rows.jsonl", rows, lambda path: JsonRows(path).read(), text)


def dataset_subjects(folder, rng):
    """Yield the files of datasets of others: MineRL, Minari."""
    arrays = simulate(rng, 400)
    for name, change in (("rendered.npz", archive), ("metadata.json", whole_json)):
        home = folder / f"v3_{name.split('.')[0]}"
        write_trajectory(home, arrays, 3, len(arrays["reward"]) + 5)
        content = (home / name).read_bytes()
        yield Subject(f"MineRL {name}", f"{home.name}/{name}", content, use_trajectory, change)
    inventory = np.zeros((6, 18), int)
    inventory[:, 0], inventory[:, 3] = [0, 1, 2, 2, 1, 1], [0, 0, 0, 0, 4, 4]
    observations = {"inventory": inventory, "equipped": [0] * 6, "diamond": [0] * 5 + [1]}
    demos = [ar.Episode(observations, [0] * 5, [0, 0, 0, 0, 1.0])] * 3
    ar.AlignRudder(InventoryEvents(max_share=0.5), strategies=1).fit(demos).save(folder / "m.npz")
    content, use = (folder / "m.npz").read_bytes(), of_model(ar.AlignRudder, demos[:1])
    yield Subject("inventories", "model.npz", content, use, archive)
    for name, change in (("metadata.json", whole_json), ("main_data.hdf5", some_bytes)):
        home = folder / name.split(".")[0]
        write_minari_dataset(home)
        content, where = (home / "data" / name).read_bytes(), f"{home.name}/data/{name}"
        yield Subject(f"Minari {name}", where, content, use_minari, change)


def some_bytes(content, others, rng):
    return mutations.damage(content, rng)


def write_minari_dataset(home):
    """Write a small Minari dataset into a new folder."""
    from gymnasium import spaces
    from minari import create_dataset_from_buffers
    from minari.data_collector.episode_buffer import EpisodeBuffer

    os.environ["MINARI_DATASETS_PATH"] = str(home.parent)
    buffers = [
        EpisodeBuffer(
            id=i,
            observations=np.array([0, 1, 2, 3]),
            actions=np.array([1, 1, 1]),
            rewards=[0.0, 0.0, 1.0],
            terminations=[False, False, True],
            truncations=[False] * 3,
            infos={},
        )
        for i in range(2)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        create_dataset_from_buffers(
            "fuzzed-v0",
            buffer=buffers,
            observation_space=spaces.Discrete(4),
            action_space=spaces.Discrete(2),
            algorithm_name="hand",
            author="test",
            code_permalink="none",
            description="a walk",
        )
    os.rename(home.parent / "fuzzed-v0", home)
