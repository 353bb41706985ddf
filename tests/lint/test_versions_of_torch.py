"""Rules about torch's names and defaults follow the torch that a project runs with."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.core.finding import Finding, Severity
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions


@pytest.fixture(autouse=True)
def no_requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Away from this repository, whose own requirements name a torch."""
    monkeypatch.chdir(tmp_path)


def found(source: str, rule: str, torch: str = "") -> list[Finding]:
    options = CheckOptions(
        paths=("-",), select=(rule,), no_cache=True, stdin_name="sample.py", torch=torch
    )
    return list(check(options, stdin=source.encode()).findings)


@pytest.mark.parametrize(
    ("torch", "severity"),
    [("", Severity.HIGH), ("2.4", Severity.HIGH), ("1.13", Severity.MEDIUM), ("1.7", None)],
)
def test_removed_function(torch: str, severity: Severity | None) -> None:
    findings = found("import torch\nx = torch.symeig(a)\n", "TS501", torch)
    assert [item.severity for item in findings] == ([severity] if severity else [])


@pytest.mark.parametrize(("torch", "count"), [("", 1), ("2.13", 1), ("2.0", 1), ("1.13", 0)])
def test_deprecated_function_waits_for_its_successor(torch: str, count: int) -> None:
    source = "import functorch\nimport torch\nf = functorch.vmap(g)\n"
    assert len(found(source, "TS503", torch)) == count


@pytest.mark.parametrize(("torch", "count"), [("", 1), ("2.5", 1), ("2.4", 0)])
def test_private_name_waits_for_the_public_one(torch: str, count: int) -> None:
    source = "from torch.distributed._tensor import DTensor\n"
    assert len(found(source, "TS507", torch)) == count


@pytest.mark.parametrize(
    ("torch", "severity"),
    [("", Severity.LOW), ("2.5", Severity.LOW), ("2.6", None), ("1.12", None)],
)
def test_load_is_judged_by_its_default(torch: str, severity: Severity | None) -> None:
    findings = found("import torch\nx = torch.load(p)\n", "TS509", torch)
    assert [item.severity for item in findings] == ([severity] if severity else [])


def test_own_pickle_module_switches_the_protection_off() -> None:
    source = "import dill\nimport torch\nx = torch.load(p, pickle_module=dill)\n"
    assert [item.severity for item in found(source, "TS509", "2.8")] == [Severity.MEDIUM]


@pytest.mark.parametrize(("torch", "count"), [("", 0), ("2.0", 0), ("1.13", 1), ("1.6", 0)])
def test_zero_grad_filled_with_zeros_before_torch_2(torch: str, count: int) -> None:
    source = "import torch\nloss.backward()\noptimizer.step()\noptimizer.zero_grad()\n"
    assert len(found(source, "TS308", torch)) == count


def test_torchfix_codes_select_their_rules() -> None:
    source = "import torch\nx.require_grad = True\nq = torch.qr(a)\n"
    assert {item.rule for item in found(source, "TOR002")} == {"TS508"}
    assert {item.rule for item in found(source, "TOR101")} == {"TS503"}


@pytest.mark.parametrize(
    ("requirement", "severity"),
    [
        ("torch>=1.6", Severity.HIGH),
        ("torch==1.13.1", Severity.MEDIUM),
        ("torch>=1.6,<2.0", None),
        ("torch~=1.7", None),
    ],
)
def test_an_open_requirement_admits_the_newest_torch(
    tmp_path: Path, requirement: str, severity: Severity | None
) -> None:
    (tmp_path / "requirements.txt").write_text(requirement + "\n")
    (tmp_path / "spectrum.py").write_text("import torch\nx = torch.symeig(a)\n")
    options = CheckOptions(paths=(".",), select=("TS501",), no_cache=True)
    findings = check(options).findings
    assert [item.severity for item in findings] == ([severity] if severity else [])


def test_what_is_only_deprecated_is_low_under_an_open_requirement(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=0.4\n")
    (tmp_path / "clip.py").write_text("import torch\ntorch.nn.utils.clip_grad_norm(p, 1)\n")
    findings = check(CheckOptions(paths=(".",), select=("TS503",), no_cache=True)).findings
    assert [(item.severity, item.fix) for item in findings] == [(Severity.LOW, None)]


@pytest.mark.parametrize(
    ("requirement", "found"),
    [
        ("numpy", 1),
        ("numpy>=1.18", 1),
        ("numpy==1.19.5", 0),
        ("numpy<1.24,>=1.17", 0),
        ("numpy~=1.21.0", 0),
        ("torch==1.9", 1),
    ],
)
def test_removed_names_of_numpy_follow_its_requirement(
    tmp_path: Path, requirement: str, found: int
) -> None:
    (tmp_path / "requirements.txt").write_text(requirement + "\n")
    (tmp_path / "mask.py").write_text(
        "import numpy as np\nimport torch\nx = np.zeros(3, dtype=np.int)\n"
    )
    findings = check(
        CheckOptions(paths=(str(tmp_path),), select=("TS517",), no_cache=True)
    ).findings
    assert len(findings) == found
