"""Static rules on every file; nothing is run."""

from __future__ import annotations

from torchstone._version import __version__
from torchstone.conductor.job import Job, Layer, Offer, Request
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME, DEPTH = "lint", "PyAssist", "quick"
LAYER: Layer = "specialised"
GOALS = ("correctness", "performance")


def version() -> str:
    return __version__


def offer(request: Request) -> Offer:
    facts = request.facts
    return (Job(
        "lint", NAME, LAYER, ("check", "."), request.scope.seconds,
        Text(f"{facts.files} files with rules for precision, performance, distributed training and correctness",
             f"对 {facts.files} 个文件检查精度、性能、分布式与正确性规则"),
        Text("hazards with file, line and fix", "带文件、行号与修复的隐患"),
        runs_project=False,
    ),)  # fmt: skip


def run(_: Job) -> Report:
    from torchstone.lint.engine import check
    from torchstone.lint.options import CheckOptions

    return check(CheckOptions(paths=(".",), no_cache=True, exclude=()))
