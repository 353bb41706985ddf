"""Operators that lose digits on half-precision operands, and why some of them do no harm."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torchstone.core.text import Text
from torchstone.lint.facts.callers import calls_of
from torchstone.lint.knowledge.autocast_ops import runs_in_fp32
from torchstone.lint.values.analysis import value_at
from torchstone.lint.values.reach import half_may_reach
from torchstone.lint.values.value import Value
from torchstone.sources.scene import Scene

NO_GRADIENT = Text("no gradient is computed here", "此处不计算梯度")
OPTIMIZER = Text("an optimizer chooses its own types", "优化器自行选择数据类型")
_OPTIMIZERS = frozenset(("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer"))
_CAST_UP = Text("autocast runs it in float32 here", "此处 autocast 以 float32 运行它")
_NO_HALF = Text("no half precision is seen to reach it", "未见半精度值到达此处")


class HalfOperand(NamedTuple):
    """The half type that an operator works on, and why that was thought harmless, if it was."""

    dtype: str
    harmless: Text | None

    @property
    def precision(self) -> str:
        """The type whose dangers are named: where it is not known, that of CUDA's autocast."""
        return self.dtype if self.dtype == "bfloat16" else "float16"


def subject(scene: Scene, call: ast.Call) -> ast.expr | None:
    """The tensor that a function or method of torch works on: `x` of `torch.sum(x)`, `x.sum()`."""
    if scene.method(call):
        return scene.receiver(call)
    if scene.qualified(call.func).startswith("torch."):
        return scene.argument(call, 0, "input")
    return None


def half_operand(
    scene: Scene, call: ast.Call, tensor: ast.expr | None, operator: str
) -> HalfOperand | None:
    """The half operand of a call; None where none is seen. What is harmless is worked out further
    only if somebody asks for it."""
    if tensor is None:
        return None
    value = value_at(scene, tensor) if half_may_reach(scene, call) else Value()
    if not value.may_be_half:
        return HalfOperand("half", _NO_HALF) if scene.project.strict else None
    region = scene.region(call)
    cast = region.autocast
    if cast is not None and (cast.dtype == "float32" or runs_in_fp32(operator, cast.device)):
        return HalfOperand(value.half_type, _CAST_UP)
    if region.without_grad:
        return HalfOperand(value.half_type, NO_GRADIENT)
    return HalfOperand(value.half_type, OPTIMIZER if works_for_optimizer(scene, call) else None)


def works_for_optimizer(scene: Scene, node: ast.AST, depth: int = 2) -> bool:
    """Whether a place belongs to an optimizer, or to a function that optimizers alone call: their types
    are chosen, and no gradient passes."""
    owner, function = scene.class_of(node), scene.function(node)
    if owner is not None and scene.derives(owner, _OPTIMIZERS):
        return True
    sites = calls_of(scene, function) if function is not None and depth else None
    return bool(sites) and all(
        home.function(site) is not function and works_for_optimizer(home, site, depth - 1)
        for home, site in sites or ()
    )


def half_here(scene: Scene, node: ast.expr | None) -> tuple[str, bool]:
    """The half type of a value, and whether that is certain: on every path, in a region that nothing
    switches off. ("", False) for what is not half as far as is known."""
    if node is None or not half_may_reach(scene, node):
        return "", False
    value = value_at(scene, node)
    if value.is_half:
        return value.half_type, True
    cast = scene.region(node).autocast
    doubtful = value.lowered and cast is not None and not cast.certain
    return (value.half_type, False) if doubtful else ("", False)
