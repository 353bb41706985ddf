"""Models of the project on made inputs: what is left where none of its scripts comes to a step."""

from __future__ import annotations

from pathlib import Path

from torchstone._version import __version__
from torchstone.conductor.jobs.job import Job, Layer, Offer, Request, Skipped
from torchstone.conductor.jobs.versions import installed
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME, DEPTH = "models", "Models", "standard"
LAYER: Layer = "integrated"
GOALS = ("correctness",)
_SECONDS = 300.0


def version() -> str:
    torch = installed("torch")
    return f"{__version__} (torch {torch})" if torch else ""


def offer(request: Request) -> Offer:
    if not request.facts.models:
        return Skipped(NAME, Text("no model was found", "未找到模型"))
    job = Job(
        NAME,
        NAME,
        LAYER,
        (),
        _SECONDS,
        Text(
            "models built from their code and trained on made inputs, if no script comes to a step",
            "若没有脚本能到达训练步，则按代码构建模型并以生成的输入训练",
        ),
        Text("relations that any model must keep", "任何模型都应满足的关系"),
        runs_project=True,
        only_without_steps=True,
    )
    return (job,)


def run(_: Job) -> Report:
    from torchstone.conductor.experiments.models import run_models

    return run_models(Path.cwd())
