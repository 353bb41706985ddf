"""What the user said and did, in the user's own state folder: marks on findings, applied changes.

None of it lies in the analysed tree, because what the tree says may not change a verdict.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from torchstone.conductor.changes.patches import FileChange
from torchstone.conductor.phases.problems import Marks
from torchstone.conductor.records.known_runs import state_folder
from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import InputError, TorchstoneError
from torchstone.core.files import read_regular, write_atomically
from torchstone.core.text import Text

MarkWord = Literal["accept", "reject", "false-positive"]
MARKS: tuple[MarkWord, ...] = ("accept", "reject", "false-positive")
_ENOUGH_MARKS = 5
"""Below this a share of rejected findings says nothing about a rule."""
_MOST_BYTES = 64 << 20
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mark:
    """One word of the user on one finding."""

    fingerprint: str
    rule: str
    word: MarkWord


@dataclass(frozen=True, slots=True)
class MarkList:
    """All marks of one project."""

    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """Changes that were brought into a work tree, so that they can be taken back."""

    root: str
    changes: tuple[FileChange, ...] = ()
    run: str = ""


@dataclass(frozen=True, slots=True)
class AppliedList:
    """Newest last."""

    applied: tuple[Applied, ...] = field(default=())


def _path(root: Path, name: str) -> Path:
    key = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:24]
    return state_folder() / "review" / key / name


def _read(kind: type[T], path: Path, empty: T) -> T:
    try:
        return from_data(kind, json.loads(read_regular(path, _MOST_BYTES)), str(path))
    except FileNotFoundError:
        return empty
    except (OSError, ValueError, TorchstoneError) as error:
        raise InputError(
            str(path), f"a file that cannot be read ({error})"[:200],
            Text("the file that torchstone wrote", "由 torchstone 写入的文件"),
            Text("remove it to start anew", "删除该文件即可重新开始"),
        ) from None  # fmt: skip


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(to_data(value), ensure_ascii=False))


def add_mark(root: Path, mark: Mark) -> None:
    path = _path(root, "marks.json")
    known = _read(MarkList, path, MarkList()).marks
    kept = tuple(item for item in known if item.fingerprint != mark.fingerprint)
    _write(path, MarkList((*kept, mark)))


def marks_of(root: Path) -> Marks:
    """The marks of a project as the next review uses them."""
    marks = _read(MarkList, _path(root, "marks.json"), MarkList()).marks
    total = Counter(item.rule for item in marks)
    against = Counter(item.rule for item in marks if item.word != "accept")
    share = {rule: against[rule] / count for rule, count in total.items() if count >= _ENOUGH_MARKS}
    return Marks({item.fingerprint: item.word for item in marks}, share)


def apply_changes(root: Path, changes: tuple[FileChange, ...], run: str) -> None:
    """Write the new texts into the user's tree, all or none; remembered first."""
    for change in changes:
        if (root / change.path).read_bytes() != change.before.encode("utf-8"):
            raise InputError(
                change.path, "a file that changed during the review",
                Text("the file that was reviewed", "评审时的文件"),
                Text("run the review again", "请重新运行评审"),
            )  # fmt: skip
    path = _path(root, "applied.json")
    known = _read(AppliedList, path, AppliedList()).applied
    _write(path, AppliedList((*known, Applied(str(root.resolve()), changes, run))))
    done: list[FileChange] = []
    try:
        for change in changes:
            write_atomically(root / change.path, change.after.encode("utf-8"))
            done.append(change)
    except BaseException:
        for change in done:
            write_atomically(root / change.path, change.before.encode("utf-8"))
        _write(path, AppliedList(known))
        raise


def undo(root: Path) -> tuple[str, ...]:
    """Take the last applied changes back; the files that were restored."""
    path = _path(root, "applied.json")
    known = _read(AppliedList, path, AppliedList()).applied
    if not known:
        raise InputError(
            f"undo: {root}", "nothing that was applied",
            Text("changes of an earlier `review --apply`", "此前 `review --apply` 的修改"),
            Text("name the folder that was reviewed", "请指定当时评审的文件夹"),
        )  # fmt: skip
    last = known[-1]
    for change in last.changes:
        file = root / change.path
        if file.is_symlink() or file.read_bytes() != change.after.encode("utf-8"):
            raise InputError(
                change.path, "a file that was changed after --apply",
                Text("the file as --apply left it", "--apply 写入后的文件"),
                Text("take the change back by hand: git apply -R",
                     "请手动撤销：git apply -R"),
            )  # fmt: skip
    for change in last.changes:
        write_atomically(root / change.path, change.before.encode("utf-8"))
    _write(path, AppliedList(known[:-1]))
    return tuple(change.path for change in last.changes)
