"""From the name of a model to a client that stays within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module

from torchstone.core.errors import UsageError
from torchstone.core.options import unknown
from torchstone.core.text import Text
from torchstone.trace.ask import Budget
from torchstone.trace.http_client import HttpClient
from torchstone.trace.messages import Client

PROVIDERS = ("http", "openai", "anthropic")
"""The package's own client, and the SDKs that are extras."""
OPENAI = "https://api.openai.com/v1"


def connect(
    model: str,
    base_url: str = "",
    provider: str = "http",
    *,
    max_tokens: int,
    max_seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> Budget:
    """A client for a model. Its key comes from OPENAI_API_KEY or ANTHROPIC_API_KEY."""
    if not model:
        raise UsageError(
            "--model",
            Text("no model", "没有模型"),
            Text("the name of a model", "模型名称"),
            Text(
                "pass --model NAME, and --base-url for a server of your own",
                "请传入 --model 名称；自建服务请加 --base-url",
            ),
        )
    return Budget(_client(model, base_url, provider), max_tokens, max_seconds, clock)


def _client(model: str, base_url: str, provider: str) -> Client:
    if provider == "http":
        return HttpClient(base_url or OPENAI, model=model)
    if provider not in PROVIDERS:
        raise unknown("--provider", provider, PROVIDERS)
    # an SDK is an extra: loaded only when it is named
    module = import_module(f"torchstone.trace.sdk.{provider}_sdk")
    kind = {"openai": "OpenAIClient", "anthropic": "AnthropicClient"}[provider]
    client: Client = getattr(module, kind)(model, base_url or None)
    return client
