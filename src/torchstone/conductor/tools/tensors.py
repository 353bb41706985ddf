"""Checkpoints that lie in the project: ranges, formats, what low precision would lose."""

from __future__ import annotations

import importlib.util

from torchstone._version import __version__
from torchstone.conductor.jobs.job import Job, Layer, Offer, Request, Skipped
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME, DEPTH = "tensors", "Tensors", "deep"
LAYER: Layer = "specialised"
GOALS = ("correctness", "performance")
_MOST_FILES = 3


def version() -> str:
    return (
        __version__
        if importlib.util.find_spec("torch") and importlib.util.find_spec("numpy")
        else ""
    )


def offer(request: Request) -> Offer:
    files = request.facts.checkpoints
    if not files:
        return Skipped(
            NAME, Text("no checkpoint found in the project", "项目中没有检查点文件"),
            "torchstone tensor FILE",
        )  # fmt: skip
    return tuple(
        Job(
            f"tensors-{path.replace('/', '.')}", NAME, LAYER, (path,), request.scope.seconds,
            Text(f"tensors of {path}; nothing in it is executed", f"{path} 中的张量；不执行其中任何代码"),
            Text("the riskiest tensors, by format", "各格式下风险最高的张量"), runs_project=False,
        )
        for path in files[:_MOST_FILES]
    )  # fmt: skip


def run(job: Job) -> Report:
    from torchstone.tensors.files.answer import answer_for_file
    from torchstone.tensors.options import TensorOptions

    return answer_for_file(TensorOptions(file=job.arguments[0]), "en", lambda *_: None)
