"""A generation as a report, and the same generation again from its record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kernels.script import (
    CODER,
    DESIGN,
    GO_ON,
    RIGHT,
    WRONG,
    reads_one_line,
    settings,
    written,
)
from tests.trace.server import Server, says
from torchstone.core.errors import InputError
from torchstone.core.report import Report
from torchstone.kernels.generation.generate import again, generate, read_settings
from torchstone.kernels.generation.loop import Outcome
from torchstone.trace.http_client import HttpClient
from torchstone.trace.replay import fork, replay
from torchstone.trace.run import load

ANSWERS = (DESIGN, GO_ON, written(WRONG), GO_ON, CODER, written(RIGHT), GO_ON)


def generated(folder: Path, *answers: str, task: str = "") -> tuple[Outcome, Report]:
    with Server(says(*answers)).open() as server:
        client = HttpClient(server.url, pause_seconds=0.001)
        return generate(settings(), client, folder, reads_one_line, task)


def test_the_report_of_an_accepted_kernel(tmp_path: Path) -> None:
    outcome, report = generated(tmp_path, *ANSWERS)
    values = {item.name: item.value for item in report.measures}
    assert (values["accepted"], values["steps"]) == (1, 5)
    assert (values["input_tokens"], values["output_tokens"]) == (49, 21)
    assert not report.failed
    shown = report.to("text", detail=2)
    assert str(outcome.kernel) in shown
    assert "accepted by the verifier" in shown
    assert "已通过验证" in report.to("text", lang="zh", detail=2)
    assert "FIX_CODER" in report.to("html")


def test_tasks_of_one_folder_get_numbers_of_their_own(tmp_path: Path) -> None:
    for _ in range(2):
        generated(tmp_path, *ANSWERS)
    generated(tmp_path, *ANSWERS, task="mine")
    assert load(tmp_path / "relu").tasks == ("1", "2", "mine")


def test_a_server_that_is_not_there_is_a_failed_gap(tmp_path: Path) -> None:
    client = HttpClient("http://127.0.0.1:9/v1", attempts=1)
    outcome, report = generate(settings(), client, tmp_path, reads_one_line)
    assert (outcome.ending, report.failed) == ("model", True)
    assert "Refused" in report.gaps[0].reason.say("en")


def test_a_replay_gives_the_same_prompts_and_verdicts(tmp_path: Path) -> None:
    generated(tmp_path / "old", *ANSWERS)
    old = load(tmp_path / "old" / "relu")
    report = replay(old, again(reads_one_line), tmp_path / "new")
    assert not report.findings
    new = load(tmp_path / "new" / "relu")
    texts = [
        [
            (run.text(item, "prompt"), run.text(item, "error_log"), item.verdict)
            for item in run.records
        ]
        for run in (old, new)
    ]
    assert texts[0] == texts[1]
    assert len([item for item in texts[0] if item[0]]) == len(ANSWERS)


def test_a_verifier_that_changed_its_mind_is_drift(tmp_path: Path) -> None:
    generated(tmp_path / "old", *ANSWERS)

    def lenient(problem: object, candidate: object) -> object:
        verdict = reads_one_line(problem, candidate)  # type: ignore[arg-type]
        return type(verdict)(verdict.problem, verdict.candidate, (), "accepted")

    old = load(tmp_path / "old" / "relu")
    report = replay(old, again(lenient), tmp_path / "new")  # type: ignore[arg-type]
    assert report.findings[0].location.step == 3
    assert "VERIFY" in report.findings[0].message("en")


def test_a_fork_goes_on_with_another_model(tmp_path: Path) -> None:
    generated(tmp_path / "old", *ANSWERS)
    old = load(tmp_path / "old" / "relu")
    better = written(RIGHT + "# forked\n")
    with Server(says(better, GO_ON)).open() as server:
        live = HttpClient(server.url)
        report = fork(old, again(reads_one_line, "other"), 4, live, tmp_path / "new")
        assert [item["model"] for item in server.asked] == ["other", "other"]
    assert {item.name: item.value for item in report.measures}["accepted"] == 1
    new = load(tmp_path / "new" / "relu")
    assert "# forked" in (new.text(new.records[7], "result") or "")
    assert json.loads(new.text(new.records[0], "settings") or "")["model"] == "other"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"problem_name": 3}'])
def test_settings_that_are_none(text: str) -> None:
    with pytest.raises(InputError):
        read_settings(text)
