"""Switching requires_grad on for a finished loss makes backward() run and do nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import reaches
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene
from torchstone.sources.training import backward_calls

RULE = Rule(
    "TS218",
    "detached-loss",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{text}` makes a leaf of `{loss}` right before its backward()",
        zh="`{text}` 在 backward() 之前把 `{loss}` 变成了叶子张量",
    ),
    why=Text(
        en="the gradient ends at that leaf: backward() no longer raises, no parameter gets a "
        "gradient, and the model never learns",
        zh="梯度到这个叶子就终止：backward() 不再报错，但没有任何参数得到梯度，模型不会学习",
    ),
    suggest=Text(
        en="remove it, and find where the graph is cut (no_grad, detach, .item(), numpy, argmax)",
        zh="删除它，并找出计算图在哪里断开（no_grad、detach、.item()、numpy、argmax）",
    ),
    title=Text(
        en="Switching requires_grad on for the loss itself hides that its graph is cut, so "
        "nothing trains",
        zh="对损失本身打开 requires_grad，掩盖了计算图已断开，什么也训练不了",
    ),
    page=Text(
        en="Fires for `loss.requires_grad = True`, `loss.requires_grad_()`, "
        "`loss = Variable(loss, requires_grad=True)` and "
        "`loss = torch.tensor(loss, requires_grad=True)` when `loss.backward()` follows in the same "
        "function. A loss that hangs on the graph needs none of this (setting it again changes "
        "nothing); one that does not is cut off for good.\n\n"
        "- Quiet for inputs and parameters, which are not the receiver of backward().",
        zh="对 `loss.requires_grad = True`、`loss.requires_grad_()`、`loss = Variable(loss, "
        "requires_grad=True)`、`loss = torch.tensor(loss, requires_grad=True)`，若同一函数内随后调用 "
        "`loss.backward()`，则报告。连在计算图上的损失不需要这样做（设置了也没有作用）；没有连在图上的，"
        "则彻底断开。\n\n"
        "- 输入和参数不是 backward() 的调用者，不报告。",
    ),
    bad="""\
import torch

def step(model, x, y, criterion, optimizer):
    optimizer.zero_grad()
    loss = criterion(model(x).argmax(1).float(), y)
    loss.requires_grad = True
    loss.backward()
    optimizer.step()
""",
    good="""\
@@ -5,2 +5 @@
-    loss = criterion(model(x).argmax(1).float(), y)
-    loss.requires_grad = True
+    loss = criterion(model(x), y)
""",
    needs=("backward", "requires_grad"),
    words=("requires_grad", "requires_grad_"),
)


_CUTS = frozenset(
    ("item", "detach", "tensor", "numpy", "argmax", "as_tensor", "from_numpy", "tolist")
)


@RULE.on(ast.Assign)
def on_assigned(statement: ast.Assign, scene: Scene) -> Iterator[Hit]:
    target = statement.targets[0]
    if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
        if scene.literal(statement.value) is True:
            yield from _check(statement, target.value, scene)
    elif isinstance(target, ast.Name) and isinstance(statement.value, ast.Call):
        call = statement.value
        wraps = scene.qualified(call.func) in (
            "torch.tensor", "torch.as_tensor", "torch.autograd.Variable", "torch.Tensor",
        )  # fmt: skip
        if wraps and call.args and scene.literal(scene.keyword(call, "requires_grad")) is True:
            if any(
                isinstance(n, ast.Name) and n.id == target.id for n in scene.inside(call.args[0])
            ):
                yield from _check(statement, target, scene)


@RULE.on_call("requires_grad_")
def on_method(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    off = scene.argument(call, 0, "requires_grad")
    receiver = scene.receiver(call)
    if receiver is not None and (off is None or scene.literal(off) is True):
        yield from _check(call, receiver, scene)


def _is_cut(scene: Scene, node: ast.AST, loss: ast.Name) -> bool:
    """Whether the loss is seen to have lost its graph; a loss that has one only looks odd."""
    value = node.value if isinstance(node, ast.Assign) else None
    if isinstance(value, ast.Call) and isinstance(node.targets[0], ast.Name):  # type: ignore[attr-defined]
        return True  # a new tensor made from the old
    source = scene.value(loss)
    return source is not None and any(
        (isinstance(part, ast.Call) and scene.last_name(part.func) in _CUTS)
        or (isinstance(part, ast.Attribute) and part.attr == "data")
        for part in scene.inside(source)
    )


def _check(node: ast.AST, loss: ast.expr, scene: Scene) -> Iterator[Hit]:
    if not isinstance(loss, ast.Name):
        return
    rows = scene.bindings(loss)
    if not any(row.how in ("assign", "augment", "unpack") for row in rows):
        return
    for call in backward_calls(scene):
        if scene.dotted(scene.receiver(call)) == loss.id and reaches(scene, node, call):
            again = [
                row
                for row in rows
                if row.statement is not node
                and getattr(node, "lineno", 0) < row.position[0] <= call.lineno
            ]
            if not again:
                yield RULE.at(
                    node,
                    severity=None if _is_cut(scene, node, loss) else MEDIUM,
                    text=scene.brief(node),
                    loss=loss.id,
                )
                return
