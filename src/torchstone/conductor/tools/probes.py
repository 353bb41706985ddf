"""Properties of the project's own code, checked by running its scripts for a few steps."""

from __future__ import annotations

from pathlib import Path

from torchstone._version import __version__
from torchstone.conductor.job import Job, Layer, Offer, Request, Skipped, short_name
from torchstone.conductor.project.facts import EntryPoint
from torchstone.conductor.versions import installed
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME, DEPTH = "probes", "Probes", "standard"
LAYER: Layer = "specialised"
GOALS = ("correctness",)
_MOST_SCRIPTS = 3
"""A project with more is a collection of examples: the first ones are what it is about."""
_SECONDS = 60.0


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
        )  # fmt: skip
    return tuple(_job(item, facts.tests.files) for item in scripts[:_MOST_SCRIPTS])


def _job(script: EntryPoint, tests: tuple[str, ...]) -> Job:
    words = " ".join(("python", script.path, *script.arguments))
    ranks = max(2, min(script.ranks, 4)) if script.launched or script.ranks > 1 else 1
    return Job(
        f"probes-{short_name(script.path)}", NAME, LAYER,
        (script.path, str(ranks), str(len(tests)), *tests, *script.arguments), _SECONDS,
        Text(f"{words} for a few steps, then its modules one by one",
             f"运行 {words} 若干步，并逐一检查其模块"),
        Text("properties that do not hold: causality, caches, routing, precision, gradients, checkpoints",
             "不成立的性质：因果性、缓存、路由、精度、梯度、检查点"),
        runs_project=True,
    )  # fmt: skip


def run(job: Job) -> Report:
    from torchstone.conductor.probes.run import Subject, probe

    script, ranks, count, *rest = job.arguments
    tests, arguments = rest[: int(count)], rest[int(count) :]
    return probe(
        Subject(Path.cwd(), script, tuple(arguments), tuple(tests), int(ranks)), job.try_fixes
    )
