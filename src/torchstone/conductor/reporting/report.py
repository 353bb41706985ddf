"""The whole review as one Report: the verdict and the first five, then everything behind them."""

from __future__ import annotations

from dataclasses import replace

from torchstone.conductor.phases.problems import EffectWords, EvidenceWords, Problem
from torchstone.conductor.phases.verdicts import OutcomeWords, StateWords, Verdict
from torchstone.conductor.reporting.first_screen import first_screen
from torchstone.conductor.reporting.outcome import PATCH_STATES, Outcome, who_is_hit
from torchstone.core.evidence import Diff, State
from torchstone.core.finding import Finding
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Check, Evidence, Span, Strip, Table, Timeline
from torchstone.core.report import Report
from torchstone.core.text import Message, Text

TOOL = "review"
_COSTS = {
    "proven": Text("a proven patch", "已验证的补丁"), "line": Text("a line", "一行"),
    "function": Text("a function", "一个函数"), "files": Text("several files", "多个文件"),
    "design": Text("a design", "设计改动"),
}  # fmt: skip


def report_on_review(made: Outcome) -> Report:
    """The report behind report.html, report.json, report.md and findings.sarif."""
    findings = tuple(
        item
        for problem in made.found.problems
        for item in _findings(problem, made.verification.of(problem.id))
    )  # fmt: skip
    gaps = tuple(gap for result in made.execution.results for gap in result.report.gaps)
    rules = {key: info for report in made.execution.reports for key, info in report.rules.items()}
    return Report(
        TOOL,
        findings=findings,
        measures=_measures(made),
        gaps=(*_interrupted(made), *_not_judged(made), *gaps, *_skipped(made)),
        environment={item.tool: item.version for item in made.execution.results},
        rules=rules,
        subject=made.plan.facts.name,
        answer=first_screen(made),
    )


def _interrupted(made: Outcome) -> tuple[Gap, ...]:
    """Work that was started and not ended: nobody may take the exit code for a clean project."""
    if not made.interrupted:
        return ()
    reason = Text("the review was interrupted before its end", "评审在结束前被中断")
    return (
        Gap(
            made.plan.facts.name, Message("interrupted", reason),
            f"torchstone review --resume {made.folder}", failed=True, tool=TOOL,
        ),
    )  # fmt: skip


def _not_judged(made: Outcome) -> tuple[Gap, ...]:
    """No program came to a step: whoever reads the exit code must not take it for a clean project."""
    if made.coverage.judged or made.interrupted:
        return ()
    why = made.coverage.why
    reason = Message(
        "review.not-judged",
        Text("no training step was reached: {en}", "没有到达任何训练步：{zh}"),
        {"en": why.en, "zh": why.zh},
    )
    close = Text(
        "start it as a person would and give the command in the README, or: torchstone dryrun SCRIPT -- ARGUMENTS",
        "请像人工启动那样运行并在 README 中写明命令，或运行：torchstone dryrun 脚本 -- 参数",
    )
    name = made.plan.facts.name
    return (Gap(name, reason, close.en, failed=True, tool=TOOL, close_zh=close.zh),)


def _findings(problem: Problem, verdict: Verdict | None) -> list[Finding]:
    """A problem's finding with its chain of evidence, and the others of its pattern."""
    factors = problem.priority
    facts = Table(
        Text("How it was judged", "判定依据"),
        (Text("factor", "因素"), Text("value", "取值"), Text("number", "数值")),
        (
            (Text("effect", "影响"), EffectWords[problem.effect], factors.severity),
            (Text("reach", "范围"), who_is_hit(problem), round(factors.reach, 2)),
            (Text("evidence", "证据"), EvidenceWords[problem.evidence], factors.confidence),
            (Text("exposure", "暴露"), problem.reach.scope or "-", factors.exposure),
            (Text("cost of the fix", "修复成本"), _COSTS[problem.complexity], factors.cost),
            (Text("priority", "优先级"), "S·R·C·E/(1+K)", round(factors.value, 2)),
        ),
    )
    extra: list[Evidence] = [facts]
    if verdict is not None:
        state = PATCH_STATES[verdict.state]
        note = verdict.check if verdict.check.en else verdict.why
        extra.append(Strip(Text("verified", "验证"), (
            Check(OutcomeWords[verdict.outcome], state, note), Check(StateWords[verdict.state], state, note),
        )))  # fmt: skip
        if note.en:
            extra.append(
                Table(Text("Proof", "证明"), (Text("what the runs said", "运行结论"),), ((note,),))
            )
        if verdict.diff and verdict.state in ("proven", "applies"):
            extra.append(Diff(verdict.diff))
    lead = replace(
        problem.finding, severity=problem.severity, tool=problem.finding.tool,
        evidence=(*problem.finding.evidence, *extra),
    )  # fmt: skip
    return [lead, *problem.also, *problem.places]


def _measures(made: Outcome) -> tuple[Measure, ...]:
    spans, start = [], 0.0
    for item in made.execution.results:
        state: State = {
            "done": "good",
            "cached": "plain",
            "failed": "bad",
            "late": "bad",
            "refused": "warning",
        }[item.state]  # type: ignore[assignment]
        spans.append(
            Span(
                item.job,
                start,
                max(item.seconds, 0.01),
                state,
                f"{item.state}, {len(item.report.findings)} findings",
                item.tool,
            )
        )
        start += max(item.seconds, 0.01)
    runs = Measure(
        "review.runs", len(made.execution.results), "", Text("counted", "计数"), Text("runs of tools", "工具运行次数"),
        evidence=(Timeline(Text("Runs", "运行"), tuple(spans)), *made.documents), tool=TOOL,
    )  # fmt: skip
    kept = tuple(
        replace(measure, name=f"{result.tool}.{measure.name}")
        for result in made.execution.results
        for measure in result.report.measures
        if result.tool in ("cost", "dryrun", "flow", "tensors")
        or (measure.name == "silencing_comments" and measure.value)
    )  # fmt: skip
    return (runs, *kept)


def _skipped(made: Outcome) -> tuple[Gap, ...]:
    return tuple(
        Gap(
            item.tool,
            Message("review.skipped", item.why),
            item.close or "torchstone review --depth deep",
            tool=TOOL,
            close_zh=item.close_zh,
        )
        for item in made.skipped
    )
