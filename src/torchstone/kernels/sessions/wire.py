"""Messages between processes: a JSON header of bounded size and raw buffers, never a pickle.

A reader trusts nothing: sizes are checked before memory is taken, and a deadline ends the wait.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

HEADER_LIMIT_BYTES = 8 << 20
BUFFER_LIMIT_BYTES = 1 << 30
_MOST_BUFFERS = 4096
_LENGTH = struct.Struct("<Q")


class WireError(Exception):
    """The other side is gone, late, or does not speak the protocol."""


def send(
    channel: socket.socket, header: dict[str, Any], buffers: Sequence[bytes | memoryview] = ()
) -> None:
    """One message: length of the header, header, buffers."""
    lengths = [memoryview(item).nbytes for item in buffers]
    text = json.dumps({"header": header, "lengths": lengths}, allow_nan=False).encode()
    try:
        channel.sendall(_LENGTH.pack(len(text)) + text)
        for item in buffers:
            channel.sendall(item)
    except OSError:
        raise WireError("the other side is gone") from None  # how it went depends on chance


def receive(
    channel: socket.socket, deadline: float | None = None, limit_bytes: int = BUFFER_LIMIT_BYTES
) -> tuple[dict[str, Any], list[bytes]]:
    """One message, or a WireError; `deadline` is a time of `time.monotonic`."""
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size, deadline))
    if length > HEADER_LIMIT_BYTES:
        raise WireError("a header that is too long")
    try:
        data = json.loads(_exactly(channel, length, deadline))
        header, lengths = data["header"], data["lengths"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise WireError("a header that is no header") from None
    whole = isinstance(lengths, list) and all(type(item) is int and item >= 0 for item in lengths)
    if not isinstance(header, dict) or not whole or len(lengths) > _MOST_BUFFERS:
        raise WireError("a header that is no header")
    if sum(lengths) > limit_bytes:
        raise WireError("more data than the problem can have")
    return header, [_exactly(channel, item, deadline) for item in lengths]


def _exactly(channel: socket.socket, size: int, deadline: float | None) -> bytes:
    parts: list[bytes] = []
    left = size
    while left:
        if deadline is not None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise WireError("time is up")
            channel.settimeout(remaining)
        else:
            channel.settimeout(None)
        try:
            part = channel.recv(min(left, 1 << 20))
        except TimeoutError:
            raise WireError("time is up") from None
        except OSError:
            raise WireError("the other side is gone") from None
        if not part:
            raise WireError("the other side is gone")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
