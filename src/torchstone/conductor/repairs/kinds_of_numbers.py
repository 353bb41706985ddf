"""A loss gets the kind of numbers that it takes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, called, fix, parsed
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix
from torchstone.core.place import Place

RULES = ("DR204",)
_MADE = re.compile(r"takes ([\w-]+).* made by \S+ at (\S+?):(\d+)")
_LOGARITHMS = {"softmax": "log_softmax", "sigmoid": "logsigmoid"}


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    match = _MADE.search(finding.what.say("en"))
    made = parsed(file.home, Place(match[2])) if match else None
    if match is None or made is None:
        return
    for call in made.calls(int(match[3]), *_LOGARITHMS):
        if match[1].startswith("log-") and isinstance(call.func, ast.Attribute):
            text = f"{made.source(call.func.value)}.{_LOGARITHMS[called(call)]}"
            edit = made.replace(call.func, text)
            yield fix([edit], "give the loss log-probabilities", "向损失传入对数概率")
        elif match[1].startswith("logit") and (inner := _argument(made, call)):
            yield fix([made.replace(call, inner)], "give the loss logits", "向损失传入 logits")


def _argument(file: SourceFile, call: ast.Call) -> str:
    """What the probabilities are made of: `F.softmax(x, -1)`, `x.softmax(-1)`."""
    owner = file.source(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if owner in ("F", "torch", "nn.functional", "torch.nn.functional", "torch.special"):
        return file.source(call.args[0]) if call.args else ""
    return owner or (file.source(call.args[0]) if call.args else "")
