"""What is asked of a language model and what comes back; one protocol for every provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    text: str
    tool_call: str = ""
    """Id of the call that a `tool` message answers."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may ask for."""

    name: str
    description: str
    parameters: Mapping[str, object]
    """JSON schema of its arguments."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model asks for; its arguments are text that nobody has checked."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Request:
    """One question."""

    messages: tuple[Message, ...]
    model: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    schema: Mapping[str, object] | None = None
    """The answer shall be JSON of this schema."""
    tools: tuple[Tool, ...] = ()
    stream: bool = False
    timeout_seconds: float = 120.0


@dataclass(frozen=True, slots=True)
class Response:
    """One answer."""

    text: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float = 0.0
    attempts: int = 1

    def after(self, seconds: float, attempts: int = 1) -> Response:
        """The same answer with how long it took."""
        return replace(self, seconds=seconds, attempts=attempts)


def transcript(messages: Iterable[Message]) -> str:
    """A conversation as one text, the same for the same messages."""
    return "\n\n".join(f"[{item.role}]\n{item.text}" for item in messages)


class Client(Protocol):
    """Something that answers requests."""

    def complete(self, request: Request) -> Response: ...
