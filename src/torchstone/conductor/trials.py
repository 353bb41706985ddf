"""Single experiments on a project, without a review: a check on the tree as it is, and on a changed copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchstone.conductor.changes.patches import (
    FileChange,
    PatchError,
    changes_of,
    diff_of,
    edits_of,
    write_changes,
)
from torchstone.conductor.changes.policy import refuse_reach
from torchstone.conductor.choices import TextEdit, refuse_size
from torchstone.conductor.experiments.checks.check import Check, make_check
from torchstone.conductor.experiments.results import Result
from torchstone.conductor.phases.confirmation import Proof, refuse_proof
from torchstone.conductor.phases.execute import Conditions, run_job
from torchstone.conductor.project.copying import copied
from torchstone.conductor.tools import checks
from torchstone.core.finding import Severity

_FRESH = Conditions(use_cache=False)


@dataclass(frozen=True, slots=True)
class TriedPatch:
    """A check before and after a change."""

    before: Result = Result("not decided")
    after: Result = Result("not decided")
    diff: str = ""
    refused: str = ""
    """Why the change may not be made, or why it is not proven although the check turned."""

    @property
    def proven(self) -> bool:
        return (self.before.state, self.after.state) == ("broken", "holds") and not self.refused


def check_for(root: Path, code: str, file: str = "") -> Check:
    """A check without a claim; `file` is the file of the project beside which it looks for modules."""
    place = file or next((path.name for path in sorted(root.glob("*.py"))), "")
    if not place:
        place = next(path.relative_to(root).as_posix() for path in sorted(root.glob("**/*.py")))
    return make_check(place, 1, "a check", Severity.MEDIUM, code, "agent", root)


def try_check(root: Path, check: Check, changes: tuple[FileChange, ...] = ()) -> Result:
    """The check in the sandbox, on a copy with these changes."""
    with copied(root) as copy:
        write_changes(copy.project, changes)
        done = run_job(checks.job_of(check), copy, _FRESH)
    report = done.report
    if report.findings:
        said = report.findings[0].why.args.get("said", "")
        return Result("broken", str(said))
    if report.gaps:
        return Result("not decided", "; ".join(gap.reason.say("en") for gap in report.gaps))
    return Result("holds")


def try_patch(root: Path, check: Check, edits: Sequence[TextEdit]) -> TriedPatch:
    """The check before and after the edits, and whether they are what turns it."""
    if why := refuse_size(edits):
        return TriedPatch(refused=why)
    try:
        changes = changes_of(root, edits_of(root, edits))
    except PatchError as error:
        return TriedPatch(refused=error.say("en"))
    if why := refuse_reach(changes, root):
        return TriedPatch(diff=diff_of(changes), refused=why)
    tried = TriedPatch(try_check(root, check), try_check(root, check, changes), diff_of(changes))
    if not tried.proven:
        return tried

    def shows(parts: tuple[FileChange, ...]) -> bool:
        return try_check(root, check, parts).state != "holds"

    unproven = refuse_proof(Proof(changes, shows, by_others=True, by_checks=True))
    return replace(tried, refused=unproven.en if unproven else "")
