"""What is taken over the batch is taken over the last axis."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, called, fix
from torchstone.conductor.repairs._trees import nodes_of
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("EX116",)
_OVER = frozenset(
    "normalize softmax log_softmax mean sum std var norm max min amax amin argmax cumsum logsumexp median".split()
)
_WORDS = ("dim", "axis")


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    function = file.function(finding.line)
    for node in nodes_of(function) if function is not None else ():
        if not isinstance(node, ast.Call) or called(node) not in _OVER:
            continue
        given = [item.value for item in node.keywords if item.arg in _WORDS]
        is_method = isinstance(node.func, ast.Attribute) and len(node.args) == 1
        for value in given or (node.args if is_method else []):
            if isinstance(value, ast.Constant) and value.value == 0:
                edit = file.replace(value, "-1")
                yield fix([edit], "take it over the last axis", "在最后一维上计算")
