"""Runs a MineRL environment in an interpreter that has minerl, for one that has not.

    python server.py --descriptor N --environment MineRLObtainDiamond-v0 [--module FILE.py:make]

`environment.py` starts it; its end of a socket pair is the file descriptor N, so that what
Minecraft prints on standard output does no harm. It needs the standard library and NumPy only, and
runs on Python 3.6, as old as minerl 0.3.7 may need. It exits when the other end is closed, also
where that is because the process there was killed.

A message (of `multiprocessing.connection`) is a header and a body. It begins with a 32-bit number,
the length of the header, which is JSON; the body are the bytes of the arrays that
`header["arrays"]` lists as [name, type, shape].
Requests and what is answered:

    (none, at the start)             describe: versions, spaces, the limit of steps; or an error
    {"do": "reset", "seed": int}     observation (and arrays)
    {"do": "step", "actions": [...]} observation (and arrays), rewards of each action until the end,
                                     done, info
    {"do": "close"}                  {}

Every answer may be {"error": {"type", "text"}} instead. Names of nested observations are joined by
dots, so both versions of minerl are answered for alike: 0.3.7 names `equipped_items.mainhand.type`
itself, 0.4.4 nests it. Actions that name an item travel as that name: 0.3.7 takes a name or a
Python int (index in sorted order), 0.4.4 hands on whatever it gets, so there only the name is
right.
"""

import argparse
import importlib
import json
import os
import queue
import struct
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any, Iterable, Mapping  # noqa: UP035  (Python 3.6)

import numpy as np

__all__ = ["pack", "unpack"]

LENGTH = struct.Struct("!I")
GRACE = 10.0
"""Seconds between the end of the other side and the end of this process, should it be busy."""


def pack(header: Mapping, arrays: Iterable = ()) -> bytes:
    """Return a message as bytes.

    Args:
        header: A dict that JSON can hold.
        arrays: Pairs of name and array.

    Example:
        >>> message = pack({"do": "reset"}, [("pov", np.zeros((2, 3), np.uint8))])
        >>> header, arrays = unpack(message)
        >>> header["do"], arrays["pov"].shape
        ('reset', (2, 3))
    """
    arrays = [(name, np.ascontiguousarray(array)) for name, array in arrays]
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in arrays]
    head = json.dumps(dict(header, arrays=listed)).encode("utf-8")
    return b"".join([LENGTH.pack(len(head)), head, *(array.tobytes() for _, array in arrays)])


def unpack(message: bytes) -> tuple:
    """Return the header and the arrays by name of a message."""
    at = LENGTH.size + LENGTH.unpack_from(message)[0]
    header = json.loads(message[LENGTH.size : at].decode("utf-8"))
    arrays = {}
    for name, kind, shape in header.pop("arrays"):
        array = np.frombuffer(message, np.dtype(kind), int(np.prod(shape, dtype=int)), at)
        arrays[name] = array.reshape(shape).copy()
        at += array.nbytes
    return header, arrays


def describe_space(space: Any) -> dict:
    """Return a space as what JSON can hold, judged by its attributes: any gym's will do."""
    if hasattr(space, "spaces"):
        return {key: describe_space(part) for key, part in space.spaces.items()}
    if hasattr(space, "values") and hasattr(space, "n"):
        return {"kind": "enum", "values": [str(value) for value in space.values]}
    if hasattr(space, "n"):
        return {"kind": "discrete", "n": int(space.n)}
    if hasattr(space, "low"):
        return {
            "kind": "box",
            "low": float(np.min(space.low)),
            "high": float(np.max(space.high)),
            "shape": [int(n) for n in space.shape],
            "dtype": np.dtype(space.dtype).str,
        }
    return {"kind": type(space).__name__}


def join_names(tree: Mapping, prefix: str = "") -> dict:
    """Return a nested dict as a flat one, names joined by dots.

    Example:
        >>> join_names({"equipped_items": {"mainhand": {"type": "air"}}, "pov": 0})
        {'equipped_items.mainhand.type': 'air', 'pov': 0}
    """
    flat = {}
    for key, part in tree.items():
        if hasattr(part, "items") and "kind" not in part:
            flat.update(join_names(part, prefix + key + "."))
        else:
            flat[prefix + key] = part
    return flat


def plain(value: Any) -> Any:
    """Return a number or string as JSON takes it, or None for what is neither."""
    if isinstance(value, str):
        return str(value)
    if np.ndim(value) == 0:
        value = np.asarray(value)
        if value.dtype.kind in "biufU":
            return value.item()
    return None


def split_observation(observation: Mapping, spaces: Mapping) -> tuple:
    """Return what of an observation goes into the header, and the arrays for the body."""
    values, arrays = {}, []
    for name, part in join_names(observation).items():
        value = plain(part)
        enum = spaces.get(name, {}).get("values")
        if enum is not None and isinstance(value, int):
            value = enum[value]
        if value is None:
            arrays.append((name, np.asarray(part)))
        else:
            values[name] = value
    return values, arrays


def make_environment(name: str, module: Any, options: dict) -> Any:
    """Return the environment: minerl's, or what a function of a module or file makes."""
    if module is None:
        try:
            import minerl  # noqa: F401  # pyright: ignore[reportMissingImports]
            from gym import make  # pyright: ignore
        except ImportError as error:
            raise MissingMinerl(str(error)) from error
        return make(name)
    where, _, function = module.rpartition(":")
    if where.endswith(".py"):
        from importlib.util import module_from_spec, spec_from_file_location

        spec = spec_from_file_location("environment_of_server", where)
        if spec is None or spec.loader is None or not os.path.exists(where):
            raise ImportError(f"there is no Python file {where!r}")
        found = module_from_spec(spec)
        spec.loader.exec_module(found)
    else:
        found = importlib.import_module(where)
    return getattr(found, function)(name, **options)


class MissingMinerl(ImportError):
    """This interpreter has no minerl."""


def version_of(package: str) -> Any:
    """Return the version of an installed package, or None."""
    try:
        if sys.version_info < (3, 8):  # noqa: UP036  (this file runs there)
            import pkg_resources

            return pkg_resources.get_distribution(package).version
        from importlib import metadata

        return metadata.version(package)
    except Exception:
        return None


class Server:
    """Answers requests about one environment.

    Args:
        env: The environment, with the interface of old gym: `seed(seed)`, `reset()` returns an
            observation, `step(action)` returns (observation, reward, done, info).
        name: Its id.
    """

    def __init__(self, env: Any, name: str) -> None:
        self.env, self.name = env, name
        observed = describe_space(env.observation_space)
        self.nested = any("kind" not in part for k, part in observed.items() if k != "inventory")
        self.observed, self.taken = join_names(observed), describe_space(env.action_space)

    def describe(self) -> dict:
        """Return versions, spaces and limit."""
        spec = getattr(self.env, "spec", None)
        return {
            "environment": self.name,
            "pid": os.getpid(),
            "python": ".".join(str(part) for part in sys.version_info[:3]),
            "minerl": version_of("minerl"),
            "gym": version_of("gym"),
            "nested": self.nested,
            "limit": getattr(spec, "max_episode_steps", None),
            "observation": self.observed,
            "action": self.taken,
        }

    def reset(self, request: dict) -> tuple:
        """Begin an episode in the world of a seed."""
        # Both versions forget the seed with each reset, and take Python's int only.
        self.env.seed(int(request["seed"]))
        values, arrays = split_observation(self.env.reset(), self.observed)
        return {"observation": values}, arrays

    def step(self, request: dict) -> tuple:
        """Take some actions, one after the other, until the episode ends."""
        rewards, done, info, observation = [], False, {}, {}
        for action in request["actions"]:
            action = dict(action)
            if "camera" in action:
                action["camera"] = np.array(action["camera"], np.float32)
            observation, reward, done, info = self.env.step(action)
            rewards.append(float(reward))
            if done:
                break
        values, arrays = split_observation(observation, self.observed)
        told = {str(key): plain(value) for key, value in info.items()}
        told = {key: value for key, value in told.items() if value is not None}
        return (
            {"observation": values, "rewards": rewards, "done": bool(done), "info": told},
            arrays,
        )

    def close(self, request: dict) -> tuple:
        """Close the environment."""
        self.env.close()
        return {}, ()


def read_requests(connection: Connection, requests: queue.Queue) -> None:
    """Put each request into the queue, and None at the end; then see that the process ends."""
    try:
        while True:
            requests.put(unpack(connection.recv_bytes())[0])
    except (EOFError, OSError):
        requests.put(None)
    # The environment may hang in a step; minerl ends Minecraft itself when this process is gone.
    time.sleep(GRACE)
    os._exit(1)


def failure(error: Exception) -> dict:
    """Return the answer that tells of an exception."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return {"error": {"type": type(error).__name__, "text": text}}


def main() -> int:
    """Serve until the other end closes or asks for it."""
    parser = argparse.ArgumentParser(description="Runs a MineRL environment for align_rudder.")
    parser.add_argument("--descriptor", type=int, required=True)
    parser.add_argument("--environment", default="MineRLObtainDiamond-v0")
    parser.add_argument("--module")
    parser.add_argument("--options", default="{}")
    arguments = parser.parse_args()
    # The files beside this one are no modules of the environment's; those of the caller may be.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    if arguments.module is not None:
        sys.path.insert(0, os.getcwd())
    os.set_inheritable(arguments.descriptor, False)
    connection = Connection(arguments.descriptor)

    def send(header: dict, arrays: Iterable = ()) -> None:
        connection.send_bytes(pack(header, arrays))

    requests = queue.Queue()
    threading.Thread(target=read_requests, args=(connection, requests), daemon=True).start()
    try:
        env = make_environment(
            arguments.environment, arguments.module, json.loads(arguments.options)
        )
        server = Server(env, arguments.environment)
        answer = server.describe()
    except Exception as error:
        traceback.print_exc()
        send(failure(error))
        return 1
    send(answer)
    answers = {"reset": server.reset, "step": server.step, "close": server.close}
    while True:
        request = requests.get()
        if request is None:
            env.close()
            return 0
        try:
            answer, arrays = answers[request["do"]](request)
        except Exception as error:
            traceback.print_exc()
            answer, arrays = failure(error), ()
        send(answer, arrays)
        if request["do"] == "close":
            return 0


if __name__ == "__main__":
    sys.exit(main())
