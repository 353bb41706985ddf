"""ruff, as the project configures it."""

from __future__ import annotations

from torchstone.conductor.jobs.job import Job, Layer, Offer, Request
from torchstone.conductor.jobs.versions import installed
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME = "ruff", "Ruff"
LAYER: Layer = "basic"
DEPTH = "quick"
GOALS = ("maintainability",)


def version() -> str:
    return installed(NAME)


def offer(request: Request) -> Offer:
    return (Job(
        NAME, NAME, LAYER, (NAME, "."), request.scope.seconds,
        Text("style and plain mistakes, as the project configures it", "按项目配置检查风格与常见错误"),
        Text("counted; listed where they explain a problem", "只计数；能解释问题时才列出"),
        runs_project=True,
    ),)  # fmt: skip


def run(_: Job) -> Report:
    from torchstone.lint.outside import run_outside

    return run_outside([NAME], ["."])
