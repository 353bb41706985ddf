"""`torchstone trace`: a run shown, two compared, one exported; damage and mistakes told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchstone.cli.main import run
from torchstone.core.report import Report
from torchstone.trace import ActionType, Call, Trace

CALL = Call("small", {"temperature": 0}, 120, 30, 1.5, "stop")


def record(folder: Path, code: str = "x = 1", task: str = "7") -> Path:
    clock = iter(range(1_700_000_000, 1_800_000_000, 2))
    trace = Trace("swish", task, folder, clock=lambda: float(next(clock)))
    answer = json.dumps({"code": code, "description": "d"})
    trace.insert_designer_or_coder_record(
        "plan", "design <b>it</b>", "", ActionType.DO_DESIGNER, call=CALL
    )
    trace.insert_designer_or_coder_record(answer, "code it", "hm", ActionType.DO_CODER, call=CALL)
    trace.insert_conductor_record("fine", "check", "", ActionType.DO_CODER, call=CALL)
    trace.insert_verifier_record("False" if code == "x = 1" else "True", "log", "{}")
    return folder / "swish"


def test_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = record(tmp_path)
    for lang, words in (("en", "after 3 steps, 450 tokens"), ("zh", "共 3 步，450 token")):
        assert run(["trace", "show", str(folder), "--lang", lang]) == 0
        out = capsys.readouterr().out
        assert words in out
        assert "DO_CODER" in out
    assert run(["trace", "show", str(folder), "--step", "2", "--format", "json"]) == 0
    report = Report.from_json(capsys.readouterr().out)
    shown = [item.name for item in report.measures if item.name.startswith("step_")]
    assert shown == ["step_7_2_DO_CODER", "step_7_2_CheckCoder"]
    assert run(["trace", "show", str(folder), "-o", str(tmp_path / "run.html")]) == 0
    page = (tmp_path / "run.html").read_text()
    assert "design &lt;b&gt;it&lt;/b&gt;" in page


def test_what_is_missing_or_changed_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = record(tmp_path)
    (folder / "I7_S02_swish_DO_CODER_prompt.txt").write_text("another prompt")
    (folder / "I7_S02_swish_DO_CODER_result.txt").unlink()
    with open(folder / "trace.jsonl", "ab") as file:
        file.write(b"{}\n{torn")
    assert run(["trace", "show", str(folder), "-v"]) == 0
    out = capsys.readouterr().out
    assert "another prompt" not in out
    assert out.count("gone or was changed") == 2
    assert "damaged, by their checksum: line 5" in out
    assert "left 5 bytes" in out


def test_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = record(tmp_path / "a")
    same = record(tmp_path / "b")
    other = record(tmp_path / "c", "x = 2")
    assert run(["trace", "diff", str(left), str(same)]) == 0
    assert "✓ The runs are the same: 4 records" in capsys.readouterr().out
    assert run(["trace", "diff", str(left), str(other), "-q", "--lang", "en"]) == 1
    said = capsys.readouterr().out
    assert said == "! 2 of 4 records differ, the first at step 2 (DO_CODER)\n"
    assert run(["trace", "diff", str(left), str(other), "--lang", "en"]) == 1
    assert "step 3 VERIFY: verdict" in capsys.readouterr().out
    assert run(["trace", "diff", str(left), str(other), "-v"]) == 1
    out = capsys.readouterr().out
    assert "records that differ: 2" in out
    assert "first record that differs (0: none): 2" in out
    assert "-x = 1" in out
    assert "+x = 2" in out


def test_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = record(tmp_path)
    assert run(["trace", "export", str(folder)]) == 0
    spans = json.loads(capsys.readouterr().out)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert len(spans) == 5
    assert len({span["spanId"] for span in spans}) == 5
    coder = next(span for span in spans if span["startTimeUnixNano"] == "1700000000500000000")
    values = {item["key"]: item["value"] for item in coder["attributes"]}
    assert values["gen_ai.usage.output_tokens"] == {"intValue": "30"}
    assert values["gen_ai.operation.name"] == {"stringValue": "chat"}
    assert (
        run(["trace", "export", str(folder), "--to", "chrome", "-o", str(tmp_path / "c.json")]) == 0
    )
    events = json.loads((tmp_path / "c.json").read_text())["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == [
        "S01 DO_DESIGNER", "S02 DO_CODER", "S02 CheckCoder", "S03 VERIFY",
    ]  # fmt: skip


def test_a_journal_cannot_name_files_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace
    from hashlib import sha256

    from torchstone.trace.journal import encode, read_journal
    from torchstone.trace.record import Kept

    folder = record(tmp_path)
    secret = tmp_path / "secret.txt"
    secret.write_text("top secret")
    first = read_journal(folder / "trace.jsonl").records[0]
    digest = sha256(b"top secret").hexdigest()
    for place in ("../secret.txt", str(secret)):
        texts = {"prompt": Kept(place, digest, 10)}
        (folder / "trace.jsonl").write_bytes(encode(replace(first, texts=texts)))
        assert run(["trace", "show", str(folder), "-v"]) == 0
        assert "top secret" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["show", "-v"], ["show", "--format", "html"], ["export", "--to", "otel"], ["export", "--to", "chrome"]]
)  # fmt: skip
def test_a_journal_from_a_stranger_ends_in_no_traceback(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    from torchstone.trace.journal import encode, read_journal
    from torchstone.trace.record import Kept

    folder = record(tmp_path)
    first = read_journal(folder / "trace.jsonl").records[0]
    changed = [
        replace(first, texts={"prompt": Kept("a\0b", "0" * 64, 10)}),
        replace(first, time=1e300),
        replace(first, call=replace(first.call, seconds=1e300)),
        replace(first, step=-5, action="\x1b[2J<img src=x>", op="\x1b]0;x\x07"),
    ]
    (folder / "trace.jsonl").write_bytes(b"".join(map(encode, changed)))
    assert run(["trace", words[0], str(folder), *words[1:], "--lang", "en"]) in (0, 1)
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    assert "\x1b[2J" not in said.out
    assert "<img src=x>" not in said.out or "html" not in words


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "show"),
        (["shwo", "x"], "show"),
        (["show"], "0 runs"),
        (["show", "missing"], "missing"),
        (["diff", "a"], "2 run"),
        (["show", "empty"], "trace.jsonl"),
    ],
)
def test_mistakes_are_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    words: str,
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert run(["trace", *args]) == 2
    assert words in capsys.readouterr().err
    folder = record(tmp_path)
    assert run(["trace", "show", str(folder), "--task", "8"]) == 2
    assert "known: 7" in capsys.readouterr().err
    assert run(["trace", "show", str(folder), "--step", "9", "--lang", "en"]) == 2
    assert "--step: got 9, expected a step from 1 to 3" in capsys.readouterr().err


def test_what_was_not_recorded_is_not_invented(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No time, no bar; no count, no 0."""
    trace = Trace("op", "1", tmp_path)
    for action in (ActionType.DO_DESIGNER, ActionType.DO_CODER):
        trace.insert_designer_or_coder_record("x", "p", "", action)
    trace.insert_verifier_record("True", "", "{}")
    trace.insert_exit_record("accepted")
    folder = str(tmp_path / "op")
    assert run(["trace", "show", folder, "--lang", "en"]) == 0
    out = capsys.readouterr().out
    assert "op: accepted after 3 steps\n" in out
    assert " ms" not in out
    assert "█" not in out
    assert " 0" not in out
    assert out.count("–") >= 2
    assert "Next" not in out
    assert run(["trace", "show", folder, "--format", "json"]) == 0
    report = Report.from_json(capsys.readouterr().out)
    assert report.answer is not None
    assert [item.kind for item in report.answer.pictures] == ["strip"]
    assert {"seconds", "input_tokens"}.isdisjoint(item.name for item in report.measures)
    assert run(["trace", "show", folder, "--step", "2", "--lang", "en", "-q"]) == 0
    assert capsys.readouterr().out == "✓ op, step 2 of 3; the run: accepted\n"
    trace.insert_designer_or_coder_record("x", "p", "", ActionType.FIX_CODER, call=CALL)
    assert run(["trace", "show", folder, "--lang", "en"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[-1] for row in rows if "DO_CODER" in row] == ["read"]
    assert [row.count("█") for row in rows if " S0" in row] == [0, 0, 0, 20]


@pytest.mark.parametrize(
    ("ending", "words"),
    [("steps", "not accepted, no step was left"), ("model", "the model did not answer"),
     ("budget", "the budget was spent")],
)  # fmt: skip
def test_how_a_run_ended_is_told_in_words(
    ending: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = Trace("op", "1", tmp_path)
    trace.insert_start_record('{"tool": "kernel"}')
    trace.insert_designer_or_coder_record("x", "p", "", ActionType.DO_CODER)
    trace.insert_exit_record(ending)
    assert run(["trace", "show", str(tmp_path / "op"), "--lang", "en"]) == 0
    out = capsys.readouterr().out
    assert f"{words} after 1 step\n" in out
    assert "Next: torchstone trace replay" in out
    fork = ["trace", "replay", str(tmp_path / "op"), "--from-step", "9", "--model", "m",
            "--log-dir", str(tmp_path / "new"), "--lang", "en"]  # fmt: skip
    assert run(fork) == 2
    assert "--from-step: got 9, expected a step from 1 to 2" in capsys.readouterr().err
