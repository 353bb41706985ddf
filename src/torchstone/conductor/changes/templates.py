"""Edits for what rules and dry runs find without an edit of their own; each is tried before it is offered
as a patch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

from torchstone.conductor.probes.templates import SourceFile, called, fix, parsed
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix
from torchstone.core.place import Place

_RANK = ("rank", "is_main", "is_master", "main_process")


def edits_for(finding: Finding, root: Path) -> tuple[Fix, ...]:
    """All edits that templates have for a finding."""
    place = Place(finding.path, finding.line)
    file = parsed(root, place) if finding.path else None
    makers = _MAKERS.get(finding.rule, ())
    return tuple(item for maker in makers for item in maker(file, place)) if file else ()


def _hoisted(file: SourceFile, place: Place) -> Iterator[Fix]:
    """A barrier under a condition on the rank moves in front of it: every rank comes to it."""
    for branch in ast.walk(file.tree):
        if not isinstance(branch, ast.If) or branch.orelse:
            continue
        if not any(word in file.source(branch.test) for word in _RANK):
            continue
        inner = [item for item in branch.body if isinstance(item, ast.Expr)
                 and isinstance(item.value, ast.Call) and called(item.value) == "barrier"
                 and item.lineno <= place.line <= (item.end_lineno or item.lineno)]  # fmt: skip
        for statement in inner if len(branch.body) > 1 else ():
            yield fix(
                [file.insert_before(branch.lineno, file.source(statement)), file.delete(statement)],
                "let every rank come to the barrier", "让所有 rank 都到达 barrier",
            )  # fmt: skip


def _answered(file: SourceFile, place: Place) -> Iterator[Fix]:
    """One of two that both receive sends instead: the one that was found, or another one of the file."""
    others = (node for node in ast.walk(file.tree)
              if isinstance(node, ast.Call) and called(node) == "recv")  # fmt: skip
    for call in dict.fromkeys((*file.calls(place.line, "recv"), *others)):
        source = next((item for item in call.keywords if item.arg == "src"), None)
        if source is not None and isinstance(call.func, ast.Attribute) and call.args:
            owner, tensor = file.source(call.func.value), file.source(call.args[0])
            text = f"{owner}.send({tensor}, dst={file.source(source.value)})"
            yield fix([file.replace(call, text)], "send what the other rank waits for", "发送对方等待的张量")  # fmt: skip


ONE_BY_ONE = frozenset(("TS401", "DR601", "DR603", "DR604", "DR606"))
"""Rules whose places are faults of their own: each has another partner, and is fixed by itself."""

_MAKERS: dict[str, tuple[Callable[[SourceFile, Place], Iterator[Fix]], ...]] = {
    "TS401": (_hoisted,), "DR601": (_hoisted,), "DR603": (_hoisted,),
    "DR604": (_answered,), "DR606": (_answered,),
}  # fmt: skip
