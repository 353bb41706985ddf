"""Everything that a review made, for those who tell of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from torchstone.conductor.checkpoints import CheckpointResult
from torchstone.conductor.jobs.job import Skipped
from torchstone.conductor.phases.design import Design, Solution
from torchstone.conductor.phases.execute import Execution
from torchstone.conductor.phases.guide import Guide
from torchstone.conductor.phases.plan import Plan
from torchstone.conductor.phases.problems import Interpretation, Problem
from torchstone.conductor.phases.verdicts import Verification
from torchstone.conductor.reporting.coverage import Coverage
from torchstone.core.evidence import State
from torchstone.core.pictures import Document
from torchstone.core.text import Text

PATCH_STATES: dict[str, State] = {
    "proven": "good", "with others": "good", "applies": "warning", "sketch": "plain", "dropped": "bad",
}  # fmt: skip
"""How a patch of each state is coloured."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that a review made."""

    plan: Plan
    execution: Execution
    found: Interpretation
    design: Design
    guide: Guide
    verification: Verification
    checkpoints: tuple[CheckpointResult, ...] = ()
    documents: tuple[Document, ...] = ()
    interrupted: bool = False
    driver: str = "planner"
    folder: str = ""
    applied: tuple[str, ...] = ()
    """Files of the user's tree that the proven patches changed."""
    root: str = "."
    waiting: tuple[Solution, ...] = ()
    """Proven changes that a model or an agent wrote: a person accepts them, or they stay out."""

    coverage: Coverage = Coverage((), wanted=False)
    """How far the programs of the project came."""

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Tools that did not run, those left out that were asked for later: an agent hands in checks while it reads."""
        ran = {result.tool for result in self.execution.results}
        return tuple(item for item in self.plan.skipped if item.tool not in ran)

    @property
    def undo(self) -> str:
        """The command that takes applied patches back."""
        return "torchstone undo" + ("" if self.root == "." else f" {shlex.quote(self.root)}")


def who_is_hit(problem: Problem) -> Text:
    """Who is hit, in words; empty where that is not known: a line that no call is seen to reach may still
    run in every step."""
    parts_en, parts_zh = [], []
    if problem.reach.every_step:
        parts_en.append("every step")
        parts_zh.append("每一步")
    elif problem.reach.in_tests:
        parts_en.append("tests only")
        parts_zh.append("仅测试")
    if problem.ranks > 1:
        parts_en.append("all ranks")
        parts_zh.append("所有 rank")
    return Text(", ".join(parts_en), "，".join(parts_zh))
