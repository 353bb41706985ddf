"""`kernel generate` against a server that plays a hostile or broken model, over real HTTP.

What the server received is all that left the machine: it is searched for the planted secrets.
"""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.script import DESIGN, GO_ON, RIGHT, WRONG, look, written
from tests.kernels.test_c_build import BODY
from tests.trace.server import Behave, Server, completion, says, send
from torchstone.cli.main import run

KEY = "planted-key-0123456789abcdef"
FOREIGN = "sk-planted0123456789abcdefXYZ"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def generated(behave: Behave, folder: Path, *more: str, impl: str = "torch") -> tuple[int, Server]:
    """The exit code of a generation against this server, and what the server was asked."""
    with Server(behave).open() as server:
        words = ["kernel", "generate", "relu", "--impl", impl, "--model", "small", "--lang", "en"]
        words += ["--base-url", server.url, "--log-dir", str(folder / "runs")]
        return run([*words, *more]), server


def leaks(server: Server, folder: Path, shown: str, *secrets: str) -> list[str]:
    """Where a secret is that should be nowhere: in a prompt, on the screen, in the record."""
    texts = {"prompts": json.dumps(server.asked, ensure_ascii=False), "screen": shown}
    for path in (folder / "runs").rglob("*"):
        if path.is_file():
            texts[path.name] = path.read_bytes().decode("utf-8", "replace")
    return [name for name, text in texts.items() if any(item in text for item in secrets)]


def c_kernel(text: str) -> str:
    return (
        f"import torch\nfrom torchstone_kernel import library\n\nC_SOURCE = {text!r}\n\n\n"
        "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        y = torch.empty_like(x)\n"
        "        library.relu(x, y, x.numel())\n        return y\n"
    )


def test_c_of_a_model_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    """It has no Python around it: what a model writes in C is judged like anything else."""
    code, server = generated(says(DESIGN, written(c_kernel(BODY)), GO_ON), tmp_path, impl="c")
    assert code in (0, 1)
    assert server.asked


def test_an_error_that_echoes_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def behave(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        given = handler.headers["Authorization"]
        said = {"error": {"message": f"wrong key: {given}, did you mean {FOREIGN}?"}}
        send(handler, 401, json.dumps(said).encode())

    code, server = generated(behave, tmp_path)
    said = capsys.readouterr()
    assert code == 3
    assert "401" in said.out + said.err
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert not leaks(server, tmp_path, said.out + said.err, KEY, FOREIGN)


def test_a_model_that_repeats_the_key_does_not_get_it_into_the_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = written(WRONG + f"# {KEY} {FOREIGN}\n", f"the key is {KEY}")
    code, server = generated(
        says(told, look("go_on", KEY), "no JSON " + KEY), tmp_path, "--max-steps", "3"
    )
    said = capsys.readouterr()
    assert code == 1
    assert not leaks(server, tmp_path, said.out + said.err, KEY, FOREIGN)


def raw(status: str, body: bytes) -> Behave:
    """Bytes as they are, with no regard for the protocol."""

    def behave(handler: BaseHTTPRequestHandler, _: dict[str, Any], __: int) -> None:
        handler.wfile.write(f"HTTP/1.1 {status}\r\n".encode() + body)

    return behave


def endless(handler: BaseHTTPRequestHandler, _: dict[str, Any], __: int) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    try:
        while True:
            handler.wfile.write(b'{"choices": "' * 4096)
    except OSError:
        pass


@pytest.mark.parametrize(
    ("behave", "said"),
    [
        (endless, "more than 16 MiB"),
        (raw("200 OK", b"\r\n" + b"\xff\xfe\x00garbage"), "no JSON"),
        (raw("200 OK", b"Content-Length: 10\r\n\r\nshort"), "no JSON"),
        (raw("200 OK", b"X: y\r\n" * 500 + b"\r\n{}"), "more than 100 headers"),
        (raw("200 " + "O" * 70_000, b"\r\n"), "line"),
        (raw("999 odd", b"\r\n\r\n"), "999"),
        (raw("302 Found", b"Location: http://127.0.0.1:1/\r\n\r\n"), "302"),
        (lambda h, _, __: send(h, 200, completion("x", content={"not": "text"})), "no text"),
        (lambda h, _, __: send(h, 200, b"[" * 100_000), "no JSON"),
        (lambda h, _, __: send(h, 200, b'{"choices": [{}]}'), "without a choice"),
    ],
    ids=["endless", "not UTF-8", "cut off", "many headers", "long status", "odd status",
         "redirect", "content is no text", "deep nesting", "no message"],
)  # fmt: skip
def test_a_broken_server_is_told_and_ends_the_run(
    behave: Behave, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("torchstone.trace.http_client.HttpClient._pause", lambda *_: None)
    code, server = generated(behave, tmp_path, "--max-seconds", "20")
    shown = capsys.readouterr()
    assert code == 3
    assert said in shown.out + shown.err
    assert "Traceback" not in shown.out + shown.err
    assert not leaks(server, tmp_path, shown.out + shown.err, KEY)


@pytest.mark.parametrize("where", ["headers", "chunk size", "body"])
def test_a_server_that_sends_byte_by_byte_gains_no_time(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = {
        "headers": b"HTTP/1.1 200 OK\r\nX: ",
        "chunk size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "body": b"HTTP/1.1 200 OK\r\n\r\n",
    }[where]
    sent: list[float] = []

    def behave(handler: BaseHTTPRequestHandler, _: dict[str, Any], __: int) -> None:
        handler.wfile.write(start)
        try:
            while len(sent) < 200:  # twenty times as long as is allowed
                handler.wfile.write(b"0")
                sent.append(time.monotonic())
                time.sleep(0.05)
        except OSError:
            pass

    code, _ = generated(behave, tmp_path, "--max-seconds", "0.5")
    assert code == 3
    assert "in time" in capsys.readouterr().out
    assert len(sent) < 200


def test_answers_that_try_to_steer_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names, models and texts of a server never become part of a path."""

    def behave(handler: BaseHTTPRequestHandler, _: dict[str, Any], number: int) -> None:
        texts = (DESIGN, GO_ON, written(RIGHT.replace("clamp", "../clamp"), "../../x"), GO_ON)
        found = json.loads(completion(texts[min(number, len(texts)) - 1]))
        found |= {"model": "../../../tmp/escaped", "id": "/etc/passwd\0"}
        found["choices"][0]["finish_reason"] = "../../stop"
        send(handler, 200, json.dumps(found).encode())

    task = "../../../escaped"
    generated(behave, tmp_path / "inner" / "deep", "--max-steps", "3", "--task", task)
    assert {path.name for path in tmp_path.iterdir()} == {"inner"}
    assert {path.name for path in (tmp_path / "inner").iterdir()} == {"deep"}
    files = [item for item in (tmp_path / "inner" / "deep" / "runs").rglob("*") if item.is_file()]
    assert files
    assert not any(item.is_symlink() for item in files)
    assert "Traceback" not in capsys.readouterr().err


def test_unreadable_answers_cost_no_verification_and_are_shown_as_unreadable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = generated(
        says(DESIGN, GO_ON, "\ud83d\x00 no JSON", '{"code": 3}'), tmp_path, "--max-steps", "6"
    )
    said = capsys.readouterr().out
    assert code == 1
    assert "VERIFY" not in {path.name.split("_")[-2] for path in (tmp_path / "runs").rglob("*.txt")}
    assert "unreadable" in said, said
