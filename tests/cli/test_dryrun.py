"""`torchstone dryrun` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.cli.main import run


def test_arguments_after_two_dashes_go_to_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(
        "import sys\nassert sys.argv[1:] == ['--device', '3'], sys.argv\n", "utf-8"
    )
    assert run(["dryrun", "a.py", "--device", "cpu", "--", "--device", "3"]) == 0
    assert "ran to its end" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dryrun"], "no target"),
        (["dryrun", "nowhere.py"], "no such file"),
        (["dryrun", "nowhere.py", "--device", "h1000"], "no such file"),
        (["dryrun", ".", "--world-size", "2"], "a folder"),
    ],
)
def test_mistakes_are_told_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_help_says_that_the_script_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["dryrun", "--help"])
    assert "RUNS" in capsys.readouterr().out


def test_a_program_without_torch_gets_no_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("print(1)\n")
    assert run(["dryrun", "a.py"]) == 0
    assert capsys.readouterr().out.startswith("! Nothing was looked at: no operator of torch")
