"""The process that runs a MineRL environment (`server.py`), and our end of the pipe to it."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from align_rudder.minerl.pipe import receive
from align_rudder.minerl.server import pack, unpack

__all__ = [
    "INSTALL",
    "PYTHON_VARIABLE",
    "MineRLServerError",
    "ServerProcess",
    "has_minerl",
    "server_command",
]

PYTHON_VARIABLE = "ALIGN_RUDDER_MINERL_PYTHON"
"""Environment variable with the command of the interpreter that has minerl."""
INSTALL = f"""minerl runs the real Minecraft and needs Java 8 and an old Python (3.6 to 3.8). Its
build asks for a plugin that is gone; docs/minerl.md, Install, says what then. The lines were:
    apt install openjdk-8-jdk          (and xvfb, on a machine without a screen)
    python3.7 -m venv minerl-env
    minerl-env/bin/pip install "gym==0.19.0" "minerl==0.3.7"      (or minerl==0.4.4)
Then give python="minerl-env/bin/python", or set {PYTHON_VARIABLE} to it; without a screen
python=["xvfb-run", "-a", "minerl-env/bin/python"]. To try things out without Minecraft:
MineRLEnv(module="scripted"). On the command line these are --environment.python and
--environment.module scripted."""

_CLOSING = 20.0  # seconds that an environment has to close
_AGAIN = "\nCall reset() to start it again."
_TAIL = 4000  # characters of the server's output that are kept


class MineRLServerError(RuntimeError):
    """The process that runs the environment failed; the message says what it last printed."""


def _small_world(task: str, options: Mapping[str, Any]) -> str:
    """Return what `module="scripted"` stands for; say what is wrong with options before it runs."""
    scripted = importlib.import_module("align_rudder.minerl.testing.scripted")
    known = [name for name in inspect.signature(scripted.make).parameters if name != "task"]
    if unknown := [name for name in options if name not in known]:
        raise ValueError(
            f"the small world has no option {', '.join(unknown)}; it has {', '.join(known)}"
        )
    scripted.make(task, **options)
    return f"{scripted.__file__}:make"


def has_minerl() -> bool:
    """Return whether this interpreter has minerl; a mere folder of that name is none."""
    found = importlib.util.find_spec("minerl")
    return found is not None and found.origin is not None


def server_command(
    python: str | os.PathLike[str] | Sequence[str] | None,
    module: str | None,
    task: str,
    options: Mapping[str, Any],
) -> list[str]:
    """Return the command that starts the server, but for its file descriptor.

    Args:
        python: The interpreter; see `MineRLEnv` for this and what follows.
        module: What makes the environment.
        task: Name of the task.
        options: Further arguments of the module's function.
    """
    given, asked = os.environ.get(PYTHON_VARIABLE, ""), "python"
    if isinstance(python, (str, os.PathLike)):
        command = [os.fspath(python)]
    elif python is not None:
        command = [os.fspath(part) for part in python]
    elif module is None and given:
        asked = PYTHON_VARIABLE
        command = [given] if Path(given).exists() else shlex.split(given)
    elif module is None and not has_minerl():
        raise ImportError(f"this interpreter ({sys.executable}) has no minerl. {INSTALL}")
    else:
        command = [sys.executable]
    if not command or shutil.which(command[0]) is None:
        raise ValueError(
            f"{asked}={shlex.join(command)!r}: there is no such program. It must be the "
            f"interpreter that has minerl. {INSTALL}"
        )
    if module == "scripted":
        module = _small_world(task, options)
    if module is not None and ":" not in module:
        raise ValueError(
            f'module={module!r}; needed is "scripted", "package.module:function" or '
            '"file.py:function"'
        )
    command += [os.fspath(Path(__file__).with_name("server.py")), "--environment", task]
    if module is not None:
        command += ["--module", module, "--options", json.dumps(dict(options))]
    elif options:
        raise ValueError(f"module_options={dict(options)!r} need a module; minerl takes none")
    return command


class ServerProcess:
    """A running server.

    Args:
        command: What starts it, as `server_command` returns it.
        timeout: Seconds until it must have started the environment.

    Attributes:
        description: What it says of the environment: versions, spaces, limit.
        failed: Whether it is gone.
    """

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        if os.name != "posix":
            raise NotImplementedError(
                "minerl is run over an inherited socket, which needs Linux or macOS; on Windows "
                "use the Linux subsystem (WSL)"
            )
        self.failed, self.command, self._owner = False, shlex.join(command), os.getpid()
        self._connection, theirs = Pipe()
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
                self._connection.close()
                raise ValueError(f"{self.command} cannot be started: {error}. {INSTALL}") from error
        self._printed = bytearray()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.description = self._receive(timeout, "start")

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Send a request and return the answer, its arrays under "arrays"."""
        what = str(request["do"])
        if self.failed:
            raise self.failure(f"cannot {what}, the process is gone")
        return self._receive(timeout, what, pack(request))

    def _receive(self, timeout: float, what: str, message: bytes = b"") -> dict[str, Any]:
        """Send a message, if there is one, and return the answer."""
        deadline = time.monotonic() + timeout
        try:
            if message:
                if self.process.poll() is not None:  # what it started may live, and even answer
                    raise EOFError
                self._connection.send_bytes(message)
            told = receive(self._connection, deadline, lambda: self.process.poll() is not None)
            answer, arrays = unpack(told)
            failed = answer.get("error") and (answer["error"]["type"], answer["error"]["text"])
        except TimeoutError as error:
            raise self.failure(f"took more than {timeout:g} s to {what}") from error
        except (EOFError, OSError) as error:
            raise self.failure(f"ended during {what}") from error
        except Exception as error:
            raise self.failure(f"sent garbage in answer to {what} ({error!r})") from error
        except BaseException:  # an answer may still be on its way, which must not be read later
            self.kill()
            raise
        if not failed:
            return answer | {"arrays": arrays}
        # What raised once is not trusted again: when Minecraft is gone, minerl raises for ever.
        self.kill()
        if what == "start" and failed[0] == "MissingMinerl":
            raise ImportError(f"{self.command} cannot import minerl ({failed[1]}). {INSTALL}")
        again = "" if what == "start" else _AGAIN
        raise MineRLServerError(
            f"the environment failed during {what}: {failed[1]}{self._tail()}{again}"
        )

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

    def failure(self, what: str) -> MineRLServerError:
        """End the process and return the error that says what it did."""
        try:
            code = self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            code = None
        self.kill()
        ended = "" if code is None else f" (exit code {code})"
        advice = f"\nIt needs an interpreter with NumPy. {INSTALL}"
        advice = advice if what.endswith("start") else _AGAIN
        return MineRLServerError(
            f"the process that runs the environment ({self.command}) {what}{ended}{self._tail()}"
            f"{advice}"
        )

    def kill(self) -> None:
        """End the process at once; minerl then ends Minecraft itself."""
        self.failed = True
        self._connection.close()
        if os.getpid() != self._owner:  # a copy in a forked process
            return
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End the process in order, or at once where that takes too long."""
        if not self.failed and os.getpid() == self._owner:
            try:
                self._connection.send_bytes(pack({"do": "close"}))
                self.process.wait(_CLOSING)
            except (OSError, subprocess.TimeoutExpired):
                pass
        self.kill()
