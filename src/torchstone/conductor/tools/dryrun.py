"""The project's own scripts with fake weights: shapes, dtypes, memory, and every rank."""

from __future__ import annotations

from torchstone._version import __version__
from torchstone.conductor.job import Job, Layer, Offer, Request, Skipped
from torchstone.conductor.project.facts import EntryPoint
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME, DEPTH = "dryrun", "PyTea", "standard"
LAYER: Layer = "specialised"
GOALS = ("correctness",)
_MOST_SCRIPTS = 4
"""A project with more is a collection of examples: the first ones are what it is about."""
_RANKS = 2
_DEEP_RANKS = 4
"""The smallest worlds that show what two ranks hide: sub-groups, odd shares."""
_SECONDS = 90.0


def version() -> str:
    try:
        import torch
    except ImportError:
        return ""
    return f"{__version__} (torch {torch.__version__})"


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
    jobs: list[Job] = []
    for script in scripts[:_MOST_SCRIPTS]:
        jobs.append(_job(script, 1))
        if script.launched or script.ranks > 1:
            jobs.append(_job(script, max(_RANKS, min(script.ranks, 8))))
            if scope.reaches("deep"):
                jobs.append(_job(script, _DEEP_RANKS))
    return tuple({job.id: job for job in jobs}.values())


def _job(script: EntryPoint, ranks: int) -> Job:
    words = " ".join(("python", script.path, *script.arguments))
    return Job(
        f"dryrun-{script.path.replace('/', '.').removesuffix('.py')}-{ranks}", NAME, LAYER,
        (script.path, str(ranks), *script.arguments), _SECONDS,
        Text(f"{words} with fake weights on {ranks} rank(s)",
             f"以虚拟权重在 {ranks} 个 rank 上运行 {words}"),
        Text("the line that breaks, with shapes; collectives that do not match between ranks",
             "出错行及其形状；各 rank 间不一致的集合通信"),
        runs_project=True,
    )  # fmt: skip


def run(job: Job) -> Report:
    from torchstone.dryrun.run import dry_run

    script, ranks, *arguments = job.arguments
    count = int(ranks)
    return dry_run(
        script, arguments, world_size=count if count > 1 else 0, max_seconds=job.seconds / 3
    )
