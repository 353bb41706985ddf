"""Properties of the project's own code, checked by running its scripts for a few steps."""

from __future__ import annotations

from pathlib import Path

from torchstone._version import __version__
from torchstone.conductor.jobs.job import Job, Layer, Offer, Request, Skipped, short_name
from torchstone.conductor.jobs.versions import installed
from torchstone.conductor.project.facts import EntryPoint, Launch
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME, DEPTH = "probes", "Probes", "standard"
LAYER: Layer = "specialised"
GOALS = ("correctness",)
_MOST_SCRIPTS = 3
"""A project with more is a collection of examples: the first ones are what it is about."""
_MOST_STARTS = 3
_RANKS, _MOST_RANKS = 2, 4
_SECONDS = 240.0
"""Only for scripts that wait: what computes is limited by its CPU time."""


def version() -> str:
    torch = installed("torch")
    return f"{__version__} (torch {torch})" if torch else ""


def offer(request: Request) -> Offer:
    facts = request.facts
    scripts = [item for item in facts.entry_points if item.trains or item.launched]
    if not scripts:
        return Skipped(
            NAME,
            Text("no script with a main part that trains was found",
                 "未找到带主程序且进行训练的脚本"),
            "a README with the command that starts the training",
            "在 README 中写明启动训练的命令",
        )  # fmt: skip
    return tuple(
        _job(item, launch, place, documented, facts.tests.files)
        for item in scripts[:_MOST_SCRIPTS]
        for place, (launch, documented) in enumerate(_launches(item, len(scripts)))
    )


def _launches(script: EntryPoint, scripts: int) -> list[tuple[Launch, bool]]:
    """The documented starts, then the widest."""
    together = [item for item in script.launches if item.ranks > 1]
    found = [
        (Launch(item.arguments, min(item.ranks, _MOST_RANKS)), True) for item in script.launches
    ]
    if not together and script.launched:
        found = [(Launch(script.arguments, _RANKS), False), *found[1:]]
    if not found:
        found = [(Launch(script.arguments), not script.required)]
    kept = found[: _MOST_STARTS if scripts == 1 else 1]
    if (widest := script.widest) is not None and widest.ranks <= _MOST_RANKS:
        kept.append((widest, False))
    return kept


def _job(
    script: EntryPoint, launch: Launch, place: int, documented: bool, tests: tuple[str, ...]
) -> Job:
    words = " ".join(("python", script.path, *launch.arguments))
    number = f"-{place + 1}" if place else ""
    how = "documented" if documented else "tried"
    return Job(
        f"probes-{short_name(script.path)}{number}", NAME, LAYER,
        (script.path, str(launch.ranks), how, str(len(tests)), *tests, *launch.arguments), _SECONDS,
        Text(f"{words} for a few steps, then its modules one by one",
             f"运行 {words} 若干步，并逐一检查其模块"),
        Text("properties that do not hold: causality, caches, routing, precision, gradients, checkpoints",
             "不成立的性质：因果性、缓存、路由、精度、梯度、检查点"),
        runs_project=True,
    )  # fmt: skip


def run(job: Job) -> Report:
    from torchstone.conductor.probes.run import Subject, probe

    script, ranks, _, count, *rest = job.arguments
    tests, arguments = rest[: int(count)], rest[int(count) :]
    return probe(
        Subject(Path.cwd(), script, tuple(arguments), tuple(tests), int(ranks)), job.try_fixes
    )
