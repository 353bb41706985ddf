"""Where the data pipeline spends its time, and what would gain on a device."""

from __future__ import annotations

import importlib.util

from torchstone._version import __version__
from torchstone.conductor.jobs.job import Job, Layer, Offer, Request, Skipped, short_name
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME, DEPTH = "flow", "Flow", "deep"
LAYER: Layer = "integrated"
GOALS = ("performance",)
_LIBRARIES = ("cv2", "PIL", "numpy", "scipy", "librosa")
"""What data pipelines are written with; without one of them there is nothing to place."""


def version() -> str:
    return (
        __version__
        if importlib.util.find_spec("scipy") and importlib.util.find_spec("torch")
        else ""
    )


def offer(request: Request) -> Offer:
    facts = request.facts
    scripts = [item for item in facts.entry_points if item.trains]
    if not scripts or not facts.data or not set(facts.libraries) & set(_LIBRARIES):
        return Skipped(
            NAME,
            Text("no training script that reads data with cv2, PIL or numpy was found",
                 "未找到使用 cv2、PIL 或 numpy 读取数据的训练脚本"),
            "torchstone flow trace SCRIPT",
        )  # fmt: skip
    script = scripts[0]
    words = " ".join(("python", script.path, *script.arguments))
    return (Job(
        f"flow-{short_name(script.path)}", NAME, LAYER,
        (script.path, *script.arguments), request.scope.seconds,
        Text(f"the data pipeline of {words}", f"{words} 的数据流水线"),
        Text("time and bytes of every operator", "各算子的时间与字节数"), runs_project=True,
    ),)  # fmt: skip


def run(job: Job) -> Report:
    from torchstone.dataflow.options import TraceOptions
    from torchstone.dataflow.run import trace_command

    script, *arguments = job.arguments
    return trace_command(TraceOptions(script=script, arguments=tuple(arguments), save=""))
