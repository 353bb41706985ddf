"""What the project's models cost: parameters, FLOPs, memory and time, on meta tensors."""

from __future__ import annotations

from torchstone._version import __version__
from torchstone.conductor.jobs.job import Job, Layer, Offer, Request, Skipped
from torchstone.conductor.jobs.versions import installed
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME, DEPTH = "cost", "Cost", "deep"
LAYER: Layer = "integrated"
GOALS = ("performance",)
_MOST_MODELS = 3
"""The largest parts of a project; more are blocks of these."""


def version() -> str:
    torch = installed("torch")
    return f"{__version__} (torch {torch})" if torch else ""


def offer(request: Request) -> Offer:
    ready = [item for item in request.facts.models if item.scope in request.facts.buildable]
    if not ready:
        return Skipped(
            NAME,
            Text("no model that is built without arguments was found", "未找到无需参数即可构建的模型"),
            "torchstone cost FILE.py:build --input SHAPE",
        )  # fmt: skip
    # what stands last in a file is usually built of what stands before it
    chosen = sorted(ready, key=lambda item: -item.line)[:_MOST_MODELS]
    return tuple(
        Job(
            f"cost-{item.scope}", NAME, LAYER, (f"{item.path}:{item.scope}",), request.scope.seconds,
            Text(f"cost of {item.scope} ({item.path}:{item.line})", f"{item.scope} 的成本（{item.path}:{item.line}）"),
            Text("parameters, FLOPs, memory, time per device", "参数量、FLOPs、内存与各设备时间"),
            runs_project=True,
        )
        for item in chosen
    )  # fmt: skip


def run(job: Job) -> Report:
    from torchstone.cost.options import CostOptions
    from torchstone.cost.survey import survey

    return survey(CostOptions(target=job.arguments[0]), lambda *_: None, {})
