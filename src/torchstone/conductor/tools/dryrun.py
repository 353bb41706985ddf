"""The project's own scripts with fake weights: shapes, dtypes, memory, and every rank."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from torchstone._version import __version__
from torchstone.conductor.jobs.job import Job, Layer, Offer, Request, Skipped, short_name
from torchstone.conductor.jobs.versions import installed
from torchstone.conductor.project.facts import EntryPoint, Launch
from torchstone.conductor.words import counted
from torchstone.core.finding import Location
from torchstone.core.gap import Gap
from torchstone.core.report import Report
from torchstone.core.text import Message, Text

NAME, SEED_NAME, DEPTH = "dryrun", "PyTea", "standard"
LAYER: Layer = "specialised"
GOALS = ("correctness",)
_MOST_SCRIPTS = 4
"""A project with more is a collection of examples: the first ones are what it is about."""
_RANKS, _MOST_RANKS = 2, 8
_DEEP_RANKS = 4
"""The smallest worlds that show what two ranks hide: sub-groups, odd shares."""
_REFUSALS = ("DR600", "DR102")
"""The program raises: on all ranks, in its only process."""
_SECONDS = 90.0
PYTHON = "TORCHSTONE_PYTHON"
"""Names the environment of `review --python` for the jobs that run the project's code."""


def version() -> str:
    torch = installed("torch")
    return f"{__version__} (torch {torch})" if torch else ""


def offer(request: Request) -> Offer:
    facts, scope = request.facts, request.scope
    scripts = [item for item in facts.entry_points if item.trains or item.launched]
    if not scripts:
        return Skipped(
            NAME,
            Text("no script with a main part that trains was found",
                 "未找到带主程序且进行训练的脚本"),
            "torchstone dryrun SCRIPT",
        )  # fmt: skip
    jobs = [
        job for script in scripts[:_MOST_SCRIPTS] for job in _jobs(script, scope.reaches("deep"))
    ]
    return tuple({job.id: job for job in jobs}.values())


def _jobs(script: EntryPoint, deep: bool) -> Iterator[Job]:
    """One process, then as many as the documentation starts, or two where it does not say."""
    together = script.together
    if script.alone or not together:
        promised = bool(script.alone) or not (script.required or script.launched)
        yield _job(script, script.alone or Launch(script.arguments), documented=promised)
    if together:
        yield _job(
            script, replace(together, ranks=min(together.ranks, _MOST_RANKS)), documented=True
        )
    elif script.launched:
        yield _job(script, Launch(script.arguments, _RANKS), documented=False)
    if deep and script.launched:
        arguments = together.arguments if together else script.arguments
        yield _job(script, Launch(arguments, _DEEP_RANKS), documented=False)


def _job(script: EntryPoint, launch: Launch, documented: bool) -> Job:
    words = " ".join(("python", script.path, *launch.arguments))
    ranks = launch.ranks
    name = short_name(script.path)
    return Job(
        f"dryrun-{name}-{ranks}", NAME, LAYER,
        (script.path, str(ranks), "documented" if documented else "tried", launch.folder, *launch.arguments),
        _SECONDS,
        Text(f"{words} with fake weights, {counted(ranks, 'process')}",
             f"以虚拟权重、{ranks} 个进程运行 {words}"),
        Text("the line that breaks, with shapes; collectives that do not match between ranks",
             "出错行及其形状；各 rank 间不一致的集合通信"),
        runs_project=True,
    )  # fmt: skip


def run(job: Job) -> Report:
    from torchstone.dryrun.options import DryRunOptions
    from torchstone.dryrun.run import dry_run_command

    script, ranks, how, folder, *arguments = job.arguments
    # as after `pip install -e .`: packages of the project can be imported from its scripts
    homes = [path for path in (Path.cwd(), Path.cwd() / "src") if path.is_dir()]
    os.environ["PYTHONPATH"] = os.pathsep.join((*map(str, homes), os.environ.get("PYTHONPATH", "")))
    root = Path.cwd()
    os.chdir(root / folder)
    report = dry_run_command(DryRunOptions(
        target=os.path.relpath(root / script), python=os.environ.get(PYTHON, ""), arguments=tuple(arguments), world_size=int(ranks) if ranks != "1" else 0,
        max_seconds=job.seconds / 3, no_fixes=not job.try_fixes,
    ))  # fmt: skip
    report = _from_root(report, folder)
    return report if how == "documented" else _without_refusals(report, job)


def _from_root(report: Report, folder: str) -> Report:
    """Places as seen from the root of the project."""
    if not folder:
        return report

    def moved(location: Location) -> Location:
        path = os.path.normpath(os.path.join(folder, location.path)) if location.path else ""
        return location if os.path.isabs(location.path) else replace(location, path=path)

    findings = tuple(replace(item, location=moved(item.location)) for item in report.findings)
    gaps = tuple(replace(item, location=moved(item.location)) for item in report.gaps)
    return replace(report, findings=findings, gaps=gaps)


def _without_refusals(report: Report, job: Job) -> Report:
    """A script that raises in a world, or with arguments, that nobody promised refuses them: no
    fault. `os.environ["RANK"]` without a launcher is the most common one."""
    refusals = [item for item in report.findings if item.rule in _REFUSALS]
    if not refusals:
        return report
    said = refusals[0].what
    reason = Message("review.refused-world", Text(
        f"with {counted(int(job.arguments[1]), 'process')} the script stops: {said.say('en')}",
        f"使用 {job.arguments[1]} 个进程时脚本停止：{said.say('zh')}",
    ))  # fmt: skip
    gap = Gap(job.id, reason, "write the command for several processes into the README", tool=NAME)
    kept = tuple(item for item in report.findings if item.rule not in _REFUSALS)
    return replace(report, findings=kept, gaps=(*report.gaps, gap))
