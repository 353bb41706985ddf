"""The SDKs behind the same protocol, against servers that speak theirs."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tests.trace.server import Server, completion, says, send
from torchstone.core.errors import UsageError
from torchstone.trace.http_client import ModelError
from torchstone.trace.messages import Message, Request, Tool
from torchstone.trace.sdk.anthropic_sdk import AnthropicClient
from torchstone.trace.sdk.openai_sdk import OpenAIClient

KEY = "sk-test-0123456789abcdef"
ASK = Request(
    (Message("system", "be brief"), Message("user", "hello")), "small", temperature=0.1,
    max_tokens=50, tools=(Tool("add", "adds", {"type": "object", "properties": {}}),),
)  # fmt: skip


def openai(server: Server) -> OpenAIClient:
    return OpenAIClient("small", server.url, attempts=2, environment={"OPENAI_API_KEY": KEY})


def anthropic(server: Server) -> AnthropicClient:
    url = server.url.removesuffix("/v1")
    return AnthropicClient("small", url, attempts=2, environment={"ANTHROPIC_API_KEY": KEY})


def message(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
    content = [
        {"type": "text", "text": "hi 你"},
        {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
    ]
    made = {
        "id": "m1", "type": "message", "role": "assistant", "model": "small", "content": content,
        "stop_reason": "tool_use", "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 3},
    }  # fmt: skip
    send(handler, 200, json.dumps(made).encode())


@pytest.mark.parametrize("streamed", [False, True])
def test_openai(streamed: bool) -> None:
    with Server(says("Guten Tag")).open() as server:
        answer = openai(server).complete(Request(ASK.messages, "small", stream=streamed))
    assert (answer.text, answer.finish_reason) == ("Guten Tag", "stop")
    assert (answer.input_tokens, answer.output_tokens) == (7, 3)
    assert server.asked[0]["messages"][0] == {"role": "system", "content": "be brief"}
    assert KEY in {k.lower(): v for k, v in server.headers[0].items()}["authorization"]


def test_anthropic() -> None:
    with Server(message).open() as server:
        answer = anthropic(server).complete(ASK)
    assert (answer.text, answer.finish_reason) == ("hi 你", "tool_use")
    assert (answer.input_tokens, answer.output_tokens) == (7, 3)
    assert [(c.name, json.loads(c.arguments)) for c in answer.tool_calls] == [("add", {"a": 1})]
    asked = server.asked[0]
    assert (asked["system"], asked["max_tokens"]) == ("be brief", 50)
    assert asked["temperature"] == 0.1
    assert asked["messages"] == [{"role": "user", "content": "hello"}]
    assert asked["tools"][0]["input_schema"]["type"] == "object"


@pytest.mark.parametrize("make", [openai, anthropic])
def test_errors_do_not_tell_the_key(make: Any) -> None:
    def refuse(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        send(handler, 401, json.dumps({"error": {"message": f"bad key {KEY}"}}).encode())

    with Server(refuse).open() as server, pytest.raises(ModelError, match="401") as caught:
        make(server).complete(ASK)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("make", [openai, anthropic])
def test_busy_servers_are_asked_again(make: Any) -> None:
    def busy(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        if number == 1:
            send(handler, 503, b"{}", Retry_After="0.01")
        elif make is openai:
            send(handler, 200, completion("ok"))
        else:
            message(handler, body, number)

    with Server(busy).open() as server:
        assert make(server).complete(ASK).text
        assert len(server.asked) == 2


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(UsageError, match=r"torchstone\[openai\]"):
        OpenAIClient()
