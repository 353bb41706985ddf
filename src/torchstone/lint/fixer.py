"""Fixes become files or diffs: never two over the same place, each file written whole."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.core.files import write_atomically
from torchstone.core.finding import Finding
from torchstone.core.fix import Edit, Safety, apply_edits
from torchstone.core.lines import split_lines
from torchstone.core.text import Text
from torchstone.sources.notebook import edit_notebook
from torchstone.sources.project import still_parses
from torchstone.sources.source import decode

Span = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after its fixes."""

    path: str
    before: str
    after: str
    encoding: str
    fixed: tuple[Finding, ...]

    def diff(self) -> str:
        rows = difflib.unified_diff(
            split_lines(self.before), split_lines(self.after), f"a/{self.path}", f"b/{self.path}"
        )
        return "".join(
            row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows
        )


def applicable(finding: Finding, unsafe: bool) -> bool:
    fix = finding.fix
    if fix is None or not fix.edits:
        return False
    return fix.safety is Safety.SAFE or (unsafe and fix.safety is Safety.UNSAFE)


def choose(findings: Iterable[Finding], unsafe: bool) -> list[Finding]:
    """Findings whose fixes can be made together; the first of two that meet wins."""
    taken: dict[tuple[str, int], list[Edit]] = {}
    chosen: list[Finding] = []
    for finding in findings:
        if not applicable(finding, unsafe) or finding.fix is None:
            continue
        edits = finding.fix.edits
        if any(
            _meet(edit, other)
            for edit in edits
            for other in taken.get((edit.path, edit.cell), ())
            if edit != other
        ):
            continue
        for edit in edits:
            taken.setdefault((edit.path, edit.cell), []).append(edit)
        chosen.append(finding)
    return chosen


def _meet(one: Edit, other: Edit) -> bool:
    if one.start == other.start:
        return True  # two insertions at one place would have no order
    return one.start < other.end and other.start < one.end


def changes(
    findings: Iterable[Finding], unsafe: bool, instead: Mapping[str, bytes] | None = None
) -> list[Change]:
    """What the fixes make of each file (of `instead`, where it has one); nothing is written."""
    by_path: dict[str, list[Finding]] = {}
    for finding in choose(findings, unsafe):
        by_path.setdefault(finding.path, []).append(finding)
    texts = instead or {}
    made = (
        _change(path, texts.get(path) or Path(path).read_bytes(), group)
        for path, group in sorted(by_path.items())
    )
    return [change for change in made if change.after != change.before]


def joined(first: Change, then: Change) -> Change:
    """Two rounds of fixes to one file as one change."""
    return replace(first, after=then.after, fixed=(*first.fixed, *then.fixed))


def _change(path: str, data: bytes, findings: list[Finding]) -> Change:
    text = decode(data, path)
    if not isinstance(text, str):
        raise InputError(
            path,
            text.reason.say("en"),
            Text("the file that was checked", "刚才检查过的文件"),
            Text("run check again", "请重新运行 check"),
        )
    encoding = next(
        (e for e in ("utf-8-sig", "utf-8", "latin-1") if _round(text, e, data)), "utf-8"
    )
    if not _round(text, encoding, data):
        encoding = _declared(data)
    after = _applied(path, text, findings)
    if not _parses(path, text, after):
        # one of them does not fit its place (inside an f-string, say): leave that one out
        kept: list[Finding] = []
        for item in findings:
            if _parses(path, text, _applied(path, text, [*kept, item])):
                kept.append(item)
        findings, after = kept, _applied(path, text, kept)
    return Change(path, text, after, encoding, tuple(findings))


def _applied(path: str, text: str, findings: list[Finding]) -> str:
    edits = list(dict.fromkeys(edit for item in findings if item.fix for edit in item.fix.edits))
    return edit_notebook(text, edits) if path.endswith(".ipynb") else apply_edits(text, edits)


def _parses(path: str, before: str, after: str) -> bool:
    """Whether a module still parses; notebooks are read cell by cell elsewhere."""
    return path.endswith(".ipynb") or still_parses(path, before, after)


def _round(text: str, encoding: str, data: bytes) -> bool:
    try:
        return text.encode(encoding) == data
    except UnicodeEncodeError:
        return False


def _declared(data: bytes) -> str:
    import io
    import tokenize

    return tokenize.detect_encoding(io.BytesIO(data).readline)[0]


def write(change: Change) -> None:
    """Write the file, unless somebody else has changed it meanwhile."""
    if Path(change.path).read_bytes() != change.before.encode(change.encoding):
        raise InputError(
            change.path,
            Text("a file that changed meanwhile", "检查之后被改动的文件").en,
            Text("the file that was checked", "刚才检查过的文件"),
            Text("run check again", "请重新运行 check"),
        )
    write_atomically(Path(change.path), change.after.encode(change.encoding))
