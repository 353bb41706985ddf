"""Records of runs become a Report: first what breaks, then what was assumed and how far it came."""

from __future__ import annotations

from dataclasses import replace

from torchstone.core.finding import Finding, Severity
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.report import Report
from torchstone.core.text import Message, Text, words
from torchstone.dryrun import rules
from torchstone.dryrun.record import Assumption, Record
from torchstone.dryrun.reporting.annotations import refused_by_type_checker
from torchstone.dryrun.reporting.answer import script_answer
from torchstone.dryrun.reporting.compilation import (
    compile_findings,
    compile_gaps,
    compile_measures,
)
from torchstone.dryrun.reporting.findings import ENVIRONMENT, TOOL
from torchstone.dryrun.reporting.hazards import SHOWN, constraint_finding, hazard_finding
from torchstone.dryrun.reporting.memory import fit_findings, memory_measures
from torchstone.dryrun.reporting.progress import measures_of, output_measures
from torchstone.dryrun.reporting.refused import assumed_size, raised, refused_call
from torchstone.dryrun.reporting.side_effects import side_effect_measures
from torchstone.dryrun.reporting.stops import gaps_of, nothing_left, refuse_unusable
from torchstone.dryrun.reporting.supplied import (
    comes_from_supplies,
    rest_on_supplies,
    supplies_do_not_fit,
    supply_measures,
)
from torchstone.dryrun.script.launch import Outcome
from torchstone.runtime.devices import Device


def report_on_script(subject: str, outcome: Outcome, device: Device | None = None) -> Report:
    """The report of a script's dry run."""
    main = next((item for item in outcome.records if item.path == 0), None)
    refuse_unusable(subject, main, outcome.output)
    findings: list[Finding] = []
    gaps: list[Gap] = []
    measures: list[Measure] = []
    for record in sorted(outcome.records, key=lambda item: item.branch is not None, reverse=True):
        if record.error is None and comes_from_supplies(record.stop, outcome.supplies):
            gaps.append(supplies_do_not_fit(record, outcome.supplies))
            record = replace(record, stop=None)
        if record.branch is not None and record.stop is not None and record.stop.own_raise:
            continue  # the program guards itself against a value that nobody has seen
        assumed = record.branch or assumed_size(record)
        findings += [_rest_on_assumption(item, assumed) for item in findings_of(record)]
        findings += fit_findings(record.memory, device)
        gaps += gaps_of(record, outcome.output)
        if record.compilation is not None:
            gaps += compile_gaps(record.compilation)
            measures += compile_measures(record.compilation)
    if not outcome.records:
        gaps.append(nothing_left(subject, outcome))
    made = Report(
        TOOL,
        findings=tuple(rest_on_supplies(item, outcome.supplies) for item in _once(findings)),
        measures=(
            *measures_of(outcome.records),
            *output_measures(outcome.output),
            *supply_measures(outcome.supplies),
            *side_effect_measures(outcome.records),
            *measures,
            *memory_measures(outcome.records, device),
        ),
        gaps=tuple(gaps),
        rules={rule.id: rule.info() for rule in rules.SINGLE_PROCESS},
        subject=subject,
        environment=ENVIRONMENT,
    )
    return replace(made, answer=script_answer(made))


def _rest_on_assumption(finding: Finding, assumed: Assumption | None) -> Finding:
    """What breaks only where an unknown value goes one way is MEDIUM at most, and names the value."""
    if assumed is None:
        return finding
    asked, place = words(assumed.question, "en"), assumed.place
    said, said_zh = words(assumed.answer, "en"), words(assumed.answer, "zh")
    why = Message(
        f"{finding.why.id}-branch",
        Text(
            f"{finding.why.say('en')}; seen only where {asked} at {place} is {said}, which a dry run cannot know",
            f"{finding.why.say('zh')}；仅在 {place} 处的 {asked} 为 {said_zh} 时出现，空跑无法得知该值",
        ),
    )
    return replace(
        finding,
        severity=max(finding.severity, Severity.MEDIUM, key=lambda item: item.rank),
        why=why,
    )


def _once(findings: list[Finding]) -> list[Finding]:
    """Two paths may break at one line: it is one finding, of the path that rests on the least."""
    return list({(item.rule, item.fingerprint, item.line): item for item in findings}.values())


def findings_of(record: Record) -> list[Finding]:
    """What one path through the program showed."""
    found = [hazard_finding(item) for item in record.hazards if item.rule in SHOWN]
    if record.compilation is not None:
        found += compile_findings(record.compilation)
    found += [constraint_finding(item) for item in record.constraints or ()]
    if record.error is not None:
        found.append(refused_call(record.error, record))
    elif record.stop is not None and record.stop.cause == "program":
        found.append(refused_by_type_checker(record.stop) or raised(record))
    return found
