"""A state that is kept for later is copied."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, called, fix
from torchstone.conductor.repairs._trees import with_import
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("EX105", "EX126")


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    taken = file.calls(finding.line, "state_dict") or list(_kept(file))
    changes = [file.replace(call, f"copy.deepcopy({file.source(call)})") for call in taken]
    if changes:
        yield fix(
            [*with_import(file, "copy"), *changes], "keep a copy of the state", "保存状态的副本"
        )


def _kept(file: SourceFile) -> Iterator[ast.Call]:
    """States that are assigned to a name: they are read later."""
    for node in ast.walk(file.tree):
        values = node.value if isinstance(node, ast.Assign) else None
        for value in values.elts if isinstance(values, ast.Tuple) else (values,):
            if isinstance(value, ast.Call) and called(value) == "state_dict":
                yield value
