"""An average of weights takes over the buffers, too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, fix
from torchstone.conductor.repairs._trees import nodes_of
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("EX108",)
_PARAMETERS = re.compile(r"([\w.]+)\.(?:named_)?parameters\(\)")


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    """Behind the loop over the parameters of both models."""
    function = file.function(finding.line)
    for loop in nodes_of(function) if function is not None else ():
        if not isinstance(loop, ast.For):
            continue
        owners = _PARAMETERS.findall(file.source(loop.iter))
        if len(owners) == 2 and "buffers()" not in file.source(function or loop):
            depth = file.indent(loop.lineno)
            text = (
                f"for kept, new in zip({owners[0]}.buffers(), {owners[1]}.buffers()):\n"
                f"{depth}    kept.copy_(new)"
            )
            yield fix(
                [file.insert_after(loop, text)], "take over the buffers, too", "同时更新缓冲区"
            )
