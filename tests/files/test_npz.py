"""Archives of arrays come back as they were; others, and what they claim, are not trusted."""

import io
import os
import pickle
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_rudder.files import Archive, Floats, Format, Ints, Whole, load_npz, save_npz
from align_rudder.files.npz import _array


def test_the_old_model_stays_when_an_array_cannot_be_saved(tmp_path):
    path = tmp_path / "m.npz"
    save_npz(path, "kind", 1, {"n": 1}, {"a": np.arange(3)})
    before = path.read_bytes()
    for header, arrays in [({"n": object()}, {}), ({}, {"a": np.array([None])})]:
        with pytest.raises((TypeError, ValueError)):
            save_npz(path, "kind", 1, header, arrays)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.npz"]


def test_header_and_arrays_come_back(tmp_path):
    header = {"text": "λ*", "list": [1, None, 2.5], "nested": {"a": True}}
    arrays = {"x": np.eye(2, dtype=int), "words": np.array(["a", "bc"]), "empty": np.empty((0, 3))}
    save_npz(tmp_path / "m.npz", "kind", 3, header, arrays)
    loaded_header, loaded = load_npz(tmp_path / "m.npz", "kind", 3)
    assert {k: loaded_header[k] for k in header} == header
    assert loaded.keys() == arrays.keys()
    for name in arrays:
        assert loaded[name].dtype == arrays[name].dtype
        np.testing.assert_array_equal(loaded[name], arrays[name])


def test_object_arrays_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match=r"cannot save x: .*Python objects.*numeric or string"):
        save_npz(tmp_path / "m.npz", "kind", 1, {}, {"x": np.array([{}, 1], dtype=object)})
    assert not (tmp_path / "m.npz").exists()


class _Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("how", ["npz", "npy", "pickle"])
def test_no_pickle_is_loaded(tmp_path, how):
    mark, path = tmp_path / "exploded", tmp_path / "evil.npz"
    content = np.array([_Bomb(mark)], dtype=object)
    with open(path, "wb") as file:
        if how == "npz":
            np.savez(file, header=content)
        elif how == "npy":
            np.save(file, content, allow_pickle=True)
        else:
            pickle.dump(content, file)
    with pytest.raises(ValueError, match="cannot be read as an npz file"):
        load_npz(path, "kind", 1)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"not JSON", "header that is not ours"),
        (b"[1, 2]", "header that is not ours"),
        (b"{}", "header that is not ours"),
        (b"\xff\xfe", "header that is not ours"),
        (b'{"format": "kind"}', "header that is not ours"),
        (
            b'{"format": "cake", "version": 1}',
            "of kind 'cake'; one of kind 'kind' is needed",
        ),
        (b'{"format": "kind", "version": 2}', "version 2 .*reads version 1; install"),
        (None, "not one of format 'kind': no header"),
    ],
)
def test_a_foreign_header_is_explained(tmp_path, header, message):
    members = {} if header is None else {"header": np.frombuffer(header, np.uint8)}
    np.savez(tmp_path / "m.npz", x=np.arange(2), **members)
    with pytest.raises(ValueError, match=message):
        load_npz(tmp_path / "m.npz", "kind", 1)


# What a file claims is compared with what is there before memory is taken for it


def packed(path, members, compressed=True):
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in members:
            archive.writestr(name, content)


def npy(array, **claims):
    """Return an npy file, of which the header may claim something else."""
    file = io.BytesIO()
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | claims
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            npy(np.arange(3), shape=(2**40,)),
            r"at 'x': 24 bytes for int64 of shape \(10995116",
        ),
        (npy(np.arange(3), shape=(2**60, 2**60)), "24 bytes for int64 of shape"),
        (npy(np.arange(3), shape=(-3,)), r"cannot have shape \(-3,\)"),
        (npy(np.empty(0), shape=(10**9, 0)), "cannot have shape"),
        (npy(np.arange(3), descr="|O"), "holds Python objects, which are not loaded"),
        (npy(np.arange(3), descr="<M8[s]"), "of type datetime64.* is not read"),
        (npy(np.arange(6, dtype=np.uint8), descr="|V3", shape=(2,)), "is not read"),
        (npy(np.array([1, 7], np.uint8), descr="|b1"), "neither true nor false"),
        (npy(np.array([0x110000], np.uint32), descr="<U1"), "that Unicode does not know"),
        (npy(np.array([0xD800], np.uint32), descr="<U1"), "that Unicode does not know"),
        (npy(np.zeros(3, [("a", int)]), descr=[("a", "<i8")]), "does not name one type"),
        (npy(np.arange(3))[:20], "does not name one type"),
        (b"\x93NUMPY\x09\x00", "version"),
        (b"", "at 'x'"),
        (b"hello", "at 'x'"),
    ],
)
def test_an_array_that_lies_is_refused(tmp_path, content, message):
    packed(tmp_path / "a.npz", [("x.npy", content)])
    with pytest.raises(ValueError, match=rf"a\.npz cannot be read as an npz file.*{message}"):
        Archive(tmp_path / "a.npz").array("x")


@settings(deadline=None, derandomize=True)
@given(
    st.sampled_from(["<f8", ">i2", "|b1", "|u1", "<U3", "|S2", "<c16", "<f2"]),
    st.lists(st.integers(0, 4), max_size=4),
    st.sampled_from("CF"),
    st.sampled_from([(1, 0), (2, 0)]),
)
def test_numpy_reads_the_same(dtype, shape, order, version):
    array = np.zeros(shape, dtype, order)
    array.reshape(-1)[:1] = 1
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    read = _array(bytearray(file.getvalue()))
    assert read.dtype == array.dtype.newbyteorder("=")
    assert read.flags.c_contiguous >= array.flags.c_contiguous
    np.testing.assert_array_equal(read, array)


def test_reading_compiles_no_python(tmp_path, monkeypatch):
    # Python 3.11 fails at times when threads compile at once: a good file was called damaged
    def compiling(*given):
        raise SystemError("AST constructor recursion depth mismatch (before=57, after=53)")

    path = tmp_path / "a.npz"
    save_npz(path, "kind", 1, {}, {"x": np.arange(6).reshape(2, 3)})
    monkeypatch.setattr("ast.literal_eval", compiling)
    monkeypatch.setattr("ast.parse", compiling)
    np.testing.assert_array_equal(load_npz(path, "kind", 1)[1]["x"], [[0, 1, 2], [3, 4, 5]])


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path):
    path = tmp_path / "bomb.npz"
    packed(path, [("x.npy", b"x" * 1000)])
    data = bytearray(path.read_bytes())
    at = data.rfind(b"PK\x01\x02") + 24  # the unpacked size in the directory
    data[at : at + 4] = (2**31).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"bomb\.npz has \d+ bytes but would unpack to 2,147,483"):
        Archive(path)
    data[at : at + 4] = (10).to_bytes(4, "little")  # less than there is: it is not unpacked
    path.write_bytes(data)
    with pytest.raises(ValueError, match="at 'x'"):
        Archive(path).array("x")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("x.npy", b""), ("x.npy", b"")], "two of its members are called 'x'"),
        ([("x", b"")], "its member 'x' is not an array"),
    ],
)
def test_odd_members_are_refused(tmp_path, members, message):
    packed(tmp_path / "a.npz", members)
    with pytest.raises(ValueError, match=message):
        Archive(tmp_path / "a.npz")


def test_arrays_of_other_machines_and_layouts_are_read(tmp_path):
    found = {
        "big": np.arange(3, dtype=">f8"),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "single": np.array(2.5),
        "empty": np.empty((0, 3)),
        "flags": np.array([True, False]),
        "words": np.array(["a", "ßc", ""]),
        "bytes": np.array([b"a", b"bc"]),
    }
    np.savez(tmp_path / "a.npz", **found)
    with Archive(tmp_path / "a.npz") as archive:
        assert set(archive.names) == set(found)
        for name, array in found.items():
            read = archive.array(name)
            assert read.dtype == array.dtype.newbyteorder("=")
            assert read.flags.writeable
            np.testing.assert_array_equal(read, array)


def test_a_format_says_which_file_is_wrong_and_what_to_do(tmp_path):
    form = Format("kind", 1, {"n": Whole()}, {"x": Ints("n")}, ("more/",), remedy="do it again")
    form.save(tmp_path / "a.npz", {"n": 3}, {"x": np.arange(3), "more/y": np.zeros(2)})
    with form.open(tmp_path / "a.npz") as contents:
        assert contents.header == {"n": 3}
        assert contents.arrays["x"].tolist() == [0, 1, 2]
        assert contents.group("more/")["y"].tolist() == [0, 0]
        with pytest.raises(ValueError, match=r"'more/y' has shape \(2,\); \(3,\) is needed"):
            contents.checked("more/", {"y": Floats(3)})
    with (
        pytest.raises(ValueError, match=r"a\.npz is damaged .*: three; do it again"),
        form.open(tmp_path / "a.npz"),
    ):
        raise ValueError("three")
    form.save(tmp_path / "b.npz", {"n": -1}, {"x": np.arange(3)})
    with (
        pytest.raises(ValueError, match=r"b\.npz is damaged .*\['n'\] is -1; .*; do it again"),
        form.open(tmp_path / "b.npz"),
    ):
        pass
