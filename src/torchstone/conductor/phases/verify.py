"""Phase 6: the changes one after the other in a copy, each on top of those that were proven."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from torchstone.conductor.changes.hunks import Part, edits_without, parts_of
from torchstone.conductor.changes.patches import (
    FileChange,
    PatchError,
    changes_of,
    diff_of,
    is_silencing,
    together,
)
from torchstone.conductor.phases.before import ALWAYS, SHOWN, Before
from torchstone.conductor.phases.confirmation import (
    Objection,
    Proof,
    is_by_checks,
    places_of,
    refuse_proof,
)
from torchstone.conductor.phases.design import Design, Solution
from torchstone.conductor.phases.judging import Trial, judge_change
from torchstone.conductor.phases.matching import Moves
from torchstone.conductor.phases.problems import OUTSIDE, Interpretation, Problem
from torchstone.conductor.phases.trees import Tree, run_on
from torchstone.conductor.phases.verdicts import (
    Verdict,
    Verification,
    with_consequences,
    withdraw_proofs,
)
from torchstone.core.finding import Finding
from torchstone.core.fix import Edit
from torchstone.core.text import Text

Progress = Callable[[int, int, str], None]
Pair = tuple[Problem, Solution]
_MOST_CULPRITS = 3
"""Changes that are taken out because all together bring something new: each is found by runs of its own."""
_MOST_OTHERS = 4
"""Further changes for one problem: each costs the runs that showed it."""
_SETTLED = ("proven", "with others")
_FIRST = ("hang", "crash")
"""What ends a program hides all that comes later: it is fixed first."""


def verify(
    found: Interpretation, plan_of_work: Design, before: Before, progress: Progress, until: float
) -> Verification:
    """Each chosen change on top of the proven ones, then all together with the project's tests.
    `until` is a time of the clock after which nothing new is begun."""
    started = time.monotonic()
    problems = {item.id: item for item in found.problems}
    tried = [
        (problems[step.problem], solution)
        for step in plan_of_work.steps
        if (solution := plan_of_work.chosen(step.problem)) is not None
    ]
    search = Search(before, until, Tree(before, {}))
    ordered = sorted(
        tried,
        key=lambda pair: (pair[0].finding.fingerprint in found.late, pair[0].effect not in _FIRST),
    )
    used: dict[str, Solution] = {}
    for number, (problem, solution) in enumerate(ordered):
        progress(number, len(tried), problem.id)
        others = [way for way in plan_of_work.of(problem.id) if way.id != solution.id]
        used[problem.id] = search.try_next(problem, solution, others)
    joint, everything = search.join([(problem, used[problem.id]) for problem, _ in ordered])
    verdicts = [search.verdicts[used[problem.id].id] for problem, _ in tried]
    verdicts = withdraw_proofs(verdicts, joint)
    verdicts = with_consequences(verdicts, joint, problems)
    return Verification(
        tuple(verdicts), joint, everything, before.tests, search.base.tests(),
        time.monotonic() - started, tuple(search.left_out), _lessons(verdicts, problems),
        search.unmasked(), before.meter.cpu_seconds,
    )  # fmt: skip


@dataclass(slots=True)
class Search:
    """What was accepted so far, and the verdict on each change."""

    before: Before
    until: float
    base: Tree
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def try_next(
        self, problem: Problem, solution: Solution, others: Sequence[Solution] = ()
    ) -> Solution:
        """One change on top of the accepted ones; proven, it is accepted itself. Where it is not, the other changes
        of our own tools are tried; gives the first that is proven, else the one that was chosen."""
        own = [way for way in others if way.edits and way.provable and not way.by]
        # who submits a change wants to hear what became of it
        further = own[:_MOST_OTHERS] if solution.edits and not solution.by else []
        for way in (solution, *further):
            verdict, tree = self._judge(problem, way)
            self.verdicts[way.id] = replace(verdict, on_top_of=tuple(self.base.parts))
            if verdict.state == "proven" and tree is not None:
                self.base = tree
            if verdict.state in _SETTLED or verdict.outcome == "not tried":
                return way if verdict.state in _SETTLED else solution
        return solution

    def _judge(self, problem: Problem, solution: Solution) -> tuple[Verdict, Tree | None]:
        if not solution.edits:
            none = Text("no tool has an edit for it", "没有工具给出修改")
            return _not_tried(problem, solution, none), None
        if time.monotonic() > self.until:
            late = Text("the time for this review is used up", "评审时间已用尽")
            return _not_tried(problem, solution, late), None
        own = [item for item in problem.findings if item.tool not in OUTSIDE]
        if cause := self._gone_with(own):
            return replace(_with_others(problem, solution, cause), gone=_names(own)), None
        _, left = together({**self.base.parts, solution.id: solution.edits})
        if left:
            self.left_out.append(solution.id)
            meets = Text(
                "it changes the same lines as a patch that is proven",
                "与一个已验证的补丁修改了相同的行",
            )
            return _not_tried(problem, solution, meets), None
        try:
            tree = Tree(self.before, {**self.base.parts, solution.id: solution.edits})
            alone = changes_of(self.before.copy.project, solution.edits)
        except PatchError as error:
            why = Text(error.say("en"), error.say("zh"))
            return Verdict(problem.id, solution.id, "not tried", "sketch", why=why), None
        with_tests = self.before.tests.state == "ran" and self.before.plan.scope.reaches("deep")
        trial = self._trial(self.base, tree, own, (), alone, with_tests)
        verdict = judge_change(problem, solution, trial, own, self.before.shown_near(own))
        if verdict.state == "proven" and (no := self._refuse_proof(solution, tree, own)):
            if no.idle and (smaller := self._split_off(problem, solution, no.idle, tree, alone)):
                return smaller
            verdict = replace(verdict, state="applies", why=no.why, check=Text("", ""))
        return self._drop_silencing(verdict, solution, alone), tree

    def _split_off(
        self,
        problem: Problem,
        solution: Solution,
        idle: tuple[Part, ...],
        tree: Tree,
        alone: tuple[FileChange, ...],
    ) -> tuple[Verdict, Tree | None] | None:
        """The change without the parts that nothing proves, judged anew; None where it is not proven."""
        parts, seen = parts_of(alone), parts_of(tree.beyond(self.base))
        if len(parts) != len(seen):  # they run together with an accepted change
            return None
        there = tuple(part for part, one in zip(parts, seen, strict=True) if one in idle)
        edits = edits_without(alone, there)
        if not edits:
            return None
        verdict, made = self._judge(problem, replace(solution, edits=edits))
        if verdict.state != "proven":
            return None
        places = places_of(there)
        check = Text(
            f"{verdict.check.en} (split off, because nothing proves it: {places})",
            f"{verdict.check.zh}（因无证据支持而分出：{places}）",
        )
        return replace(verdict, check=check, kept=verdict.kept or edits), made

    def _gone_with(self, own: list[Finding]) -> str:
        """The accepted change that took these findings away; empty where they are still there."""
        if not self.base.changes or not own:
            return ""
        jobs = self.before.jobs_that_found(own)
        there = [item for report in self.base.reports(jobs) for item in report.findings]
        moves = Moves(self.base.changes)
        if any(moves.find(item, there) for item in own):
            return ""
        names = set(_names(own))
        for name in self.base.parts:
            if names <= set(self.verdicts[name].others_gone):
                return self.verdicts[name].problem
        return self.verdicts[next(reversed(self.base.parts))].problem

    def _trial(
        self, base: Tree, tree: Tree, own: Sequence[Finding], looked_for: Sequence[Finding],
        changes: tuple[FileChange, ...], with_tests: bool,
    ) -> Trial:  # fmt: skip
        jobs = self.before.jobs_that_found(own)
        jobs = tuple(dict.fromkeys((*jobs, *self.before.jobs_that_found(looked_for))))
        tests = self.before.tests
        return Trial(
            jobs, base.reports(jobs), tree.reports(jobs), tests,
            tree.tests() if with_tests else tests, Moves(tree.changes),
            Moves(tree.beyond(base)), diff_of(changes),
        )  # fmt: skip

    def _drop_silencing(
        self, verdict: Verdict, solution: Solution, alone: tuple[FileChange, ...]
    ) -> Verdict:
        """A change that only hides the fault is dropped."""
        silencing = "" if solution.kind == "rule fix" else is_silencing(alone)
        if silencing and verdict.outcome == "fixed":
            why = Text(f"silenced by the edit: it {silencing}", f"仅被修改掩盖：{silencing}")
            return Verdict(verdict.problem, solution.id, "silenced", "dropped", why=why, diff=verdict.diff)  # fmt: skip
        return verdict

    def _refuse_proof(self, solution: Solution, tree: Tree, own: list[Finding]) -> Objection | None:
        """The fault must come back when the change is taken back, whole or in parts."""
        shown = [item for item in own if item.tool in SHOWN]
        jobs = [job for job in self.before.jobs_that_found(shown) if job.tool != ALWAYS]
        then = self.base.reports(jobs)
        # what a check showed is run anew: a stored answer would repeat itself
        fresh = replace(
            self.before.conditions,
            use_cache=self.before.conditions.use_cache and not is_by_checks(own),
        )

        def shows(parts: tuple[FileChange, ...]) -> bool:
            changes = self.base.with_parts(parts)
            reports = run_on(self.before, changes, jobs, fresh)
            failed = any(
                report.failed and not old.failed for old, report in zip(then, reports, strict=True)
            )
            there = [item for report in reports for item in report.findings]
            return failed or any(Moves(changes).find(item, there) for item in shown)

        parts = tree.beyond(self.base)
        return refuse_proof(Proof(parts, shows, bool(solution.by), is_by_checks(own)))

    # -- all together ---------------------------------------------------------------------------

    def join(self, tried: list[Pair]) -> tuple[Verdict | None, Verdict | None]:
        """The proven changes at once with the project's tests; these and the unproven ones."""
        joint = self._judge_together(self.base, tried)
        if joint is not None and joint.tests_lost:
            self._drop_what_breaks_tests(tried)
            joint = self._judge_together(self.base, tried)
        for _ in range(_MOST_CULPRITS):
            if joint is None or not joint.new or not self._drop_what_brings(joint.new):
                break
            joint = self._judge_together(self.base, tried)
        fixed = {
            solution.id: solution.edits for _, solution in tried
            if self.verdicts[solution.id].outcome == "fixed"
            and self.verdicts[solution.id].state == "applies"
        }  # fmt: skip
        kept, left = together({**self.base.parts, **fixed})
        self.left_out += left
        wider = {**self.base.parts, **{name: fixed[name] for name in kept if name in fixed}}
        if wider == self.base.parts:
            return joint, joint
        return joint, self._judge_together(Tree(self.before, wider), tried)

    def _judge_together(self, tree: Tree, tried: list[Pair]) -> Verdict | None:
        if not tree.parts or time.monotonic() > self.until:
            return None
        pairs = [(problem, solution) for problem, solution in tried if solution.id in tree.parts]
        own = [
            item for problem, _ in pairs for item in problem.findings if item.tool not in OUTSIDE
        ]
        every = [
            item for problem, _ in tried for item in problem.findings if item.tool not in OUTSIDE
        ]
        with_tests = self.before.tests.state == "ran"
        original = Tree(self.before, {})
        trial = self._trial(original, tree, own, every, tree.changes, with_tests)
        verdict = judge_change(*pairs[0], trial, own, [])
        return replace(verdict, problem="all", solution="all")

    def _drop_what_breaks_tests(self, tried: list[Pair]) -> None:
        """Each accepted change again, with the tests, on top of those before it that keep them."""
        kept: dict[str, tuple[Edit, ...]] = {}
        problems = {solution.id: problem for problem, solution in tried}
        for name, edits in self.base.parts.items():
            tree = Tree(self.before, {**kept, name: edits})
            lost = tree.tests().worse_than(self.before.tests)
            if not lost:
                kept[name] = edits
                continue
            why = Text(
                f"a test that passed before fails with it: {lost[0]}",
                f"使原本通过的测试失败：{lost[0]}",
            )
            self.verdicts[name] = replace(
                self.verdicts[name], problem=problems[name].id, outcome="regressed",
                state="dropped", tests_lost=lost, why=why,
            )  # fmt: skip
        self.base = Tree(self.before, kept)

    def _drop_what_brings(self, new: tuple[Finding, ...]) -> bool:
        """Take out the one accepted change without which a new finding does not come; False where there is none.
        Those that change the file of the finding are asked first."""
        found = new[0]
        ran = {result.job for result in self.before.execution.results}
        jobs = [job for job in self.before.plan.jobs if job.tool == found.tool and job.id in ran]
        touching = [
            name
            for name, edits in self.base.parts.items()
            if any(edit.path == found.path for edit in edits)
        ]
        others = [name for name in self.base.parts if name not in touching]
        for name in (*reversed(touching), *reversed(others)):
            if time.monotonic() > self.until:
                return False
            rest = {one: edits for one, edits in self.base.parts.items() if one != name}
            tree = Tree(self.before, rest)
            reports = tree.reports(jobs)
            if any(report.failed for report in reports):
                continue  # a run that did not come to its end is silent about everything
            there = [item for report in reports for item in report.findings]
            # its line is another one without the change: the rule and the file say enough
            if any((item.rule, item.path) == (found.rule, found.path) for item in there):
                continue
            why = Text(
                f"it brings a new finding: {found.rule} at {found.path}:{found.line}",
                f"它带来新问题：{found.path}:{found.line} 的 {found.rule}",
            )
            self.verdicts[name] = replace(
                self.verdicts[name], outcome="regressed", state="dropped", why=why, new=new
            )
            self.base = tree
            return True
        return False

    def unmasked(self) -> tuple[Finding, ...]:
        """What came to light with accepted changes and is still there at the end, on the lines of the project as
        it is."""
        moves = Moves(self.base.changes)
        return tuple(
            replace(
                item,
                location=replace(item.location, line=moves.line_before(item.path, item.line)),
            )
            for item in self._still_unmasked()
        )

    def _still_unmasked(self) -> tuple[Finding, ...]:
        seen = [item for name in self.base.parts for item in self.verdicts[name].unmasked]
        unique = {item.fingerprint: item for item in seen}
        jobs = [job for job in self.before.plan.jobs if job.tool in SHOWN]
        ran = {result.job for result in self.before.execution.results}
        if not unique:
            return ()
        last = self.base.reports([job for job in jobs if job.id in ran])
        there = [item for report in last for item in report.findings]
        return tuple(item for item in unique.values() if Moves().find(item, there))


def _names(own: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(sorted(item.fingerprint for item in own))


def _with_others(problem: Problem, solution: Solution, cause: str) -> Verdict:
    why = Text(f"it goes with the patch of {cause}", f"随 {cause} 的补丁一起消失")
    return Verdict(problem.id, solution.id, "fixed", "with others", why=why)


def _not_tried(problem: Problem, solution: Solution, why: Text) -> Verdict:
    return Verdict(
        problem.id, solution.id, "not tried", "sketch" if not solution.edits else "applies", why=why
    )


def _lessons(verdicts: list[Verdict], problems: dict[str, Problem]) -> tuple[Text, ...]:
    """What this review taught about its own tools and fixes."""
    lessons: list[Text] = []
    for item in verdicts:
        rule = problems[item.problem].finding.rule
        if item.outcome in ("regressed", "remaining"):
            lessons.append(Text(
                f"the fix of {rule} does not hold here: {item.why.en}",
                f"{rule} 的修复在此不成立：{item.why.zh}",
            ))  # fmt: skip
    return tuple(dict.fromkeys(lessons))
