"""An OpenAI-compatible chat endpoint over HTTP, with the standard library alone.

The key comes from an environment variable and goes into one header: it is never part of a message,
an error or a record.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import random
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from torchstone.core.errors import TorchstoneError, UsageError
from torchstone.core.text import Text
from torchstone.trace.messages import Message, Request, Response, ToolCall

_MOST_BYTES = 16 << 20
_MOST_LINE = 1 << 20
_NO_KEY = frozenset({401, 403})
"""What a server answers to a key that is missing or wrong."""
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class ModelError(TorchstoneError):
    """A language model that did not answer, or not so that it can be used."""

    def __init__(
        self, where: str, given: str, again: bool = False, wait: float | None = None,
        key_variable: str = "", parameter: bool = False,
    ) -> None:  # fmt: skip
        todo = Text(
            "check the address, the model's name and the key; or try again later",
            "请检查地址、模型名与密钥；或稍后重试",
        )
        if key_variable:
            todo = Text(f"set {key_variable} to a key of this server",
                        f"请把 {key_variable} 设为该服务的密钥")  # fmt: skip
        super().__init__(
            where, given, Text("an answer of a chat completion", "聊天补全的回答"), todo
        )
        self.key_variable = key_variable
        """Where the server refused the key: the environment variable that holds it."""
        self.again = again
        """Another attempt may help."""
        self.wait = wait
        """Seconds that the server asks to wait."""
        self.parameter = parameter
        """The server refused the limit of tokens or the temperature."""


@dataclass(frozen=True)
class HttpClient:
    """One server. `complete` tries again after a busy or broken answer, with growing pauses."""

    base_url: str
    key_variable: str = "OPENAI_API_KEY"
    model: str = ""
    attempts: int = 4
    pause_seconds: float = 0.5
    longest_pause_seconds: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _reasoning: set[str] = field(default_factory=set, compare=False, repr=False)
    """Models that take no `max_tokens` or no temperature, as their server has said once."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        known = parts.scheme in ("http", "https") and parts.hostname and not parts.username
        if not known or _port(self.base_url) is None:
            raise UsageError(
                "model address",
                repr(_address(self.base_url)),
                "http(s)://host[:port]/v1",
                Text("pass the base address without a key in it", "请传入不含密钥的基础地址"),
            )

    def complete(self, request: Request) -> Response:
        """The answer, after as many attempts as are allowed; ModelError when there is none."""
        start = self.clock()
        for attempt in range(1, self.attempts + 1):
            left = request.timeout_seconds - (self.clock() - start)
            try:
                if left <= 0:
                    raise ModelError(self._where, "no answer in time")
                answer = self._once_or_otherwise(request, left)
            except ModelError as error:
                if not error.again or attempt == self.attempts:
                    raise
                self._pause(attempt, error.wait, request.timeout_seconds - (self.clock() - start))
                continue
            return answer.after(self.clock() - start, attempt)
        raise AssertionError("the last attempt returns or raises")

    def _once_or_otherwise(self, request: Request, timeout: float) -> Response:
        try:
            return self._once(request, timeout)
        except ModelError as error:
            if not self._asks_otherwise(request, error):
                raise
        return self._once(request, timeout)

    def _asks_otherwise(self, request: Request, error: ModelError) -> bool:
        """Whether to try again without what reasoning models refuse; once for each model."""
        model = request.model or self.model
        given = request.max_tokens is not None or request.temperature is not None
        if not error.parameter or not given or model in self._reasoning:
            return False
        self._reasoning.add(model)
        return True

    @property
    def _where(self) -> str:
        return f"model at {_address(self.base_url)}"

    def _pause(self, attempt: int, asked: float | None, left: float) -> None:
        pause = min(self.pause_seconds * 2 ** (attempt - 1), self.longest_pause_seconds)
        pause *= 0.5 + self.chance() / 2  # many clients must not come back at once
        self.sleep(max(0.0, min(max(pause, asked or 0.0), left)))

    def _once(self, request: Request, timeout: float) -> Response:
        parts = urlsplit(self.base_url)
        assert parts.hostname
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=timeout, context=context
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
        path = parts.path.rstrip("/") + "/chat/completions"
        deadline = self.clock() + timeout
        try:
            connection.response_class = _timed_responses(deadline, self.clock)
            connection.request("POST", path, self._body(request), self._headers(request))
            reply = connection.getresponse()
            if reply.status != 200:
                raise self._refused(reply)
            if request.stream:
                return read_stream(self._where, self._lines(reply, deadline))
            return read_whole(self._where, self._read(reply, deadline))
        except TimeoutError:
            raise ModelError(self._where, "no answer in time", again=True) from None
        except (OSError, http.client.HTTPException) as error:
            said = f"{type(error).__name__}: {error}"[:200]
            again = not isinstance(error, (socket.gaierror, ssl.SSLError))
            raise ModelError(self._where, said, again=again) from None
        except (ValueError, OverflowError) as error:  # lengths of parts that are no lengths
            said = f"the server did not reply with HTTP: {error}"[:200]
            raise ModelError(self._where, said, again=True) from None
        finally:
            connection.close()

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": "torchstone"}
        headers["Accept"] = "text/event-stream" if request.stream else "application/json"
        key = self.environment.get(self.key_variable, "").strip()
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def _body(self, request: Request) -> bytes:
        body = request_body(request, self.model)
        if (request.model or self.model) in self._reasoning:
            body.pop("temperature", None)
            if "max_tokens" in body:
                body["max_completion_tokens"] = body.pop("max_tokens")
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace")

    def _refused(self, reply: http.client.HTTPResponse) -> ModelError:
        try:
            data = json.loads(reply.read(64 << 10))
            said = str(
                data["error"]["message"] if isinstance(data["error"], dict) else data["error"]
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            said = reply.reason or ""
        wait = reply.headers.get("Retry-After", "")
        return ModelError(
            self._where,
            f"status {reply.status} ({' '.join(said.split())[:200]})",
            again=reply.status in _AGAIN,
            wait=float(wait) if _SECONDS.fullmatch(wait) else None,
            key_variable=key_refused(reply.status, self.key_variable),
            parameter=reply.status in _BAD_REQUEST
            and any(
                name in said for name in ("max_tokens", "max_completion_tokens", "temperature")
            ),
        )

    def _read(self, reply: http.client.HTTPResponse, deadline: float) -> bytes:
        parts: list[bytes] = []
        size = 0
        while chunk := reply.read1(1 << 16):
            size += len(chunk)
            if size > _MOST_BYTES:
                raise ModelError(self._where, f"an answer of more than {_MOST_BYTES >> 20} MiB")
            if self.clock() > deadline:
                raise TimeoutError
            parts.append(chunk)
        return b"".join(parts)

    def _lines(self, reply: http.client.HTTPResponse, deadline: float) -> Iterator[bytes]:
        size = 0
        while line := reply.readline(_MOST_LINE):
            size += len(line)
            if size > _MOST_BYTES or (len(line) == _MOST_LINE and not line.endswith(b"\n")):
                raise ModelError(self._where, "a stream that is too long")
            if self.clock() > deadline:
                raise TimeoutError
            yield line.strip()


_BAD_REQUEST = (400, 422)
"""How servers refuse a parameter."""
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
"""What a server may ask to wait; other scripts have digits that are no numbers."""


def key_refused(status: int, variable: str) -> str:
    """The variable of the key, where a server refused it."""
    return variable if status in _NO_KEY else ""


def _port(url: str) -> str | None:
    """The port of an address as it is written, empty without one; None for what is no port."""
    try:
        port = urlsplit(url).port
    except ValueError:
        return None
    return "" if port is None else f":{port}"


def _address(url: str) -> str:
    """Scheme, host, port and path: nothing in which a key could stand."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{_port(url) or ''}{parts.path.rstrip('/')}"


class _TimedReads(io.RawIOBase):
    """What a socket receives until a deadline: a server that sends byte by byte gains no time."""

    def __init__(self, sock: socket.socket, deadline: float, clock: Callable[[], float]) -> None:
        self._sock, self._deadline, self._clock = sock, deadline, clock
        self._held = sock.makefile("rb", 0)  # the socket is open for as long as this file is

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._deadline - self._clock()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._sock.recv_into(buffer)

    def close(self) -> None:
        self._held.close()
        super().close()


def _timed_responses(deadline: float, clock: Callable[[], float]) -> type[http.client.HTTPResponse]:
    """Responses whose status, headers and body come before a deadline or not at all."""

    class TimedResponse(http.client.HTTPResponse):
        def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
            super().__init__(sock, *args, **kwargs)
            self.fp.close()
            self.fp = io.BufferedReader(_TimedReads(sock, deadline, clock))

    return TimedResponse


def request_body(request: Request, model: str = "") -> dict[str, object]:
    """A request in the words of the chat completions API."""
    body: dict[str, object] = {
        "model": request.model or model,
        "messages": [_message(item) for item in request.messages],
    }
    for name in ("temperature", "max_tokens", "seed"):
        if getattr(request, name) is not None:
            body[name] = getattr(request, name)
    if request.schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": dict(request.schema), "strict": True},
        }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in request.tools
        ]
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def _message(item: Message) -> dict[str, str]:
    made = {"role": item.role, "content": item.text}
    if item.tool_call:
        made["tool_call_id"] = item.tool_call
    return made


def _json(where: str, data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        shown = data[:60].decode("utf-8", "replace")
        raise ModelError(where, f"an answer that is no JSON object ({shown!r})", again=True)
    return found


def read_whole(where: str, data: bytes) -> Response:
    """An answer that came in one piece."""
    found = _json(where, data)
    try:
        choice = found["choices"][0]
        message = choice["message"]
        text = message.get("content") or ""
        calls = tuple(_call(item) for item in message.get("tool_calls") or ())
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ModelError(where, "a JSON answer without a choice", again=True) from None
    if not isinstance(text, str):
        raise ModelError(where, "an answer whose content is no text", again=True)
    return Response(
        text=text,
        reasoning=_text(message.get("reasoning_content") or message.get("reasoning")),
        tool_calls=calls,
        finish_reason=_text(choice.get("finish_reason")),
        model=_text(found.get("model")),
        **_usage(found.get("usage")),
    )


def read_stream(where: str, lines: Iterator[bytes]) -> Response:
    """An answer that came as a stream of events."""
    text: list[str] = []
    reasoning: list[str] = []
    calls: dict[int, list[str]] = {}
    reason = model = ""
    usage: dict[str, Any] = {}
    ended = False
    for line in lines:
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            ended = True
            break
        found = _json(where, data)
        if found.get("error"):
            raise ModelError(where, f"an error in the stream ({str(found['error'])[:200]})", True)
        model = _text(found.get("model")) or model
        usage = _usage(found.get("usage")) or usage
        try:
            for choice in found.get("choices") or ():
                delta = choice.get("delta") or {}
                text.append(_text(delta.get("content")))
                reasoning.append(_text(delta.get("reasoning_content") or delta.get("reasoning")))
                for item in delta.get("tool_calls") or ():
                    _grow(calls, item)
                reason = _text(choice.get("finish_reason")) or reason
        except (AttributeError, TypeError, KeyError):
            raise ModelError(where, "a stream of another form", again=True) from None
    if not ended and not reason:
        raise ModelError(where, "a stream that was cut off", again=True)
    made = tuple(ToolCall(*parts) for _, parts in sorted(calls.items()))
    return Response(
        text="".join(text),
        reasoning="".join(reasoning),
        tool_calls=made,
        finish_reason=reason,
        model=model,
        **usage,
    )


def _grow(calls: dict[int, list[str]], item: Mapping[str, Any]) -> None:
    """A tool call comes in pieces."""
    parts = calls.setdefault(int(item.get("index", 0)), ["", "", ""])
    function = item.get("function") or {}
    parts[0] += _text(item.get("id"))
    parts[1] += _text(function.get("name"))
    parts[2] += _text(function.get("arguments"))


def _call(item: Mapping[str, Any]) -> ToolCall:
    function = item["function"]
    return ToolCall(
        _text(item.get("id")), _text(function["name"]), _text(function.get("arguments"))
    )


def _usage(usage: object) -> dict[str, Any]:
    if not isinstance(usage, dict):
        return {}
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    whole = [item if isinstance(item, int) and item >= 0 else None for item in counts]
    return {"input_tokens": whole[0], "output_tokens": whole[1]}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
