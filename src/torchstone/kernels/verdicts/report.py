"""A verdict as a report: a finding for each failed gate, a table of all gates, gaps."""

from __future__ import annotations

from torchstone.core.evidence import Command, Number
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Table
from torchstone.core.report import Report, RuleInfo
from torchstone.core.text import Message, Text, words
from torchstone.kernels.gate import all_gates
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.sessions.confinement import unconfined_gap
from torchstone.kernels.verdicts.answer import verdict_answer
from torchstone.kernels.verdicts.verdict import Verdict

TOOL = "kernel"
STATUS = {
    "passed": Text("passed", "通过"),
    "failed": Text("FAILED", "未通过"),
    "skipped": Text("skipped", "跳过"),
    "gap": Text("gap", "缺口"),
    "undecided": Text("not decided", "未定"),
}
_COUNTED = Text("counted", "统计得出")


def report_of(verdict: Verdict) -> Report:
    """Findings, measures and gaps of a verdict."""
    titles = {gate.name: gate for gate in all_gates()}
    failed = verdict.failed
    passed = sum(1 for item in verdict.results if item.status == "passed")
    measures = (
        Measure(
            "accepted", float(verdict.accepted), "", Text("decided by the gates", "由各检查项决定"),
            Text("accepted", "接受"), tool=TOOL,
        ),
        Measure("gates_passed", float(passed), "", _COUNTED, Text("gates passed", "通过的检查项"),
                evidence=(_table(verdict),), tool=TOOL),
        *verdict.measures,
        *_times(verdict),
    )  # fmt: skip
    return Report(
        tool=TOOL,
        findings=tuple(_finding(verdict, item) for item in failed),
        measures=measures,
        gaps=(
            *(_gap(verdict, item) for item in verdict.results if item.status == "gap"),
            *_crash(verdict),
            *unconfined_gap(verdict.problem.name, verdict.environment),
        ),
        environment=verdict.environment,
        rules={
            _rule(item): RuleInfo(
                _rule(item), item.gate, "kernel", Severity.HIGH, titles[item.gate].title,
                titles[item.gate].why, titles[item.gate].remedy,
            )
            for item in failed
        },
        subject=f"{verdict.problem.name} ({verdict.candidate.implementation})",
        answer=verdict_answer(verdict),
    )  # fmt: skip


def _times(verdict: Verdict) -> tuple[Measure, ...]:
    """What was timed, as measures."""
    found = []
    for item in verdict.results:
        for fact in item.evidence if item.status == "passed" else ():
            if isinstance(fact, Number):
                label = fact.name if isinstance(fact.name, Text) else Text(fact.name, fact.name)
                name = f"{item.gate}_{label.en}".replace("-", "_")
                found.append(Measure(name, fact.value, fact.unit, fact.how, label,
                                     spread=fact.spread, tool=TOOL))  # fmt: skip
    return tuple(found)


def _rule(result: GateResult) -> str:
    return f"kernel-{result.gate}"


def _table(verdict: Verdict) -> Table:
    titles = {gate.name: gate.title for gate in all_gates()}
    rows = tuple(
        (item.gate, titles[item.gate], STATUS[item.status], item.detail) for item in verdict.results
    )
    columns = (Text("gate", "检查项"), Text("what", "内容"), Text("status", "状态"),
               Text("detail", "说明"))  # fmt: skip
    return Table(Text("Gates", "检查项"), columns, rows, Text("run in this order", "按此顺序执行"))


def _finding(verdict: Verdict, result: GateResult) -> Finding:
    gate = next(item for item in all_gates() if item.name == result.gate)
    remedy = result.remedy if result.remedy.en else gate.remedy
    evidence = result.evidence or (Command(f"gate {result.gate}", 1, result.detail.en),)
    return Finding(
        rule=_rule(result), name=result.gate, severity=Severity.HIGH,
        confidence=Confidence.CERTAIN,
        what=Message(_rule(result), Text("{en}", "{zh}"),
                     {"en": result.detail.en, "zh": result.detail.zh}),
        why=Message(f"{_rule(result)}-why", result.why if result.why.en else gate.why),
        remedy=Message(f"{_rule(result)}-remedy", remedy),
        location=Location(op=verdict.problem.name, line=result.line),
        evidence=evidence,
        fingerprint=fingerprint(_rule(result), verdict.problem.name, verdict.candidate.source),
        tool=TOOL,
    )  # fmt: skip


def _crash(verdict: Verdict) -> tuple[Gap, ...]:
    if not verdict.crash:
        return ()
    text = Text("the verification itself failed: {said}", "验证过程本身失败：{said}")
    reason = Message("kernel-crash", text, {"said": verdict.crash})
    return (
        Gap(
            verdict.problem.name,
            reason,
            "run it again",
            failed=True,
            tool=TOOL,
            close_zh="请重新运行",
        ),
    )


def _gap(verdict: Verdict, result: GateResult) -> Gap:
    args = {"en": result.detail.en, "zh": result.detail.zh}
    close = result.close or Text("see docs/kernel.md", "参见 docs/kernel.md")
    return Gap(
        f"{verdict.problem.name}: {result.gate}",
        Message(f"kernel-{result.gate}-gap", Text("{en}", "{zh}"), args),
        words(close, "en"),
        tool=TOOL,
        close_zh=close.zh if isinstance(close, Text) else "",
    )
