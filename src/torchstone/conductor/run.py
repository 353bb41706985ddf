"""`review`: six phases over a project, each written down before the next begins."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchstone.conductor.changes.applying import select_changes
from torchstone.conductor.checkpoints import CheckpointResult, decide
from torchstone.conductor.choices import Choice, Decision, Driver, Lead, Option, Proposal
from torchstone.conductor.drivers.model import ModelDriver
from torchstone.conductor.drivers.planner import Planner
from torchstone.conductor.experiments import HOLDS
from torchstone.conductor.experiments.checks.check import Check
from torchstone.conductor.experiments.checks.reading import read_checks
from torchstone.conductor.jobs.job import GOALS, Scope
from torchstone.conductor.jobs.signals import ended_by_signals
from torchstone.conductor.options import ReviewOptions
from torchstone.conductor.phases.before import Before
from torchstone.conductor.phases.design import Design, Solution, design
from torchstone.conductor.phases.execute import (
    Conditions,
    Execution,
    ToolResult,
    execute,
    run_job,
)
from torchstone.conductor.phases.guide import (
    Guide,
    guide_markdown,
    is_dropped,
    make_guide,
    without_split_off,
)
from torchstone.conductor.phases.interpret import interpret
from torchstone.conductor.phases.plan import Plan, make_plan
from torchstone.conductor.phases.problems import Interpretation
from torchstone.conductor.phases.suggest import suggest_checks
from torchstone.conductor.phases.unmasked import with_unmasked
from torchstone.conductor.phases.verdicts import Verification
from torchstone.conductor.phases.verify import verify
from torchstone.conductor.project.copying import Copy, copied, project_files
from torchstone.conductor.project.reach import map_reach
from torchstone.conductor.project.survey import survey
from torchstone.conductor.records import documents as text_of
from torchstone.conductor.records.folder import RunFolder
from torchstone.conductor.records.state import apply_changes, marks_of
from torchstone.conductor.reporting.coverage import cover
from torchstone.conductor.reporting.outcome import Outcome
from torchstone.conductor.reporting.report import report_on_review
from torchstone.conductor.scenarios import all_scenarios
from torchstone.conductor.tools import all_tools, checks, tool_named
from torchstone.conductor.tools.tests import test_run_of
from torchstone.core.codec import to_data
from torchstone.core.errors import InputError, UsageError
from torchstone.core.files import cache_folder
from torchstone.core.options import unknown
from torchstone.core.pictures import Document
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.sandbox.run import end_all
from torchstone.sources.git import changed_lines
from torchstone.starting.building import build_environment
from torchstone.starting.interpreters import find_interpreter
from torchstone.trace.exchange import Exchange
from torchstone.trace.trace import Trace

Progress = Callable[[int, int, str], None]


def silent(done: int, total: int, name: str) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a run folder was started with."""

    root: str
    digest: str
    options: ReviewOptions
    driver: str
    date: str


@dataclass(slots=True)
class Review:
    """One review: phases in order, their outputs kept in the run folder."""

    root: Path
    options: ReviewOptions
    folder: RunFolder
    driver: Driver = field(default_factory=Planner)
    lang: str = "en"
    progress: Progress = silent
    proposals: tuple[Proposal, ...] = ()
    started: float = field(default_factory=time.monotonic)
    _trace: Trace | None = None

    # -- what every phase uses ------------------------------------------------------------------

    @property
    def until(self) -> float:
        return self.started + self.options.max_seconds

    @property
    def conditions(self) -> Conditions:
        return Conditions(
            self.options.allow_unconfined, not self.options.no_cache, python=self._environment()
        )

    def _environment(self) -> str:
        """The environment for the project's code: built, named or found; empty for ours."""
        if self.options.build_env and not self.options.python:
            return build_environment(self.root, cache_folder() / "environments").prefix
        return find_interpreter(self.options.python, self.root).prefix

    @property
    def lead(self) -> Lead:
        return Lead(self.driver, self.record)

    def record(self, decision: Decision) -> None:
        """Every decision is a step of the trace, written before anything follows from it."""
        if self._trace is None:
            self._trace = Trace("review", self.folder.path.name, self.folder.path / "trace")
        prompt = decision.choice
        exchanges: tuple[Exchange, ...] = ()
        if isinstance(self.driver, ModelDriver):
            prompt, exchanges = self.driver.prompt, tuple(self.driver.take())
        phase = decision.choice.partition(".")[0]
        self._trace.insert_decision_record(
            phase, json.dumps(to_data(decision), ensure_ascii=False), prompt, decision.reason,
            exchanges=exchanges,
        )  # fmt: skip

    # -- phases ---------------------------------------------------------------------------------

    def plan(self) -> Plan:
        known = self.folder.load("plan", Plan)
        if known is not None:
            return known
        given = read_checks(self.options.checks, self.root) if self.options.checks else ()
        facts = survey(self.root)
        if not facts.files:
            raise InputError(
                str(self.root), "no Python file",
                Text("a folder with a PyTorch project", "含有 PyTorch 项目的文件夹"),
                Text("name the folder that holds the code", "请指定代码所在的文件夹"),
            )  # fmt: skip
        scope = scope_of(self.options)
        tools = tuple(map(tool_named, self.options.tools))
        plan = make_plan(facts, scope, tools, self.lead, given)
        self.folder.keep("plan", plan)
        self.folder.write("plan.md", text_of.plan_markdown(plan, self.lang))
        return plan

    def execute(self, plan: Plan, copy: Copy) -> Execution:
        def done(result: ToolResult) -> None:
            self.folder.keep(f"execution/{result.job}", result)
            self.folder.write(f"execution/{result.job}.log", result.log)

        known = {
            job.id: result for job in plan.jobs
            if (result := self.folder.load(f"execution/{job.id}", ToolResult)) is not None
        }  # fmt: skip
        rest = replace(plan, jobs=tuple(job for job in plan.jobs if job.id not in known))
        made = execute(rest, copy, self.conditions, self.progress, done)
        known |= {result.job: result for result in made.results}
        whole = Execution(
            tuple(known[job.id] for job in plan.jobs if job.id in known), made.seconds
        )
        self.folder.write("execution/log.md", text_of.execution_markdown(whole, self.lang))
        return whole

    def interpret(self, plan: Plan, execution: Execution) -> Interpretation:
        entries = tuple(item.path for item in plan.facts.entry_points)
        found = interpret(
            execution, plan.facts, plan.scope, map_reach(self.root, entries), self.lead, marks_of(self.root),
            self._changed(),
        )  # fmt: skip
        self.folder.keep("problems", found)
        self.folder.write("problems.md", text_of.problems_markdown(found, self.lang))
        return found

    def _changed(self) -> Mapping[str, set[int] | None] | None:
        if not self.options.since:
            return None
        root = str(self.root.resolve()) + "/"
        return {
            path.removeprefix(root): lines
            for path, lines in changed_lines(self.options.since, self.root).items()
        }

    def design(self, found: Interpretation) -> Design:
        made = design(found, self.root, self.lead, self.proposals)
        self.folder.keep("solutions", made)
        self.folder.write("solutions.md", text_of.design_markdown(made, found, self.lang))
        return made

    def guide(self, found: Interpretation, plan_of_work: Design) -> Guide:
        made = make_guide(found, plan_of_work, self.root, self.folder.path.as_posix())
        self.folder.keep("guide", made)
        self._write_guide(made, self.folder.load("verification", Verification) or Verification(()))
        return made

    def _write_guide(self, guide: Guide, done: Verification) -> None:
        """The document and the patches; a patch that was tried and dropped is not left to be applied."""
        guide = without_split_off(guide, done, self.root)
        self.folder.write("guide.md", guide_markdown(guide, self.lang, done))
        for entry in guide.entries:
            if entry.patch and is_dropped(entry, done):
                self.folder.remove(f"patches/{entry.patch}")
            elif entry.patch:
                self.folder.write(f"patches/{entry.patch}", entry.diff)

    def verify(self, found: Interpretation, plan_of_work: Design, before: Before) -> Verification:
        made = verify(found, plan_of_work, before, self.progress, self.until)
        self.folder.keep("verification", made)
        held = plan_of_work.with_chosen({item.problem: item.solution for item in made.verdicts})
        if held != plan_of_work:
            self.folder.keep("solutions", held)
            self.folder.write("solutions.md", text_of.design_markdown(held, found, self.lang))
            self.guide(found, held)
        elif guide := self.folder.load("guide", Guide):
            self._write_guide(guide, made)
        self.folder.write("verification.md", text_of.verification_markdown(made, found, self.lang))
        for name, joint in (("proven", made.together), ("all", made.everything)):
            if joint is not None and joint.outcome == "fixed":
                self.folder.write(f"patches/{name}.patch", joint.diff)
        return made

    # -- all of them ----------------------------------------------------------------------------

    def run(self) -> Report:
        """All phases; what was done so far is reported even when it is interrupted. A verified run that
        is only to be applied is not run again."""
        if self.options.apply and self.options.resume and self.folder.has("verification"):
            return self.finish_from_folder()
        self._changed()  # a commit that does not exist is said before anything runs
        with copied(self.root) as copy:
            self.keep_start(copy)
            plan = self.plan()
            parts = _Parts(plan)
            interrupted = False
            try:
                with ended_by_signals():
                    self._go_on(parts, copy)
            except KeyboardInterrupt:
                end_all()
                interrupted = True
            return self.finish(parts, interrupted)

    def keep_start(self, copy: Copy) -> None:
        date = time.strftime("%Y-%m-%d %H:%M:%S")
        info = RunInfo(str(self.root.resolve()), copy.digest, self.options, self.driver.name, date)
        self.folder.keep("run", info)

    def _go_on(self, parts: _Parts, copy: Copy) -> None:
        parts.execution = self.execute(parts.plan, copy)
        self._suggest(parts, copy)
        parts.found = self.interpret(parts.plan, parts.execution)
        parts.design = self.design(parts.found)
        parts.guide = self.guide(parts.found, parts.design)
        if not parts.design.steps:
            return
        tests = test_run_of(parts.execution.reports)
        before = Before(parts.plan, parts.execution, copy, tests, self.conditions)
        parts.verification = self.verify(parts.found, parts.design, before)
        parts.design, parts.guide = self._described(parts)
        if self._take_up_unmasked(parts):
            parts.verification = self.verify(
                parts.found, parts.design, replace(before, execution=parts.execution)
            )
            parts.design, parts.guide = self._described(parts)
            before = replace(before, execution=parts.execution)
        for _ in range(self.options.rounds - 1):
            again = next_round(parts.design, parts.verification, self.lead)
            if again is None or time.monotonic() > self.until:
                break
            parts.design = again
            self.folder.keep("solutions", again)
            parts.guide = self.guide(parts.found, again)
            parts.verification = self.verify(parts.found, again, before)
            parts.design, parts.guide = self._described(parts)

    def _take_up_unmasked(self, parts: _Parts) -> bool:
        """What came to light when others were fixed joins the problems; False where nothing did."""
        new = parts.verification.unmasked
        if not new or time.monotonic() > self.until or self.options.rounds < 2:
            return False
        parts.execution = with_unmasked(parts.execution, new)
        late = tuple(item.fingerprint for item in new)
        found = replace(self.interpret(parts.plan, parts.execution), late=late)
        self.folder.keep("problems", found)
        parts.found, parts.design = found, self.design(found)
        parts.guide = self.guide(found, parts.design)
        return True

    def _described(self, parts: _Parts) -> tuple[Design, Guide]:
        """As verification left them: another change than the chosen one may be the one that is proven."""
        return (
            self.folder.load("solutions", Design) or parts.design,
            self.folder.load("guide", Guide) or parts.guide,
        )

    def _suggest(self, parts: _Parts, copy: Copy) -> None:
        """What the driver sees by reading joins what the tools found, if its check shows it."""
        if not parts.plan.scope.reaches("standard"):
            return
        results: dict[str, ToolResult] = {}

        def run(check: Check) -> ToolResult:
            result = run_job(checks.job_of(check), copy, self.conditions)
            results[check.id] = result
            return result

        files = tuple(
            path for path in source_files(self.root) if path not in parts.plan.facts.tests.files
        )
        kept = suggest_checks(self.driver, self.root, files, run)
        if not kept:
            return
        jobs = tuple(map(checks.job_of, kept))
        parts.plan = replace(parts.plan, jobs=(*parts.plan.jobs, *jobs))
        self.folder.keep("plan", parts.plan)
        new = tuple(results[item.id] for item in kept)
        for result in new:
            self.folder.keep(f"execution/{result.job}", result)
        parts.execution = replace(parts.execution, results=(*parts.execution.results, *new))

    def finish_from_folder(self) -> Report:
        """The report on what the run folder holds."""
        plan = self.plan()
        results = (self.folder.load(f"execution/{job.id}", ToolResult) for job in plan.jobs)
        parts = _Parts(
            plan,
            Execution(tuple(item for item in results if item is not None)),
            self.folder.load("problems", Interpretation) or Interpretation(()),
            self.folder.load("solutions", Design) or Design((), ()),
            self.folder.load("guide", Guide) or Guide((), ()),
            self.folder.load("verification", Verification) or Verification(()),
        )
        return self.finish(parts, interrupted=False)

    def finish(self, parts: _Parts, interrupted: bool) -> Report:
        applied = self._apply(parts) if self.options.apply else ()
        outcome = Outcome(
            parts.plan, parts.execution, parts.found, parts.design, parts.guide, parts.verification,
            checkpoints_of(parts.plan, parts.execution), self._documents(), interrupted,
            self.driver.name, self.folder.path.as_posix(), applied, self.root.as_posix(),
            self._waiting(parts),
            cover(parts.plan, parts.execution.results, tuple(map(tool_named, self.options.tools))),
        )  # fmt: skip
        return report_on_review(outcome)

    def _waiting(self, parts: _Parts) -> tuple[Solution, ...]:
        """Proven changes that others wrote and that nobody has accepted in this call."""
        proven = {item.solution for item in parts.verification.proven}
        accepted = self.options.accept if self.options.apply else ()
        return tuple(
            way
            for way in parts.design.solutions
            if way.id in proven and way.by and not {way.id, way.problem} & set(accepted)
        )

    def _documents(self) -> tuple[Document, ...]:
        names = (("plan.md", Text("Plan", "计划")), ("execution/log.md", Text("Execution", "执行")),
                 ("problems.md", Text("Problems", "问题")), ("solutions.md", Text("Solutions", "方案")),
                 ("guide.md", Text("Guide", "实施指南")), ("verification.md", Text("Verification", "验证")))  # fmt: skip
        return tuple(
            Document(title, (self.folder.path / name).read_text("utf-8"))
            for name, title in names
            if (self.folder.path / name).is_file()
        )

    def _apply(self, parts: _Parts) -> tuple[str, ...]:
        """The changes that were proven together, into the user's tree; the files that changed."""
        ready = select_changes(self.root, parts.design, parts.verification, self.options.accept)
        if ready.changes:
            apply_changes(self.root, ready.changes, self.folder.path.as_posix())
        return tuple(change.path for change in ready.changes)


@dataclass(slots=True)
class _Parts:
    """What the phases have made so far."""

    plan: Plan
    execution: Execution = field(default_factory=lambda: Execution(()))
    found: Interpretation = field(default_factory=lambda: Interpretation(()))
    design: Design = field(default_factory=lambda: Design((), ()))
    guide: Guide = field(default_factory=lambda: Guide((), ()))
    verification: Verification = field(default_factory=lambda: Verification(()))


def source_files(root: Path) -> tuple[str, ...]:
    """Python files of the project, those nearest to its root first."""
    found = [
        path.relative_to(root).as_posix() for path in project_files(root) if path.suffix == ".py"
    ]
    return tuple(sorted(found, key=lambda path: (path.count("/"), path)))


def next_round(plan_of_work: Design, done: Verification, lead: Lead) -> Design | None:
    """Where a chosen solution did not hold, the next one that can be tried; None where none is left."""
    steps, changed = [], False
    for step in plan_of_work.steps:
        verdict = done.of(step.problem)
        failed = verdict is not None and verdict.state == "dropped"
        ways = [way for way in plan_of_work.of(step.problem) if way.edits]
        at = next((n for n, way in enumerate(ways) if way.id == step.solution), len(ways))
        if failed and at + 1 < len(ways):
            decision = lead.choose(_retry(step.problem, ways[at + 1 :]))
            steps.append(replace(step, solution=decision.chosen[0]))
            changed = True
        else:
            steps.append(step)
    return replace(plan_of_work, steps=tuple(steps)) if changed else None


def _retry(problem: str, ways: list[Solution]) -> Choice:
    return Choice(
        f"verify.{problem}", "verify",
        Text("the solution did not hold: which one shall be tried next?", "该方案不成立：接下来尝试哪个？"),
        tuple(Option(way.id, way.title, way is ways[0]) for way in ways), least=1, most=1,
    )  # fmt: skip


def checkpoints_of(plan: Plan, execution: Execution) -> tuple[CheckpointResult, ...]:
    findings = [item for report in execution.reports for item in report.findings]
    ran = {item.tool for item in execution.results if item.looked}
    held = {
        item.name.removeprefix(HOLDS)
        for report in execution.reports
        for item in report.measures
        if item.name.startswith(HOLDS)
    }
    return tuple(
        decide(name, checkpoint, findings, ran, held)
        for name in plan.scope.scenarios
        for checkpoint in all_scenarios()[name].CHECKPOINTS
    )


def scope_of(options: ReviewOptions) -> Scope:
    """The options, checked."""
    for goal in options.goal:
        if goal not in GOALS:
            raise unknown("--goal", goal, list(GOALS))
    known = list(all_scenarios())
    for name in options.scenario:
        if name not in known:
            raise unknown("--scenario", name, known)
    for name in map(tool_named, options.tools):
        if name not in all_tools():
            raise unknown("--tools", name, list(all_tools()))
    for name, value in (
        ("--seconds", options.seconds),
        ("--max-seconds", options.max_seconds),
        ("--rounds", options.rounds),
    ):
        if value <= 0:
            raise UsageError(name, str(value), Text("more than 0", "大于 0"),
                             Text("leave it out for the default", "省略即用默认值"))  # fmt: skip
    goals = options.goal or GOALS
    return Scope(goals, options.depth, options.component, options.scenario, options.seconds)  # type: ignore[arg-type]
