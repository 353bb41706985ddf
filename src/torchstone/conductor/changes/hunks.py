"""A change in its separate parts: what the patch is without one of them, or with its functions rewritten."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from torchstone.conductor.changes.patches import FileChange
from torchstone.core.fix import Edit
from torchstone.core.lines import split_lines


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines of one file that a change replaces."""

    path: str
    start: int
    """First replaced line before the change, from 0."""
    end: int
    new: tuple[str, ...]
    new_start: int
    """Where the new lines begin after the change, from 0."""

    @property
    def where(self) -> str:
        return f"{self.path}:{self.start + 1}"


def hunks_of(changes: tuple[FileChange, ...]) -> tuple[Hunk, ...]:
    """The separate parts of a change, in order."""
    return tuple(hunk for change in changes for hunk in _of_file(change))


Part = tuple[Hunk, ...]
"""Lines that belong together: a change at one place, or lines that were moved."""


def parts_of(changes: tuple[FileChange, ...]) -> tuple[Part, ...]:
    """The separate parts of a change; lines that are taken out here and put in there are one."""
    texts = {change.path: split_lines(change.before) for change in changes}
    left = list(hunks_of(changes))
    found: list[Part] = []
    while left:
        first = left.pop(0)
        old = _bare(texts[first.path][first.start : first.end])
        for other in left:
            if other.path != first.path:
                continue
            there = _bare(texts[other.path][other.start : other.end])
            goes = old and not first.new and old == _bare(other.new)
            comes = there and not other.new and there == _bare(first.new)
            if goes or comes:
                left.remove(other)
                found.append((first, other))
                break
        else:
            found.append((first,))
    return tuple(found)


def _bare(lines: Sequence[str]) -> tuple[str, ...]:
    """Without what stands before and after: moved lines are often indented otherwise."""
    return tuple(bare for line in lines if (bare := line.strip()))


def edits_without(changes: tuple[FileChange, ...], parts: Sequence[Part]) -> tuple[Edit, ...]:
    """The change as edits of whole lines, with these parts left out."""
    left_out = {hunk for part in parts for hunk in part}
    return tuple(
        Edit(hunk.path, hunk.start + 1, 0, hunk.end + 1, 0, "".join(hunk.new))
        for hunk in hunks_of(changes)
        if hunk not in left_out
    )


def _of_file(change: FileChange) -> Iterator[Hunk]:
    old, new = split_lines(change.before), split_lines(change.after)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            yield Hunk(change.path, start, end, tuple(new[new_start:new_end]), new_start)


def without(changes: tuple[FileChange, ...], part: Part) -> tuple[FileChange, ...]:
    """The change with one part left as it was; a file that then does not change drops out."""
    made = []
    for change in changes:
        if change.path != part[0].path:
            made.append(change)
            continue
        lines = split_lines(change.before)
        for other in reversed(list(_of_file(change))):
            if other not in part:
                lines[other.start : other.end] = other.new
        text = "".join(lines)
        if text != change.before:
            made.append(replace(change, after=text))
    return tuple(made)


def has_meaning(changes: tuple[FileChange, ...], part: Part) -> bool:
    """Whether the program differs without this part: comments and blank lines need no proof."""
    rest = {change.path: change.after for change in without(changes, part)}
    for change in changes:
        if change.path == part[0].path:
            other = rest.get(change.path, change.before)
            return _tree(other) != _tree(change.after)
    return False


def _tree(text: str) -> str:
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return text  # half of a change may not parse: then it certainly differs


def without_bodies(changes: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    """The changed files with the bodies of the changed functions removed; empty where no function changed."""
    return _rewritten(changes, remove_bodies)


def with_decorator(changes: tuple[FileChange, ...], decorator: str) -> tuple[FileChange, ...]:
    """The changed files with a decorator on each changed function; empty where no function changed."""
    return _rewritten(changes, lambda text, lines: add_decorator(text, lines, decorator))


Rewrite = Callable[[str, set[int]], str]
"""Makes another text of a file, given the lines that a change touched."""


def _rewritten(changes: tuple[FileChange, ...], rewrite: Rewrite) -> tuple[FileChange, ...]:
    made = []
    for change in changes:
        lines = {
            number
            for hunk in _of_file(change)
            for number in range(hunk.new_start + 1, hunk.new_start + len(hunk.new) + 2)
        }
        text = rewrite(change.after, lines)
        if text != change.after:
            made.append(replace(change, after=text))
    return tuple(made)


def remove_bodies(text: str, lines: set[int]) -> str:
    """The source with `raise` in place of every innermost function that holds one of the lines."""
    rows = split_lines(text)
    for node in _innermost_functions(text, lines):
        first, last = node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno
        indent = " " * node.body[0].col_offset
        if first > node.lineno:  # not a body on the line of its `def`
            rows[first - 1 : last] = [f'{indent}raise RuntimeError("the body was removed")\n']
    return "".join(rows)


def add_decorator(text: str, lines: set[int], decorator: str) -> str:
    """The source with a decorator, below all others, on every innermost function that holds one of the lines."""
    rows = split_lines(text)
    for node in _innermost_functions(text, lines):
        rows.insert(node.lineno - 1, f"{' ' * node.col_offset}@{decorator}\n")
    return "".join(rows)


def _innermost_functions(
    text: str, lines: set[int]
) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The last one first, so that a rewrite of one leaves the lines of the next in place."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    chosen = set()
    for line in lines:
        around = [item for item in functions if item.lineno <= line <= (item.end_lineno or 0)]
        if around:
            chosen.add(max(around, key=lambda item: item.lineno))
    return sorted(chosen, key=lambda item: -item.lineno)
