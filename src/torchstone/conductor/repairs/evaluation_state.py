"""An evaluation leaves the model as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, called, fix
from torchstone.conductor.repairs._trees import nodes_of
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("EX114",)


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    function = file.function(finding.line)
    if function is None:
        return
    for node in nodes_of(function):
        # switched to training before the batches: the statement says what was not meant
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and called(node.value) == "train"
        ):
            value = node.value
            if isinstance(value.func, ast.Attribute) and not value.args:
                text = f"{file.source(value.func.value)}.eval()"
                yield fix(
                    [file.replace(value, text)], "evaluate in evaluation mode", "在评估模式下评估"
                )
                break
    names = [item.arg for item in function.args.args if item.arg not in ("self", "cls")]
    models = [name for name in names if "model" in name or "net" in name] or names[:1]
    first = next((item for item in function.body if not _is_docstring(item)), None)
    for name in models[:1]:
        if first is not None:
            edit = file.insert_before(first.lineno, f"{name}.eval()")
            yield fix([edit], "evaluate in evaluation mode", "在评估模式下评估")


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
