"""A review in single steps, for an outside agent: each step reads and writes the run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from torchstone.conductor.changes.applying import ToApply, select_changes
from torchstone.conductor.changes.patches import (
    PatchError,
    changes_of,
    diff_of,
    edits_of,
    is_silencing,
)
from torchstone.conductor.changes.policy import refuse_reach
from torchstone.conductor.choices import Proposal, TextEdit, refuse_size
from torchstone.conductor.drivers.agent import AgentDriver
from torchstone.conductor.options import ReviewOptions
from torchstone.conductor.phases.design import Design
from torchstone.conductor.phases.execute import Execution, ToolResult
from torchstone.conductor.phases.guide import Guide
from torchstone.conductor.phases.plan import Plan
from torchstone.conductor.phases.problems import Interpretation
from torchstone.conductor.phases.verdicts import Verification
from torchstone.conductor.phases.verify import Before
from torchstone.conductor.project.copying import copied
from torchstone.conductor.records.folder import RunFolder
from torchstone.conductor.records.state import apply_changes
from torchstone.conductor.run import Progress, Review, RunInfo, silent
from torchstone.core.errors import InputError
from torchstone.core.report import Report
from torchstone.core.text import Text

T = TypeVar("T")
Chosen = Mapping[str, tuple[tuple[str, ...], str]]


@dataclass(frozen=True, slots=True)
class Proposals:
    """What the agent submitted so far."""

    proposals: tuple[Proposal, ...] = ()


@dataclass(frozen=True, slots=True)
class Submitted:
    """Whether a proposed change can be made, and its diff."""

    applies: bool
    diff: str = ""
    refused: str = ""


@dataclass(slots=True)
class Steps:
    """The steps of one run folder."""

    folder: RunFolder
    progress: Progress = silent
    chosen: Chosen = field(default_factory=dict)

    def _info(self) -> RunInfo:
        info = self.folder.load("run", RunInfo)
        if info is None:
            raise _not_yet(self.folder, "plan")
        return info

    @property
    def root(self) -> Path:
        """The project."""
        return Path(self._info().root)

    def _review(self) -> Review:
        info = self._info()
        proposals = (self.folder.load("proposals", Proposals) or Proposals()).proposals
        return Review(Path(info.root), info.options, self.folder, AgentDriver(self.chosen),
                      progress=self.progress, proposals=proposals)  # fmt: skip

    def plan(self, root: Path, options: ReviewOptions) -> Plan:
        made = Review(root, options, self.folder, AgentDriver(self.chosen), progress=self.progress)
        with copied(root) as copy:
            made.keep_start(copy)
        return made.plan()

    def run(self, jobs: Sequence[str] = ()) -> Execution:
        """The planned runs, or some of them; then the problems are worked out."""
        review = self._review()
        plan = review.plan()
        wanted = replace(plan, jobs=tuple(job for job in plan.jobs if not jobs or job.id in jobs))
        with copied(review.root) as copy:
            review.execute(wanted, copy)
        execution = self.execution()
        review.interpret(plan, execution)
        return execution

    def execution(self) -> Execution:
        """All results that there are."""
        plan = self._need("plan", Plan)
        results = (self.folder.load(f"execution/{job.id}", ToolResult) for job in plan.jobs)
        return Execution(tuple(item for item in results if item is not None))

    def problems(self) -> Interpretation:
        return self._need("problems", Interpretation)

    def propose(self) -> Design:
        return self._review().design(self.problems())

    def submit(self, problem: str, edits: Sequence[TextEdit], reason: str) -> Submitted:
        """Take a change of the agent's own into account, if it may be made."""
        known = {item.id for item in self.problems().problems}
        if problem not in known:
            return Submitted(False, refused=f"unknown problem {problem[:60]!r}")
        if why := refuse_size(edits):
            return Submitted(False, refused=why)
        root = self.root
        try:
            changes = changes_of(root, edits_of(root, edits))
        except PatchError as error:
            return Submitted(False, refused=error.say("en"))
        if why := refuse_reach(changes, root):
            return Submitted(False, diff_of(changes), why)
        if why := is_silencing(changes):
            return Submitted(False, diff_of(changes), f"it {why}")
        before = self.folder.load("proposals", Proposals) or Proposals()
        proposal = Proposal(problem, tuple(edits), reason[:2000], "agent")
        kept = tuple(item for item in before.proposals if item.problem != problem)
        self.folder.keep("proposals", Proposals((*kept, proposal)))
        return Submitted(True, diff_of(changes))

    def guide(self) -> Guide:
        return self._review().guide(self.problems(), self._need("solutions", Design))

    def verification(self) -> Verification:
        """What became of the changes; empty before they were tried."""
        return self.folder.load("verification", Verification) or Verification(())

    def verify(self) -> Verification:
        review = self._review()
        plan, found = self._need("plan", Plan), self.problems()
        with copied(review.root) as copy:
            before = Before(
                plan, self.execution(), copy, review.tests(plan, copy), review.conditions
            )
            return review.verify(found, self._need("solutions", Design), before)

    def report(self) -> Report:
        """The whole review so far."""
        review = self._review()
        return review.finish_from_folder()

    def apply(self, dry_run: bool) -> ToApply:
        """The proven changes of our own tools, written into the tree unless this is a dry run. Changes
        that an agent or a model wrote are never written here: a person accepts them."""
        verification = self._need("verification", Verification)
        joint = verification.together
        if joint is None or joint.outcome != "fixed":
            raise InputError(
                "apply",
                "no changes that are proven together",
                Text("a verification with proven changes", "含有已验证修改的验证结果"),
                Text("verify first, or submit another solution", "请先验证，或提交其他方案"),
            )
        root = self.root
        ready = select_changes(root, self._need("solutions", Design), verification)
        if not dry_run and ready.changes:
            apply_changes(root, ready.changes, self.folder.path.as_posix())
        return ready

    def _need(self, name: str, kind: type[T]) -> T:
        found = self.folder.load(name, kind)
        if found is None:
            raise _not_yet(self.folder, name)
        return found


def _not_yet(folder: RunFolder, name: str) -> InputError:
    return InputError(
        folder.path.name, f"no {name} yet",
        Text("the phases in their order: plan, run, propose, guide, verify",
             "按顺序执行各阶段：plan、run、propose、guide、verify"),
        Text("call the phase before it first", "请先调用前一阶段"),
    )  # fmt: skip
