"""The loop of a child process: it is asked, and answers, until the parent hangs up."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import torch

from torchstone.kernels.harness.calling.told import told
from torchstone.kernels.sessions.wire import WireError, receive, send

Header = dict[str, Any]
Open = Callable[[Header], Any]
Ask = Callable[[Any, Header, list[bytes]], Any]


def by_name(server: Any, header: Header, buffers: list[bytes]) -> Any:
    """What is to be done is the name of a method."""
    return getattr(server, header["do"])(header, buffers)


def serve(
    channel: socket.socket, walls: dict[str, str], opened: Open, ask: Ask = by_name,
    fault: str = "error",
) -> None:  # fmt: skip
    """`opened` makes what answers, `ask` puts a question to it; errors are told under `fault`.

    An answer is a header, or a header with buffers.
    """
    torch.set_num_threads(1)
    server: Any = None
    while True:
        try:
            header, buffers = receive(channel)
        except WireError:
            return
        try:
            if header["do"] == "open":
                server = opened(header)
                answer: Any = {"walls": walls}
            else:
                answer = ask(server, header, buffers)
        except BaseException as error:  # other people's code may raise anything, SystemExit too
            answer = {fault: told(error)}
        reply, data = answer if isinstance(answer, tuple) else (answer, [])
        send(channel, reply, data)
