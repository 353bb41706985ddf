"""Branches and loops that are functions of torch (`torch.cond`, `while_loop`, `scan`) run as the
plain code that they stand for: above autograd, so that their backward is seen too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torchstone.observe.undo import Undo

_HOME = "torch._higher_order_ops"


def as_plain_code(undo: Undo, decide: Callable[[Any], bool] = bool) -> None:
    """From now on the branch that is taken is simply called; `decide` says which one a predicate
    takes."""

    def cond(predicate: Any, yes: Any, no: Any, operands: Any) -> Any:
        return (yes if decide(predicate) else no)(*operands)

    _put(undo, "cond", "cond_op", cond)
    loops: Any = sys.modules.get(f"{_HOME}.while_loop")
    _put(undo, "while_loop", "while_loop_op", getattr(loops, "while_loop_dense", None))
    scans: Any = sys.modules.get(f"{_HOME}.scan")
    generic = getattr(scans, "generic_scan", None)
    if generic is not None:
        _put(undo, "scan", "scan_op", lambda code, start, values, additional_inputs=(): generic(
            code, start, values, additional_inputs=additional_inputs
        ))  # fmt: skip


def _put(undo: Undo, file: str, name: str, plain: Any) -> None:
    """Put plain code in the place of an operator, where this torch has both."""
    module = sys.modules.get(f"{_HOME}.{file}")
    if module is not None and plain is not None and hasattr(module, name):
        undo.set(module, name, plain)
