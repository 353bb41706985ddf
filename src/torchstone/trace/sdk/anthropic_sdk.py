"""The `anthropic` package as a client (an extra: `torchstone[anthropic]`)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from torchstone.trace.http_client import ModelError, key_refused
from torchstone.trace.messages import Request, Response, ToolCall
from torchstone.trace.sdk.openai_sdk import load_sdk

_MOST_TOKENS = 4096
"""The API wants a limit; this one holds where the request has none."""


class AnthropicClient:
    """Messages through the SDK, which brings its own retries."""

    def __init__(
        self,
        model: str = "",
        base_url: str | None = None,
        key_variable: str = "ANTHROPIC_API_KEY",
        attempts: int = 4,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sdk = load_sdk("anthropic")
        self._model, self._clock = model, clock
        self._key_variable = key_variable
        key = (os.environ if environment is None else environment).get(key_variable, "").strip()
        self._client = self._sdk.Anthropic(
            api_key=key or "none", base_url=base_url, max_retries=max(attempts - 1, 0)
        )

    def complete(self, request: Request) -> Response:
        """The answer; what the SDK raises becomes a ModelError without the key in it."""
        start = self._clock()
        try:
            made = self._client.messages.create(
                **self._body(request), timeout=request.timeout_seconds
            )
        except self._sdk.APIStatusError as error:
            said = f"status {error.status_code} ({type(error).__name__})"
            refused = key_refused(error.status_code, self._key_variable)
            raise ModelError("anthropic", said, key_variable=refused) from None
        except self._sdk.AnthropicError as error:
            raise ModelError("anthropic", f"{type(error).__name__}: {str(error)[:200]}") from None
        return _answer(made).after(self._clock() - start)

    def _body(self, request: Request) -> dict[str, object]:
        system = "\n\n".join(item.text for item in request.messages if item.role == "system")
        if request.schema is not None:
            shape = json.dumps(request.schema, ensure_ascii=False)
            system = f"{system}\n\nAnswer with one JSON object of this schema:\n{shape}".strip()
        body: dict[str, object] = {
            "model": request.model or self._model,
            "max_tokens": request.max_tokens or _MOST_TOKENS,
            "messages": [
                {"role": "assistant" if item.role == "assistant" else "user", "content": item.text}
                for item in request.messages
                if item.role != "system"
            ],
        }
        if system:
            body["system"] = system
        if request.temperature is not None:
            # no argument of the SDK's any more, but still a field of the API
            body["extra_body"] = {"temperature": request.temperature}
        if request.tools:
            body["tools"] = [
                {"name": t.name, "description": t.description, "input_schema": dict(t.parameters)}
                for t in request.tools
            ]
        return body


def _answer(made: Any) -> Response:
    texts, thoughts, calls = [], [], []
    for block in made.content:
        if block.type == "text":
            texts.append(block.text)
        elif block.type == "thinking":
            thoughts.append(block.thinking)
        elif block.type == "tool_use":
            calls.append(ToolCall(block.id, block.name, json.dumps(block.input)))
    return Response(
        text="".join(texts),
        reasoning="".join(thoughts),
        tool_calls=tuple(calls),
        finish_reason=made.stop_reason or "",
        model=made.model,
        input_tokens=made.usage.input_tokens,
        output_tokens=made.usage.output_tokens,
    )
