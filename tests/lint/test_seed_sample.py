"""The two findings of the first request, word for word, in Chinese."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.cli.main import run

SEED = Path(__file__).parent.parent / "data" / "seed"
EXPECTED = """\
File: model.py
Line 45: [HIGH] .half() call detected
  -> 手动类型转换可能绕过AMP保护
  -> 建议：删除.half()，使用with autocast()

Line 67: [HIGH] binary_cross_entropy usage
  -> 该函数在AMP中会报错
  -> 建议：改用binary_cross_entropy_with_logits
"""


def test_word_for_word(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(SEED)
    assert run(["check", "--lang", "zh", "--quiet", "model.py"]) == 1
    assert capsys.readouterr().out == EXPECTED


def test_the_full_form_keeps_these_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(SEED)
    run(["check", "--lang", "zh", "--format", "text", "model.py"])
    lines = capsys.readouterr().out.splitlines()
    heart = [line for line in lines if line.startswith(("File: ", "Line ", "  -> "))]
    expected = [line for line in EXPECTED.splitlines() if line]
    assert [line.partition("：`")[0] for line in heart] == expected


def test_the_full_form_names_what_is_at_stake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(SEED)
    run(["check", "--lang", "zh", "--format", "text", "model.py"])
    reasons = [line for line in capsys.readouterr().out.splitlines() if "：`" in line]
    assert any(".half()`" in line for line in reasons)
    assert any("binary_cross_entropy(" in line for line in reasons)
