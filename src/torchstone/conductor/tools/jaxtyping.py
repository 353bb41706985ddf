"""Annotations of jaxtyping: named in the plan, and said to be missing."""

from __future__ import annotations

from torchstone.conductor.job import Job, Layer, Offer, Request, Skipped
from torchstone.conductor.versions import installed
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME, DEPTH = "jaxtyping", "JaxType", "standard"
LAYER: Layer = "specialised"
GOALS = ("correctness",)


def version() -> str:
    return installed(NAME)


def offer(_: Request) -> Offer:
    return Skipped(
        NAME,
        Text("annotations of jaxtyping are not checked yet; dryrun checks the shapes themselves",
             "尚不检查 jaxtyping 注解；形状本身由 dryrun 检查"),
        "pytest with jaxtyping's own import hook",
    )  # fmt: skip


def run(_: Job) -> Report:
    return Report(NAME)
