"""A tensor that grows by `cat` in a loop copies everything again each time round."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, LOW, POSSIBLE, Hit, Rule
from torchstone.sources.scene import LOOPS, SCOPES, Scene

_JOINS = frozenset(f"torch.{name}" for name in ("cat", "concat", "concatenate", "vstack", "hstack"))

RULE = Rule(
    "TS324",
    "tensor-grown-by-cat",
    severity=LOW,
    confidence=LIKELY,
    title=Text(
        en="A tensor grows by `torch.cat` in a loop, which copies all of it each time",
        zh="在循环中用 `torch.cat` 让张量增长，每次都要整体复制",
    ),
    say=Text(
        en="`{name}` grows by `{join}` in a loop, which copies all of it each time round",
        zh="`{name}` 在循环中用 `{join}` 增长，每次都要整体复制",
    ),
    why=Text(
        en="n turns copy n²/2 parts instead of n, and the allocator sees a new size each time",
        zh="n 次循环要复制 n²/2 份而不是 n 份，分配器每次还会遇到新的大小",
    ),
    suggest=Text(
        en="collect the parts in a list and call `{join}` once after the loop",
        zh="把各部分收集到列表中，循环结束后调用一次 `{join}`",
    ),
    page=Text(
        en="Fires on `x = torch.cat([x, part])` (also `concat`, `vstack`, `hstack`) in a loop when "
        "the loop does nothing else with `x`. Quiet when `x` is read in the loop, as in generation "
        "where the grown sequence goes into the model, when the loop makes `x` anew, under an "
        "`if`, and in tests. `range` of a written number of at most 16 is left alone.",
        zh="检查循环中的 `x = torch.cat([x, part])`（也包括 `concat`、`vstack`、`hstack`），且循环内没有其他"
        "地方使用 `x`。若循环读取 `x`（如生成时把增长的序列送入模型）、在循环内重新创建 `x`、位于 `if` 之下"
        "或属于测试代码，则不报告；不超过 16 的字面量 `range` 也不报告。",
    ),
    bad="""\
import torch

def predict(model, loader):
    out = torch.empty(0)
    for x in loader:
        out = torch.cat([out, model(x)], dim=0)
    return out
""",
    good="""\
import torch

def predict(model, loader):
    parts = []
    for x in loader:
        parts.append(model(x))
    return torch.cat(parts, dim=0)
""",
)


@RULE.on_call("cat", "concat", "concatenate", "vstack", "hstack")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`out = torch.cat([out, part])`"""
    statement = scene.parent(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not call.args:
        return
    target, parts = statement.targets[0], call.args[0]
    if not isinstance(target, ast.Name) or not isinstance(parts, (ast.List, ast.Tuple)):
        return
    own = [part for part in parts.elts if isinstance(part, ast.Name) and part.id == target.id]
    if len(own) != 1 or scene.qualified(call.func) not in _JOINS:
        return
    loop = _loop(statement, scene)
    if loop is None or _used_elsewhere(loop, target.id, {own[0], target}, scene):
        return
    yield RULE.at(
        statement,
        confidence=POSSIBLE if scene.is_test else None,
        name=target.id,
        join=scene.text(call.func),
    )


def _loop(statement: ast.stmt, scene: Scene) -> ast.AST | None:
    child: ast.AST = statement
    for up in scene.ancestors(statement):
        if isinstance(up, (*SCOPES, ast.If)):
            return None
        if isinstance(up, LOOPS) and child in up.body:
            return None if _short(up, scene) else up
        child = up
    return None


def _short(loop: ast.AST, scene: Scene) -> bool:
    turns = loop.iter if isinstance(loop, ast.For) else None
    if isinstance(turns, (ast.List, ast.Tuple)):
        return True
    count = scene.literal(turns.args[0]) if isinstance(turns, ast.Call) and turns.args else None
    return isinstance(count, int) and count <= 16


def _used_elsewhere(loop: ast.AST, name: str, known: set[ast.AST], scene: Scene) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and node not in known
        for node in scene.inside(loop)
    )
