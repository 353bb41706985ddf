"""Living with it: fixes, comments, baseline, cache, since, bad input, outside tools."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchstone.cli.main import run
from torchstone.core.finding import Finding
from torchstone.core.report import Report
from torchstone.lint import fixer, reading
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions
from torchstone.lint.outside import _process

# a typo with a safe fix, a `.half()` in a step without one
TYPO = "import torch\n\nw = torch.zeros(3)\nw.require_grad = True\n"
CAST = "import torch\n\nscaler = torch.amp.GradScaler()\n\n\ndef step(x):\n    x = x.half()\n    x.sum().backward()\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def look(*paths: str, **options: object) -> Report:
    return check(CheckOptions(paths=paths or (".",), **options))  # type: ignore[arg-type]


def rules(report: Report) -> list[str]:
    return [item.rule for item in report.findings]


def half(report: Report) -> list[Finding]:
    return [item for item in report.findings if item.rule == "TS101"]


# -- fixes ------------------------------------------------------------------------------------------


def test_fix_writes_diff_does_not(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "w.py"
    path.write_text(TYPO)
    assert run(["check", "--diff", "w.py"]) == 1
    out = capsys.readouterr().out
    assert "-w.require_grad = True" in out
    assert "+w.requires_grad = True" in out
    assert path.read_text() == TYPO
    assert run(["check", "--fix", "w.py"]) == 0
    assert path.read_text() == TYPO.replace("require_grad", "requires_grad")
    assert run(["check", "--fix", "w.py"]) == 0
    assert run(["check", "--diff", "w.py"]) == 0


def test_the_diff_applies_with_patch(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "w.py").write_text(TYPO)
    run(["check", "--diff", "w.py"])
    patch = capsys.readouterr().out
    subprocess.run(["git", "apply", "-"], input=patch, text=True, check=True, cwd=here)
    assert "requires_grad" in (here / "w.py").read_text()


def test_fix_keeps_encoding_line_ends_and_mode(here: Path) -> None:
    text = "# coding: gbk\r\nimport torch\r\ns = '中文'\r\nw.require_grad = True\r\n"
    path = here / "w.py"
    path.write_bytes(text.encode("gbk"))
    path.chmod(0o755)
    run(["check", "--fix", "w.py"])
    assert path.read_bytes() == text.replace("require_grad", "requires_grad").encode("gbk")
    assert path.stat().st_mode & 0o777 == 0o755


def test_fix_in_a_notebook(here: Path) -> None:
    cells = [
        {"cell_type": "code", "metadata": {}, "source": ["import torch\n", "w.require_grad = True"]}
    ]
    path = here / "n.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}, indent=1))
    report = look("n.ipynb")
    found = next(item for item in report.findings if item.fix)
    assert (found.location.cell, found.line) == (1, 2)
    run(["check", "--fix", "n.ipynb"])
    assert json.loads(path.read_text())["cells"][0]["source"] == [
        "import torch\n",
        "w.requires_grad = True",
    ]


def test_two_fixes_never_meet(here: Path) -> None:
    (here / "w.py").write_text(TYPO + "w.require_grad = False\n")
    found = [item for item in look("w.py").findings if item.fix]
    assert len(found) == 2
    assert (
        len(fixer.choose([found[0], found[0], found[1]], unsafe=False)) == 3
    )  # equal edits are one
    (change,) = fixer.changes([found[0], found[0], found[1]], unsafe=False)
    assert change.after.count("requires_grad") == 2


# -- comments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("  # torchstone: ignore[TS101] measured", []),
        ("  # torchstone: ignore[manual-half-cast] measured", []),
        ("  # torchstone: ignore[TS101, TS301]", ["TS001"]),
        ("  # torchstone: ignore[TS301]", ["TS001", "TS101"]),
        ("  # torchstone: ignore[TS9999]", ["TS001", "TS101"]),
        ("  # torchstone: ignore", ["TS001", "TS101"]),
        ("  # nothing", ["TS101"]),
    ],
)
def test_ignore_comments(comment: str, expected: list[str], here: Path) -> None:
    (here / "m.py").write_text(CAST.replace("x.half()", "x.half()" + comment))
    report = look("m.py", select=("TS001", "TS101", "TS301"))
    assert sorted(rules(report)) == expected


def test_a_comment_alone_speaks_for_the_next_line_and_one_for_the_file(here: Path) -> None:
    (here / "a.py").write_text(
        CAST.replace(
            "    x = x.half()", "    # torchstone: ignore[TS101] why\n    # more\n    x = x.half()"
        )
    )
    (here / "b.py").write_text("# torchstone: ignore-file[TS101] legacy\n" + CAST)
    assert rules(look(select=("TS001", "TS101"))) == []


def test_a_comment_inside_a_string_is_none(here: Path) -> None:
    (here / "m.py").write_text(
        CAST.replace("x.half()", 'x.half(); s = "# torchstone: ignore[TS101]"')
    )
    assert rules(look("m.py", select=("TS001", "TS101"))) == ["TS101"]


# -- baseline and since ---------------------------------------------------------------------------------


def test_baseline_survives_moved_lines(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "m.py"
    path.write_text(CAST)
    assert run(["check", "--write-baseline", "base.json", "m.py"]) == 0
    assert run(["check", "--baseline", "base.json", "m.py"]) == 0
    path.write_text("# a new line\n\n" + CAST)
    assert run(["check", "--baseline", "base.json", "m.py"]) == 0
    path.write_text(CAST + "\n\ndef more(y):\n    y = y.half()\n    y.sum().backward()\n")
    report = look("m.py", baseline="base.json", select=("TS101",))
    assert [item.location.scope for item in report.findings] == ["more"]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"schema": "x"}', '{"schema": "torchstone/baseline/1", "findings": [1]}']
)
def test_a_broken_baseline_is_an_error(
    text: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "m.py").write_text(CAST)
    (here / "base.json").write_text(text)
    assert run(["check", "--baseline", "base.json", "m.py"]) == 2
    assert "--write-baseline" in capsys.readouterr().err


def test_since_shows_only_changed_lines(here: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t.org", *words],
            check=True,
            capture_output=True,
        )

    git("init", "-q")
    (here / "m.py").write_text(CAST)
    git("add", ".")
    git("commit", "-qm", "one")
    assert rules(look(since="HEAD")) == []
    (here / "m.py").write_text(
        CAST + "\n\ndef more(y):\n    y = y.half()\n    y.sum().backward()\n"
    )
    assert [item.location.scope for item in half(look(since="HEAD"))] == ["more"]


# -- cache ---------------------------------------------------------------------------------------------


def test_the_cache_gives_the_same_report_and_notices_changes(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "m.py").write_text(CAST)
    (here / "broken.py").write_text("def f(:\n")
    first = look()
    calls: list[str] = []
    real = reading.parse
    monkeypatch.setattr(reading, "parse", lambda source: calls.append(source.path) or real(source))
    assert look() == first
    assert calls == []
    (here / "m.py").write_text(CAST.replace("x.half()", "x.float()"))
    assert half(look()) == []
    assert set(calls) == {"m.py"}


def test_the_cache_knows_when_another_file_matters(here: Path) -> None:
    (here / "ops.py").write_text("import torch.nn.functional as F\n")
    (here / "m.py").write_text(
        "import torch\nfrom ops import F\n\n\ndef step(x, y):\n    with torch.autocast('cuda'):\n"
        "        return F.binary_cross_entropy(x, y)\n"
    )
    assert "TS102" in rules(look())
    (here / "ops.py").write_text("import mine.functional as F\n")
    assert "TS102" not in rules(look())
    (here / "ops.py").unlink()
    look()
    (here / "ops.py").write_text("import torch.nn.functional as F\n")
    assert "TS102" in rules(look())


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"basis": 1}', '{"files": {"m.py": {"hash": 1}}}']
)
def test_a_broken_cache_is_read_anew(
    text: str, here: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("own")
    (here / "m.py").write_text(CAST)
    options = CheckOptions(paths=(".",))
    first = check(options, cache_folder=folder)
    for path in folder.iterdir():
        path.write_text(text)
    assert check(options, cache_folder=folder) == first


def test_no_cache_leaves_nothing_behind(
    here: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("own")
    (here / "m.py").write_text(CAST)
    check(CheckOptions(paths=(".",), no_cache=True), cache_folder=folder)
    assert list(folder.iterdir()) == []


# -- bad input -----------------------------------------------------------------------------------------


def bad_inputs() -> dict[str, bytes]:
    return {
        "syntax.py": b"import torch\ndef f(:\n",
        "python2.py": b"import torch\nprint 'x'\n",
        "latin.py": b"import torch\ns = '\xff'\n",
        "nulls.py": b"import torch\n\0\n",
        "deep.py": b"import torch\nx = " + b"(" * 2000 + b"1" + b")" * 2000 + b"\n",
        "deep_attribute.py": b"import torch\nx = torch" + b".a" * 2000 + b"()\n",
        "deep_call.py": b"import torch\nx = y" + b".half()" * 2000 + b"\n",
        "deep_binary.py": b"import torch\nx = " + b"1 + " * 20000 + b"1\n",
        "deep_list.py": b"import torch\nx = " + b"[" * 2000 + b"]" * 2000 + b"\n",
        "deep_if.py": b"import torch\n"
        + b"".join(b" " * i + b"if 1:\n" for i in range(99))
        + b" " * 99
        + b"pass\n",
        "notebook.ipynb": b'{"cells": [',
        "empty.py": b"",
        "blank.ipynb": b"",
        "unicode.py": "import torch\nclass Ünïcode:\n    def 方法(self, x):\n        return x.half()\n".encode(),
        "crlf.py": CAST.replace("\n", "\r\n").encode(),
        "formfeed.py": b"import torch\n\x0c\ndef f(x):\n    return x.half()\n",
        "tabs.py": b"import torch\ndef f(x):\n\tif x:\n        return 1\n",
        "surrogate.py": b"import torch\ns = '\\ud800'\n",
    }


def test_bad_input_never_ends_the_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in bad_inputs().items():
        (here / name).write_bytes(data)
    (here / "good.py").write_text(CAST)
    (here / "loop").symlink_to(here, target_is_directory=True)
    report = look()
    assert any(item.path == "good.py" for item in report.findings)
    unparsable = {item.path for item in report.findings if item.rule == "TS002"}
    assert {
        "syntax.py",
        "python2.py",
        "latin.py",
        "nulls.py",
        "deep.py",
        "notebook.ipynb",
        "tabs.py",
    } <= unparsable
    assert not report.gaps
    for name in ("text", "concise", "json", "sarif", "markdown", "html", "github", "agent"):
        assert run(["check", "--format", name, "."]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_a_very_long_file_is_read_in_time(here: Path) -> None:
    lines = ["import torch", "scaler = torch.amp.GradScaler()"]
    lines += [
        f"def f{i}(x):\n    y = x.{'half' if i % 25 == 0 else 'float'}()\n    return y.sum() + {i}\n"
        for i in range(12_500)
    ]
    (here / "long.py").write_text("\n".join(lines))
    start = time.process_time()
    report = look("long.py")
    assert not report.gaps
    # a guard against quadratic rules, an order of magnitude above what it takes
    assert time.process_time() - start < 60


def test_source_is_never_executed(here: Path) -> None:
    (here / "evil.py").write_text(f"import torch\nopen({str(here / 'sprung')!r}, 'w').close()\n")
    look("evil.py")
    assert not (here / "sprung").exists()


def test_a_file_that_does_not_parse_is_a_finding(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "broken.py").write_text("import torch\n\n\ndef f(:\n    pass\n")
    assert run(["check", "broken.py"]) == 1
    said = capsys.readouterr().out
    assert "Line 4: [MEDIUM] line 4 does not parse as Python 3.11: invalid syntax" in said
    assert "broken.py:4:1 · TS002" in said
    assert run(["check", "--fail-on", "high", "broken.py"]) == 0
    assert run(["check", "--select", "TS101", "broken.py"]) == 1
    assert run(["check", "--ignore", "TS002", "broken.py"]) == 0
    assert "Skipped: broken.py:4" in capsys.readouterr().out


# -- what is shown -------------------------------------------------------------------------------------


def test_low_findings_are_a_number_until_they_are_asked_for(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "base.py").write_text("import torch  # torchstone: ignore[TS101] no longer needed\n")
    assert [item.severity for item in look("base.py").findings] == ["LOW"]
    assert run(["check", "base.py"]) == 0
    said = capsys.readouterr().out
    assert "1 LOW not shown (--low shows them)" in said
    assert "TS001" not in said
    for words in (["--low"], ["--select", "TS001,TS101"], ["--fail-on", "low"]):
        assert run(["check", *words, "base.py"]) == (1 if "--fail-on" in words else 0)
        assert "TS001 unused-ignore" in capsys.readouterr().out
    run(["check", "--format", "json", "base.py"])
    assert "TS001" in capsys.readouterr().out, "kept formats have all"


@pytest.mark.parametrize(
    ("comment", "told"),
    [
        ("# noqa", "`# noqa` does not silence it"),
        ("# noqa: TS101", "`# noqa: TS101` does not silence it"),
        ("# torchstone: ignore", "`# torchstone: ignore` does not silence it"),
        ("# torchstone: ignore TS101", "`# torchstone: ignore TS101` does not silence it"),
        ("# noqa: E501", ""),
        ("# a plain remark", ""),
    ],
)
def test_comments_without_effect_are_told_at_the_finding(
    comment: str, told: str, here: Path
) -> None:
    (here / "m.py").write_text(CAST.replace("x.half()", f"x.half()  {comment}"))
    [finding] = half(look("m.py"))
    remedy = finding.remedy.say("en")
    assert (told in remedy) if told else ("does not silence" not in remedy)
    assert ("ignore[TS101] reason" in remedy) == bool(told)


# -- outside tools -------------------------------------------------------------------------------------


def test_outside_tools_are_merged(here: Path) -> None:
    (here / "m.py").write_text(CAST + "import os\n\nx: int = 'a'\n")
    report = look("m.py", with_tools=("ruff", "mypy"))
    tools = {item.tool for item in report.findings}
    assert tools == {"check", "ruff", "mypy"}
    assert any(item.rule == "mypy/assignment" for item in report.findings)
    assert any(item.rule == "ruff/F401" and item.fix for item in report.findings)


def test_our_own_sarif_merges_without_duplicates(here: Path) -> None:
    (here / "m.py").write_text(CAST)
    run(["check", "m.py", "-o", "mine.sarif"])
    alone = look("m.py")
    merged = look("m.py", with_tools=("mine.sarif",))
    assert [f.fingerprint for f in merged.findings] == [f.fingerprint for f in alone.findings]


def test_foreign_sarif_is_read(here: Path) -> None:
    (here / "m.py").write_text(CAST)
    log = {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "Sem Grep"}}, "results": [
        {"ruleId": "r1", "level": "error", "message": {"text": "bad"},
         "locations": [{"physicalLocation": {"artifactLocation": {"uri": "m.py"}, "region": {"startLine": 7}}}]},
        {"message": {"text": "no place"}},
    ]}]}  # fmt: skip
    (here / "x.sarif").write_text(json.dumps(log))
    found = [
        item for item in look("m.py", with_tools=("x.sarif",)).findings if item.tool == "sem-grep"
    ]
    assert [(item.rule, item.severity, item.line) for item in found] == [
        ("sem-grep", "MEDIUM", 0), ("sem-grep/r1", "HIGH", 7),
    ]  # fmt: skip


def test_a_missing_tool_is_a_gap_and_leaves_the_code_alone(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "clean.py").write_text("import torch\n")
    monkeypatch.setattr(_process, "program", lambda name: None)
    assert run(["check", "--with", "mypy", "clean.py"]) == 0
    assert "pip install mypy" in capsys.readouterr().out


def test_a_failing_tool_is_part_of_the_work_that_failed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "clean.py").write_text("import torch\n")
    monkeypatch.setattr(
        _process, "program", lambda name: [sys.executable, "-c", "import sys; sys.exit('broken')"]
    )
    assert run(["check", "--with", "mypy", "clean.py"]) == 3
    assert "broken" in capsys.readouterr().out


def test_a_rule_that_breaks_is_a_gap_not_the_end(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchstone.lint.catalog import find_rule

    def broken(*_: object) -> None:
        raise RuntimeError("oh")

    monkeypatch.setitem(find_rule("TS101").on_calls, "half", [broken])
    (here / "m.py").write_text(CAST)
    report = look("m.py", no_cache=True)
    assert [gap.reason.id for gap in report.gaps] == ["rule.failed"]
    assert report.failed


PLUGIN = "open('sprung', 'w').close()\n\n\ndef plugin(version):\n    from mypy.plugin import Plugin\n\n    return Plugin\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mypy.ini", "[mypy]\nplugins = planted.py\ndisallow_untyped_defs = True\n"),
        ("setup.cfg", "[mypy]\nplugins = planted.py\ndisallow_untyped_defs = True\n"),
        ("pyproject.toml", ('[tool.mypy]\nplugins = ["planted.py"]\ndisallow_untyped_defs = true\n'
         'python_executable = "./planted.py"\n[[tool.mypy.overrides]]\nmodule = ["m", "n"]\n'
         "disallow_untyped_defs = false\n")),
    ],
)  # fmt: skip
def test_plugins_of_the_analysed_project_do_not_run(name: str, text: str, here: Path) -> None:
    (here / name).write_text(text)
    (here / "planted.py").write_text(PLUGIN)
    (here / "m.py").write_text("def f(x):\n    return x\n")
    report = look("m.py", with_tools=("mypy",))
    assert not (here / "sprung").exists()
    [gap] = report.gaps
    assert "planted.py" in gap.reason.say("en")
    assert "--allow-plugins" in gap.close
    assert not gap.failed
    told = [item.rule for item in report.findings if item.tool == "mypy"]
    assert told == ([] if name == "pyproject.toml" else ["mypy/no-untyped-def"]), (
        "its settings hold"
    )
    assert not (here / ".mypy_cache").exists()


def test_plugins_run_where_they_are_allowed(here: Path) -> None:
    (here / "mypy.ini").write_text("[mypy]\nplugins = planted.py\n")
    (here / "planted.py").write_text(PLUGIN)
    (here / "m.py").write_text("x: int = 1\n")
    look("m.py", with_tools=("mypy",), allow_plugins=True)
    assert (here / "sprung").exists()


def test_a_template_that_is_no_python_yet_is_no_finding(tmp_path: Path) -> None:
    (tmp_path / "run_{{cookiecutter.name}}.py").write_text(
        "from x import (\n    {{cookiecutter.y}},\n)\n"
    )
    (tmp_path / "plain.py").write_text("from x import (\n    {{y}},\n)\n")
    report = check(CheckOptions(paths=(str(tmp_path),), no_cache=True))
    assert [Path(item.path).name for item in report.findings] == ["plain.py"]
    assert ["cookiecutter" in gap.location.path for gap in report.gaps] == [True]
