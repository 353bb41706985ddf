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
    kept = [finding for finding in found if not _silenced(finding, ignores, scene)]
    if RULE.code in running:
        kept += findings_of(
            (_unused(item, scene) for item in ignores if _idle(item, running)), scene
        )
    return kept


def _silenced(finding: Finding, ignores: list[Ignore], scene: Scene) -> bool:
    where = finding.location
    names = {finding.rule.lower(), finding.name}
    silenced = False
    for item in ignores:
        cell, line = scene.source.place(item.covers)
        hits_line = cell == where.cell and where.line <= line <= max(where.end_line, where.line)
        if names & set(item.rules) and (item.whole_file or hits_line):
            item.used |= names & set(item.rules)
            silenced = True
    return silenced


def _idle(item: Ignore, running: set[str]) -> bool:
    codes = {key: rule.code for rule in all_rules() for key in (rule.code.lower(), rule.name)}
    judged = [name for name in item.rules if codes.get(name) is None or codes[name] in running]
    return not item.rules or bool(set(judged) - item.used)


def _unused(item: Ignore, scene: Scene) -> Hit:
    problem = _problem(item)
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
    why = Text(
        RULE.why.en.replace("{problem}", problem.en), RULE.why.zh.replace("{problem}", problem.zh)
    )
    comment = line[item.column : item.end_column][:60]
    return RULE.at(node, why=why, fix=None if partly else safe(edit), comment=comment)


def _problem(item: Ignore) -> Text:
    known = {key for rule in all_rules() for key in (rule.code.lower(), rule.name)}
    strange = ", ".join(name for name in item.rules if name not in known)
    if not item.rules:
        return Text("it names no rule", "没有写明规则")
    if strange:
        return Text(f"there is no rule {strange}", f"不存在规则 {strange}")
    return Text("the rule does not fire here", "该规则在此并未触发")
