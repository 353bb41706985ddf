"""The project as it is: what every change is compared with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from torchstone.conductor.jobs.job import Job
from torchstone.conductor.phases.execute import Conditions, Execution
from torchstone.conductor.phases.plan import Plan
from torchstone.conductor.project.copying import Copy
from torchstone.conductor.project.testing import TestRun
from torchstone.conductor.tools.experiments import RANKS_JOB
from torchstone.core.finding import Finding
from torchstone.core.report import Report

SHOWN = ("dryrun", "probes", "experiments", "checks", "tests")
SHOWN_BY_CALLS = ("DR6", "PR4", "DR204")
"""Rules that compare which calls are made, whether ranks are equal, or what made a value: a wrong fix can make the
right calls with the wrong values, or by others, so that their silence proves nothing."""
_CRASH_ON_ALL_RANKS = "DR600"
_NEAR = 8
"""Lines: a cause and what a run shows of it stand in one function."""
ALWAYS = "lint"
"""Asked again after every change: it costs little and sees the whole project."""


def is_shown_by_calls(item: Finding) -> bool:
    return item.rule.startswith(SHOWN_BY_CALLS) and item.rule != _CRASH_ON_ALL_RANKS


@dataclass(slots=True)
class Meter:
    """What trying changes has used."""

    cpu_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Before:
    """The project as it is: what every change is compared with."""

    plan: Plan
    execution: Execution
    copy: Copy
    tests: TestRun
    conditions: Conditions
    meter: Meter = field(default_factory=Meter)

    def jobs_that_found(self, findings: Iterable[Finding]) -> tuple[Job, ...]:
        """The runs in which these findings came up, and the static rules. What no run has shown may
        be the cause of what a run shows elsewhere in the same function: then that run, too."""
        given = list(findings)
        wanted = {item.fingerprint for item in given}
        if not any(item.tool in SHOWN for item in given):
            wanted |= {item.fingerprint for item in self.shown_near(given)}
        ids = {
            result.job
            for result in self.execution.results
            if any(item.fingerprint in wanted for item in result.report.findings)
        }
        ids |= {result.job for result in self.execution.results if result.tool == ALWAYS}
        if any(is_shown_by_calls(item) for item in given):  # only values can prove their fix
            ids |= {job.id for job in self._against_one(ids)}
        return tuple(job for job in self.plan.jobs if job.id in ids)

    def _against_one(self, ids: set[str]) -> list[Job]:
        """The comparisons with one process of the scripts that these jobs run."""
        words = {word for job in self.plan.jobs if job.id in ids for word in job.arguments}
        ran = {result.job for result in self.execution.results}
        return [
            job
            for job in self.plan.jobs
            if job.id.startswith(RANKS_JOB) and job.id in ran and job.arguments[1] in words
        ]

    def shown_near(self, findings: Iterable[Finding]) -> list[Finding]:
        """What runs have shown in the functions of these findings."""
        near = [(item.path, item.line) for item in findings]
        return [
            item for report in self.execution.reports for item in report.findings
            if item.tool in SHOWN
            and any(item.path == path and abs(item.line - line) <= _NEAR for path, line in near)
        ]  # fmt: skip

    def reports(self, jobs: Iterable[Job]) -> list[Report]:
        """What these runs said, in their order."""
        found = {result.job: result.report for result in self.execution.results}
        return [found[job.id] for job in jobs]
