"""Minari: offline datasets as episodes, and datasets whose rewards are redistributed."""

from __future__ import annotations

import operator
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from align_rudder.episodes import Episode, Tree, tree_index
from align_rudder.files import Anything, Each, Whole, read_json
from align_rudder.model import AlignRudder
from align_rudder.settlement import Settlement

if TYPE_CHECKING:
    from minari import EpisodeData, MinariDataset
    from minari.data_collector import EpisodeBuffer

__all__ = ["import_minari", "load_minari", "new_dataset", "write_minari"]

_INFO_KEY = "align_rudder"
_MAX_RATIO, _UNPACKED = 1100, 2**24  # more than HDF5 can compress, but for what is small
# What Minari's storage says of itself; all other metadata of a dataset is carried over.
_OF_STORAGE = {
    "action_space",
    "data_format",
    "dataset_id",
    "dataset_size",
    "jpeg_encoding",
    "minari_version",
    "observation_space",
    "total_episodes",
    "total_steps",
}


def load_minari(
    dataset: str | os.PathLike[str] | MinariDataset, *, episodes: Sequence[int] | None = None
) -> list[Episode]:
    """Return the episodes of a Minari dataset on this machine; nothing is downloaded.

    Args:
        dataset: The id of a local dataset, the path of a dataset's folder, or an open dataset. A
            string is taken as an id first.
        episodes: Which episodes, counted from 0 within the dataset; None for all.

    Returns:
        The episodes. `infos[t]` is the info of the step into `observations[t + 1]` (Minari also
        stores that of the reset, which belongs to no step); without infos it is None.

    Example:
        ::

            demonstrations = load_minari("D4RL/door/expert-v2", episodes=range(10))
    """
    source = _open(dataset)
    return [_episode(source, _read(source, i)) for i in _choose(source, episodes)]


def write_minari(
    dataset: str | os.PathLike[str] | MinariDataset,
    model: AlignRudder,
    new_id: str,
    *,
    settlement: Settlement | str = "even",
) -> MinariDataset:
    """Write a new local dataset: the same episodes with the redistributed rewards.

    Observations, actions, ends, infos, seeds, spaces, env spec and metadata are those of the
    source. The infos gain `align_rudder` with, for each step, `original_reward`, `event` (-1 for
    none), `score` S(τ_t) and `share`, the redistributed reward alone; its first entry belongs to
    the reset, as in all Minari infos. The dataset appears under its id when it is complete, or not
    at all.

    Args:
        dataset: The source, in any form that `load_minari` takes.
        model: A fitted model.
        new_id: Id of the new dataset, `(namespace/)name-v0`.
        settlement: Where the rest of each return goes (`align_rudder.settlement`): "even", "mean",
            "last", "beside", or `Settlement("potential", gamma=…)`.

    Returns:
        The new dataset. Images are stored as they were decoded, as encoding them again as JPEG
        would alter them.
    """
    source = _open(dataset)  # before the imports, as it says what to install
    indices = _choose(source, None)
    from minari import MinariDataset, __version__
    from minari.dataset.minari_storage import MinariStorage

    settled = Settlement.of(settlement)
    with new_dataset(new_id) as written:
        storage = MinariStorage.new(
            written.folder / "data",
            source.observation_space,
            source.action_space,
            data_format=source.storage.FORMAT,
            jpeg_encoding=False,
        )
        about = {"dataset_id": new_id, "minari_version": __version__}
        storage.update_metadata(_metadata(source) | about)
        each: list[dict[str, Any]] = []
        storage.update_episodes(_redistributed(source, indices, model, settled, each))
        storage.update_episode_metadata(each)
    return MinariDataset(written.target / "data")


class NewDataset(NamedTuple):
    """Where a dataset is written, and where it will be."""

    folder: Path
    target: Path


@contextmanager
def new_dataset(new_id: str) -> Iterator[NewDataset]:
    """Write a local dataset whole or not at all: at the end it appears under its id.

    Args:
        new_id: Id of the dataset, `(namespace/)name-v0`; there must be none of that id.
    """
    from minari.namespace import create_namespace, list_local_namespaces
    from minari.storage import get_dataset_path

    namespace, target = _namespace(new_id), get_dataset_path(new_id)
    taken = f"there is already a dataset {new_id!r} ({target}); choose another id or version"
    if target.exists():
        raise ValueError(taken)
    # Minari lists no hidden folders, so nothing shows before the rename.
    with tempfile.TemporaryDirectory(dir=get_dataset_path(), prefix=".align-rudder-") as scratch:
        folder = Path(scratch, "dataset")
        folder.mkdir()
        yield NewDataset(folder, target)
        if namespace is not None and namespace not in list_local_namespaces():
            create_namespace(namespace)
        try:
            os.rename(folder, target)
        except OSError as error:
            raise (ValueError(taken) if target.exists() else error) from error


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Turn whatever a damaged file makes Minari, h5py and json raise into one kind of error."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(
            f"{what} cannot be read: the dataset is damaged, truncated or of a version that this "
            f"Minari does not know ({type(error).__name__}: {error}); download or write it again"
        ) from error


def import_minari() -> Any:
    """Return Minari, or say how to install it."""
    try:
        import minari
    except ImportError as error:
        raise ImportError(
            'Minari datasets need minari; in a clone: pip install ".[minari]"'
        ) from error
    return minari


def _open(dataset: str | os.PathLike[str] | MinariDataset) -> MinariDataset:
    import_minari()
    from minari import MinariDataset
    from minari.storage import get_dataset_path

    if isinstance(dataset, MinariDataset):
        return dataset
    if not isinstance(dataset, (str, os.PathLike)):
        raise ValueError(
            f"dataset is a {type(dataset).__name__}; the id of a local dataset, the path of a "
            "dataset's folder or an open MinariDataset is needed"
        )
    root, path = get_dataset_path(), Path(dataset)
    candidates = [root / path, path] if isinstance(dataset, str) else [path]
    for candidate in candidates:
        for folder in (candidate / "data", candidate):
            if (folder / "metadata.json").is_file():
                with _reading(str(candidate)):
                    _check_metadata(folder)
                    return MinariDataset(folder)
    found = (p.parents[1].relative_to(root).as_posix() for p in root.glob("**/data/metadata.json"))
    local = ", ".join(sorted(name for name in found if name[0] != ".")) or "none"
    if existing := [c for c in candidates if c.exists()]:
        problem = (
            f"{existing[0]} is not a Minari dataset, as it holds no data/metadata.json; of "
            "episodes in a folder, give the files one by one"
        )
    else:
        problem = f"there is no dataset {str(dataset)!r}, neither in {root} nor as a folder"
    raise ValueError(
        f"{problem}. Local datasets: {local}. Nothing is downloaded here: use "
        "minari.download_dataset first, or set MINARI_DATASETS_PATH to where your datasets lie"
    )


def _check_metadata(folder: Path) -> None:
    """Refuse metadata that count more than the files can hold: Minari makes room for as many."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    found = read_json(folder / "metadata.json", Each(Anything()), constants=True)
    Whole(0, size).check(found.get("total_episodes", 0), "total_episodes in metadata.json")


def _namespace(new_id: str) -> str | None:
    from minari.dataset.minari_dataset import parse_dataset_id

    try:
        return parse_dataset_id(new_id)[0]
    except (TypeError, ValueError) as error:  # TypeError where there is no version
        raise ValueError(
            f"{new_id!r} is not a Minari id; it has the form (namespace/)name-v0, of "
            "letters, digits, - and _, with a version"
        ) from error


def _choose(source: MinariDataset, episodes: Sequence[int] | None) -> list[int]:
    """Return the indices in the storage, of which a dataset may be a part."""
    n = source.total_episodes
    if n == 0:
        raise ValueError(f"the dataset {source.id} has no episodes; at least one is needed")
    try:
        chosen = range(n) if episodes is None else [operator.index(i) for i in episodes]
    except TypeError as error:
        raise ValueError(
            f"episodes={episodes!r}; a sequence of whole numbers is needed, such as [0, 2]"
        ) from error
    if wrong := [i for i in chosen if not 0 <= i < n]:
        raise ValueError(f"episodes {wrong} do not exist: {source.id} has episodes 0 to {n - 1}")
    return [int(source.episode_indices[i]) for i in chosen]


def _read(source: MinariDataset, index: int) -> EpisodeData:
    with _reading(f"episode {index} of {source.id} ({source.storage.data_path})"):
        _check_claims(Path(source.storage.data_path, "main_data.hdf5"), f"episode_{index}")
        return next(source.iterate_episodes([index]))


def _check_claims(path: Path, group: str) -> None:
    """Refuse a group of an HDF5 file that claims to hold far more than the file has of it."""
    if not path.is_file():
        return  # another storage
    import h5py

    def check(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            claimed, stored = int(item.nbytes), int(item.id.get_storage_size())
            if claimed > max(_UNPACKED, _MAX_RATIO * stored):
                raise ValueError(f"{name} claims {claimed:,} bytes, of which {stored:,} are there")

    with h5py.File(path) as file:
        file[group].visititems(check)  # pyright: ignore[reportAttributeAccessIssue]


def _episode(source: MinariDataset, data: EpisodeData) -> Episode:
    try:
        return Episode(
            _arrays(data.observations),
            _arrays(data.actions),
            data.rewards,
            terminated=bool(np.any(data.terminations[-1:])),
            truncated=bool(np.any(data.truncations[-1:])),
            infos=_step_infos(data.infos, len(data.rewards)) if data.infos else None,
        )
    except ValueError as error:
        raise ValueError(f"episode {data.id} of {source.id}: {error}") from error


def _arrays(tree: Tree) -> Tree:
    """Return a tree of arrays: Minari gives the strings of a Text space as a list."""
    if isinstance(tree, dict):
        return {key: _arrays(part) for key, part in tree.items()}
    return tuple(map(_arrays, tree)) if isinstance(tree, tuple) else np.asarray(tree)


def _plain(infos: Any) -> Any:
    """Return infos with each row of numbers or strings as a list.

    Minari's storages write such lists and read the same back; of arrays, HDF5 cannot write
    strings (read as objects of bytes), and Arrow cannot read those with one axis.
    """
    if isinstance(infos, dict):
        return {key: _plain(part) for key, part in infos.items()}
    if np.ndim(infos) != 1:
        return infos
    return [value.decode() if type(value) is bytes else value for value in infos]


def _step_infos(infos: dict[str, Any], steps: int) -> list[dict[str, Any]]:
    def along_steps(tree: Any, name: str) -> Any:
        if isinstance(tree, dict):
            return {key: along_steps(part, f"{name}/{key}") for key, part in tree.items()}
        if np.ndim(tree) == 0:  # one value for the whole episode
            return [tree] * steps
        if len(tree) not in (steps, steps + 1):
            raise ValueError(
                f"{name} has length {len(tree)}; for {steps} steps {steps + 1} are needed, the "
                f"reset's first, or {steps} without it"
            )
        return tree[len(tree) - steps :]

    aligned = along_steps(_plain(infos), "infos")
    return [tree_index(aligned, t) for t in range(steps)]


def _metadata(source: MinariDataset) -> dict[str, Any]:
    raw = source.storage.read_raw_metadata(source.storage.data_path)
    kept = {key: value for key, value in raw.items() if key not in _OF_STORAGE}
    for key in {"author", "author_email"} & kept.keys():  # Minari wants sets
        kept[key] = {kept[key]} if isinstance(kept[key], str) else set(kept[key])
    return kept | {"redistributed_from": source.id}


def _redistributed(
    source: MinariDataset,
    indices: Sequence[int],
    model: AlignRudder,
    settlement: Settlement,
    each: list[dict[str, Any]],
) -> Iterator[EpisodeBuffer]:
    """Yield one episode at a time with its new rewards; append its metadata to `each`."""
    from minari import EpisodeMetadataCallback
    from minari.data_collector import EpisodeBuffer

    for index in indices:
        data = _read(source, index)
        episode = _episode(source, data)
        old_infos = _plain(data.infos or {})
        if _INFO_KEY in old_infos:
            raise ValueError(
                f"{source.id} was redistributed before (the infos of episode {index} have "
                f"{_INFO_KEY!r}); give the dataset with the original rewards"
            )
        rr = model.redistribute(episode)
        start = model.events_.start_event(tree_index(episode.observations, 0))
        infos = {
            "original_reward": [0.0, *episode.rewards],
            "event": [start, *rr.events],
            "score": [0.0, *rr.scores],
            "share": [0.0, *rr.rewards],
        }
        rewards = rr.settled(settlement)
        (kept,) = source.storage.get_episode_metadata([index])
        seed, options = kept.pop("seed", None), kept.pop("options", None)
        statistics = EpisodeMetadataCallback()({"rewards": rewards}) | {"id": len(each)}
        each.append({key: statistics.get(key, value) for key, value in _flat(kept).items()})
        yield EpisodeBuffer(
            seed=seed,
            options=options,
            observations=data.observations,
            actions=data.actions,
            rewards=rewards.tolist(),
            terminations=data.terminations.tolist(),
            truncations=data.truncations.tolist(),
            infos={**old_infos, _INFO_KEY: infos},
        )


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Undo how HDF5 storage reads metadata: an attribute "a/b" comes back as {"a": {"b": …}}."""
    out = {}
    for key, part in tree.items():
        out |= _flat(part, f"{prefix}{key}/") if isinstance(part, dict) else {prefix + key: part}
    return out
