"""Hits of rules become findings: located, with the source as evidence and a fingerprint."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from torchstone.core.evidence import Diff, Snippet
from torchstone.core.finding import Finding, Location, fingerprint
from torchstone.core.fix import Edit, Fix, apply_edits
from torchstone.core.lines import split_lines
from torchstone.core.text import Message, Text
from torchstone.lint.comments import with_right_comment
from torchstone.lint.rule import Hit
from torchstone.sources.scene import Scene

_CONTEXT = 1
_LONG_LINE = 2000


def findings_of(hits: Iterable[Hit], scene: Scene) -> list[Finding]:
    """Findings in order of place; equal ones of one scope are told apart by their order."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found: list[Finding] = []
    placed = sorted(hits, key=lambda hit: (*scene.span(hit.node)[:2], hit.rule.code))
    for hit in placed:
        scope = scene.scope_name(hit.node)
        basis = (hit.rule.code, scope, _statement_text(scene, hit.node))
        mark = fingerprint(hit.rule.code, f"{scene.path}:{scope}", basis[2], seen[basis])
        seen[basis] += 1
        found.append(_finding(hit, scene, scope, mark))
    return found


def _statement_text(scene: Scene, node: ast.AST) -> str:
    """The first line of the statement: its identity, whatever happens inside a long body."""
    statement = scene.statement(node) or node
    text = scene.text(statement) if hasattr(statement, "lineno") else ""
    header = text if not hasattr(statement, "body") else text.split("\n", 1)[0]
    inner = scene.text(node) if hasattr(node, "lineno") and not hasattr(node, "body") else ""
    return f"{header[:400]}\x1f{inner[:200]}"


def _finding(hit: Hit, scene: Scene, scope: str, mark: str) -> Finding:
    rule = hit.rule
    line, column, end_line, end_column = scene.span(hit.node)
    if hasattr(hit.node, "body"):  # a whole loop or class is marked by its first line
        end_line, end_column = line, len(scene.lines[line - 1].rstrip("\r\n")) if scene.lines else 0
    cell, shown = scene.source.place(line)
    where = Location(
        scene.path, shown, column + 1, shown + end_line - line, end_column + 1, cell, scope
    )
    return Finding(
        rule.code,
        rule.name,
        hit.severity,
        hit.confidence,
        Message(f"{rule.code}.say", hit.say, hit.args),
        _why(hit),
        _remedy(hit, scene, line),
        where,
        (
            snippet(scene, line, column, end_line, end_column),
            *([preview(scene, hit.fix)] if hit.fix and _is_shown(scene, hit.fix) else ()),
            *hit.evidence,
        ),
        mark,
        hit.fix,
    )


HARMLESS = ".why.harmless"
"""How the id of a reason ends that says why a finding was thought harmless."""


def _why(hit: Hit) -> Message:
    if hit.harmless is None:
        return Message(f"{hit.rule.code}.why", hit.why, hit.args)
    why = Text(
        f"{hit.why.en}; thought harmless: {hit.harmless.en}",
        f"{hit.why.zh}；被认为无害：{hit.harmless.zh}",
    )
    return Message(f"{hit.rule.code}{HARMLESS}", why, hit.args)


def _remedy(hit: Hit, scene: Scene, line: int) -> Message:
    remedy = Message(f"{hit.rule.code}.suggest", hit.suggest, hit.args)
    if hit.rule.group == "torchstone" or not 0 < line <= len(scene.lines):
        return remedy
    return with_right_comment(remedy, hit.rule.code, scene.lines[line - 1])


def snippet(scene: Scene, line: int, column: int, end_line: int, end_column: int) -> Snippet:
    """The marked line with one line around it, within its notebook cell."""
    lines, (cell, shown) = scene.lines, scene.source.place(line)
    first = max(1, line - _CONTEXT)
    last = min(len(lines), line + _CONTEXT)
    while first < line and scene.source.place(first)[0] != cell:
        first += 1
    while last > line and scene.source.place(last)[0] != cell:
        last -= 1
    text = "\n".join(row.rstrip("\r\n")[:240] for row in lines[first - 1 : last])
    row = lines[line - 1].rstrip("\r\n") if line <= len(lines) else ""
    end = end_column if end_line == line else len(row)
    return Snippet(scene.path, shown - (line - first), text, shown, column, max(end, column + 1))


def _is_shown(scene: Scene, fix: Fix) -> bool:
    """A line that no reader could take in is not shown twice."""
    return bool(fix.edits) and all(
        len(row) <= _LONG_LINE
        for edit in fix.edits
        for row in _cell_lines(scene, edit.cell)[edit.line - 1 : edit.end_line]
    )


def preview(scene: Scene, fix: Fix) -> Diff:
    """The lines that a fix touches, before and after, one hunk for each group of edits."""
    rows: list[str] = []
    for group in _neighbours(fix.edits):
        first, last = group[0].line, max(edit.end_line for edit in group)
        before = _cell_lines(scene, group[0].cell)[first - 1 : last]
        local = [
            replace(edit, line=edit.line - first + 1, end_line=edit.end_line - first + 1)
            for edit in group
        ]
        after = split_lines(apply_edits("".join(before), local))
        shared = 0
        while before and after and before[-1] == after[-1]:
            before, after, shared = before[:-1], after[:-1], shared + 1
        rows.append(f"@@ {first} @@")
        rows += (f"-{row.rstrip()}" for row in before)
        rows += (f"+{row.rstrip()}" for row in after)
    return Diff("\n".join(rows))


def _cell_lines(scene: Scene, cell: int) -> list[str]:
    if not cell:
        return scene.lines
    index = scene.source.cell_numbers.index(cell)
    starts = (*scene.source.cell_starts, len(scene.lines) + 1)
    return scene.lines[starts[index] - 1 : starts[index + 1] - 1]


def _neighbours(edits: tuple[Edit, ...]) -> list[list[Edit]]:
    """Edits in order, those on the same or adjacent lines together."""
    groups: list[list[Edit]] = []
    for edit in sorted(edits, key=lambda edit: edit.start):
        if groups and edit.cell == groups[-1][-1].cell and edit.line <= groups[-1][-1].end_line + 1:
            groups[-1].append(edit)
        else:
            groups.append([edit])
    return groups
