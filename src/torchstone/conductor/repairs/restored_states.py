"""A state that a checkpoint holds is loaded beside the others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, called, fix
from torchstone.conductor.repairs._trees import nodes_of, statements_that_call
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("EX118",)


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    name = str(dict(finding.what.args).get("name", ""))
    function = file.function(finding.line)
    if function is None or not name:
        return
    held = next(_names_of_file(function), "")
    restored = [statement for statement, _ in statements_that_call(function, "load_state_dict")]
    after = restored[-1] if restored else file.statement(finding.line)
    for key in dict.fromkeys(_keys(file, name)):
        if held and after is not None:
            yield fix(
                [file.insert_after(after, f"{name}.load_state_dict({held}[{key}])")],
                "load the state that was saved",
                "加载已保存的状态",
            )


def _names_of_file(function: ast.AST) -> Iterator[str]:
    for node in nodes_of(function):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and called(node.value) == "load"
            and isinstance(node.targets[0], ast.Name)
        ):
            yield node.targets[0].id


def _keys(file: SourceFile, name: str) -> Iterator[str]:
    """Under which the state is saved: `{"ema": ema.state_dict()}`, `dict(ema=…)`, `state["ema"] = …`."""
    wanted = f"{name}.state_dict()"
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is not None and file.source(value) == wanted:
                    yield file.source(key)
        elif isinstance(node, ast.keyword) and node.arg and file.source(node.value) == wanted:
            yield repr(node.arg)
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Subscript)
            and file.source(node.value) == wanted
        ):
            yield file.source(node.targets[0].slice)
