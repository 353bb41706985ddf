"""Messages between processes: JSON of bounded size and raw buffers, never a pickle.

A reader trusts nothing: sizes are checked before memory is taken, and somebody else says when to give up.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import InputError

HEADER_LIMIT_BYTES = 8 << 20
BUFFER_LIMIT_BYTES = 8 << 30
_MOST_BUFFERS = 4096
_LENGTH = struct.Struct("<Q")
_LOOK_SECONDS = 0.1
"""How often the question is asked whether to wait on: ten times for the shortest limit in use."""

GiveUp = Callable[[], bool]
M = TypeVar("M")


class WireError(Exception):
    """The other side is gone, late, or does not speak the protocol."""


def send(
    channel: socket.socket,
    message: object,
    buffers: Sequence[bytes | memoryview] = (),
    give_up: GiveUp | None = None,
) -> None:
    """One message: length of the header, header, buffers."""
    lengths = [memoryview(item).nbytes for item in buffers]
    header = {"is": type(message).__name__, "message": to_data(message), "lengths": lengths}
    text = json.dumps(header, allow_nan=False).encode()
    for item in (_LENGTH.pack(len(text)) + text, *buffers):
        _send_whole(channel, memoryview(item), give_up)


def _send_whole(channel: socket.socket, view: memoryview, give_up: GiveUp | None) -> None:
    channel.settimeout(None if give_up is None else _LOOK_SECONDS)
    while view:
        try:
            view = view[channel.send(view) :]
        except TimeoutError:
            if give_up is not None and give_up():
                raise WireError("time is up") from None
        except OSError:
            raise WireError("the other side is gone") from None  # how it went depends on chance


def receive(
    channel: socket.socket,
    kinds: Sequence[type[M]],
    give_up: GiveUp | None = None,
    limit_bytes: int = BUFFER_LIMIT_BYTES,
) -> tuple[M, list[bytes]]:
    """One message of these kinds, or a WireError; `give_up` is asked from time to time while nothing comes."""
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size, give_up))
    if length > HEADER_LIMIT_BYTES:
        raise WireError("a header that is too long")
    try:
        data = json.loads(_exactly(channel, length, give_up))
        kind = {item.__name__: item for item in kinds}[data["is"]]
        message, lengths = from_data(kind, data["message"]), data["lengths"]
    except (InputError, ValueError, KeyError, TypeError, RecursionError):
        raise WireError("a message that was not expected") from None
    whole = isinstance(lengths, list) and all(type(item) is int and item >= 0 for item in lengths)
    if not whole or len(lengths) > _MOST_BUFFERS:
        raise WireError("a message that was not expected")
    if sum(lengths) > limit_bytes:
        raise WireError("more data than the problem can have")
    return message, [_exactly(channel, item, give_up) for item in lengths]


def _exactly(channel: socket.socket, size: int, give_up: GiveUp | None) -> bytes:
    data = bytearray(size)
    view = memoryview(data)
    channel.settimeout(None if give_up is None else _LOOK_SECONDS)
    while view:
        try:
            count = channel.recv_into(view)
        except TimeoutError:
            if give_up is not None and give_up():
                raise WireError("time is up") from None
            continue
        except OSError:
            raise WireError("the other side is gone") from None
        if not count:
            raise WireError("the other side is gone")
        view = view[count:]
    return bytes(data)
