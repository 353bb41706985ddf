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
from torchstone.conductor.experiments.checks.check import make_check
from torchstone.conductor.experiments.results import State
from torchstone.conductor.options import ReviewOptions
from torchstone.conductor.phases.before import Before
from torchstone.conductor.phases.design import Design
from torchstone.conductor.phases.execute import Execution, ToolResult
from torchstone.conductor.phases.guide import Guide
from torchstone.conductor.phases.plan import Plan
from torchstone.conductor.phases.problems import Interpretation
from torchstone.conductor.phases.verdicts import Verification
from torchstone.conductor.project.copying import copied
from torchstone.conductor.records.folder import RunFolder
from torchstone.conductor.records.state import apply_changes
from torchstone.conductor.run import Progress, Review, RunInfo, silent
from torchstone.conductor.tools import checks
from torchstone.conductor.tools.tests import test_run_of
from torchstone.core.errors import InputError
from torchstone.core.options import unknown
from torchstone.core.report import Report
from torchstone.core.text import Text

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Proposals:
    """What the agent submitted so far."""

    proposals: tuple[Proposal, ...] = ()


@dataclass(frozen=True, slots=True)
class Choices:
    """Which solution the agent wants to be tried, by problem."""

    solutions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submitted:
    """Whether a proposed change can be made, and its diff."""

    applies: bool
    diff: str = ""
    refused: str = ""
    solution: str = ""
    """Its id; the next `verify` tries it."""


@dataclass(frozen=True, slots=True)
class SubmittedFinding:
    """What became of a claim: the problem that it is now, and what its check said."""

    check: str
    problem: str
    """Empty where the check did not show the fault."""
    result: ToolResult

    @property
    def state(self) -> State:
        if not self.result.report.findings:
            return "not decided" if self.result.report.failed else "holds"
        return "broken"

    @property
    def said(self) -> str:
        report = self.result.report
        if report.findings:
            return report.findings[0].why.say("en")
        return "; ".join(gap.reason.say("en") for gap in report.gaps)


@dataclass(slots=True)
class Steps:
    """The steps of one run folder."""

    folder: RunFolder
    progress: Progress = silent

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
        choices = (self.folder.load("choices", Choices) or Choices()).solutions
        driver = AgentDriver(
            {f"design.{key}": ((value,), "chosen by the agent") for key, value in choices.items()}
        )
        return Review(
            Path(info.root),
            info.options,
            self.folder,
            driver,
            progress=self.progress,
            proposals=proposals,
        )

    def plan(self, root: Path, options: ReviewOptions) -> Plan:
        made = Review(root, options, self.folder, AgentDriver(), progress=self.progress)
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

    def choose(self, wanted: Mapping[str, str]) -> Design:
        """Overrule the choice for some problems; it holds until it is overruled again."""
        design = self.propose()
        for problem, solution in wanted.items():
            known = [way.id for way in design.of(problem)]
            if solution not in known:
                raise unknown(f"solution of {problem[:60]}", solution[:60], known)
        before = self.folder.load("choices", Choices) or Choices()
        self.folder.keep("choices", Choices({**before.solutions, **wanted}))
        return self.propose()

    def submit_finding(
        self, path: str, line: int, claim: str, severity: str, code: str
    ) -> SubmittedFinding:
        """Take a claim of the agent's own into the review; its check is run at once, on the project as it is."""
        review, plan = self._review(), self._need("plan", Plan)
        check = make_check(path, line, claim, severity, code, "agent", review.root)
        job = checks.job_of(check)
        if all(item.id != job.id for item in plan.jobs):
            plan = replace(plan, jobs=(*plan.jobs, job))
            self.folder.keep("plan", plan)
        with copied(review.root) as copy:
            review.execute(replace(plan, jobs=(job,)), copy)
        found = review.interpret(plan, self.execution())
        result = self.folder.load(f"execution/{job.id}", ToolResult)
        assert result is not None  # execute has just kept it
        mark = f"check-{check.id}"
        problem = next(
            (item.id for item in found.problems if any(x.rule == mark for x in item.findings)), ""
        )
        return SubmittedFinding(check.id, problem, result)

    def submit(self, problem: str, edits: Sequence[TextEdit], reason: str) -> Submitted:
        """Take a change of the agent's own into account, if it may be made."""
        known = [item.id for item in self.problems().problems]
        if problem not in known:
            raise unknown("problem", problem[:60], known[:50])
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
        if proposal not in before.proposals:
            self.folder.keep("proposals", Proposals((*before.proposals, proposal)))
        made = edits_of(root, edits)
        way = next(item for item in self.propose().of(problem) if item.edits == made)
        self.choose({problem: way.id})
        return Submitted(True, diff_of(changes), solution=way.id)

    def guide(self) -> Guide:
        return self._review().guide(self.problems(), self._need("solutions", Design))

    def verification(self) -> Verification:
        """What became of the changes; empty before they were tried."""
        return self.folder.load("verification", Verification) or Verification(())

    def verify(self) -> Verification:
        review = self._review()
        plan, found = self._need("plan", Plan), self.problems()
        done = self.execution()
        design = self._need("solutions", Design)
        known = {item.id for item in found.problems}
        if any(step.problem not in known for step in design.steps):
            design = self.propose()  # what was submitted since has joined problems into one
        with copied(review.root) as copy:
            before = Before(plan, done, copy, test_run_of(done.reports), review.conditions)
            return review.verify(found, design, before)

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
