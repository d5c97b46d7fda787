"""Archives of arrays come back as they were; others, and what they claim, are not trusted."""

import os
import pickle

import numpy as np
import pytest

from align_rudder.files import load_npz, save_npz


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
        (b'{"format": "cake", "version": 1}', "holds 'cake'; 'kind' is needed"),
        (b'{"format": "kind", "version": 2}', "version 2 .*reads version 1; install"),
        (None, "not one of format 'kind': no header"),
    ],
)
def test_a_foreign_header_is_explained(tmp_path, header, message):
    members = {} if header is None else {"header": np.frombuffer(header, np.uint8)}
    np.savez(tmp_path / "m.npz", x=np.arange(2), **members)
    with pytest.raises(ValueError, match=message):
        load_npz(tmp_path / "m.npz", "kind", 1)
