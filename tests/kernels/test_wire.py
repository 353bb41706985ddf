"""Messages arrive whole or not at all; what is no message is refused before memory is taken."""

from __future__ import annotations

import json
import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import InputError
from torchstone.kernels.messages.facts import Facts, OutputFacts, Told
from torchstone.kernels.messages.to_candidate import CallModel, CallOptions
from torchstone.kernels.messages.to_referee import Done
from torchstone.kernels.messages.trees import Tree
from torchstone.kernels.sessions.wire import WireError, receive, send

PLAIN = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
TREES = st.recursive(
    st.builds(
        Tree,
        st.just("plain"),
        plain=PLAIN.filter(lambda x: abs(x) < 1e300 if isinstance(x, float) else True),
    )
    | st.builds(Tree, st.just("torch"), st.text(), st.lists(st.integers()), buffer=st.integers()),
    lambda inner: st.builds(Tree, st.just("list"), items=st.lists(inner, max_size=3)),
    max_leaves=6,
)


@given(TREES, st.integers(), st.booleans(), st.lists(st.binary(max_size=2000), max_size=4))
def test_round_trip(tree: Tree, seed: int, reuse: bool, buffers: list[bytes]) -> None:
    message = CallModel(tree, seed, CallOptions(reuse=reuse))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(ours, message, buffers)
        assert receive(theirs, (CallModel, Done), lambda: True) == (message, buffers)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 0.5, 3.0])
def test_numbers_that_json_does_not_have(value: float) -> None:
    facts = Facts(outputs=[OutputFacts(value)], allowed=value)
    assert from_data(Facts, json.loads(json.dumps(to_data(facts), allow_nan=False))) == facts


@pytest.mark.parametrize(
    "data",
    [
        {}, [], None, {"text": "x"}, {"kind": 1, "text": "x"}, {"kind": "x", "text": "x", "line": True},
        {"kind": "x", "text": "x", "memory": "yes"},
    ],
)  # fmt: skip
def test_what_has_other_types_is_no_message(data: object) -> None:
    with pytest.raises(InputError):
        from_data(Told, data)
    assert from_data(Told, {"kind": "x", "text": "y"}) == Told("x", "y")


def test_large_buffers_come_whole() -> None:
    ours, theirs = socket.socketpair()
    data = bytes(range(256)) * 40_000
    with ours, theirs:
        thread = threading.Thread(target=send, args=(ours, Done(), [data, memoryview(data)]))
        thread.start()
        assert receive(theirs, [Done], lambda: False)[1] == [data, data]
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
        *(framed(json.dumps({"is": "Done", "message": {}, "lengths": lengths}).encode())
          for lengths in ([-1], [1 << 60], "12", [True], [0] * 5000)),
        framed(json.dumps({"is": "Done", "message": [], "lengths": []}).encode()),
        framed(json.dumps({"is": "Told", "message": {"kind": "", "text": ""}, "lengths": []}).encode()),
        b"\x10",
        b"",
    ],
)  # fmt: skip
def test_garbage_is_refused(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(data)
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises(WireError):
            receive(theirs, [Done], lambda: True)


def test_a_silent_sender_is_not_waited_for() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(WireError, match="time is up"):
        receive(theirs, [Done], lambda: True)
