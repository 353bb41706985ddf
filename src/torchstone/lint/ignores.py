"""Findings that a comment silences go; comments that silence nothing become findings."""

from __future__ import annotations

import ast

from torchstone.core.finding import Finding
from torchstone.core.text import Text
from torchstone.lint.catalog import all_rules
from torchstone.lint.comments import Ignore, read_ignores
from torchstone.lint.findings import findings_of
from torchstone.lint.rule import Hit, safe
from torchstone.lint.rules.unused_ignore import RULE
from torchstone.sources.scene import Scene


def apply_ignores(found: list[Finding], scene: Scene, running: set[str]) -> list[Finding]:
    """`running` are the codes in use: a comment for a rule that is switched off is not unused."""
    ignores = read_ignores(scene.source)
    by_line: dict[tuple[int, int], list[Ignore]] = {}
    for item in ignores:
        key = (0, 0) if item.whole_file else scene.source.place(item.covers)
        by_line.setdefault(key, []).append(item)
    kept = [finding for finding in found if not _silenced(finding, by_line)]
    if RULE.code in running:
        kept += findings_of(
            (_unused(item, scene) for item in ignores if _idle(item, running)), scene
        )
    return kept


def _silenced(finding: Finding, by_line: dict[tuple[int, int], list[Ignore]]) -> bool:
    where = finding.location
    names = {finding.rule.lower(), finding.name}
    silenced = False
    last = max(where.end_line, where.line)
    keys = [(0, 0), *((where.cell, line) for line in range(where.line, last + 1))]
    for item in (item for key in keys for item in by_line.get(key, ())):
        if named := names.intersection(item.rules):
            item.used |= named
            silenced = True
    return silenced


def _idle(item: Ignore, running: set[str]) -> bool:
    codes = {key: rule.code for rule in all_rules() for key in (rule.code.lower(), rule.name)}
    judged = [name for name in item.rules if codes.get(name) is None or codes[name] in running]
    return not item.rules or bool(set(judged) - item.used)


def _unused(item: Ignore, scene: Scene) -> Hit:
    line = scene.lines[item.line - 1]
    # a stand-in node: comments have none of their own
    node = ast.Pass(
        lineno=item.line, col_offset=len(line[: item.column].encode()),
        end_lineno=item.line, end_col_offset=len(line[: item.end_column].encode()),
    )  # fmt: skip
    start = len(line[: item.column].rstrip())
    alone = not line[: item.column].strip()
    edit = (
        scene.edit(item.line, 0, item.line + 1, 0, "")
        if alone and item.line < len(scene.lines)
        else scene.edit(item.line, start, item.line, item.end_column, "")
    )
    partly = set(item.rules) & item.used
    shown = line[item.column : item.end_column][:60]
    idle = ", ".join(name for name in item.rules if name not in item.used)
    say = Text(
        f"`{idle}` in `{shown}` silences nothing", f"`{shown}` 中的 `{idle}` 没有屏蔽任何问题"
    )
    return RULE.at(
        node,
        say=say if partly else None,
        why=_problem(item),
        suggest=_remedy(item, partly=bool(partly)),
        fix=None if partly or not item.rules else safe(edit),
        comment=shown,
    )


def _remedy(item: Ignore, partly: bool) -> Text | None:
    if not item.rules:
        return Text(
            "name the rule: `# torchstone: ignore[rule] reason`",
            "写明规则：`# torchstone: ignore[规则] 原因`",
        )
    return Text("take the name out of the comment", "从注释中去掉该名称") if partly else None


def _problem(item: Ignore) -> Text:
    known = {key for rule in all_rules() for key in (rule.code.lower(), rule.name)}
    strange = ", ".join(name for name in item.rules if name not in known)
    if not item.rules:
        return Text(
            "without a rule's name the comment has no effect", "没有写明规则，该注释不起作用"
        )
    if strange:
        written = strange.upper() if strange.startswith("ts") else strange
        return Text(f"there is no rule {written}", f"不存在规则 {written}")
    return Text(
        "the rule does not fire here; left in place, the comment would hide its next real finding",
        "该规则在此并未触发；保留注释会掩盖它以后发现的真实问题",
    )
