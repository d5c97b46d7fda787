"""Receiving an answer over a pipe whose other end may die, hang or send garbage half-way."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

__all__ = ["LARGEST_ANSWER", "receive"]

LARGEST_ANSWER = 2**26
"""Bytes; an answer is a picture and some names, some 15 kB."""
_LENGTH = struct.Struct("!i")


def receive(
    connection: Connection,
    deadline: float,
    ended: Callable[[], bool],
    largest: int = LARGEST_ANSWER,
) -> bytes:
    """Return the next message of a `multiprocessing` connection.

    `Connection.recv_bytes` waits without end for the rest of a message that was begun, and takes
    whatever length it is told.

    Args:
        connection: Our end.
        deadline: Time of `time.monotonic` at which the whole message must be there.
        ended: Whether the process at the other end has ended. A child of it may hold the other end
            open; then there is no end of file.
        largest: The most bytes a message may have.

    Raises:
        TimeoutError: If it is not there in time.
        EOFError: If the other end was closed, or its process ended, before it was there.
        ValueError: If what came is no such message.
    """
    (length,) = _LENGTH.unpack(_read(connection, _LENGTH.size, deadline, ended))
    if not 0 < length <= largest:
        raise ValueError(f"a message of {length} bytes is announced; 1 to {largest} are possible")
    return _read(connection, length, deadline, ended)


def _read(connection: Connection, n: int, deadline: float, ended: Callable[[], bool]) -> bytes:
    """Return exactly n bytes."""
    got = bytearray()
    while len(got) < n:
        left, over = deadline - time.monotonic(), ended()
        if connection.poll(0 if over else min(max(left, 0), 0.5)):
            part = os.read(connection.fileno(), n - len(got))
            if not part:
                raise EOFError
            got += part
        elif over:
            raise EOFError
        elif left <= 0:
            raise TimeoutError
    return bytes(got)
