"""mypy, as the project configures it."""

from __future__ import annotations

from torchstone.conductor.jobs.job import Job, Layer, Offer, Request
from torchstone.conductor.jobs.versions import installed
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME = "mypy", "MyPy"
LAYER: Layer = "basic"
DEPTH = "standard"
GOALS = ("maintainability",)


def version() -> str:
    return installed(NAME)


def offer(request: Request) -> Offer:
    return (Job(
        NAME, NAME, LAYER, (NAME, "."), request.scope.seconds,
        Text("types that do not fit; a plugin that the configuration names runs in a sandbox", "类型不一致；配置中指定的插件在隔离环境内运行"),
        Text("counted; listed where they explain a problem", "只计数；能解释问题时才列出"),
        runs_project=True,
    ),)  # fmt: skip


def run(_: Job) -> Report:
    from torchstone.lint.outside import run_outside

    return run_outside([NAME], ["."], allow_plugins=True)
