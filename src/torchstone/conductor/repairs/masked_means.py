"""A mean over a sequence counts what is not padding."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, called, fix
from torchstone.conductor.repairs._trees import as_operand, nodes_of
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("EX117",)
_MASKS = ("mask", "valid", "seen", "keep")


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    """`x.mean(1)` beside a mask becomes the sum over it, divided by its sum."""
    function = file.function(finding.line)
    if function is None:
        return
    masks = [
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and any(word in node.id.lower() for word in _MASKS)
    ]
    masks += [item.arg for item in function.args.args if any(word in item.arg for word in _MASKS)]
    for node in nodes_of(function):
        if not (isinstance(node, ast.Call) and called(node) == "mean"):
            continue
        if not isinstance(node.func, ast.Attribute) or (not node.args and not node.keywords):
            continue
        axis = node.args[0] if node.args else node.keywords[0].value
        value = as_operand(file, node.func.value)
        for mask in dict.fromkeys(masks):
            for form in (f"{mask}", f"{mask}.unsqueeze(-1)", f"(~{mask}).unsqueeze(-1)"):
                weights = f"{form}.float()"
                text = (
                    f"(({value} * {weights}).sum({file.source(axis)}) "
                    f"/ {weights}.sum({file.source(axis)}).clamp(min=1))"
                )
                yield fix(
                    [file.replace(node, text)], "count only what is not padding", "只计入非填充部分"
                )
