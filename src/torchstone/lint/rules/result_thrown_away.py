"""An out-of-place operation whose result nobody takes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import made
from torchstone.lint.rule import CERTAIN, HIGH, LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

# these have a twin that works in place
_TWINS = frozenset(
    "add sub mul div pow addcmul addcdiv clamp clamp_min clamp_max masked_fill lerp index_add "
    "index_fill scatter scatter_add unsqueeze squeeze transpose detach exp sqrt neg sigmoid tanh relu".split()
)
# sets, strings and dicts have none of these: the name alone tells a tensor
_OF_TENSORS = frozenset(
    "addcmul addcdiv clamp clamp_min clamp_max masked_fill index_add index_fill scatter_add unsqueeze".split()
)
_MOVES = frozenset(
    ("to", "cuda", "cpu", "float", "half", "long", "double", "view", "reshape", "permute")
)

RULE = Rule(
    "TS236",
    "result-thrown-away",
    torch_from=(0, 1),
    severity=HIGH,
    confidence=LIKELY,
    say=Text(en="the result of `{call}` is thrown away", zh="`{call}` 的结果被丢弃"),
    why=Text(
        en="`{name}` gives a new tensor and leaves the old one as it is: this line does nothing",
        zh="`{name}` 返回新张量，原张量不变：这一行没有任何作用",
    ),
    suggest=Text(en="bind the result{twin}", zh="把结果赋给变量{twin_zh}"),
    title=Text(
        en="An operation that returns a new tensor stands alone, so it changes nothing",
        zh="返回新张量的操作单独成句，什么也没有改变",
    ),
    page=Text(
        en="Fires for a statement that is nothing but `x.add(y)`, `x.clamp(…)`, `x.to(device)` and the like "
        "of a tensor: `p.data`, `p.grad`, a value that torch made, or a method that only tensors have "
        "(`masked_fill`, `addcdiv`, `unsqueeze` …; MEDIUM, since another class may have it too).\n\n"
        "- Modules move in place: `model.to(device)` is fine.\n"
        "- The last line of a notebook cell, which shows the value, is quiet.\n"
        "- The fix adds the underscore; unsafe, since a new name may have been meant.",
        zh="当一条语句只是对张量调用 `x.add(y)`、`x.clamp(…)`、`x.to(device)` 等时报告：`p.data`、`p.grad`、由 torch 创建的值，"
        "或只有张量才有的方法（`masked_fill`、`addcdiv`、`unsqueeze` 等；其他类也可能有同名方法，故为 MEDIUM）。\n\n"
        "- 模块的移动是就地的：`model.to(device)` 没有问题。\n"
        "- 笔记本单元格的最后一行用于显示值，不报告。\n"
        "- 修复会补上下划线；不安全，因为也可能本想赋给新的名字。",
    ),
    bad="""\
import torch

def decay(parameters, rate):
    for p in parameters:
        p.data.add(p.grad, alpha=-rate)
""",
    fixed="""\
@@ -5 +5 @@
-        p.data.add(p.grad, alpha=-rate)
+        p.data.add_(p.grad, alpha=-rate)
""",
    words=tuple(sorted(_TWINS | _MOVES)),
    needs=("torch",),
)


_PURE = frozenset(
    f"torch.{name}"
    for name in "sum mean cat stack abs exp log sqrt clamp where matmul mul add sub div softmax sigmoid "
    "tanh relu norm max min argmax squeeze unsqueeze transpose permute reshape flatten masked_select".split()
)


@RULE.on(ast.Expr)
def check_functions(statement: ast.Expr, scene: Scene) -> Iterator[Hit]:
    """`torch.sum(x)` as a statement."""
    call = statement.value
    if not isinstance(call, ast.Call) or scene.qualified(call.func) not in _PURE:
        return
    timed = scene.enclosing(statement, ast.For, ast.While, ast.With)
    if scene.source.cell_starts or scene.is_test or scene.keyword(call, "out") or timed:
        return  # a loop or a `with` around it may measure it
    yield RULE.at(
        call,
        severity=MEDIUM,
        call=scene.brief(call),
        name=scene.last_name(call.func),
        twin="",
        twin_zh="",
    )


@RULE.on(ast.Expr)
def check(statement: ast.Expr, scene: Scene) -> Iterator[Hit]:
    call = statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return
    name, receiver = call.func.attr, call.func.value
    if name not in _TWINS | _MOVES or scene.source.cell_starts or scene.is_test:
        return
    if any(keyword.arg == "out" for keyword in call.keywords) or not scene.method(call):
        return
    known = _is_tensor(scene, receiver) or scene.keyword(call, "alpha") is not None
    if not known and (name not in _OF_TENSORS or scene.is_model(receiver)):
        return
    yield RULE.at(
        call,
        severity=HIGH if known else MEDIUM,
        confidence=CERTAIN if known and isinstance(receiver, ast.Attribute) else None,
        call=scene.brief(call),
        name=name,
        fix=_fix(scene, call.func, name),
        twin=f", or use `{name}_`, which works in place" if name in _TWINS else "",
        twin_zh=f"，或改用就地的 `{name}_`" if name in _TWINS else "",
    )


def _is_tensor(scene: Scene, node: ast.expr) -> bool:
    """`p.data`, `p.grad`, and what a function of torch made in the same scope."""
    if isinstance(node, ast.Attribute) and node.attr in ("data", "grad"):
        return scene.dotted(node.value) != "self"
    source = made(scene, node) if isinstance(node, ast.Name) else None
    if isinstance(source, ast.Attribute):
        return source.attr in ("data", "grad") and scene.dotted(source.value) != "self"
    return isinstance(source, ast.Call) and scene.qualified(source.func) in _FACTORIES


_FACTORIES = frozenset(
    f"torch.{name}"
    for name in "zeros ones rand randn empty full tensor arange eye linspace zeros_like ones_like "
    "rand_like randn_like empty_like full_like from_numpy as_tensor cat stack randint randperm".split()
)


def _fix(scene: Scene, func: ast.Attribute, name: str) -> Fix | None:
    if name not in _TWINS:
        return None
    return unsafe(scene.insert_after(func, "_"))
