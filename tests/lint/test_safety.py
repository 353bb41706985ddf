"""What `check` says and edits when something about the project is unusual."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torchstone.core.finding import Severity
from torchstone.core.fix import Safety
from torchstone.core.report import Report
from torchstone.lint import baseline
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions

_OLD_LOAD = "import torch\nx = torch.cuda.amp.autocast()\n"


def run(folder: Path, torch: str = "", **options: object) -> Report:
    return check(CheckOptions(paths=(str(folder),), no_cache=True, torch=torch, **options))  # type: ignore[arg-type]


def test_a_torch_older_than_most_rules_is_reported(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==0.4.1\n")
    (tmp_path / "train.py").write_text("import torch\ndef f():\n    return torch.symeig(a)\n")
    report = run(tmp_path)
    assert [(gap.reason.id, gap.failed) for gap in report.gaps] == [("check.few-rules", True)]
    assert [item.rule for item in report.findings] == ["TS239"]
    assert "0.4" in report.gaps[0].reason.say("en")
    assert "--torch latest" in report.gaps[0].close


def test_a_project_without_torch_misses_no_rules(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==0.4.1\n")
    (tmp_path / "tool.py").write_text("x = 1\n")
    assert not run(tmp_path).gaps


@pytest.mark.parametrize(
    ("requirement", "torch", "safety"),
    [
        ("", "", Safety.UNSAFE),
        ("torch==2.6\n", "", Safety.SAFE),
        ("", "latest", Safety.SAFE),
        ("torch\n", "", Safety.UNSAFE),
    ],
)
def test_an_unknown_torch_makes_fixes_by_version_unsafe(
    requirement: str, torch: str, safety: Safety, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text(requirement)
    (tmp_path / "train.py").write_text(_OLD_LOAD)
    fixes = [item.fix for item in run(tmp_path, torch).findings if item.rule == "TS110"]
    assert [fix.safety for fix in fixes if fix] == [safety]


def test_a_baseline_hides_a_finding_up_to_its_level(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nx = torch.symeig(a)\n")
    found = list(run(tmp_path, "latest").findings)
    assert found[0].severity is Severity.HIGH
    known = tmp_path / "known.json"
    baseline.write([replace(found[0], severity=Severity.LOW)], known)
    assert baseline.without_known(found, known) == found
    baseline.write(found, known)
    assert baseline.without_known(found, known) == []
    assert baseline.without_known([replace(found[0], severity=Severity.LOW)], known) == []


def test_a_baseline_without_levels_is_still_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nx = torch.symeig(a)\n")
    found = list(run(tmp_path, "latest").findings)
    known = tmp_path / "known.json"
    row = [found[0].path, found[0].rule, found[0].fingerprint, "text"]
    known.write_text(json.dumps({"schema": "torchstone/baseline/1", "findings": [row]}))
    assert baseline.without_known(found, known) == []


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are always Unicode there")
@pytest.mark.parametrize("style", ["text", "json", "sarif", "html", "agent"])
def test_names_that_are_not_unicode(style: str, tmp_path: Path) -> None:
    inner = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(inner)
    text = b"import torch\nfrom .b import f\ndef main(net, x):\n    f(net(x).sum())\n    torch.symeig(x)\n"
    Path(os.fsdecode(inner + b"/a\xff.py")).write_bytes(text)
    helper = b"import torch\ndef f(loss):\n    loss.backward()\n    return torch.load('x')\n"
    Path(os.fsdecode(inner + b"/b.py")).write_bytes(helper)
    command = [sys.executable, "-m", "torchstone", "check", "--format", style, str(tmp_path)]
    clean = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(command, capture_output=True, env=clean, check=False)
    assert b"Traceback" not in done.stderr, done.stderr.decode(errors="replace")
    assert done.returncode == 1


_NEWER = {
    "nested quotes": 'def f(d, loss):\n    return f"{d["k"]} {loss:>{d["w"]}}"\n',
    "a backslash in an f-string": 'def f(rows):\n    return f"{"\\n".join(rows)}"\n',
    "a comment in an f-string": 'def f(x):\n    return f"{\n        x  # why\n    }"\n',
    "a type statement": "type Pair[T] = tuple[T, T]\n",
    "a generic function": "def first[T: (int, str), *Ts, **P](rows: list[T]) -> T:\n    return rows[0]\n",
    "a generic class": "class Box[T = int](object):\n    value: T\n",
    "a template string": 'def f(name):\n    return t"hello {name!r:>{10}}"\n',
    "exceptions without parentheses": "try:\n    x = 1\nexcept ValueError, TypeError:\n    x = 2\n",
}


@pytest.mark.parametrize("what", _NEWER)
def test_newer_syntax_is_read(what: str, tmp_path: Path) -> None:
    text = _NEWER[what] + "import torch\ny = torch.symeig(1)\n"
    (tmp_path / "new.py").write_text(text)
    report = run(tmp_path, "latest")
    assert not report.gaps
    assert [(item.rule, item.line) for item in report.findings] == [("TS501", text.count("\n"))], (
        report.findings
    )


def test_what_newer_syntax_holds_is_looked_at(tmp_path: Path) -> None:
    text = 'import torch\nd = {}\nprint(f"{d["k"]} {torch.symeig(d)}")\n'
    (tmp_path / "new.py").write_text(text)
    findings = run(tmp_path, "latest").findings
    assert [(item.rule, item.line, item.location.column) for item in findings] == [
        ("TS501", 3, text.splitlines()[2].index("torch") + 1)
    ]


@pytest.mark.parametrize("text", ['x = f"{d["k"}"\n', "type = = 3\n", "def f[T(x): pass\n"])
def test_errors_stay_errors(text: str, tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text(text)
    assert [item.name for item in run(tmp_path, "latest").findings] == ["unparsable-file"]


def test_a_detached_loss_is_not_detached_again(tmp_path: Path) -> None:
    source = (
        "import torch\ndef train(model, loader, opt, f):\n    total = 0.0\n"
        "    for x, y in loader:\n        loss = f(model(x.cuda()), y)\n        opt.zero_grad()\n"
        "        loss.backward()\n        opt.step()\n        total += loss.detach().item()\n"
        "    return total\n"
    )
    (tmp_path / "train.py").write_text(source)
    texts = [
        edit.text
        for item in run(tmp_path, "latest").findings
        if item.fix
        for edit in item.fix.edits
    ]
    assert not any("detach().detach" in text for text in texts)
    fixed = [item for item in run(tmp_path, "latest").findings if item.rule == "TS301"]
    assert len(fixed) == 1
    assert ".detach().detach()" not in fixed[0].remedy.say("en")


def test_a_result_thrown_away_has_no_twin_that_does_not_exist(tmp_path: Path) -> None:
    source = "import torch\nx = torch.zeros(3)\nx.to('cuda')\nx.float()\n"
    (tmp_path / "train.py").write_text(source)
    for item in run(tmp_path, "latest").findings:
        assert "to_" not in item.remedy.say("en").replace("to_ ", ""), item.remedy.say("en")
        assert "float_" not in item.remedy.say("en")


_STEP = """def step(model, opt, x, y):
    opt.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    opt.step()
    return loss.item()
"""


def _work(functions: int, tmp_path: Path) -> int:
    """How many function calls a check of a file with equal functions makes."""
    path = tmp_path / f"many{functions}.py"
    path.write_text("import torch\n" + _STEP * functions)
    count = 0

    def profiler(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(profiler)
    try:
        run(path, "latest")
    finally:
        sys.setprofile(None)
    return count


def test_time_grows_with_the_length_of_a_file(tmp_path: Path) -> None:
    _work(2, tmp_path)  # what is loaded once
    one, two = _work(60, tmp_path), _work(240, tmp_path)
    assert two / one < 4.4, (one, two)


_TANGLE = """import torch
from torch.nn.parallel import DistributedDataParallel as DDP
def build(name, depth=0, **options):
    if name == "a":
        return build("b", depth, **options)
    if name == "b":
        return build("c", depth + 1, **options)
    if depth > 3:
        return build(name, 0)
    return build(name, depth + 1)
def main():
    model = build("a")
    model = DDP(model)
    model.cuda()
    return model
"""


def test_functions_that_call_themselves_end(tmp_path: Path) -> None:
    path = tmp_path / "tangle.py"
    path.write_text(_TANGLE)
    count = 0

    def profiler(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += 1

    run(path, "latest")  # what is loaded once
    sys.setprofile(profiler)
    try:
        run(path, "latest")
    finally:
        sys.setprofile(None)
    assert count < 300_000
