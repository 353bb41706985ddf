"""The command line: exit codes, languages, errors, configuration, what goes where."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from torchstone.cli.main import run
from torchstone.sources.source import MAX_BYTES

ROOT = Path(__file__).parents[2]
BAD = "import torch\n\n\ndef step(x, w, scaler):\n    scaler = torch.amp.GradScaler()\n    x = x.half()\n    return x @ w\n"
CLEAN = "import torch\n\nprint(torch.__version__)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model.py").write_text(BAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_exit_codes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "clean.py").write_text(CLEAN)
    (project / "broken.py").write_text("def f(:\n")
    assert run(["check", "clean.py"]) == 0
    assert run(["check", "model.py"]) == 1
    assert run(["check", "missing.py"]) == 2
    assert run(["check", "broken.py"]) == 1
    (project / "large.py").write_bytes(b"#" * (MAX_BYTES + 1))
    assert run(["check", "large.py"]) == 3
    assert run(["check", "."]) == 3
    assert run(["check", "--fail-on", "never", "model.py"]) == 0
    assert run(["check", "--nonsense"]) == 2
    assert run([]) == 2
    assert run(["--help"]) == 0
    assert run(["--version"]) == 0


def test_broken_files_do_not_hide_the_rest(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "broken.py").write_text("print 'hello'\n")
    assert run(["check", "."]) == 1
    out = capsys.readouterr().out
    assert "TS101" in out
    assert "broken.py:1" in out
    assert "Python 2?" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chekc"], "did you mean 'check'"),
        (["check", "--selct", "TS1"], "did you mean '--select'"),
        (["check", "--select", "TS999"], "--select: unknown name 'TS999'"),
        (["check", "--format", "htlm"], "invalid value 'htlm' for --format"),
        (["check", "--budget", "many"], "budget"),
        (["check", "nowhere.py"], "path 'nowhere.py'"),
        (["check", "--baseline", "none.json"], "--write-baseline"),
        (["check", "--since", "nocommit"], "--since"),
        (["check", "--since=-x"], "--since"),
        (["check", "--torch", "new"], "a version such as 2.4"),
        (["check", "--with", "pylint"], "--with"),
        (["check", "--with", "model.py.sarif"], "SARIF"),
        (["explain"], "a rule's code or name"),
        (["explain", "TS9999"], "unknown name"),
        (["explain", "nosuch"], "topics: common_fixes, numerical_issues, reduction_patterns"),
        (["explain", "numerical-isues"], "did you mean 'numerical_issues'"),
        (["config", "selekt"], "did you mean"),
        (["check", "model.py", "-o", "model.py/x.json"], "a place that can be written"),
        (["check", "model.py", "-o", "x.html", "--format", "json"], "expected --format html"),
        (["review", ".", "-o", "x.html"], "expected a folder"),
    ],
)
def test_mistakes_are_told_in_one_line(
    words: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    caught = capsys.readouterr()
    assert said in caught.err
    assert caught.err.count("\n") == 1
    assert "Traceback" not in caught.err
    assert caught.out == ""


def test_language_from_flag_locale_and_configuration(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["check", "--lang", "zh", "."])
    assert "建议：" in capsys.readouterr().out
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    run(["check", "."])
    assert "建议：" in capsys.readouterr().out
    (project / "pyproject.toml").write_text('[tool.torchstone]\nlang = "en"\n')
    run(["check", "."])
    assert "suggestion:" in capsys.readouterr().out


def test_colour_follows_flag_and_environment(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def coloured(*words: str) -> bool:
        run(["check", ".", *words])
        return "\x1b[" in capsys.readouterr().out

    assert not coloured()
    assert coloured("--color", "always")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert coloured()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured()


def test_long_output_shortens_itself_unless_text_is_asked_for(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "".join(f"    x{i} = x.half()\n" for i in range(31))
    (project / "model.py").write_text(
        f"import torch\n\n\ndef step(x):\n    s = torch.amp.GradScaler()\n{body}    x.backward()\n"
    )
    run(["check", "--select", "TS101", "."])
    assert "  -> " not in capsys.readouterr().out
    run(["check", "--select", "TS101", "--format", "text", "."])
    assert capsys.readouterr().out.count("  -> ") >= 62


def test_output_goes_to_the_file_and_its_ending_names_the_format(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", ".", "-o", "out/report.json"]) == 1
    caught = capsys.readouterr()
    assert caught.out == ""
    assert (
        json.loads((project / "out" / "report.json").read_text("utf-8"))["schema"]
        == "torchstone/report/1"
    )


def test_the_file_that_is_named_is_nearer_than_the_configured_format(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.torchstone]\nformat = "json"\n')
    assert run(["check", "model.py", "-o", "report.html", "-q"]) == 1
    assert (project / "report.html").read_text("utf-8").startswith("<!doctype html>")
    assert run(["check", "model.py", "-o", "report.json", "--format", "sarif", "-q"]) == 1
    assert "sarif" in (project / "report.json").read_text("utf-8")


def test_configuration_is_read_and_flags_win(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.torchstone.check]\nignore = ["TS101"]\nno-cache = true\n'
    )
    assert run(["check", "model.py"]) == 0
    assert run(["check", "--ignore", "TS301", "model.py"]) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[tool.torchstone.check]\nselct = ["TS1"]\n', "did you mean 'select'"),
        ("[tool.torchstone.chek]\n", "did you mean 'check'"),
        ('[tool.torchstone]\nlanguage = "zh"\n', "did you mean 'lang'"),
        ('[tool.torchstone.check]\nselect = "TS1"\n', "a list"),
        ("[tool.torchstone\n", "TOML"),
        ("[tool]\ntorchstone = 3 # tool.torchstone\n", "TOML"),
    ],
)
def test_broken_configuration_is_an_error(
    text: str, said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pyproject.toml").write_text(text)
    assert run(["check", "model.py"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "pyproject.toml" in err


def test_config_explains(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text('[tool.torchstone.check]\nselect = ["precision"]\n')
    assert run(["config", "select"]) == 0
    out = capsys.readouterr().out
    assert 'select = ["precision"]  # set here' in out
    assert run(["config", "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["check"]["properties"]["min_confidence"]["enum"] == [
        "certain",
        "likely",
        "possible",
    ]


def test_stdin(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert run(["check", "-", "--format", "concise", "--stdin-name", "given.py"]) == 1
    assert "given.py:6:9" in capsys.readouterr().out


def test_explain_and_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "manual-half-cast"]) == 0
    out = capsys.readouterr().out
    assert "TS101 manual-half-cast [HIGH]" in out
    assert "Why it is bad" in out
    assert run(["explain", "TS101", "--lang", "zh"]) == 0
    assert "为什么有害" in capsys.readouterr().out
    assert run(["explain", "TS101", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["code"] == "TS101"
    assert run(["explain", "watch-stale-gradients", "--lang", "zh"]) == 0
    assert "建议：" in capsys.readouterr().out
    assert run(["--lang", "zh", "explain", "TS101"]) == 0, "before the command too"
    assert "为什么有害" in capsys.readouterr().out
    assert run(["explain", "watch-stale-gradient"]) == 2
    assert "did you mean 'watch-stale-gradients'?" in capsys.readouterr().err
    assert run(["rules", "--format", "json"]) == 0
    assert any(row["code"] == "TS101" for row in json.loads(capsys.readouterr().out))
    assert run(["rules", "--lang", "zh"]) == 0
    assert "条规则" in capsys.readouterr().out


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 0
    assert "torchstone" in capsys.readouterr().out
    assert run(["doctor", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["tool"] == "doctor"


def test_doctor_knows_every_extra() -> None:
    from torchstone.cli.commands import doctor

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = settings["project"]["optional-dependencies"]
    wanted = {re.split(r"[\[<>=]", need)[0] for needs in extras.values() for need in needs}
    assert wanted <= {part.name for part in doctor._PACKAGES}
    told = " ".join(part.get for part in doctor._PACKAGES)
    # torch and numpy, which the extra of tensors asks for, are told with others
    assert {name for name in extras if f"[{name}]" not in told} == {"tensors"}


def test_doctor_says_what_a_missing_part_would_add(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchstone.cli.commands import doctor

    monkeypatch.setattr(doctor, "program", lambda name: None)
    assert run(["doctor"]) == 0
    assert "pip install mypy" in capsys.readouterr().out


def test_help_is_pinned(
    golden: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    for lang in ("en", "zh"):
        assert run(["--help", "--lang", lang]) == 0
        golden(f"cli/help.{lang}.txt", capsys.readouterr().out)
        with pytest.raises(SystemExit) as done:
            run(["check", "--help", "--lang", lang])
        assert done.value.code == 0
        golden(f"cli/check-help.{lang}.txt", capsys.readouterr().out)


def test_a_closed_pipe_is_no_traceback(project: Path) -> None:
    import subprocess

    line = f"{sys.executable} -m torchstone rules | head -1"
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stderr == ""


def test_python_door(project: Path) -> None:
    import torchstone

    report = torchstone.check("model.py")
    found = next(item for item in report.findings if item.rule == "TS101")
    assert (found.severity, found.path, found.line) == ("HIGH", "model.py", 6)
    assert found.message("zh") == ".half() call detected"
    assert json.loads(report.to_json())["tool"] == "check"
    assert "TS101" in report.to("text")
    assert len(torchstone.check(["model.py"], select=("TS3",)).findings) == 0


def test_public_names_are_pinned() -> None:
    import torchstone

    assert sorted(torchstone.__all__) == [
        "Report", "Watch", "__version__", "analyze_tensor", "check", "compare_precision", "compare_runs",
        "dry_run", "measure_cost", "mfu", "review", "watch_training",
    ]  # fmt: skip
    assert dir(torchstone) == sorted(torchstone.__all__)
    with pytest.raises(AttributeError):
        torchstone.nothing  # noqa: B018


class Terminal(io.StringIO):
    """A stderr that may be a terminal."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("terminal", "quiet", "seconds", "shown"),
    [
        (True, False, 2.0, True),
        (True, False, 0.5, False),
        (True, True, 2.0, False),
        (False, False, 2.0, False),
    ],
)
def test_progress_only_on_a_terminal_and_after_a_second(
    terminal: bool, quiet: bool, seconds: float, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchstone.cli import show

    now = [100.0]
    monkeypatch.setattr(show.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", Terminal(terminal))
    progress = show.Progress("zh", quiet)
    now[0] += seconds
    progress(3, 10, "train.py")
    assert ("检查中 3/10 train.py" in sys.stderr.getvalue()) is shown  # type: ignore[attr-defined]
    progress.end()
    assert sys.stderr.getvalue().endswith("\r\x1b[K") is shown  # type: ignore[attr-defined]


def test_watch_takes_the_newest_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch"]) == 2
    assert "expected one RUN" in capsys.readouterr().err
    for name in ("20260101-000000-1", "20260102-000000-1"):
        (project / ".torchstone/watch" / name).mkdir(parents=True)
    assert run(["watch"]) == 2
    assert "20260102-000000-1" in capsys.readouterr().err


def test_columns_are_honoured_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines of source alone are as long as they are."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.chdir(Path(__file__).parents[2])
    assert run(["check", "examples/train_project/model.py", "--lang", "en", "--no-cache"]) == 1
    said = capsys.readouterr().out.splitlines()
    long = [line for line in said if len(line) > 60 and " | " not in line]
    assert all("# torchstone: ignore" in line for line in long), "a comment is copied whole"
    assert "     to ignore: # torchstone: ignore[ungated-dropout]" in said
