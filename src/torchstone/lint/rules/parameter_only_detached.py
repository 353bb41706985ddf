"""A parameter that is only ever read through `detach()` or `.data` never trains."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.members import has_subclass
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS253",
    "parameter-only-detached",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`self.{name}` is read only without its graph, so it gets no gradient",
        zh="`self.{name}` 只在脱离计算图后被读取，因此得不到梯度",
    ),
    why=Text(
        en="`detach()` and `.data` cut the graph: the optimizer holds a parameter that never changes",
        zh="`detach()` 和 `.data` 会切断计算图：优化器持有的这个参数永远不会更新",
    ),
    suggest=Text(
        en="use `self.{name}` itself, or register a buffer",
        zh="直接使用 `self.{name}`，或改为注册 buffer",
    ),
    title=Text(
        en="A parameter of a module is always detached before it is used",
        zh="模块的参数在使用前总是被 detach",
    ),
    page=Text(
        en="Reported when every use of an `nn.Parameter` in the methods of its class, `__init__` apart, goes through `detach()` or `.data`, and one is part of `forward`.",
        zh="当 `nn.Parameter` 在其类的方法中（`__init__` 除外）的每次使用都经过 `detach()` 或 `.data`，且其中一次在 `forward` 中时报告。",
    ),
    words=("Parameter",),
    bad="""\
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.scale.detach()
""",
    good="""\
@@ -10 +10 @@
-        return x * self.scale.detach()
+        return x * self.scale
""",
)


@RULE.on(ast.ClassDef)
def check(owner: ast.ClassDef, scene: Scene) -> Iterator[Hit]:
    """`x * self.scale.detach()`"""
    if not scene.is_module_class(owner) or has_subclass(scene.project, owner):
        return
    names = {
        scene.last_name(target)
        for call in scene.calls.get("Parameter", ())
        if isinstance(statement := scene.statement(call), ast.Assign)
        and statement.value is call
        and scene.class_of(call) is owner
        and scene.literal(scene.argument(call, 1, "requires_grad")) is not False
        for target in statement.targets
        if scene.dotted(target).startswith("self.")
    }
    uses: dict[str, list[ast.Attribute]] = {}
    for node in scene.inside(owner) if names else ():
        if (
            isinstance(node, ast.Attribute)
            and node.attr in names
            and isinstance(node.ctx, ast.Load)
        ):
            uses.setdefault(node.attr, []).append(node)
    for name, rows in uses.items():
        read = [node for node in rows if _function(scene, node) != "__init__"]
        cut = [node for node in read if _is_cut(scene, node)]
        if read and len(cut) == len(read):
            inside = [node for node in cut if _function(scene, node) == "forward"]
            written = any(_is_written(scene, node) for node in cut)
            if inside and not written:
                yield RULE.at(inside[0], name=name)


def _function(scene: Scene, node: ast.AST) -> str:
    return getattr(scene.function(node), "name", "")


def _is_cut(scene: Scene, node: ast.Attribute) -> bool:
    up = scene.parent(node)
    return isinstance(up, ast.Attribute) and up.attr in ("detach", "data")


def _is_written(scene: Scene, node: ast.Attribute) -> bool:
    """Whether the value is set by hand: `self.mean.data = …` is a buffer in all but name."""
    up = scene.parent(node)
    outer = scene.parent(up) if up is not None else None
    stored = isinstance(up, ast.Attribute) and not isinstance(up.ctx, ast.Load)
    changed = isinstance(outer, ast.Attribute) and outer.attr.endswith("_")
    return stored or changed or isinstance(outer, ast.Subscript)
