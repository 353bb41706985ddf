"""Annotations of jaxtyping: the project's scripts with fake weights, every annotated call checked."""

from __future__ import annotations

from dataclasses import replace

from torchstone.conductor.jobs.job import Job, Layer, Offer, Request, Skipped, short_name
from torchstone.conductor.jobs.versions import installed
from torchstone.conductor.tools import dryrun
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME, DEPTH = "jaxtyping", "JaxType", "standard"
LAYER: Layer = "specialised"
GOALS = ("correctness",)
_RULES = ("jaxtyping", "annotation")
"""Words in the names of rules of the dry run that speak of annotations."""


def version() -> str:
    return installed(NAME)


def offer(request: Request) -> Offer:
    facts = request.facts
    if NAME not in facts.libraries:
        return Skipped(
            NAME,
            Text("the project has no annotations of jaxtyping; dryrun checks the shapes themselves",
                 "项目没有 jaxtyping 注解；形状本身由 dryrun 检查"),
            "annotate tensors: x: Float[Tensor, 'batch features']",
            "为张量添加注解：x: Float[Tensor, 'batch features']",
        )  # fmt: skip
    scripts = [item for item in facts.entry_points if item.trains or item.launched]
    if not scripts:
        return Skipped(
            NAME,
            Text("annotations are checked when a script runs, and no script that trains was found",
                 "注解在脚本运行时检查，但未找到训练脚本"),
            "torchstone dryrun SCRIPT",
        )  # fmt: skip
    script = scripts[0]
    words = " ".join(("python", script.path, *script.arguments))
    return (Job(
        f"{NAME}-{short_name(script.path)}", NAME, LAYER,
        (script.path, "1", "documented", *script.arguments), request.scope.seconds,
        Text(f"annotated functions on every call of {words}", f"在 {words} 的每次调用中检查带注解的函数"),
        Text("tensors that are not as their annotation says", "与注解不符的张量"),
        runs_project=True,
    ),)  # fmt: skip


def run(job: Job) -> Report:
    """The dry run, of which only what it says of annotations is kept: the rest is `dryrun`'s."""
    report = dryrun.run(job)
    kept = tuple(item for item in report.findings if any(word in item.name for word in _RULES))
    return replace(report, findings=kept)
