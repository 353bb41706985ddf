"""Structured answers: JSON that becomes a dataclass, repaired at most once; and a budget."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from torchstone.core.codec import from_data, schema_of
from torchstone.core.errors import TorchstoneError
from torchstone.core.text import Text
from torchstone.trace.http_client import ModelError
from torchstone.trace.messages import Client, Message, Request, Response

T = TypeVar("T")
_CHARACTERS_PER_TOKEN = 4
"""Where a server does not say: the usual guess, on the high side for code."""


class MisfitError(ModelError):
    """A model answered twice, and neither answer had the form that was asked for."""

    def __init__(self, reason: str, answer: Response) -> None:
        super().__init__("structured answer", f"twice unusable ({reason[:200]})")
        self.answer = answer
        """The second answer, as it came."""


def ask(client: Client, request: Request, kind: type[T]) -> tuple[T, Response]:
    """An answer as an instance of a dataclass. What does not fit is sent back once with the
    reason; a second misfit is a MisfitError."""
    shaped = replace(request, schema=request.schema or schema_of(kind))
    answer = client.complete(shaped)
    try:
        return _read(answer.text, kind), answer
    except TorchstoneError as error:
        reason = error.say("en")
    repair = replace(
        shaped,
        messages=(
            *shaped.messages,
            Message("assistant", answer.text),
            Message("user", f"The answer cannot be used: {reason}\nSend only the corrected JSON."),
        ),
    )
    second = client.complete(repair)
    try:
        return _read(second.text, kind), second
    except TorchstoneError as error:
        raise MisfitError(error.say("en"), second) from None


def _read(text: str, kind: type[T]) -> T:
    start, end = text.find("{"), text.rfind("}")
    try:
        data = json.loads(text[start : end + 1])
    except (ValueError, RecursionError) as error:
        raise ModelError("structured answer", f"no JSON ({str(error)[:80]})") from None
    return from_data(kind, data, "answer")


class BudgetSpentError(TorchstoneError):
    """The tokens or the time that a run may use are used up."""

    def __init__(self, given: str) -> None:
        super().__init__(
            "budget",
            given,
            Text("a request within the budget", "预算之内的请求"),
            Text("allow more tokens or more time", "请增加 token 或时间预算"),
        )


@dataclass
class Budget:
    """A client that stops when tokens or seconds are used up; what a server does not count is
    guessed from the length of the texts."""

    client: Client
    tokens: int
    seconds: float
    clock: Callable[[], float]
    spent_tokens: int = 0
    calls: int = 0
    _start: float = field(default=-1.0, repr=False)

    def complete(self, request: Request) -> Response:
        if self._start < 0:
            self._start = self.clock()
        used = self.clock() - self._start
        wanted = sum(len(item.text) for item in request.messages) // _CHARACTERS_PER_TOKEN
        if used >= self.seconds:
            raise BudgetSpentError(f"{used:.0f} of {self.seconds:.0f} seconds used")
        if self.spent_tokens + wanted > self.tokens:
            raise BudgetSpentError(f"{self.spent_tokens} of {self.tokens} tokens used")
        left = min(request.timeout_seconds, self.seconds - used)
        answer = self.client.complete(replace(request, timeout_seconds=left))
        self.calls += 1
        out = len(answer.text) // _CHARACTERS_PER_TOKEN
        self.spent_tokens += answer.input_tokens if answer.input_tokens is not None else wanted
        self.spent_tokens += answer.output_tokens if answer.output_tokens is not None else out
        return answer
