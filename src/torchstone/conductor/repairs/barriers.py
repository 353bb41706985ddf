"""A barrier under a condition on the rank moves in front of it: every rank comes to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, called, fix
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("TS401", "DR601", "DR603")
_RANK = ("rank", "is_main", "is_master", "main_process")


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    for branch in ast.walk(file.tree):
        if not isinstance(branch, ast.If) or branch.orelse:
            continue
        if not any(word in file.source(branch.test) for word in _RANK):
            continue
        inner = [
            item
            for item in branch.body
            if isinstance(item, ast.Expr)
            and isinstance(item.value, ast.Call)
            and called(item.value) == "barrier"
            and item.lineno <= finding.line <= (item.end_lineno or item.lineno)
        ]
        for statement in inner if len(branch.body) > 1 else ():
            yield fix(
                [file.insert_before(branch.lineno, file.source(statement)), file.delete(statement)],
                "let every rank come to the barrier",
                "让所有 rank 都到达 barrier",
            )
