"""Messages between a rank and the coordinator: a line of JSON, then raw bytes. Nothing is pickled."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from typing import Any

_HEAD = struct.Struct("!II")
LARGEST = 1 << 28


class Wire:
    """One end of a connection. Sending is blocking; reading may be done in pieces."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._buffer = bytearray()

    def fileno(self) -> int:
        return self.socket.fileno()

    def put(self, message: dict[str, Any], payload: bytes = b"") -> None:
        head = json.dumps(message, separators=(",", ":")).encode("utf-8", "surrogatepass")
        with contextlib.suppress(BrokenPipeError):  # the other end is gone; reading will tell
            self.socket.sendall(_HEAD.pack(len(head), len(payload)) + head + payload)

    def take(self) -> tuple[dict[str, Any], bytes] | None:
        """The next message; None when the other end is gone."""
        while (found := self._parsed()) is None:
            data = self.socket.recv(1 << 16)
            if not data:
                return None
            self._buffer += data
        return found

    def receive(self) -> tuple[list[tuple[dict[str, Any], bytes]], bool]:
        """All messages that have come, and whether the other end is gone."""
        data = self.socket.recv(1 << 18)
        self._buffer += data
        found = []
        while (message := self._parsed()) is not None:
            found.append(message)
        return found, not data

    def _parsed(self) -> tuple[dict[str, Any], bytes] | None:
        if len(self._buffer) < _HEAD.size:
            return None
        head, body = _HEAD.unpack_from(self._buffer)
        if head + body > LARGEST:
            raise ValueError("a message is too large")
        end = _HEAD.size + head + body
        if len(self._buffer) < end:
            return None
        message = json.loads(bytes(self._buffer[_HEAD.size : _HEAD.size + head]))
        payload = bytes(self._buffer[_HEAD.size + head : end])
        del self._buffer[:end]
        return message, payload
