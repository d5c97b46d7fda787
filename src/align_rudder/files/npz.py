"""Archives of arrays (npz): written without pickle, read with limits and no trust in what they say.

Whatever a file declares (sizes in its directory, types and shapes of its arrays) is compared with
what is there before memory is taken for it.
"""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from collections.abc import Mapping
from typing import IO, Any, Self

import numpy as np

from align_rudder.files.kinds import shown
from align_rudder.files.reading import check_file, parse_json
from align_rudder.files.writing import write_whole

__all__ = ["Archive", "load_npz", "map_npy", "read_header", "save_npz"]

_MAX_BYTES = 2**35  # of all arrays of a file together
_MAX_MEMBERS = 100_000
_MAX_RATIO, _PACKED = 500, 2**30  # unpacked to packed size, of files that unpack to more than this
_MAX_HEADER = 2**28
_MAX_EMPTY = 10**7  # an array without elements may still have many rows
_MAX_NPY_HEADER = 10_000
_NPY_HEADER = re.compile(
    r"\{'descr': '([^',()]*)', 'fortran_order': (True|False), 'shape': \(([-\d, ]*)\),? ?\}\s*"
)
_KINDS = "biufcUS"


def save_npz(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    level: int = 6,
) -> None:
    """Save arrays and a JSON header (stored as the member `header`) as one npz file.

    Args:
        path: The file.
        kind: Name of the format.
        version: Version of the format.
        header: What else should be stored, as JSON.
        arrays: The arrays.
        level: How hard to compress, from 1 (fast) to 9 (small).
    """
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise ValueError(
                f"cannot save {name}: its elements are Python objects, which only pickle could "
                "store; convert it to a numeric or string array"
            )
    text = json.dumps({"format": kind, "version": version, **header})
    members = {"header": np.frombuffer(text.encode(), dtype=np.uint8), **arrays}

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
            for name, array in members.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)

    write_whole(path, write)


class Archive:
    """An npz file, open for reading; its arrays are read one by one.

    Args:
        path: The file.

    Attributes:
        names: The names of its arrays.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = check_file(path)
        try:
            self._file = zipfile.ZipFile(self.path)
        except Exception as error:  # a damaged archive can fail in any of many ways
            raise self._unreadable(self._trouble(error)) from error
        try:
            self._members = self._checked()
        except BaseException:
            self._file.close()
            raise

    @property
    def names(self) -> list[str]:
        """The names of its arrays."""
        return list(self._members)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()

    def _unreadable(self, why: str) -> ValueError:
        return ValueError(
            f"{self.path} cannot be read as an npz file: it is truncated, damaged or another kind "
            f"of file ({why})"
        )

    def _trouble(self, error: Exception) -> str:
        with self.path.open("rb") as file:
            single = file.read(6) == b"\x93NUMPY"
        if single:
            return "it is a single array, not an archive of arrays"
        return str(error) or type(error).__name__

    def _checked(self) -> dict[str, zipfile.ZipInfo]:
        """Return the members by the names of their arrays, after a look at what they declare."""
        infos = self._file.infolist()
        if len(infos) > _MAX_MEMBERS:
            raise self._unreadable(f"{len(infos):,} members; at most {_MAX_MEMBERS:,} are read")
        members: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            name = info.filename.removesuffix(".npy")
            if name == info.filename:
                raise self._unreadable(f"its member {shown(name)} is not an array")
            if name in members:
                raise self._unreadable(f"two of its members are called {shown(name)}")
            if info.flag_bits & 1 or info.compress_type not in (
                zipfile.ZIP_STORED,
                zipfile.ZIP_DEFLATED,
            ):
                raise self._unreadable(f"its member {shown(name)} is encrypted or packed oddly")
            members[name] = info
        packed, size = sum(i.compress_size for i in infos), self.path.stat().st_size
        unpacked = sum(info.file_size for info in infos)
        if packed > size:
            raise self._unreadable(f"its members claim {packed:,} bytes of {size:,}")
        if unpacked > _MAX_BYTES or unpacked > max(_PACKED, _MAX_RATIO * size):
            raise ValueError(
                f"{self.path} has {size:,} bytes but would unpack to {unpacked:,}; at most "
                f"{_MAX_BYTES:,} are read, and {_MAX_RATIO} times its size: store less in one file"
            )
        return members

    def array(self, name: str) -> np.ndarray:
        """Return an array, or raise a `ValueError` if it is not what it says or holds objects."""
        info = self._members[name]
        try:
            with self._file.open(info) as member:
                data = bytearray(member.read(info.file_size))
            if len(data) < info.file_size:
                raise ValueError("it ends too early")
            return _array(data)
        except Exception as error:  # see above
            raise self._unreadable(f"at {shown(name)}: {error or type(error).__name__}") from error

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays."""
        return {name: self.array(name) for name in self._members}


def _declared(start: bytes) -> tuple[np.dtype, bool, tuple[int, ...], int]:
    """Return what the header of an npy file declares, and where its data begin.

    NumPy compiles the header as Python, which fails now and then when threads do it at once
    (a fault of Python before 3.12.1).
    """
    if start[:6] != b"\x93NUMPY":
        raise ValueError("it does not begin as an npy file does")
    version = tuple(start[6:8])
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the npy format is not read")
    begin = 10 if version == (1, 0) else 12
    offset = begin + int.from_bytes(start[8:begin], "little")
    text = start[begin:offset].decode("latin-1")
    found = _NPY_HEADER.fullmatch(text)
    if found is None or len(start) < offset:
        raise ValueError(f"its header {shown(text)} does not name one type, an order and a shape")
    dtype = np.dtype(found[1])
    if dtype.hasobject:
        raise ValueError(
            "one of its arrays holds Python objects, which are not loaded; save numbers or text"
        )
    if dtype.kind not in _KINDS or dtype.itemsize == 0 or dtype.subdtype is not None:
        raise ValueError(f"an array of type {dtype} is not read; save numbers or text")
    shape = tuple(int(n) for n in re.findall(r"-?\d+", found[3]))
    return dtype, found[2] == "True", shape, offset


def _array(data: bytearray) -> np.ndarray:
    """Return the array of an npy file."""
    dtype, fortran, shape, offset = _declared(bytes(data[:_MAX_NPY_HEADER]))
    size = math.prod(shape)
    if any(n < 0 or (size == 0 and n > _MAX_EMPTY) for n in shape) or len(shape) > 32:
        raise ValueError(f"an array cannot have shape {shown(shape)}")
    if size * dtype.itemsize != (found := len(data) - offset):
        raise ValueError(f"{found:,} bytes for {dtype} of shape {shown(shape)}")
    array = np.frombuffer(data, dtype, offset=offset) if size else np.empty(0, dtype)
    array = array.reshape(shape, order="F" if fortran else "C")
    if not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
    if dtype.kind == "b" and (array.view(np.uint8) > 1).any():
        raise ValueError("a truth value is neither true nor false")
    if dtype.kind == "U":
        codes = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
        if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise ValueError("a text holds characters that Unicode does not know")
    return array


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a file that `save_npz` wrote, without reading its arrays."""
    with Archive(path) as archive:
        if "header" not in archive.names:
            raise ValueError(f"{path} is an npz file but has no header of ours")
        return _header(archive.array("header"), path)


def _header(data: np.ndarray, path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        if data.ndim != 1 or data.dtype != np.uint8 or len(data) > _MAX_HEADER:
            raise ValueError(f"it is {data.dtype} of shape {data.shape}")
        header = parse_json(data.tobytes().decode(), constants=True)
        if not isinstance(header, dict) or not {"format", "version"} <= header.keys():
            raise ValueError(f"it names no format and version: {shown(header)}")
    except ValueError as error:
        raise ValueError(f"{path} has a header that is not ours: {error}") from error
    return header


def load_npz(
    path: str | os.PathLike[str], kind: str, version: int, *, header_needed: bool = True
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header and arrays that `save_npz` wrote; a damaged file or another is a `ValueError`.

    What they hold is not checked here; see `Format`.
    """
    with Archive(path) as archive:
        if "header" not in archive.names:
            if header_needed:
                raise ValueError(f"{path} is an npz file but not one of format {kind!r}: no header")
            return {}, archive.arrays()
        header = _header(archive.array("header"), path)
        if header["format"] != kind:
            found = shown(_content(header["format"]))
            needed = _content(kind)
            raise ValueError(f"{path} is a file of kind {found}; one of kind {needed!r} is needed")
        if type(header["version"]) is not int or header["version"] != version:
            raise ValueError(
                f"{path} has version {shown(header['version'])} of format {kind!r}, this package "
                f"reads version {version}; install the package version that wrote it, or write the "
                "file again"
            )
        return header, {name: archive.array(name) for name in archive.names if name != "header"}


def _content(kind: Any) -> Any:
    """Return what a file of a format holds, in words."""
    return kind.removeprefix("align-rudder-") if isinstance(kind, str) else kind


def map_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """Return the array of an npy file as a read-only memory map, so that parts can be read."""
    check_file(path)
    try:
        with open(path, "rb") as file:
            dtype, fortran, shape, offset = _declared(file.read(_MAX_NPY_HEADER))
        return np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C")
    except Exception as error:  # as with archives
        raise ValueError(f"{path} cannot be read as an npy file: {error}") from error
