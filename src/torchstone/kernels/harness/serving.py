"""The loop of a child process: it is asked, and answers, until the parent hangs up."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch

from torchstone.core.codec import prepare_classes
from torchstone.kernels.harness.calling.told import told
from torchstone.kernels.messages.to_referee import Opened
from torchstone.kernels.sessions.wire import WireError, receive, send

S = TypeVar("S")
Answer = object | tuple[object, list[bytes]]
"""A message, or a message with buffers."""
Answers = Mapping[type, Callable[[S, Any, list[bytes]], Answer]]
"""By the class of a question: what answers it."""


@dataclass(frozen=True, slots=True)
class Service(Generic[S]):
    """What a process can be asked, and who answers."""

    opening: Mapping[type, Callable[[Any], S]]
    """Messages that make what answers the others."""
    answers: Answers[S]
    before: Mapping[type, Callable[[Any], Answer]] = field(default_factory=dict)
    """Questions that may come before anything is opened."""


def serve(channel: socket.socket, walls: dict[str, str], service: Service[S]) -> None:
    """Answer until the parent hangs up; errors are answers, too."""
    torch.set_num_threads(1)
    kinds: list[type[Any]] = [*service.opening, *service.answers, *service.before]
    prepare_classes(kinds)
    server: S | None = None
    while True:
        try:
            question, buffers = receive(channel, kinds)
        except WireError:
            return
        kind = type(question)
        answer: Answer
        try:
            if kind in service.opening:
                server, answer = service.opening[kind](question), Opened(walls)
            elif kind in service.before:
                answer = service.before[kind](question)
            else:
                assert server is not None
                answer = service.answers[kind](server, question, buffers)
        except BaseException as error:  # other people's code may raise anything, SystemExit too
            answer = told(error)
        reply, data = answer if isinstance(answer, tuple) else (answer, [])
        send(channel, reply, data)
