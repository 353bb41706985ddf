"""The proven changes, brought into the user's tree: ours at once, those of others when a person accepts them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from torchstone.conductor.changes.patches import FileChange, changes_of, diff_of
from torchstone.conductor.phases.design import Design, Solution
from torchstone.conductor.phases.verdicts import Verification
from torchstone.core.errors import InputError
from torchstone.core.fix import Edit
from torchstone.core.options import unknown
from torchstone.core.text import Text


@dataclass(frozen=True, slots=True)
class ToApply:
    """What would be written, and what waits for a person."""

    changes: tuple[FileChange, ...] = ()
    waiting: tuple[Solution, ...] = ()
    """Proven changes that a model or an agent wrote and nobody has accepted."""
    waiting_diff: str = ""

    @property
    def diff(self) -> str:
        return diff_of(self.changes)


def select_changes(
    root: Path, design: Design, done: Verification, accepted: Collection[str] = ()
) -> ToApply:
    """The changes that were proven alone and together. `accepted`: ids of problems or solutions
    whose changes a person has read; the tree must be the one that was verified."""
    joint = done.together
    names = {item.solution for item in done.proven} - set(done.left_out)
    ways = tuple(
        replace(way, edits=done.edits_of(way)) for way in design.solutions if way.id in names
    )
    known = {name for way in ways for name in (way.id, way.problem)}
    for name in accepted:
        if name not in known:
            raise unknown("--accept", name, sorted(known))
    if joint is None or joint.outcome != "fixed":
        return ToApply()
    if diff_of(changes_of(root, _edits(ways))) != joint.diff:
        raise InputError(
            str(root),
            "a tree that is not the one that was verified",
            Text("the tree as it was when it was reviewed", "评审时的工作区"),
            Text("run the review again", "请重新运行评审"),
        )
    waiting = tuple(
        way for way in ways if way.by and way.id not in accepted and way.problem not in accepted
    )
    taken = tuple(way for way in ways if way not in waiting)
    return ToApply(
        changes_of(root, _edits(taken)), waiting, diff_of(changes_of(root, _edits(waiting)))
    )


def accept_command(run: str, waiting: Collection[Solution]) -> str:
    """The command with which a person applies what others wrote."""
    ids = " ".join(f"--accept {way.problem}" for way in waiting)
    return f"torchstone review --resume {run} --apply {ids}"


def _edits(ways: tuple[Solution, ...]) -> tuple[Edit, ...]:
    return tuple(edit for way in ways for edit in way.edits)
