"""Gradients are cleared right after the step that used them."""

from __future__ import annotations

from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, fix
from torchstone.conductor.repairs._trees import (
    owner_of,
    remove,
    scope_at,
    statements_that_call,
)
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("EX102", "EX122")


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    scope = scope_at(file, finding.line)
    steps = [
        pair
        for pair in statements_that_call(scope, "step")
        if finding.rule == "EX122" or pair[0].lineno == finding.line
    ]
    clears = list(statements_that_call(scope, "zero_grad"))
    for step, stepping in steps:
        for clear, clearing in clears:
            names = {owner_of(file, clearing), owner_of(file, stepping)}
            if len(names) > 1 and len(steps) > 1:
                continue
            yield fix(
                [remove(file, scope, clear), file.insert_after(step, file.source(clear))],
                "clear the gradients after the step",
                "在更新之后清除梯度",
            )
