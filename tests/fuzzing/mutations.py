"""Damage: a file is changed as accidents and enemies would change it."""

import io
import json
import struct
import zipfile

import numpy as np

VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    2**31,
    2**63,
    10**30,
    0.5,
    -0.0,
    1e-320,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "align-rudder-model",
    "\u2028é\n",
    "x" * 5000,
    [],
    [0],
    [[]],
    ["x", 1],
    {},
    {"x": 1},
    {"tuple": 3},
    {"tuple": ["a", {"bytes": "zz"}]},
    {"frozenset": [{"tuple": []}]},
]
NUMBERS = [
    np.nan,
    np.inf,
    -np.inf,
    1e300,
    -1e300,
    1e200,
    1e-310,
    -1,
    0,
    1,
    2,
    9,
    255,
    2**31,
    -(2**31),
]
NUMBERS += [2**53, 2**62, 2**63 - 1, -(2**63)]
TYPES = ["<f4", "<f8", "<f2", "<i1", "<i2", "<i4", "<i8", "<u1", "<u8", "?", "<U3", "S2", "<c8"]
TYPES += [">f8", ">i8", "<M8[s]", "O", "i4,f4"]


def nested(rng, depths=(50, 200, 2000, 100_000)):
    """Return JSON text that is nested deeply."""
    depth = int(rng.choice(depths))
    return rng.choice(["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth])


def places(value, path=()):
    """Yield every place in a JSON value."""
    yield path
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*path, key))


def change_json(value, rng, depths=(50, 200, 2000, 100_000)):
    """Return JSON text of a value that is changed at one place, or is no longer JSON."""
    value = json.loads(json.dumps(value))
    how = rng.integers(12)
    text = json.dumps(value)
    if how == 0:
        return text[: rng.integers(len(text))]
    if how == 1:
        at = int(rng.integers(len(text) + 1))
        return text[:at] + nested(rng, depths) + text[at:]
    if how == 2 and isinstance(value, dict) and value:
        key = list(value)[rng.integers(len(value))]
        return text[:-1] + f", {json.dumps(key)}: {json.dumps(draw(rng, VALUES))}}}"
    found = list(places(value))
    path = found[rng.integers(len(found))]
    if not path:
        return json.dumps(draw(rng, VALUES))
    inside = value
    for key in path[:-1]:
        inside = inside[key]
    old = inside[path[-1]]
    if how == 3:
        del inside[path[-1]]
    elif how == 4 and isinstance(inside, dict):
        inside[draw(rng, ["x", "", "kind", "module", "parameters"])] = draw(rng, VALUES)
    elif how == 5 and isinstance(inside, list):
        inside.append(draw(rng, [old, *VALUES]))
    elif how == 6:
        inside[path[-1]] = str(old)
    elif how == 7 and isinstance(old, (int, float)):
        inside[path[-1]] = draw(rng, [-old, old + 1, old * 1e6, float(old), old * 10**6])
    elif how == 8:
        return json.dumps(value).replace(json.dumps(old), "1" + "0" * 5000, 1)
    elif how == 9:
        return json.dumps(value).replace(json.dumps(old), draw(rng, ["1e999", "NaN", "\\ud800"]), 1)
    elif how == 10:
        inside[path[-1]] = [old]
    else:
        inside[path[-1]] = draw(rng, VALUES)
    return json.dumps(value)


def draw(rng, values):
    """Return one of some values of any type."""
    return values[int(rng.integers(len(values)))]


def damage(data, rng):
    """Return bytes with some flipped, cut, doubled, moved or zeroed."""
    data = bytearray(data)
    n = len(data)
    if n < 2:
        return bytes(data) + b"\x00"
    a, b = sorted(int(x) for x in rng.integers(n, size=2))
    how = rng.integers(7)
    if how == 0:
        return bytes(data[:a])
    if how == 1:
        return bytes(data) + bytes(rng.integers(256, size=20, dtype=np.uint8))
    if how == 2:
        data[a:b] = bytes(b - a)
    elif how == 3:
        data[a:b] = data[a:b] * 2
    elif how == 4:
        del data[a:b]
    elif how == 5:
        data[a:b] = rng.integers(256, size=min(b - a, 40), dtype=np.uint8).tobytes()
    else:
        for at in rng.integers(n, size=rng.integers(1, 9)):
            data[at] ^= 1 << int(rng.integers(8))
    return bytes(data)


def unpack(data):
    """Return the members of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(members, method=zipfile.ZIP_STORED):
    """Return an archive of members, a list of name and bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return out.getvalue()


def npy(array):
    """Return the bytes of an npy file."""
    out = io.BytesIO()
    np.lib.format.write_array(out, array)
    return out.getvalue()


def claim(array, shape, descr=None):
    """Return an npy file that claims another shape or type than it has."""
    out = io.BytesIO()
    given = {"descr": descr or array.dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, given)
    return out.getvalue() + array.tobytes()


def change_array(array, rng):
    """Return an npy file of an array whose type, shape or values are others, or that lies."""
    how = rng.integers(10)
    if how == 0:
        try:
            with np.errstate(all="ignore"):
                return npy(array.astype(draw(rng, TYPES)))
        except (TypeError, ValueError):
            return npy(array.astype("U"))
    if how == 1 and array.ndim == 0:
        return npy(array[None])
    if how == 1:
        shapes = [
            array.ravel(),
            array[None],
            array[..., None],
            array.T,
            array[:1],
            array[1:],
            array[:-1],
            array[..., :-1],
            array[:0],
            np.concatenate([array, array]),
            np.array(array.ravel()[0] if array.size else 0),
            np.asfortranarray(array),
            np.empty((0, 10**6)),
        ]
        return npy(draw(rng, shapes))
    if how == 2:
        huge = draw(rng, [2**40, 2**62, 10**30, 10**9, -1, array.size + 1])
        return claim(array, draw(rng, [(huge,), (huge, 0), (2**20, 2**20, 2**20), (1,) * 40]))
    if how == 3:
        return claim(
            array, array.shape, draw(rng, ["<U9", "|O", "<U0", "|V3", "<f9", "|b1", "<U1"])
        )
    if how == 4:
        return damage(npy(array), rng)
    out = np.array(array)
    if out.size == 0 or out.dtype.kind not in "iufb":
        return npy(out[..., ::-1] if out.ndim else out)
    if how == 5:
        return npy(rng.permutation(out.ravel()).reshape(out.shape))
    if how == 6 and out.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            return npy((out.astype(float) + draw(rng, [1, -1, 2, -3])).astype(out.dtype))
    value = draw(rng, NUMBERS)
    with np.errstate(all="ignore"):
        if how == 7:
            out[...] = np.array(value).astype(out.dtype)
        else:
            out.flat[int(rng.integers(out.size))] = np.array(value).astype(out.dtype)
    return npy(out)


def change_archive(data, others, rng):
    """Return an npz file with members changed, left out, doubled or those of another file.

    Args:
        data: The file.
        others: Other files to take members from.
        rng: Source of randomness.
    """
    members = list(unpack(data).items())
    how = rng.integers(16)
    at = int(rng.integers(len(members)))
    name, content = members[at]
    method = int(rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    if how <= 3:  # the header
        at = next((i for i, (n, _) in enumerate(members) if n == "header.npy"), at)
        name, content = members[at]
        try:
            header = json.loads(np.load(io.BytesIO(content)).tobytes())
        except ValueError:
            header = {}
        text = change_json(header, rng).encode(errors="surrogatepass")
        if rng.random() < 0.05:
            text = damage(text, rng)
        members[at] = name, npy(np.frombuffer(text, np.uint8))
    elif how <= 9:
        try:
            array = np.load(io.BytesIO(content))
        except ValueError:
            array = np.zeros(1)
        members[at] = name, change_array(array, rng)
    elif how == 10:
        del members[at]
    elif how == 11:
        there = list(unpack(draw(rng, others)).items())
        if rng.random() < 0.5:
            members[at] = name, draw(rng, there)[1]
        else:
            members[at] = draw(rng, there)
    elif how == 12:
        new = draw(rng, ["x.npy", "x", "strategy/9/members.npy", "events/x.npy", name, "../x.npy"])
        members.append((new, draw(rng, [content, b"", b"PK", npy(np.zeros(3))])))
    elif how == 13:
        other = int(rng.integers(len(members)))
        members[at], members[other] = (name, members[other][1]), (members[other][0], content)
    elif how == 14:  # more than it seems to be, in small
        bomb = npy(np.zeros(2**20 * int(rng.integers(1, 5)), np.uint8))
        members[at] = name, bomb
        out = pack(members, zipfile.ZIP_DEFLATED)
        return out.replace(struct.pack("<I", len(bomb)), struct.pack("<I", int(rng.integers(500))))
    else:
        out = bytearray(pack(members, method))
        for _ in range(int(rng.integers(1, 4))):  # the directory lies at the end
            back = int(rng.integers(1, min(len(out), 60 * len(members)) + 1))
            out[-back] ^= 1 << int(rng.integers(8))
        return bytes(out)
    with np.testing.suppress_warnings() as quiet:
        quiet.filter(UserWarning)
        return pack(members, method)


def change_text(text, rng, depths=(50, 2000)):
    """Return the bytes of a text with lines and words changed, or in another encoding."""
    lines = text.split("\n")
    how = rng.integers(9)
    at = int(rng.integers(len(lines)))
    if how == 0:
        return damage(text.encode(), rng)
    if how == 1:
        return text.encode(draw(rng, ["utf-16", "utf-32", "utf-8-sig", "cp037"]))
    if how == 2:
        del lines[at]
    elif how == 3:
        lines.insert(
            at, draw(rng, [lines[at], "", "x", ">", "[]", "{}", "null", "\x00", "1", "--"])
        )
    elif how == 4:
        try:
            lines[at] = change_json(json.loads(lines[at]), rng, depths)
        except ValueError:
            lines[at] = change_json(lines[at], rng, depths)
    elif how == 5:
        lines[at] = nested(rng, depths)
    elif how == 6:
        words = lines[at].replace(",", " , ").split(" ")
        words[int(rng.integers(len(words)))] = str(draw(rng, [*VALUES, *NUMBERS]))
        lines[at] = " ".join(words).replace(" , ", ",")
    elif how == 7:
        rng.shuffle(lines)
    else:
        lines[at] = lines[at][: int(rng.integers(len(lines[at]) + 1))]
    return "\n".join(lines).encode(errors="surrogatepass")
