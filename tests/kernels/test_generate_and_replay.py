"""A generation with the real verifier, over real HTTP, and its replay from the command line."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.script import CODER, DESIGN, GO_ON, RIGHT, WRONG, settings, written
from tests.trace.server import Server, says, send
from torchstone.cli.main import run
from torchstone.kernels.generation.generate import generate
from torchstone.kernels.verifier import verify
from torchstone.trace.exchange import read_exchanges
from torchstone.trace.http_client import HttpClient
from torchstone.trace.journal import NAME, encode
from torchstone.trace.run import Run, load

ANSWERS = (DESIGN, GO_ON, written(WRONG), GO_ON, CODER, written(RIGHT), GO_ON)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A wrong kernel first, then a right one."""
    folder = tmp_path_factory.mktemp("runs")
    with Server(says(*ANSWERS)).open() as server:
        outcome, report = generate(settings(), HttpClient(server.url), folder, verify)
    assert (outcome.ending, outcome.steps) == ("accepted", 5)
    assert not report.findings
    return load(folder / "relu")


def prompts(run: Run) -> list[str | None]:
    return [run.text(item, "prompt") for item in run.records]


def verdicts(run: Run) -> list[tuple[str, str | None]]:
    return [(i.verdict, run.text(i, "error_log")) for i in run.records if i.action == "VERIFY"]


def test_the_wrong_kernel_was_rejected_with_reasons_that_reach_the_coder(recorded: Run) -> None:
    (first, log), (second, _) = verdicts(recorded)
    assert first.startswith("False (")
    assert second == "True"
    assert log
    fix = next(item for item in recorded.records if item.action == "FIX_CODER")
    assert log.splitlines()[0] in (recorded.text(fix, "prompt") or "")


def test_a_replay_is_byte_identical_with_no_model(
    recorded: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        ["trace", "replay", str(recorded.folder), "--log-dir", str(tmp_path), "--lang", "en"]
    )
    said = capsys.readouterr().out
    assert code == 0, said
    again = load(tmp_path / "relu")
    assert prompts(again) == prompts(recorded)
    assert verdicts(again) == verdicts(recorded)
    assert run(["trace", "diff", str(recorded.folder), str(tmp_path / "relu")]) == 0


def test_a_tampered_answer_is_drift(
    recorded: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    from torchstone.trace.exchange import write_exchanges
    from torchstone.trace.trace import Kept, _Content

    lines = []
    for item in recorded.records:
        told = read_exchanges(recorded.text(item, "exchanges") or "[]")
        if item.action == "DO_CODER":
            other = replace(told[0].response, text=written(RIGHT))
            content = _Content.of(write_exchanges([replace(told[0], response=other)]))
            kept = Kept("", content.digest, len(content.data), content.text)
            item = replace(item, texts={**item.texts, "exchanges": kept})
        lines.append(encode(item))
    (tmp_path / NAME).write_bytes(b"".join(lines))
    assert run(["trace", "replay", str(tmp_path), "--lang", "en", "--format", "json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["rule"] == "replay-drift"
    assert "DO_CODER" in finding["message"]


def test_a_fork_from_the_command_line(
    recorded: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Server(says(written(RIGHT), GO_ON)).open() as server:
        words = ["trace", "replay", str(recorded.folder), "--from-step", "4", "--model", "other"]
        words += ["--base-url", server.url, "--log-dir", str(tmp_path), "--lang", "en"]
        assert run(words) == 0
        assert len(server.asked) == 2
    assert "accepted by the verifier" in capsys.readouterr().out
    assert run(words) == 2  # the folder holds this operator by now


@pytest.mark.parametrize(
    "more", [["--from-step", "2"], ["--model", "x"], ["--from-step", "2", "--log-dir", "d"]]
)
def test_half_a_fork_is_a_usage_error(
    recorded: Run, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", "replay", str(recorded.folder), *more]) == 2
    assert "--model" in capsys.readouterr().err


def test_generate_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    with Server(says(DESIGN, GO_ON, written(RIGHT), GO_ON)).open() as server:
        words = [
            "kernel",
            "generate",
            "relu",
            "--impl",
            "torch",
            "--model",
            "small",
            "--lang",
            "en",
        ]
        words += ["--base-url", server.url, "--log-dir", str(tmp_path)]
        assert run(words) == 0
        assert {item["model"] for item in server.asked} == {"small"}
    said = capsys.readouterr().out
    assert "accepted by the verifier" in said
    assert str(tmp_path / "relu" / "I1_S03_verify" / "relu_torch_kernel.py") in said
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"sk-test-0123456789" not in path.read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["generate"], "--impl"),
        (["generate", "relu"], "no --impl"),
        (["generate", "relu", "--impl", "torch"], "--model"),
        (["generate", "rellu", "--impl", "torch", "--model", "x"], "relu"),
        (["generate", "relu", "--impl", "torch", "--model", "x", "--base-url", "ftp://x"], "http"),
    ],
)
def test_mistakes_of_generate(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["kernel", *words, "--lang", "en"]) == 2
    assert said in capsys.readouterr().err


def test_swft_is_written_and_recorded_but_not_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = (
        "from swft import core\n\n\n@core.sub_kernel(core_num=8)\ndef relu(x, out):\n"
        "    out.load(x)\n\n\nclass ModelNew:\n    def __call__(self, x):\n        relu(x, x)\n"
    )
    with Server(says(DESIGN, GO_ON, written(kernel), GO_ON)).open() as server:
        words = ["kernel", "generate", "relu", "--impl", "swft", "--model", "small", "--lang", "en"]
        assert run([*words, "--base-url", server.url, "--log-dir", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "written, but not verified" in said
    assert "Ascend" in said
    assert (tmp_path / "relu" / "I1_S03_verify" / "relu_swft.py").read_text() == kernel


def test_a_problem_that_breaks_is_told_and_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = tmp_path / "broken.py"
    problem.write_text(
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n\n\n"
        "def get_inputs():\n    raise OSError('no data')\n\n\ndef get_init_inputs():\n    return []\n"
    )
    with Server(says(DESIGN, GO_ON, written(RIGHT), GO_ON)).open() as server:
        words = ["kernel", "generate", str(problem), "--impl", "torch", "--model", "small"]
        assert run([*words, "--base-url", server.url, "--log-dir", str(tmp_path / "runs")]) == 2
    assert "no data" in capsys.readouterr().err
    assert load(tmp_path / "runs" / "broken").records[-1].verdict == "problem"


@pytest.mark.parametrize(
    ("status", "en", "zh"),
    [
        (401, "set OPENAI_API_KEY to a key of this server", "处理：请把 OPENAI_API_KEY 设为该服务的密钥"),
        (404, "check that m is served at --base-url", "处理：请确认 --base-url 提供模型 m"),
    ],
)  # fmt: skip
def test_a_model_that_refuses_is_told_with_what_to_do(
    status: int, en: str, zh: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        send(handler, status, b'{"error": {"message": "no"}}')

    for lang, words in (("en", en), ("zh", zh)):
        with Server(refuse).open() as server:
            args = ["kernel", "generate", "relu", "--impl", "torch", "--model", "m", "--lang", lang]
            assert run([*args, "--base-url", server.url, "--log-dir", str(tmp_path)]) == 3
        out = capsys.readouterr().out
        assert words in out
        assert f"model at {server.url}: status {status}" in out
