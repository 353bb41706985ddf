"""An inner loop unpacks a batch and uses the one of the loop around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS255",
    "outer-batch-in-inner-loop",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{new}` is unpacked and never used; `{old}` is from another loop",
        zh="解包得到的 `{new}` 从未使用，而 `{old}` 来自另一个循环",
    ),
    why=Text(
        en="the batch of the outer loop is compared with the outputs of the inner one: the numbers are wrong, or the shapes do not fit",
        zh="外层循环的数据与内层循环的输出放在一起：结果有误，或形状不符",
    ),
    suggest=Text(en="use `{new}`", zh="改用 `{new}`"),
    title=Text(
        en="An inner loop unpacks a batch but uses a variable of the outer one",
        zh="内层循环解包了数据，却使用了外层循环的变量",
    ),
    page=Text(
        en="Reported when the loop unpacks several names, one of them is read nowhere in the function, and its body reads a name of the same stem (`labels` for `labels_val`) that only another loop binds.",
        zh="当循环解包出多个名字、其中一个在函数中从未被读取，而循环体读取了只由另一个循环绑定的同词干名字（如 `labels_val` 与 `labels`）时报告。",
    ),
    words=("torch",),
    bad="""\
import torch

def fit(model, train_loader, val_loader, loss_of, optimizer):
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss_of(model(images), labels).backward()
        optimizer.step()
        with torch.no_grad():
            for images_val, labels_val in val_loader:
                val_loss = loss_of(model(images_val), labels)
    return val_loss
""",
    good="""\
@@ -10 +10 @@
-                val_loss = loss_of(model(images_val), labels)
+                val_loss = loss_of(model(images_val), labels_val)
""",
)

_PHASES = frozenset("train training val valid validation test eval dev tr te trn".split())
"""What names of batches are told apart by."""


@RULE.on(ast.For)
def check(loop: ast.For, scene: Scene) -> Iterator[Hit]:
    """`for images_val, labels_val in loader: loss(model(images_val), labels)`"""
    function = scene.function(loop)
    names = _unpacked(loop.target)
    if function is None or len(names) < 2:
        return
    read = _reads(scene)
    for new in names:
        if (function, new.id) in read or new.id.startswith("_") or _counts(scene, loop, new):
            continue
        old = _twin(scene, loop, new)
        if old is not None:
            yield RULE.at(old, new=new.id, old=old.id)


def _reads(scene: Scene) -> set[tuple[ast.AST | None, str]]:
    """The names that each function reads; worked out once."""
    found: set[tuple[ast.AST | None, str]] | None = scene.cache.get("names read by functions")
    if found is None:
        found = scene.cache["names read by functions"] = {
            (scene.function(node), node.id)
            for node in scene.all(ast.Name)
            if isinstance(node.ctx, ast.Load)
        }
    return found


def _unpacked(target: ast.expr) -> list[ast.Name]:
    if isinstance(target, ast.Name):
        return [target]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for part in target.elts for name in _unpacked(part)]
    return []


def _counts(scene: Scene, loop: ast.For, name: ast.AST) -> bool:
    """Whether a loop only counts with a name: epochs, indices."""
    called = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    if scene.last_name(called) == "enumerate" and isinstance(loop.target, ast.Tuple):
        return loop.target.elts[0] is name
    return scene.last_name(called) in ("range", "trange", "count")


def _twin(scene: Scene, loop: ast.For, new: ast.Name) -> ast.Name | None:
    """A name of the same stem that the body reads and another loop binds."""
    stems = {part for part in new.id.split("_") if len(part) > 1}
    for node in scene.inside(loop):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        others = {part for part in node.id.split("_") if len(part) > 1}
        kin = others < stems or bool(stems & others and (stems ^ others) <= _PHASES)
        if node.id == new.id or not others or not kin:
            continue
        rows = scene.bindings(node)
        bound = [row.statement for row in rows]
        if rows and all(row.how == "loop" and row.statement is not loop for row in rows):
            if all(
                isinstance(item, ast.For)
                and not scene.within(item, loop)
                and not _counts(scene, item, row.node)
                for row, item in zip(rows, bound, strict=True)
            ):
                return node
    return None
