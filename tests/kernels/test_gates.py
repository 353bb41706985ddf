"""Every gate passes its good kernels and fails its bad ones, for its own problem."""

from __future__ import annotations

import pytest

from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.kernels import Candidate, Problem, load_problem, verifier, verify
from torchstone.kernels.candidate import known_implementation
from torchstone.kernels.gate import Gate, all_gates
from torchstone.kernels.problem import problem_from_source
from torchstone.kernels.sessions.workshop import Workshop

pytestmark = pytest.mark.usefixtures("few_sizes")

GATES = all_gates()
SAMPLES = [
    (gate, kind, implementation)
    for gate in GATES
    for kind in ("good", "bad")
    for implementation in getattr(gate, kind)
]


def problem_of(gate: Gate) -> Problem:
    if "\n" in gate.problem:
        return problem_from_source(gate.problem, gate.name)
    return load_problem(gate.problem)


@pytest.mark.parametrize(
    ("gate", "kind", "implementation"),
    SAMPLES,
    ids=[f"{gate.name}-{kind}-{implementation}" for gate, kind, implementation in SAMPLES],
)
def test_gate(
    gate: Gate, kind: str, implementation: str, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "bad":  # what comes after its own gate has nothing to add
        upto = tuple(item for item in GATES if item.order <= gate.order)
        monkeypatch.setattr(verifier, "all_gates", lambda: upto)
    source = getattr(gate, kind)[implementation]
    candidate = Candidate(source, known_implementation(implementation))
    verdict = verify(problem_of(gate), candidate, seeds=2, workshop=workshop)
    status = {item.gate: item.status for item in verdict.results}
    log = verdict.error_log()
    if kind == "good":
        assert verdict.accepted, log
        assert status[gate.name] in ("passed", "gap"), log
        return
    assert not verdict.accepted
    assert status[gate.name] == "failed", (status, log)
    report = verdict.report()
    assert any(finding.name == gate.name and finding.evidence for finding in report.findings)
    assert Report.from_json(report.to_json()).findings == report.findings
    assert f"[{gate.name}] failed" in log


def test_every_gate_has_its_words_and_samples() -> None:
    assert [gate.order for gate in GATES] == sorted({gate.order for gate in GATES})
    for gate in GATES:
        for text in (gate.title, gate.why):
            assert isinstance(text, Text)
            assert text.en
            assert text.zh
        assert gate.good, gate.name
        # what is told about a problem, and what is measured, refuses nobody
        assert gate.bad or gate.name in ("origin", "probes", "timing")
        assert not gate.bad or gate.remedy.zh
