"""Hostile and broken input, each found once by attacking the tool."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from torchstone.cli.main import run
from torchstone.core.files import read_regular, write_atomically
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions
from torchstone.render import render

AMP = "import torch\n\nwith torch.cuda.amp.autocast():\n    pass\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def torchstone(*words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    """In a process of its own, ended after 30 seconds; a LOW finding counts."""
    every = ["--fail-on", "low"] if words[0] == "check" else []
    command = [sys.executable, "-m", "torchstone", *words, *every]
    return subprocess.run(command, capture_output=True, timeout=30, **options)  # type: ignore[call-overload, no-any-return]


def test_a_pipe_as_output_stays_a_pipe(here: Path) -> None:
    os.mkfifo(here / "pipe")
    reader = os.open(here / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(here / "pipe", "hello")
    assert os.read(reader, 99) == b"hello"
    os.close(reader)
    assert stat.S_ISFIFO((here / "pipe").stat().st_mode)


@pytest.mark.parametrize("name", ["x.py", ".gitignore", "requirements.txt", "pyproject.toml"])
def test_pipes_in_a_project_do_not_hold_up_the_run(name: str, here: Path) -> None:
    (here / "good.py").write_text(AMP)
    os.mkfifo(here / name)
    done = torchstone("check", "--no-cache", ".")
    assert b"TS110" in done.stdout
    assert done.returncode == (3 if name == "x.py" else 1)


def test_devices_are_not_read(here: Path) -> None:
    with pytest.raises(OSError, match="regular"):
        read_regular("/dev/zero", 100)
    assert torchstone("check", "/dev/zero").returncode == 3


def test_fix_changes_the_file_that_was_checked(here: Path) -> None:
    (here / "real" / "sub").mkdir(parents=True)
    (here / "other").mkdir()
    (here / "other" / "link").symlink_to(here / "real" / "sub")
    (here / "real" / "x.py").write_text(AMP)
    (here / "real" / "requirements.txt").write_text("torch>=2.4\n")  # the fix depends on it
    innocent = "import torch\n\n\nwith torch.cuda.amp.autocast(): y=1\n"
    (here / "other" / "x.py").write_text(innocent)
    run(["check", "--no-cache", "--fix", "other/link/../x.py"])
    assert (here / "other" / "x.py").read_text() == innocent
    assert "torch.amp.autocast" in (here / "real" / "x.py").read_text()


def test_a_fix_that_would_break_the_file_is_left_out(here: Path) -> None:
    text = 'import torch\n\nx = f"{torch.cuda.amp.autocast()}"\n' + AMP
    (here / "x.py").write_text(text)
    (here / "requirements.txt").write_text("torch>=2.4\n")  # the fix depends on it
    run(["check", "--no-cache", "--fix", "x.py"])
    after = (here / "x.py").read_text()
    compile(after, "x.py", "exec")
    assert 'f"{torch.cuda.amp.autocast()}"' in after
    assert 'with torch.amp.autocast("cuda"):' in after


def test_links_that_leave_the_folder_are_not_followed(here: Path) -> None:
    (here / "outside").mkdir()
    (here / "outside" / "o.py").write_text(AMP)
    (here / "proj").mkdir()
    (here / "proj" / "dir").symlink_to(here / "outside", target_is_directory=True)
    (here / "proj" / "o.py").symlink_to(here / "outside" / "o.py")
    run(["check", "--no-cache", "--fix", "proj"])
    assert (here / "outside" / "o.py").read_text() == AMP


def git(*words: str) -> None:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words]
    subprocess.run(command, check=True, capture_output=True)


def test_since_runs_no_filter_of_the_repository(here: Path) -> None:
    git("init", "-q")
    (here / "a.py").write_text("import torch\n")
    git("add", "-A")
    git("commit", "-qm", "a")
    (here / ".gitattributes").write_text("*.py filter=x\n")
    git("config", "filter.x.clean", f"touch {here}/sprung; cat")
    (here / "a.py").write_text(AMP)
    assert run(["check", "--no-cache", "--low", "--fail-on", "low", "--since", "HEAD", "a.py"]) == 1
    assert not (here / "sprung").exists()


def test_since_knows_unusual_names(here: Path) -> None:
    git("init", "-q")
    names = ["é 中.py", 'q"uo.py', "plain.py"]
    for name in names:
        (here / name).write_text("import torch\n")
    git("add", "-A")
    git("commit", "-qm", "a")
    for name in names:
        (here / name).write_text('x = """\n++ y\n"""\n' + AMP)
    report = check(CheckOptions(paths=(".",), since="HEAD", no_cache=True, select=("TS110",)))
    assert {item.path for item in report.findings} == set(names)


def test_a_project_cannot_make_us_run_tools(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.py").write_text("import torch\n")
    (here / "plug.py").write_text(f"open({str(here / 'sprung')!r}, 'w')\n")
    (here / "pyproject.toml").write_text(
        '[tool.mypy]\nplugins = ["./plug.py"]\n[tool.torchstone.check]\nwith = ["mypy"]\n'
    )
    assert run(["check", "a.py"]) == 2
    assert not (here / "sprung").exists()


def test_foreign_sarif_cannot_put_scripts_or_files_into_a_page(here: Path) -> None:
    evil = '"><script>alert(1)</script>'
    row = {
        "message": {"text": "m {"}, "ruleId": evil, "fingerprints": {"torchstone/v1": evil},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": "/etc/passwd"}, "region": {"startLine": 1}}}],
    }  # fmt: skip
    log = {"runs": [{"tool": {"driver": {"name": "a"}}, "results": [row]}]}
    (here / "x.sarif").write_text(json.dumps(log))
    (here / "a.py").write_text("import torch\n")
    report = check(CheckOptions(paths=("a.py",), with_tools=("x.sarif",), no_cache=True))
    page = render(report, "html")
    assert "<script>alert" not in page
    assert "root:x:0" not in page + report.to_json()


@pytest.mark.parametrize("text", ["x = {\n", 'f"{"\n', "x = '{0}' +\n"])
def test_braces_in_broken_files_are_only_text(
    text: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.py").write_text(text)
    (here / "b.py").write_text(AMP)
    assert run(["check", "--no-cache", "--low", "."]) == 1
    assert "TS110" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["!", "\\", "a\\", "[z-a]", "*a*a*a*a*a*a*a*a*a*b"])
def test_odd_gitignore_lines_are_passed_over(
    line: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / ".gitignore").write_text(f"{line}\nskipped.py\n")
    (here / ("a" * 100 + ".py")).write_text(AMP)
    (here / "skipped.py").write_text(AMP)
    assert run(["check", "--no-cache", "--fail-on", "low", "."]) == 1
    assert "skipped.py" not in capsys.readouterr().out


def test_a_bad_exclude_is_a_usage_error(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.py").write_text("import torch\n")
    assert run(["check", "--exclude", "!", "."]) == 2
    assert "--exclude" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["sarif", "json", "html", "text", "markdown", "github", "agent", "concise"]
)
def test_names_that_are_no_text(name: str, here: Path) -> None:
    Path(os.fsdecode(os.path.join(os.fsencode(here), b"\xff.py"))).write_text(AMP)
    done = torchstone("check", "--no-cache", "--format", name, ".", cwd=here)
    assert done.returncode == 1, done.stderr
    done = torchstone("check", "--no-cache", "--format", name, "-o", "out", ".", cwd=here)
    assert b"Traceback" not in done.stderr


def test_a_name_cannot_forge_a_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a\nforged.py:1:1: [HIGH] x\x1b[2J.py").write_text(AMP)
    for name in ("text", "concise", "agent", "github", "markdown"):
        run(["check", "--no-cache", "--format", name, "."])
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert not any(line.startswith("forged.py") for line in out.splitlines())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "\n" * 80_000),
        ("requirements.txt", "torch>=" + "9" * 5000 + ".1\n"),
        ("pyproject.toml", "[tool.torchstone]\nlang = " + "[" * 5000),
        ("pyproject.toml", "torch = " + "[" * 5000),
        ("pyproject.toml", "\ufeff[tool.torchstone]\nlang = 'en'\n"),
    ],
)
def test_hostile_side_files_end_in_time(name: str, text: str, here: Path) -> None:
    (here / name).write_text(text, "utf-8")
    (here / "a.py").write_text(AMP)
    done = torchstone("check", "--no-cache", ".", cwd=here)
    assert done.returncode in (1, 2)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("coding", ["undefined", "punycode", "rot13", "utf-7", "unicode_escape"])
def test_odd_codings_are_findings_or_read(coding: str, here: Path) -> None:
    (here / "a.py").write_bytes(f"# coding: {coding}\nimport torch-\n".encode())
    done = torchstone("check", "--no-cache", ".", cwd=here)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr


def test_an_empty_path_is_an_error(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", ""]) == 2
    assert "path ''" in capsys.readouterr().err


def test_nothing_to_read_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "."]) == 0
    assert "no Python file" in capsys.readouterr().out


def test_full_disk_and_odd_terminals(here: Path) -> None:
    (here / "a.py").write_text(AMP)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "torchstone", "check", "a.py"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=30,
        )
    assert done.returncode == 3
    assert b"Traceback" not in done.stderr
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for words in (
        ["--help", "--lang", "zh"],
        ["check", "--help", "--lang", "zh"],
        ["rules", "--lang", "zh"],
    ):
        done2 = torchstone(*words, env=ascii_only)
        assert done2.returncode == 0, done2.stderr


def test_a_folder_that_is_gone(here: Path) -> None:
    (here / "a.py").write_text(AMP)
    gone = here / "gone"
    gone.mkdir()
    script = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); from torchstone.cli.main import run; raise SystemExit(run(['check', '--no-cache', '--fail-on', 'low', {str(here / 'a.py')!r}]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=30)
    assert done.returncode == 1, done.stderr
