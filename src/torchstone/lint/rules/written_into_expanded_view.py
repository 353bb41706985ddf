"""An in-place write into an expanded view changes several places at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import settled
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS249",
    "written-into-expanded-view",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{name}` is an expanded view: what is written into it lands in several places",
        zh="`{name}` 是扩展出的视图：写入的内容会出现在多处",
    ),
    why=Text(
        en="`expand` copies nothing: the rows share their memory, and torch raises an error or gives another result",
        zh="`expand` 不复制数据：各行共用内存，torch 会报错或给出不同的结果",
    ),
    suggest=Text(
        en="write `{name}.clone()` or use `repeat`", zh="使用 `{name}.clone()`，或改用 `repeat`"
    ),
    title=Text(
        en="A tensor that was made by expand() is changed in place",
        zh="就地修改了由 expand() 得到的张量",
    ),
    page=Text(
        en="Quiet once the value went through `clone`, `contiguous` or any other operation that gives a tensor of its own.",
        zh="值经过 `clone`、`contiguous` 或其他产生新张量的操作之后不报告。",
    ),
    words=("expand", "expand_as", "broadcast_to"),
    bad="""\
import torch

def mask(row, rows):
    table = row.unsqueeze(0).expand(rows, -1)
    table[0] = 0
    return table
""",
    good="""\
@@ -4 +4 @@
-    table = row.unsqueeze(0).expand(rows, -1)
+    table = row.unsqueeze(0).expand(rows, -1).clone()
""",
)
_EXPANDS = ("expand", "expand_as", "broadcast_to")
_WRITES = ("fill_", "zero_", "add_", "mul_", "sub_", "div_", "copy_", "masked_fill_", "scatter_", "index_fill_",
           "clamp_", "index_copy_", "index_add_", "random_", "normal_", "uniform_")  # fmt: skip


@RULE.on(ast.Subscript)
def on_store(node: ast.Subscript, scene: Scene) -> Iterator[Hit]:
    """`table[0] = 0`"""
    if not isinstance(node.ctx, ast.Load):
        yield from _check(node, node.value, scene)


@RULE.on_call(*_WRITES)
def on_method(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`table.fill_(0)`"""
    receiver = scene.receiver(call)
    if receiver is not None:
        yield from _check(call, receiver, scene)


def _check(node: ast.AST, target: ast.expr, scene: Scene) -> Iterator[Hit]:
    if not isinstance(target, ast.Name):
        return
    value = settled(scene, target)
    if isinstance(value, ast.Call) and scene.method(value) in _EXPANDS:
        if not _is_module(scene, value):
            yield RULE.at(node, name=target.id)


def _is_module(scene: Scene, call: ast.Call) -> bool:
    return scene.dotted(scene.receiver(call)) == "self"
