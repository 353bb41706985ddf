"""The model client against a real server on loopback: good, slow, busy, broken and hostile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tests.trace.server import Behave, Server, completion, says, send, stream
from torchstone.core.errors import UsageError
from torchstone.trace.ask import Budget, BudgetSpentError, ask
from torchstone.trace.http_client import HttpClient, ModelError
from torchstone.trace.messages import Message, Request, Tool

ASK = Request((Message("system", "be brief"), Message("user", "hello 你好")), model="small")
KEY = "sk-test-0123456789abcdef"


def client(server: Server, **more: Any) -> HttpClient:
    options: dict[str, Any] = {"pause_seconds": 0.001, "environment": {"OPENAI_API_KEY": KEY}}
    return HttpClient(server.url, **{**options, **more})


@pytest.mark.parametrize("streamed", [False, True])
def test_a_good_answer(streamed: bool) -> None:
    with Server(says("Guten Tag 世界")).open() as server:
        request = Request(
            ASK.messages, "small", temperature=0.2, max_tokens=9, seed=4, stream=streamed,
            tools=(Tool("add", "adds", {"type": "object"}),), schema={"type": "object"},
        )  # fmt: skip
        answer = client(server).complete(request)
    assert answer.text == "Guten Tag 世界"
    assert (answer.finish_reason, answer.model) == ("stop", "small")
    assert (answer.input_tokens, answer.output_tokens, answer.attempts) == (7, 3, 1)
    asked = server.asked[0]
    assert asked["messages"][1] == {"role": "user", "content": "hello 你好"}
    assert (asked["temperature"], asked["max_tokens"], asked["seed"]) == (0.2, 9, 4)
    assert asked["tools"][0]["function"]["name"] == "add"
    assert asked["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_what_a_reasoning_model_refuses_is_left_out_and_remembered() -> None:
    def picky(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        if "max_tokens" in body or "temperature" in body:
            said = "Unsupported parameter: 'max_tokens'; use 'max_completion_tokens' instead."
            send(handler, 400, json.dumps({"error": {"message": said}}).encode())
            return
        send(handler, 200, completion("fine"))

    request = Request(ASK.messages, "o9", temperature=0.2, max_tokens=9)
    with Server(picky).open() as server:
        one = client(server, attempts=1)
        assert [one.complete(request).text for _ in range(2)] == ["fine", "fine"]
    assert [item.get("max_completion_tokens") for item in server.asked] == [None, 9, 9]
    assert "temperature" not in server.asked[-1]


def test_a_parameter_that_is_refused_again_is_told() -> None:
    def stubborn(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        send(handler, 400, b'{"error": {"message": "temperature is not supported"}}')

    with Server(stubborn).open() as server, pytest.raises(ModelError, match="status 400"):
        client(server).complete(Request(ASK.messages, "o9", temperature=0.2))
    assert len(server.asked) == 2


def test_tools_and_reasoning() -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}

    def whole(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        if not body.get("stream"):
            send(handler, 200, completion("", tool_calls=[call], reasoning_content="hmm"))
            return
        pieces = [
            {"index": 0, "id": "t1", "function": {"name": "add", "arguments": '{"a"'}},
            {"index": 0, "function": {"arguments": ": 1}"}},
        ]
        events = [json.dumps({"choices": [{"delta": {"tool_calls": [item]}}]}) for item in pieces]
        events.append(json.dumps({"choices": [{"delta": {"reasoning": "hmm"}}]}))
        stream(handler, [*events, "[DONE]"])

    with Server(whole).open() as server:
        for streamed in (False, True):
            answer = client(server).complete(Request(ASK.messages, stream=streamed))
            assert answer.reasoning == "hmm"
            assert [(c.id, c.name, c.arguments) for c in answer.tool_calls] == [
                ("t1", "add", '{"a": 1}')
            ]


def fails_then_works(status: int, times: int, **headers: str) -> Behave:
    def behave(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        if number <= times:
            send(handler, status, b'{"error": {"message": "slow down"}}', **headers)
        else:
            send(handler, 200, completion("ok"))

    return behave


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_busy_servers_are_asked_again(status: int) -> None:
    pauses: list[float] = []
    with Server(fails_then_works(status, 2)).open() as server:
        answer = client(server, sleep=pauses.append, chance=lambda: 1.0).complete(ASK)
    assert (answer.text, answer.attempts, len(server.asked)) == ("ok", 3, 3)
    assert pauses == [0.001, 0.002]


def test_a_server_may_say_how_long_to_wait() -> None:
    pauses: list[float] = []
    with Server(fails_then_works(429, 1, Retry_After="7")).open() as server:
        client(server, sleep=pauses.append).complete(ASK)
    assert pauses == [7.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_refusals_are_not_asked_again(status: int) -> None:
    with Server(fails_then_works(status, 9)).open() as server:
        with pytest.raises(ModelError, match=f"status {status} .slow down."):
            client(server).complete(ASK)
        assert len(server.asked) == 1


def cut(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
    stream(handler, [json.dumps({"choices": [{"delta": {"content": "half"}}]})])


def short(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices"')


def plain(text: bytes) -> Behave:
    return lambda handler, body, number: send(handler, 200, text)


def events(*texts: str) -> Behave:
    return lambda handler, body, number: stream(handler, list(texts))


@pytest.mark.parametrize(
    ("behave", "streamed"),
    [
        (cut, True), (short, False), (plain(b"<html>"), False), (plain(b""), False),
        (plain(b"[]"), False), (plain(b"{}"), False), (plain(b'{"choices": []}'), False),
        (plain(b'{"choices": [{"message": {"content": 3}}]}'), False),
        (plain(b'{"choices": [3]}'), False), (plain(b"[" * 200_000), False),
        (events("no json", "[DONE]"), True), (events('{"choices": [3]}', "[DONE]"), True),
        (events('{"error": "gone"}'), True), (events('{"choices": 3}'), True),
    ],
)  # fmt: skip
def test_garbage_is_an_error_after_a_few_attempts(behave: Behave, streamed: bool) -> None:
    with Server(behave).open() as server:
        with pytest.raises(ModelError):
            client(server, attempts=2).complete(Request(ASK.messages, stream=streamed))
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 22 + b"\r\nabc\r\n",
        b"HTTP/1.1 429 Busy\r\nRetry-After: \xb2\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_what_is_no_http_is_an_error_of_the_server(raw: bytes, streamed: bool) -> None:
    """Lengths that are negative or larger than memory, a digit that is no number."""

    def behave(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        handler.wfile.write(raw)

    with Server(behave).open() as server:
        with pytest.raises(ModelError):
            client(server, attempts=2).complete(Request(ASK.messages, stream=streamed))
        assert len(server.asked) == 2


@pytest.mark.parametrize("streamed", [False, True])
def test_an_endless_answer_ends(streamed: bool) -> None:
    def endless(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        line = b"data: " + b"x" * 65_000
        try:
            while True:
                handler.wfile.write(line)
        except OSError:
            return

    with Server(endless).open() as server, pytest.raises(ModelError, match=r"MiB|too long"):
        client(server).complete(Request(ASK.messages, stream=streamed))


def slow(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
    time.sleep(1)
    send(handler, 200, completion("late"))


def drip(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
    event = json.dumps({"choices": [{"delta": {"content": "x"}}]})
    try:
        stream(handler, [event] * 50, pause=0.05)
    except OSError:
        return


@pytest.mark.parametrize(("behave", "streamed"), [(slow, False), (drip, True)])
def test_the_whole_time_is_bounded(behave: Behave, streamed: bool) -> None:
    request = Request(ASK.messages, stream=streamed, timeout_seconds=0.3)
    start = time.monotonic()
    with Server(behave).open() as server, pytest.raises(ModelError, match="in time"):
        client(server).complete(request)
    assert time.monotonic() - start < 3


def test_nobody_there() -> None:
    with pytest.raises(ModelError, match="Refused"):
        HttpClient("http://127.0.0.1:9/v1", attempts=2, pause_seconds=0.001).complete(ASK)


@pytest.mark.parametrize("url", ["ftp://x", "x", "http://", f"http://me:{KEY}@host/v1", ""])
def test_bad_addresses(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        HttpClient(url)
    assert KEY not in str(caught.value)


def test_the_key_is_never_told() -> None:
    with Server(fails_then_works(401, 9)).open() as server:
        made = client(server)
        with pytest.raises(ModelError) as caught:
            made.complete(ASK)
    assert KEY not in str(caught.value)
    assert KEY not in json.dumps(server.asked)


@dataclass(frozen=True)
class Verdict:
    """A structured answer."""

    result: int
    reason: str = ""


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        (['{"result": 1, "reason": "ok"}'], 1),
        (['Sure!\n```json\n{"result": 1}\n```'], 1),
        (["no", '{"result": 1}'], 2),
        (['{"result": "one"}', '{"result": 1}'], 2),
    ],
)
def test_structured_answers_are_repaired_once(answers: list[str], asked: int) -> None:
    with Server(says(*answers)).open() as server:
        verdict, _ = ask(client(server), ASK, Verdict)
    assert verdict.result == 1
    assert len(server.asked) == asked
    if asked == 2:
        assert "cannot be used" in server.asked[1]["messages"][-1]["content"]


def test_a_second_misfit_is_an_error() -> None:
    with Server(says("no", "never", '{"result": 1}')).open() as server:
        with pytest.raises(ModelError, match="twice"):
            ask(client(server), ASK, Verdict)
        assert len(server.asked) == 2


def test_a_budget_of_tokens_and_time() -> None:
    now = [0.0]
    clock: Callable[[], float] = lambda: now[0]  # noqa: E731
    with Server(says("ok")).open() as server:
        budget = Budget(client(server), tokens=25, seconds=10, clock=clock)
        budget.complete(ASK)
        budget.complete(ASK)
        assert budget.spent_tokens == 20
        with pytest.raises(BudgetSpentError, match="20 of 25 tokens"):
            budget.complete(Request((Message("user", "x" * 100),)))
        now[0] = 11.0
        with pytest.raises(BudgetSpentError, match="11 of 10 seconds"):
            budget.complete(ASK)
    assert len(server.asked) == 2
