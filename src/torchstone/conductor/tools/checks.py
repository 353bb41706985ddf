"""Checks that a person, an agent or a model handed in, run on the project's own code."""

from __future__ import annotations

import json
from pathlib import Path

from torchstone._version import __version__
from torchstone.conductor.experiments.checks.check import Check
from torchstone.conductor.experiments.results import Result
from torchstone.conductor.jobs.job import Job, Layer, Offer, Request, Skipped
from torchstone.conductor.jobs.versions import installed
from torchstone.core.codec import from_data, to_data
from torchstone.core.evidence import Snippet
from torchstone.core.finding import Confidence, Finding, Location, fingerprint
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.report import Report, RuleInfo
from torchstone.core.text import Message, Text

NAME, SEED_NAME, DEPTH = "checks", "Checks", "quick"
LAYER: Layer = "integrated"
GOALS = ("correctness", "performance", "maintainability")
_SECONDS = 240.0
_EFFECT = "wrong result"
DECIDED = "decided"


def version() -> str:
    torch = installed("torch")
    return f"{__version__} (torch {torch})" if torch else ""


def offer(request: Request) -> Offer:
    if not request.checks:
        return Skipped(
            NAME,
            Text("no checks were given", "未给出检查"),
            "torchstone review --checks FOLDER",
        )
    return tuple(job_of(check) for check in request.checks)


def job_of(check: Check) -> Job:
    """The run that decides a check; a claim without code only carries itself on."""
    why = Text(f"{check.by}: {check.claim}", f"{check.by}：{check.claim}")
    return Job(
        f"checks-{check.id}",
        NAME,
        LAYER,
        (json.dumps(to_data(check)),),
        _SECONDS,
        why,
        Text("holds, broken or not decided", "成立、被违反或无法判定"),
        runs_project=bool(check.code),
    )


def check_of(job: Job) -> Check:
    return from_data(Check, json.loads(job.arguments[0]), "check")


def run(job: Job) -> Report:
    check = check_of(job)
    if not check.code:
        return _report(check, Result("broken"), "claims")
    from torchstone.conductor.experiments.checks.running import run_check

    return _report(check, run_check(check, Path.cwd()), NAME)


def _report(check: Check, result: Result, tool: str) -> Report:
    rule = f"check-{check.id}"
    claim = Text(check.claim, check.claim)
    info = RuleInfo(rule, check.id, _EFFECT, check.severity, claim, claim, Text("", ""))
    decided = Measure(
        DECIDED,
        float(bool(check.code) and result.state != "not decided"),
        "",
        Text("three seeds that agree", "三个随机种子结果一致"),
        Text("decided", "已判定"),
        tool=tool,
    )
    gaps: tuple[Gap, ...] = ()
    if result.state == "not decided":
        said = Message(
            "checks.not-decided",
            Text("the check could not decide: {said}", "该检查无法判定：{said}"),
            {"said": result.said},
        )
        gaps = (
            Gap(
                check.id, said, "correct the check", failed=True, tool=tool, close_zh="请更正该检查"
            ),
        )
    findings = (_finding(check, result, tool, rule),) if result.state == "broken" else ()
    return Report(tool, findings, (decided,), gaps, rules={rule: info}, subject=check.id)


def _finding(check: Check, result: Result, tool: str, rule: str) -> Finding:
    why = Text("the check says: {said}", "检查结果：{said}") if result.said else Text("", "")
    shown = (Snippet(f"{check.id}.py", 1, check.code or check.claim),)
    return Finding(
        rule=rule,
        name=check.id,
        severity=check.severity,
        confidence=Confidence.CERTAIN if check.code else Confidence.POSSIBLE,
        what=Message(rule, Text("{claim}", "{claim}"), {"claim": check.claim}),
        why=Message(f"{rule}-why", why, {"said": result.said}),
        remedy=Message(f"{rule}-remedy", Text("", "")),
        location=Location(check.path, check.line, 1),
        evidence=shown,
        fingerprint=fingerprint(rule, check.path, check.claim),
        tool=tool,
    )
