"""Messages arrive whole or not at all; what is no message is refused before memory is taken."""

from __future__ import annotations

import json
import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchstone.kernels.sessions.wire import WireError, receive, send


@given(st.dictionaries(st.text(), st.integers()), st.lists(st.binary(max_size=2000), max_size=4))
def test_round_trip(header: dict[str, int], buffers: list[bytes]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(ours, header, buffers)
        assert receive(theirs, lambda: True) == (header, buffers)


def test_large_buffers_come_whole() -> None:
    ours, theirs = socket.socketpair()
    data = bytes(range(256)) * 40_000
    with ours, theirs:
        thread = threading.Thread(target=send, args=(ours, {}, [data, memoryview(data)]))
        thread.start()
        assert receive(theirs, lambda: False)[1] == [data, data]
        thread.join()


def framed(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<Q", 1 << 62),
        framed(b"not json"),
        framed(b"[" * 100_000),
        framed(json.dumps([1]).encode()),
        framed(json.dumps({"header": {}, "lengths": [-1]}).encode()),
        framed(json.dumps({"header": {}, "lengths": [1 << 60]}).encode()),
        framed(json.dumps({"header": {}, "lengths": "12"}).encode()),
        framed(json.dumps({"header": [], "lengths": []}).encode()),
        framed(json.dumps({"header": {}, "lengths": [True]}).encode()),
        framed(json.dumps({"header": {}, "lengths": [0] * 5000}).encode()),
        b"\x10",
        b"",
    ],
)
def test_garbage_is_refused(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(data)
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises(WireError):
            receive(theirs, lambda: True)


def test_a_silent_sender_is_not_waited_for() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(WireError, match="time is up"):
        receive(theirs, lambda: True)
