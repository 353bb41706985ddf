"""One of two ranks that both receive sends instead: the one that was found, or another one of the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, called, fix
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("DR604", "DR606")


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    others = (
        node
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Call) and called(node) == "recv"
    )
    for call in dict.fromkeys((*file.calls(finding.line, "recv"), *others)):
        source = next((item for item in call.keywords if item.arg == "src"), None)
        if source is not None and isinstance(call.func, ast.Attribute) and call.args:
            owner, tensor = file.source(call.func.value), file.source(call.args[0])
            text = f"{owner}.send({tensor}, dst={file.source(source.value)})"
            yield fix(
                [file.replace(call, text)],
                "send what the other rank waits for",
                "发送对方等待的张量",
            )
