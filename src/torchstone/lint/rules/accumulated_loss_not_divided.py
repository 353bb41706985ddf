"""Gradients of several micro-batches add up; the loss must be divided by their number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.summary import calls_below, summary_at
from torchstone.lint.knowledge.flow import loop_around, own_nodes
from torchstone.lint.knowledge.tensors import backward_names
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.sources.scene import Scene
from torchstone.sources.targets import is_outside, target_of
from torchstone.sources.training import backward_calls, step_calls

RULE = Rule(
    "TS231",
    "accumulated-loss-not-divided",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{call}` adds up the gradients of `{count}` micro-batches and never divides by it",
        zh="`{call}` 累加了 `{count}` 个微批次的梯度，却从未除以它",
    ),
    why=Text(
        en="the gradient is `{count}` times that of one batch of the same size: learning rate, "
        "clipping and weight decay no longer mean what they say",
        zh="梯度是同样大小的单个批次的 `{count}` 倍：学习率、梯度裁剪和权重衰减的含义都变了",
    ),
    suggest=Text(
        en="divide the loss by `{count}` before backward()",
        zh="在 backward() 之前把损失除以 `{count}`",
    ),
    title=Text(
        en="Gradients are accumulated over micro-batches and the loss is not divided by their number",
        zh="跨微批次累积梯度，但没有把损失除以微批次数",
    ),
    page=Text(
        en="Fires where a loop runs backward() on every round and steps the optimizer only on every "
        "`n`-th (`if (i + 1) % n == 0`), `n` is named after accumulation, and nothing in the loop "
        "divides by anything named so.\n\n"
        "- Quiet where accelerate, DeepSpeed, Lightning or a scheduler of the project divides, and "
        "for sums (`reduction='sum'`).",
        zh="当循环每一轮都 backward()，却只在每 `n` 轮（`if (i + 1) % n == 0`）执行一次优化器 step，`n` 的名称与累积有关，"
        "而循环中没有除以任何这样的名称时报告。\n\n"
        "- 由 accelerate、DeepSpeed、Lightning 或项目自身的调度负责相除，以及损失为求和（`reduction='sum'`）时不报告。",
    ),
    bad="""\
import torch

def train(model, loader, criterion, opt, accum_steps):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        if (i + 1) % accum_steps == 0:
            opt.step()
            opt.zero_grad()
""",
    fixed="""\
@@ -6 +6 @@
-        loss.backward()
+        (loss / accum_steps).backward()
""",
    needs=("backward", "step"),
)
_COUNT = pattern(r"accum|micro|update_freq|iter_size|grad_?acc|virtual_batch|batch_split", re.I)
_SCALES = pattern(r"grad\w*_?scal|scal\w*_?grad", re.I)
_OTHERS = pattern(r"accelerat|deepspeed|lightning|fabric|reduction=.sum", re.I)


@RULE.on(ast.For)
def check_inner(loop: ast.For, scene: Scene) -> Iterator[Hit]:
    """`for i in range(accum_steps): loss.backward()` … `opt.step()` after the loop"""
    over = loop.iter
    if not isinstance(over, ast.Call) or scene.last_name(over.func) != "range" or scene.is_test:
        return
    count = over.args[-1] if over.args else None
    if count is None or not _COUNT.search(scene.last_name(count)):
        return
    if _is_others(scene):
        return
    inside = [
        item
        for item in backward_calls(scene).inside(scene, loop)
        if loop_around(scene, item) is loop
    ]
    steps = step_calls(scene).of(scene, scene.function(loop))
    if not inside or not steps or any(scene.within(item, loop) for item in steps):
        return
    if _divides(scene, loop):
        return
    first = inside[0]
    yield RULE.at(
        first, call=scene.brief(first), count=scene.text(count), fix=_fix(scene, first, loop, count)
    )


def _is_others(scene: Scene) -> bool:
    """Whether the file speaks of an engine that divides by itself."""
    if "divides by itself" not in scene.cache:
        scene.cache["divides by itself"] = _OTHERS.search(scene.source.text) is not None
    return bool(scene.cache["divides by itself"])


@RULE.on_call("step")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if call not in step_calls(scene) or scene.is_test or _is_others(scene):
        return
    loop = loop_around(scene, call)
    count = _count(scene, call, loop) if loop is not None else None
    if loop is None or count is None:
        return
    inside = [
        item
        for item in backward_calls(scene)
        if loop_around(scene, item) is loop and _count(scene, item, loop) is None
    ]
    if not inside or _divides(scene, loop):
        return
    first = inside[0]
    yield RULE.at(
        first, call=scene.brief(first), count=scene.text(count), fix=_fix(scene, first, loop, count)
    )


@RULE.on(ast.If)
def check_helper(node: ast.If, scene: Scene) -> Iterator[Hit]:
    """`if (i + 1) % accumulation == 0: finish(opt)`, where a function of the project steps"""
    loop = loop_around(scene, node)
    if loop is None or scene.is_test or not backward_calls(scene):
        return
    counts = [
        part.right
        for part in scene.inside(node.test)
        if isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Mod)
        and _COUNT.search(scene.last_name(part.right))
    ]
    if not counts or step_calls(scene).inside(scene, node):
        return
    inside = [
        item
        for item in backward_calls(scene).inside(scene, loop)
        if loop_around(scene, item) is loop
    ]
    inside = [item for item in inside if not scene.within(item, node)]
    if not inside or _is_others(scene) or _divides(scene, loop):
        return
    calls = calls_below(ast.Module(node.body, []))
    does = [summary_at(scene, call) for call in calls]
    if any(summary is not None and summary.has(Effect.STEP) for summary in does):
        first, count = inside[0], counts[0]
        yield RULE.at(
            first,
            call=scene.brief(first),
            count=scene.text(count),
            fix=_fix(scene, first, loop, count),
        )


def _count(scene: Scene, node: ast.AST, loop: ast.AST | None) -> ast.expr | None:
    """The number of micro-batches that a test around a node asks for."""
    child = node
    for up in scene.ancestors(node):
        if up is loop:
            return None
        if isinstance(up, ast.If) and child in up.body:
            for part in scene.inside(up.test):
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                    if _COUNT.search(scene.last_name(part.right)):
                        return part.right
        child = up
    return None


def _divides(scene: Scene, loop: ast.AST) -> bool:
    """Whether the function, or one that the loop calls, divides or multiplies by anything that
    counts micro-batches."""
    home = scene.function(loop) or scene.root
    return (
        _divides_within(scene, home)
        or _given_away(scene, loop)
        or _scaled_later(scene, home)
        or any(
            _divides_within(*found)
            for call in calls_below(loop)
            if not is_outside(scene, call) and (found := target_of(scene, call)) is not None
        )
    )


_SIZES = pattern(
    r"(?:batch|block|world|seq\w*|context)_?(?:size|len\w*)$|^(?:num|n)_(?:gpus|tokens)", re.I
)
"""What is multiplied by the number of micro-batches to count samples or tokens."""


def _divides_within(scene: Scene, home: ast.AST) -> bool:
    return any(
        isinstance(part, (ast.Name, ast.Attribute)) and _COUNT.search(scene.last_name(part))
        for node in scene.inside(home)
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, (ast.Div, ast.Mult))
        if not _SIZES.search(scene.last_name(getattr(node, "left", None)))
        for part in scene.inside(node.value if isinstance(node, ast.AugAssign) else node.right)
    )


def _scaled_later(scene: Scene, home: ast.AST) -> bool:
    """Whether the gradients themselves are scaled before the step, as for means over tokens."""
    return any(
        isinstance(node, ast.Call)
        and _SCALES.search(name := scene.last_name(node.func))
        and not name.endswith("GradScaler")
        for node in scene.inside(home)
    ) or any(
        isinstance(node, (ast.Attribute)) and node.attr == "grad" and isinstance(up, ast.BinOp)
        for node in scene.inside(home)
        if (up := scene.parent(node)) is not None
    )


def _given_away(scene: Scene, loop: ast.AST) -> bool:
    """Whether the number is handed to a function, which may divide."""
    return any(
        isinstance(node, ast.Call)
        and scene.last_name(node.func) not in ("range", "print", "len")
        and any(
            _COUNT.search(scene.last_name(item))
            for item in (*node.args, *(keyword.value for keyword in node.keywords))
        )
        for node in own_nodes(loop)
    )


def _fix(scene: Scene, call: ast.Call, loop: ast.AST, count: ast.expr) -> Fix | None:
    """`loss.backward()` becomes `(loss / n).backward()`."""
    receiver = scene.receiver(call)
    if receiver is None or scene.dotted(receiver) not in backward_names(scene, loop):
        return None
    return unsafe(scene.replace(receiver, f"({scene.text(receiver)} / {scene.text(count)})"))
