"""A record answers in place of a model: every question once, in order, and never a live call."""

from __future__ import annotations

import json
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.trace.server import Server, says, send
from torchstone.core.errors import InputError
from torchstone.core.report import Report
from torchstone.trace import ActionType, Trace
from torchstone.trace.ask import Budget, BudgetSpentError
from torchstone.trace.exchange import Exchange, Recorder, call_of, read_exchanges, request_key
from torchstone.trace.http_client import HttpClient, ModelError
from torchstone.trace.journal import NAME, encode, read_journal
from torchstone.trace.messages import Client, Message, Request, Response, transcript
from torchstone.trace.redact import MARK, redactor
from torchstone.trace.replay import (
    ReplayClient,
    ReplayMissError,
    exchanges_of,
    fork,
    replay,
    settings_of,
)
from torchstone.trace.run import Run, load

REDACT = redactor({})


def question(text: str, **more: object) -> Request:
    return Request((Message("user", text),), **more)  # type: ignore[arg-type]


def told(text: str, answer: str) -> Exchange:
    return Exchange(request_key(question(text), REDACT), Response(answer))


def test_equal_questions_get_their_answers_in_order() -> None:
    client = ReplayClient([told("a", "1"), told("b", "2"), told("a", "3")])
    assert [client.complete(question(text)).text for text in ("a", "a", "b")] == ["1", "3", "2"]
    assert client.left == 0
    with pytest.raises(ReplayMissError) as caught:
        client.complete(question("a"))
    assert caught.value.prompt == "[user]\na"


def test_the_same_words_are_the_same_question() -> None:
    client = ReplayClient([told("a", "1")])
    other = question("a", model="another", timeout_seconds=3.0, stream=True)
    assert client.complete(other).text == "1"
    assert request_key(question("a", seed=1), REDACT) != request_key(question("a"), REDACT)


def test_errors_come_again() -> None:
    key = request_key(question("a"), REDACT)
    client = ReplayClient([Exchange(key, error="gone"), Exchange(key, error="9 of 9", spent=True)])
    with pytest.raises(ModelError, match="gone"):
        client.complete(question("a"))
    with pytest.raises(BudgetSpentError, match="9 of 9"):
        client.complete(question("a"))


def test_a_fork_asks_the_live_model_only_after_the_last_recorded_answer() -> None:
    with Server(says("live")).open() as server:
        client = ReplayClient([told("a", "1"), told("b", "2")], HttpClient(server.url))
        assert client.complete(question("a")).text == "1"
        with pytest.raises(ReplayMissError):
            client.complete(question("c"))
        assert client.complete(question("b")).text == "2"
        assert client.complete(question("c")).text == "live"
        assert len(server.asked) == 1


def test_a_recorder_keeps_what_was_said_without_secrets() -> None:
    secret = "sk-" + "a1B2" * 8
    with Server(says(f"use {secret}")).open() as server:
        recorder = Recorder(HttpClient(server.url), REDACT)
        assert recorder.complete(question("a")).text == f"use {MARK}"
        broke = Recorder(Budget(HttpClient(server.url), 0, 1.0, lambda: 0.0), REDACT)
        with pytest.raises(BudgetSpentError):
            broke.complete(question("a long question"))
    kept = recorder.take()
    assert recorder.take() == ()
    assert [item.response.text for item in kept] == [f"use {MARK}"]
    assert (call_of(kept, question("a")).input_tokens, broke.take()[0].spent) == (7, True)


def test_a_server_that_repeats_the_key_shows_it_to_nobody() -> None:
    """A 401 quotes the key; a question that holds it leaves without it."""
    key = "local-secret-0123456789"

    def refuse(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        said = {"error": {"message": f"Incorrect API key provided: {key}."}}
        send(handler, 401, json.dumps(said).encode())

    with Server(refuse).open() as server:
        client = HttpClient(server.url, environment={"OPENAI_API_KEY": key})
        recorder = Recorder(client, redactor({"OPENAI_API_KEY": key}))
        with pytest.raises(ModelError) as caught:
            recorder.complete(question(f"my key is {key}"))
    assert key not in caught.value.say("en") + caught.value.say("zh")
    assert f"provided: {MARK}" in caught.value.given
    assert key not in json.dumps(server.asked)
    assert MARK in json.dumps(server.asked)


@pytest.mark.parametrize("text", ["", "{", "3", "[3]", '[{"key": 3}]', "[" * 100_000])
def test_a_list_of_exchanges_that_is_none(text: str) -> None:
    assert read_exchanges(text) == ()


def asks_twice(settings: str, client: Client, log_dir: Path) -> Report:
    """A small run: two questions, the second holds the first answer."""
    topic = json.loads(settings)["topic"]
    trace = Trace("op", "1", log_dir, fsync=False, environment={})
    trace.insert_start_record(settings)
    said = ""
    for _ in range(2):
        recorder = Recorder(client, trace.redact)
        request = question(f"{topic} {said}")
        said = recorder.complete(request).text
        trace.insert_designer_or_coder_record(
            said, transcript(request.messages), "", ActionType.DO_CODER, exchanges=recorder.take()
        )
    trace.insert_verifier_record(str(len(said) < 9), "" if len(said) < 9 else "too long", "")
    trace.insert_exit_record("done")
    return Report("test")


@pytest.fixture
def recorded(tmp_path: Path) -> Run:
    with Server(says("one", "two")).open() as server:
        asks_twice('{"topic": "numbers"}', HttpClient(server.url), tmp_path / "old")
    return load(tmp_path / "old" / "op")


def test_a_replay_without_drift(recorded: Run, tmp_path: Path) -> None:
    report = replay(recorded, asks_twice, tmp_path / "new")
    assert not report.findings
    assert report.measures[0].value == 0
    assert report.answer is not None
    assert report.answer.headline.en == "The replay gives what was recorded: 5 records are the same"
    new = load(tmp_path / "new" / "op")
    for old, now in zip(recorded.records, new.records, strict=True):
        assert recorded.text(old, "prompt") == new.text(now, "prompt")
        assert (old.action, old.verdict) == (now.action, now.verdict)


def tampered(run: Run, answer: str) -> Run:
    """The record with another first answer, its checksums made good."""
    lines = []
    for item in run.records:
        told = read_exchanges(run.text(item, "exchanges") or "[]")
        if item.step == 1 and told:
            from torchstone.trace.exchange import write_exchanges
            from torchstone.trace.trace import Kept, _Content

            changed = [replace(told[0], response=replace(told[0].response, text=answer))]
            content = _Content.of(write_exchanges(changed))
            kept = Kept("", content.digest, len(content.data), content.text)
            item = replace(item, texts={**item.texts, "exchanges": kept})
        lines.append(encode(item))
    (run.folder / NAME).write_bytes(b"".join(lines))
    return load(run.folder)


def test_a_tampered_answer_is_drift(recorded: Run, tmp_path: Path) -> None:
    report = replay(tampered(recorded, "ONE"), asks_twice, tmp_path / "new")
    assert [item.rule for item in report.findings] == ["replay-drift"]
    assert report.findings[0].location.step == 1
    assert report.answer is not None
    assert report.answer.state == "bad"
    assert report.answer.headline.en.startswith("The replay parts from the record at step 01 (DO_")
    shown = str(report.findings[0].evidence)
    assert "-one" in shown
    assert "+ONE" in shown


def test_a_prompt_that_changed_is_drift(recorded: Run, tmp_path: Path) -> None:
    def other(settings: str, client: Client, log_dir: Path) -> Report:
        return asks_twice(settings.replace("numbers", "Numbers"), client, log_dir)

    report = replay(recorded, other, tmp_path / "new")
    assert len(report.findings) == 1
    assert "+Numbers" in str(report.findings[0].evidence)
    assert "step 01" in report.findings[0].message("en")
    assert "第 01 步" in report.findings[0].message("zh")


def test_a_verdict_that_changed_is_drift(recorded: Run, tmp_path: Path) -> None:
    def strict(settings: str, client: Client, log_dir: Path) -> Report:
        made = asks_twice(settings, client, log_dir / "x")
        trace = Trace("op", "1", log_dir, fsync=False, environment={})
        run = load(log_dir / "x" / "op")
        trace.insert_start_record(settings)
        for item in run.records[1:3]:
            trace.insert_designer_or_coder_record(
                run.text(item, "answer") or "", run.text(item, "prompt") or "", "",
                ActionType.DO_CODER,
            )  # fmt: skip
        trace.insert_verifier_record("False", "too short", "")
        trace.insert_exit_record("done")
        return made

    report = replay(recorded, strict, tmp_path / "new")
    assert report.findings[0].location.step == 3
    assert "+too short" in str(report.findings[0].evidence)


def test_a_changed_file_is_no_answer(recorded: Run, tmp_path: Path) -> None:
    first = next(item for item in read_journal(recorded.folder / NAME).records if item.step == 1)
    broken = replace(first.texts["exchanges"], sha256="0" * 64)
    records = [
        replace(item, texts={**item.texts, "exchanges": broken}) if item.id == first.id else item
        for item in recorded.records
    ]
    (recorded.folder / NAME).write_bytes(b"".join(map(encode, records)))
    run = load(recorded.folder)
    assert len(exchanges_of(run)) == 1
    assert replay(run, asks_twice, tmp_path / "new").findings


def test_a_fork_from_a_step(recorded: Run, tmp_path: Path) -> None:
    with Server(says("a new answer")).open() as server:
        fork(recorded, asks_twice, 2, HttpClient(server.url), tmp_path / "new")
        assert len(server.asked) == 1
    new = load(tmp_path / "new" / "op")
    assert [new.text(item, "answer") for item in new.records[1:3]] == ["one", "a new answer"]
    assert new.records[3].verdict == "False"


def test_runs_that_cannot_be_replayed(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path, fsync=False)
    trace.insert_verifier_record("True", "", "")
    with pytest.raises(InputError, match="no settings"):
        settings_of(load(tmp_path / "op"))
    trace.insert_start_record("[3]")
    with pytest.raises(InputError, match="no settings"):
        settings_of(load(tmp_path / "op"))
    Trace("op", "2", tmp_path, fsync=False).insert_start_record("{}")
    with pytest.raises(InputError, match="2 tasks"):
        settings_of(load(tmp_path / "op"))
    assert settings_of(load(tmp_path / "op", "2")) == {}
