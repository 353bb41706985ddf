"""Phase 2: the jobs of the plan, layer by layer, each behind walls in a copy of its own."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from torchstone.conductor.jobs.job import LAYERS, Job
from torchstone.conductor.jobs.side_by_side import side_by_side
from torchstone.conductor.phases.plan import Plan
from torchstone.conductor.project.copying import Copy, copied
from torchstone.conductor.records import cache
from torchstone.conductor.tools import all_tools
from torchstone.conductor.tools.dryrun import PYTHON
from torchstone.core.codec import to_data
from torchstone.core.errors import TorchstoneError
from torchstone.core.files import read_regular
from torchstone.core.finding import Finding
from torchstone.core.gap import Gap
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.sandbox.forks import PACKAGE_HOME
from torchstone.sandbox.run import Call, Finished, is_confined, run_confined
from torchstone.starting.interpreters import find_interpreter

State = Literal["done", "cached", "failed", "late", "refused"]
_LOG_BYTES = 20_000
_ANSWER_BYTES = 128 << 20
GRACE_SECONDS = 60.0
"""A job ends itself at its limit and says how far it came; after this it is killed."""
_WORKER = "torchstone.conductor.jobs.worker:main"
_LOADED = (
    "torch._dynamo",
    "torchstone.conductor.experiments.running",
    "torchstone.conductor.probes.run",
    "torchstone.dryrun.world",
)
"""What jobs that run the project load: half of the time of a short one, if each did it again."""
STEPS = ("steps", "optimizer_steps")
"""Measures of optimizer steps that a program of the project made."""
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """How one job ended, and what it found."""

    job: str
    tool: str
    version: str
    state: State
    report: Report
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    log: str = ""

    @property
    def looked(self) -> bool:
        """Whether it saw something of the project, so that its silence means anything: a script
        that ended at its imports was started and not looked at."""
        if self.state not in ("done", "cached"):
            return False
        came = [item.value for item in self.report.measures if item.name in ("steps", "modules")]
        return bool(self.report.findings) or (
            not self.report.failed and (not came or any(value > 0 for value in came))
        )


@dataclass(frozen=True, slots=True)
class Execution:
    """All results, in the order of the plan."""

    results: tuple[ToolResult, ...]
    seconds: float = 0.0

    @property
    def reports(self) -> tuple[Report, ...]:
        return tuple(result.report for result in self.results)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds for every job."""

    allow_unconfined: bool = False
    use_cache: bool = True
    workers: int = 0
    """Jobs at the same time; 0: as many as there are processors, at most four."""
    python: str = ""
    """The environment that the project's code runs with; empty: ours."""


def execute(
    plan: Plan,
    copy: Copy,
    conditions: Conditions,
    progress: Progress,
    done: Callable[[ToolResult], None],
) -> Execution:
    """Run every job; `done` is told each result as soon as it is there."""
    started = time.monotonic()
    results: dict[str, ToolResult] = {}
    total = len(plan.jobs)

    def work(job: Job) -> None:
        progress(len(results), total, job.id)
        result = run_job(job, copy, conditions)
        results[job.id] = result
        done(result)

    for layer in LAYERS:
        stepped = any(map(_made_steps, results.values()))
        jobs = [
            job
            for job in plan.jobs
            if job.layer == layer and not (job.only_without_steps and stepped)
        ]
        side_by_side(work, jobs, conditions.workers)
    ordered = tuple(results[job.id] for job in plan.jobs if job.id in results)
    return Execution(ordered, time.monotonic() - started)


def _made_steps(result: ToolResult) -> bool:
    """Whether a program of the project came to an optimizer step."""
    return any(item.name in STEPS and item.value > 0 for item in result.report.measures)


def run_job(job: Job, copy: Copy, conditions: Conditions) -> ToolResult:
    """One job, from the cache where the same was done before."""
    version = all_tools()[job.tool].version()
    if job.runs_project and not is_confined() and not conditions.allow_unconfined:
        return ToolResult(job.id, job.tool, version, "refused", _gap(job, _REFUSED, _ALLOW, False))
    around = (version, conditions.python, *map(str, caller_search_path()))
    key = cache.key_of(job, copy.digest, " ".join(filter(None, around)))
    if conditions.use_cache and (known := cache.stored(key)) is not None:
        return ToolResult(job.id, job.tool, version, "cached", known)
    result = _run(job, copy, version, conditions.python)
    if conditions.use_cache and result.state == "done" and not result.report.failed:
        cache.store(key, result.report)
    return result


_REFUSED = Text(
    "it would run code of the project, and this system has no sandbox for that",
    "需要运行项目代码，而本系统无法提供隔离",
)
_ALLOW = "torchstone review --allow-unconfined, or Linux 5.13 or newer with user namespaces"


def caller_search_path() -> tuple[Path, ...]:
    """The folders of PYTHONPATH: a project that runs with them is reviewed with them."""
    names = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = dict.fromkeys(Path(name).resolve() for name in names if name)
    return tuple(folder for folder in folders if folder.is_dir() and folder != PACKAGE_HOME)


def _environment_of(python: str) -> tuple[Path, ...]:
    """What has to be readable for an interpreter to run."""
    if not python:
        return ()
    found = find_interpreter(python, Path.cwd())
    executable = Path(found.executable or sys.executable).resolve()
    return (Path(found.prefix), executable.parents[1])


def _run(job: Job, copy: Copy, version: str, python: str) -> ToolResult:
    searched = caller_search_path()
    with copied(copy.project, copy.original) as own:
        order, answer = own.home / "job.json", own.home / "result.json"
        order.write_text(json.dumps(to_data(job)), "utf-8")
        order.chmod(0o644)
        finished = run_confined(
            Call(_WORKER, (str(order), str(answer)), _LOADED if job.runs_project else ()),
            own.home, start=own.project, seconds=job.seconds + GRACE_SECONDS,
            readable=(copy.original, PACKAGE_HOME, *searched, *_environment_of(python)),
            environment={
                "PYTHONPATH": os.pathsep.join(map(str, (PACKAGE_HOME, *searched))),
                PYTHON: python,
            },
        )  # fmt: skip
        report, state = _read(job, own, finished)
    log = finished.output[-_LOG_BYTES:].replace(f"{own.project}/", "")
    return ToolResult(
        job.id, job.tool, version, state, report, finished.seconds, finished.cpu_seconds, log
    )


def _read(job: Job, own: Copy, finished: Finished) -> tuple[Report, State]:
    if finished.late:
        why = Text(f"no answer within {job.seconds:.0f} s", f"{job.seconds:.0f} 秒内没有结果")
        return _gap(job, why, "torchstone review --seconds MORE", True), "late"
    try:
        report = Report.from_json(_answer_of(own), job.id)
    except (OSError, TorchstoneError):
        last = (finished.output.strip().splitlines() or [f"exit {finished.exit_code}"])[-1][:200]
        why = Text(f"it failed: {last}", f"运行失败：{last}")
        return _gap(job, why, f"see execution/{job.id}.log", True), "failed"
    findings = tuple(_relative(item, own) for item in report.findings)
    return replace(report, findings=findings), "done"


def _answer_of(own: Copy) -> bytes:
    """What a worker left: a regular file of its own, of a size that can be read."""
    path = own.home / "result.json"
    if path.is_symlink():
        raise OSError("a link")
    return read_regular(path, _ANSWER_BYTES)


def _relative(finding: Finding, own: Copy) -> Finding:
    """Paths as the project's own, wherever the copy lay."""

    def name(path: str) -> str:
        return path.removeprefix(f"{own.project}/").removeprefix("./")

    fix = finding.fix
    if fix is not None:
        fix = replace(fix, edits=tuple(replace(edit, path=name(edit.path)) for edit in fix.edits))
    place = replace(finding.location, path=name(finding.location.path))
    return replace(finding, location=place, fix=fix)


def _gap(job: Job, why: Text, close: str, failed: bool) -> Report:
    gap = Gap(job.id, Message("review.job", why), close, failed=failed, tool=job.tool)
    return Report(job.tool, gaps=(gap,))
