"""The `openai` package as a client (an extra: `torchstone[openai]`)."""

from __future__ import annotations

import importlib
import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.trace.http_client import (
    ModelError,
    key_refused,
    read_stream,
    read_whole,
    request_body,
)
from torchstone.trace.messages import Request, Response


def load_sdk(name: str) -> Any:
    """An SDK, or the error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(
            "model client",
            f"no package {name}",
            Text(f"the {name} package", f"已安装 {name} 包"),
            f'pip install "torchstone[{name}]"',
        ) from None


class OpenAIClient:
    """Chat completions through the SDK, which brings its own retries."""

    def __init__(
        self,
        model: str = "",
        base_url: str | None = None,
        key_variable: str = "OPENAI_API_KEY",
        attempts: int = 4,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sdk = load_sdk("openai")
        self._model, self._clock = model, clock
        self._key_variable = key_variable
        key = (os.environ if environment is None else environment).get(key_variable, "").strip()
        self._client = self._sdk.OpenAI(
            api_key=key or "none", base_url=base_url, max_retries=max(attempts - 1, 0)
        )

    def complete(self, request: Request) -> Response:
        """The answer; what the SDK raises becomes a ModelError without the key in it."""
        start = self._clock()
        body = request_body(request, self._model)
        try:
            made = self._client.chat.completions.create(**body, timeout=request.timeout_seconds)
            if request.stream:
                lines = (b"data: " + json.dumps(part.model_dump()).encode() for part in made)
                answer = read_stream("openai", iter([*lines, b"data: [DONE]"]))
            else:
                answer = read_whole("openai", json.dumps(made.model_dump()).encode())
        except self._sdk.APIStatusError as error:
            said = f"status {error.status_code} ({type(error).__name__})"
            refused = key_refused(error.status_code, self._key_variable)
            raise ModelError("openai", said, key_variable=refused) from None
        except self._sdk.OpenAIError as error:
            raise ModelError("openai", f"{type(error).__name__}: {str(error)[:200]}") from None
        return answer.after(self._clock() - start)
