"""Changes of a project as edits, as new file texts, and as diffs that `git apply` takes."""

from __future__ import annotations

import ast
import difflib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from torchstone.conductor.choices import TextEdit
from torchstone.core.errors import InputError
from torchstone.core.files import read_regular
from torchstone.core.fix import Edit, apply_edits
from torchstone.core.lines import split_lines
from torchstone.core.text import Text
from torchstone.sources.notebook import edit_notebook
from torchstone.sources.project import still_parses
from torchstone.sources.source import MAX_BYTES, decode

_CLOSED_FOLDERS = frozenset(
    {".git", ".github", ".gitlab", ".circleci", ".torchstone", ".hg", ".ci"}
)
_CLOSED_NAMES = frozenset({
    ".gitlab-ci.yml", "jenkinsfile", "azure-pipelines.yml", "poetry.lock", "uv.lock", "pdm.lock",
    "pipfile.lock", "package-lock.json", "conda-lock.yml", ".pre-commit-config.yaml", "conftest.py",
    ".gitattributes", ".gitmodules", "sitecustomize.py", "setup.py", "noxfile.py", "usercustomize.py", "constraints.txt",
})  # fmt: skip
_SOURCES = (".py", ".pyi", ".ipynb")
_TESTS = frozenset({"test", "tests"})
_SUPPRESSIONS = ("torchstone:ignore", "#noqa", "#type:ignore", "pylint:disable", "nosec")
"""Without spaces, in small letters."""


class PatchError(InputError):
    """A change that may not or cannot be made."""


def _refused(where: str, why: str) -> PatchError:
    return PatchError(
        where, why, Text("an edit of a source file of the project", "对项目源文件的修改"),
        Text("send another edit", "请给出另一处修改"),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file before and after."""

    path: str
    before: str
    after: str

    def diff(self) -> str:
        rows = difflib.unified_diff(
            split_lines(self.before), split_lines(self.after), f"a/{self.path}", f"b/{self.path}"
        )
        return "".join(
            row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows
        )


def check_path(root: Path, path: str) -> Path:
    """The file that a change names: a regular source file inside the project, not one that says
    how the project is built, tested or checked."""
    pure = PurePosixPath(path)
    if (
        not path
        or "\\" in path
        or not path.isprintable()
        or pure.is_absolute()
        or ".." in pure.parts
    ):
        raise _refused(path or "(no path)", "a path outside the project")
    lower = [part.lower() for part in pure.parts]
    if (
        _CLOSED_FOLDERS & set(lower[:-1])
        or lower[-1] in _CLOSED_NAMES
        or lower[0] in _CLOSED_FOLDERS
    ):
        raise _refused(path, "a file that controls how the project is built or checked")
    if not lower[-1].endswith(_SOURCES):
        raise _refused(path, "a file that is no source of the project")
    if lower[-1].startswith("test_") or lower[-1].endswith("_test.py") or _TESTS & set(lower[:-1]):
        raise _refused(path, "a test: a fix changes what is tested")
    full = root / path
    place = root
    for part in pure.parts:
        place = place / part
        if place.is_symlink():
            raise _refused(path, "a link")
    if not full.is_file():
        raise _refused(path, "no such file")
    return full


def read_text(root: Path, path: str) -> str:
    data = read_regular(check_path(root, path), MAX_BYTES)
    text = decode(data, path)
    if not isinstance(text, str):
        raise _refused(path, text.reason.say("en"))
    if text.encode("utf-8") != data:
        raise _refused(path, "a file in another encoding than UTF-8")
    return text


def changes_of(root: Path, edits: Iterable[Edit]) -> tuple[FileChange, ...]:
    """New texts of the files that edits change; a PatchError where they do not fit."""
    by_path: dict[str, list[Edit]] = defaultdict(list)
    for edit in dict.fromkeys(edits):
        by_path[edit.path.removeprefix("./")].append(edit)
    made: list[FileChange] = []
    for path, items in sorted(by_path.items()):
        before = read_text(root, path)
        try:
            after = (
                edit_notebook(before, items)
                if path.endswith(".ipynb")
                else apply_edits(before, items)
            )
        except ValueError as error:
            raise _refused(path, str(error)) from None
        if path.endswith(".py") and not still_parses(path, before, after):
            raise _refused(path, "an edit after which the file does not parse")
        made.append(FileChange(path, before, after))
    return tuple(change for change in made if change.before != change.after)


def edits_of(root: Path, texts: Iterable[TextEdit]) -> tuple[Edit, ...]:
    """Replacements of texts as edits of places; each old text must stand exactly once."""
    found: list[Edit] = []
    for item in texts:
        text = read_text(root, item.path)
        if not item.old or text.count(item.old) != 1:
            count = text.count(item.old) if item.old else 0
            raise _refused(
                item.path,
                f"an old text that stands {count} times in it, expected exactly once; "
                "add a line before or after it"
                if count > 1
                else f"an old text that stands {count} times in it",
            )
        start = text.index(item.old)
        found.append(
            Edit(item.path, *_place(text, start), *_place(text, start + len(item.old)), item.new)
        )
    return tuple(found)


def _place(text: str, offset: int) -> tuple[int, int]:
    """Line from 1 and column from 0, by the same lines that edits count."""
    before = split_lines(text[:offset])
    if not before:
        return 1, 0
    last = before[-1]
    return (len(before) + 1, 0) if last.endswith(("\n", "\r")) else (len(before), len(last))


def write_changes(root: Path, changes: Iterable[FileChange]) -> None:
    """Put the new texts into a copy of the project."""
    for change in changes:
        path = check_path(root, change.path)
        path.write_bytes(change.after.encode("utf-8"))


def diff_of(changes: Iterable[FileChange]) -> str:
    """One diff over all files, as `git apply` takes it."""
    return "".join(change.diff() for change in changes)


def is_silencing(changes: Iterable[FileChange]) -> str:
    """Why a change hides a finding instead of removing its cause; empty where it does not."""
    for change in changes:
        new, old = _squeezed(change.after), _squeezed(change.before)
        for word in _SUPPRESSIONS:
            if new.count(word) > old.count(word):
                return f"adds {word!r}"
        if _swallowed(change.after) > _swallowed(change.before):
            return "adds a handler that swallows errors"
        before, after = _statements(change.before), _statements(change.after)
        if after and len(before) > len(after) and set(after) <= set(before):
            return "only deletes code"
    return ""


def _swallowed(text: str) -> int:
    """Handlers of errors that neither raise nor end the program, and `contextlib.suppress`."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return 0
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    kept = [
        item for item in handlers if not any(isinstance(node, ast.Raise) for node in ast.walk(item))
    ]
    names = [getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(tree)]
    return len(kept) + names.count("suppress")


def _squeezed(text: str) -> str:
    return "".join(text.lower().split())


def _statements(text: str) -> list[str]:
    return [
        row.strip() for row in text.splitlines() if row.strip() and not row.strip().startswith("#")
    ]


def together(parts: Mapping[str, tuple[Edit, ...]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which of several changes can be made at once, in their order, and which meet an earlier one."""
    taken: dict[tuple[str, int], list[Edit]] = defaultdict(list)
    kept: list[str] = []
    left: list[str] = []
    for name, edits in parts.items():
        if any(
            _meet(edit, other)
            for edit in edits
            for other in taken[edit.path, edit.cell]
            if edit != other
        ):
            left.append(name)
            continue
        for edit in edits:
            taken[edit.path, edit.cell].append(edit)
        kept.append(name)
    return tuple(kept), tuple(left)


def _meet(one: Edit, other: Edit) -> bool:
    if one.start == other.start:
        return True
    return one.start < other.end and other.start < one.end
