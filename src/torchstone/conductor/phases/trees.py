"""The project with some changes made, and what the runs say of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from torchstone.conductor.changes.patches import FileChange, changes_of, write_changes
from torchstone.conductor.jobs.job import Job
from torchstone.conductor.jobs.side_by_side import side_by_side
from torchstone.conductor.phases.before import Before
from torchstone.conductor.phases.execute import Conditions, run_job
from torchstone.conductor.project.copying import Copy, copied, digest_of
from torchstone.conductor.project.testing import TestRun
from torchstone.conductor.tools import tests
from torchstone.core.fix import Edit
from torchstone.core.report import Report


class Tree:
    """The project with the changes of some solutions; each run is made once."""

    def __init__(
        self, before: Before, parts: Mapping[str, tuple[Edit, ...]], fresh: bool = False
    ) -> None:
        """Raises PatchError where the edits do not fit. `fresh`: what is known already is run again."""
        self.before = before
        self.parts = dict(parts)
        edits = tuple(edit for item in parts.values() for edit in item)
        self.changes = changes_of(before.copy.project, edits)
        known = {result.job: result.report for result in before.execution.results}
        self._reports: dict[str, Report] = {} if self.changes or fresh else known

    def reports(self, jobs: Sequence[Job]) -> list[Report]:
        """What these runs say of this tree, in their order."""
        missing = [job for job in jobs if job.id not in self._reports]
        if missing:
            made = run_on(self.before, self.changes, missing, self.before.conditions)
            self._reports |= {job.id: report for job, report in zip(missing, made, strict=True)}
        return [self._reports[job.id] for job in jobs]

    def tests(self) -> TestRun:
        """The project's own tests on this tree."""
        jobs = [job for job in self.before.plan.jobs if job.tool == tests.NAME]
        return tests.test_run_of(self.reports(jobs))

    def with_parts(self, parts: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """The changes of this tree with others on top of it."""
        made = {change.path: change for change in self.changes}
        for part in parts:
            first = made.get(part.path)
            made[part.path] = replace(part, before=first.before) if first else part
        return tuple(made.values())

    def beyond(self, base: Tree) -> tuple[FileChange, ...]:
        """What this tree changes in the files of another one."""
        there = {change.path: change.after for change in base.changes}
        made = (replace(item, before=there.get(item.path, item.before)) for item in self.changes)
        return tuple(item for item in made if item.before != item.after)


@contextlib.contextmanager
def changed_copy(before: Before, changes: Sequence[FileChange]) -> Iterator[Copy]:
    """The project with changes made one after the other, in a folder of its own."""
    original = before.copy.original
    with copied(before.copy.project, original) as copy:
        write_changes(copy.project, changes)
        yield Copy(copy.home, copy.project, original, digest_of(copy.project, original))


def run_on(
    before: Before, changes: Sequence[FileChange], jobs: Sequence[Job], conditions: Conditions
) -> list[Report]:
    """Jobs on the project with these changes."""
    with changed_copy(before, changes) as copy:
        results = side_by_side(
            lambda job: run_job(replace(job, try_fixes=False), copy, conditions),
            jobs,
            conditions.workers,
        )
    before.meter.cpu_seconds += sum(item.cpu_seconds for item in results)
    return [item.report for item in results]
