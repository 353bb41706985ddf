"""Static rules on every file; nothing is run."""

from __future__ import annotations

import re
from dataclasses import replace

from torchstone._version import __version__
from torchstone.conductor.jobs.job import Job, Layer, Offer, Request
from torchstone.core.measure import Measure
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.sources.discover import discover

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
    """What the tree says of itself may not change the verdict: comments that silence rules are not
    heeded, and counted."""
    from torchstone.lint.engine import check
    from torchstone.lint.options import CheckOptions

    files = discover(["."])[0]
    texts = {file.name: data for file in files if isinstance(data := file.read(), bytes)}
    count = sum(len(_SILENCING.findall(data)) for data in texts.values())
    instead = {name: heard for name, data in texts.items() if (heard := _unsilenced(data)) != data}
    report = check(CheckOptions(paths=(".",), no_cache=True, exclude=()), instead=instead)
    return replace(report, measures=(*report.measures, Measure(
        "silencing_comments", count, "", Text("counted in the source", "在源码中计数"),
        Text("comments that silence rules, not heeded in a review", "用于忽略规则的注释（评审中不予采纳）"),
        tool="check",
    )))  # fmt: skip


_SILENCING = re.compile(rb"#\s*torchstone:\s*ignore")


def _unsilenced(data: bytes) -> bytes:
    """The same text with as many bytes in every line: places and fixes stay where they are."""
    return _SILENCING.sub(lambda match: match[0].replace(b"torchstone:", b"torchstone "), data)
