"""A step that is skipped after backward must still clear its gradients and tell the scaler."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import is_scaler_call
from torchstone.lint.knowledge.flow import before, loop_around, reaches
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import LOOPS, Scene
from torchstone.sources.training import backward_calls, step_calls

RULE = Rule(
    "TS129",
    "skipped-step-keeps-gradients",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="this path skips the step and keeps the gradients of the bad batch",
        zh="这条路径跳过了 step，却保留了坏批次的梯度",
    ),
    why=Text(
        en="backward() has run: without zero_grad() the next batch adds to gradients that hold nan "
        "or inf, and every later step is lost",
        zh="backward() 已经执行：若不调用 zero_grad()，下一批会累加到含 nan 或 inf 的梯度上，之后的每一步都会失效",
    ),
    suggest=Text(
        en="call `{optimizer}.zero_grad()` before `continue`",
        zh="在 `continue` 之前调用 `{optimizer}.zero_grad()`",
    ),
    title=Text(
        en="A path that skips the optimizer step leaves the gradients, or the scaler, as they are",
        zh="跳过优化器 step 的路径没有清空梯度或更新 scaler",
    ),
    page=Text(
        en="Fires for `if <nan or inf>: continue` between `backward()` and `optimizer.step()` when "
        "the loop clears gradients only after the step; and for such a path between "
        "`scaler.unscale_()` and `scaler.step()` that does not call `scaler.update()`: the next "
        "`unscale_()` then raises an error. So does a branch that leaves the step out without `continue`. "
        "Also for a handler that swallows an error of the step (out of memory) where gradients are cleared "
        "only behind the step: part of a backward pass may have run.\n\n"
        "- Quiet when the path clears them itself, or the loop clears before backward().",
        zh="当 `backward()` 与 `optimizer.step()` 之间存在 `if <nan 或 inf>: continue`，而循环只在 step 之后清空梯度时"
        "报告；以及在 `scaler.unscale_()` 与 `scaler.step()` 之间的此类路径没有调用 `scaler.update()` 时报告：下一次 "
        "`unscale_()` 会抛出错误；不带 `continue` 而只是不执行 step 的分支同样如此。若 `except` 吞掉了某一步的错误（显存不足），而"
        "梯度只在 step 之后清空，也会报告：反向传播可能已执行了一部分。\n\n"
        "- 该路径自行清空，或循环在 backward() 之前清空时不报告。",
    ),
    bad="""\
import torch

def train(model, loader, opt):
    for x in loader:
        loss = model(x)
        loss.backward()
        if not torch.isfinite(loss):
            continue
        opt.step()
        opt.zero_grad()
""",
    fixed="""\
@@ -7,0 +8 @@
+            opt.zero_grad()
""",
    needs=("backward", "step"),
    words=("isnan", "isinf", "isfinite", "isNaN", "RuntimeError", "OutOfMemoryError"),
)
_BAD_VALUE = pattern(r"nan|inf\b|isinf|finite", re.I)
_UPDATE = Text(
    en="this path leaves the scaler unscaled and never updated",
    zh="这条路径让 scaler 停留在已反缩放、未更新的状态",
)
_RAISES = Text(
    en="unscale_() has run: without update() the next unscale_() of this optimizer raises an error",
    zh="unscale_() 已经执行：没有 update()，下一次对该优化器调用 unscale_() 会抛出错误",
)
_CALL_UPDATE = Text(
    en="call `{optimizer}.update()` before `continue`",
    zh="在 `continue` 之前调用 `{optimizer}.update()`",
)


_OTHER_ARM = Text(
    en="call `{optimizer}.update()` in this branch, too",
    zh="在这个分支中也调用 `{optimizer}.update()`",
)
_SWALLOWS = Text(
    en="after an error this loop goes on with the gradients of the failed step",
    zh="出错之后循环继续，却保留了失败那一步的梯度",
)
_HALF_DONE = Text(
    en="backward() may have run in part: the next batch adds to what it left",
    zh="backward() 可能已执行了一部分：下一批会累加到它留下的梯度上",
)
_IN_HANDLER = Text(
    en="call `{optimizer}.zero_grad()` where the error is handled",
    zh="在处理错误的地方调用 `{optimizer}.zero_grad()`",
)
_SWALLOWED = ("RuntimeError", "OutOfMemoryError", "Exception", "BaseException")


@RULE.on(ast.ExceptHandler)
def check_handler(handler: ast.ExceptHandler, scene: Scene) -> Iterator[Hit]:
    """`except RuntimeError: torch.cuda.empty_cache()` around a step whose gradients are cleared last"""
    named = handler.type is None or any(
        scene.last_name(part) in _SWALLOWED for part in scene.inside(handler.type)
    )
    attempt, loop = scene.parent(handler), loop_around(scene, handler)
    if not named or not isinstance(attempt, ast.Try) or not isinstance(loop, LOOPS):
        return
    if isinstance(handler.body[-1], (ast.Raise, ast.Return, ast.Break)):
        return
    ran = [b for item in attempt.body for b in backward_calls(scene).inside(scene, item)]
    steps = [s for item in attempt.body for s in step_calls(scene).inside(scene, item)]
    cleared = [c for c in scene.calls.get("zero_grad", ()) if scene.within(c, loop)]
    if not ran or not steps or not cleared:
        return
    if any(before(c, ran[0]) or not scene.within(c, attempt) for c in cleared):
        return
    if any(scene.within(c, handler) for c in cleared):
        return
    yield RULE.at(
        handler, say=_SWALLOWS, why=_HALF_DONE, suggest=_IN_HANDLER,
        optimizer=scene.dotted(scene.receiver(cleared[0])),
    )  # fmt: skip


@RULE.on(ast.If)
def check_arms(node: ast.If, scene: Scene) -> Iterator[Hit]:
    """`if not isfinite(norm): log(…) else: scaler.step(opt); scaler.update()` behind `unscale_`"""
    if not node.orelse or not _BAD_VALUE.search(scene.text(node.test)):
        return
    for skips, steps in ((node.body, node.orelse), (node.orelse, node.body)):
        if _holds(scene, skips, "step") or not _holds(scene, steps, "step"):
            continue
        updates = [c for c in scene.calls.get("update", ()) if is_scaler_call(scene, c, "update")]
        inside = [c for c in updates if any(scene.within(c, item) for item in steps)]
        unscaled = [
            c
            for c in scene.calls.get("unscale_", ())
            if is_scaler_call(scene, c, "unscale_") and reaches(scene, c, node)
        ]
        later = [
            c for c in updates if c not in inside and scene.function(c) is scene.function(node)
        ]
        leaves = isinstance(skips[-1], (ast.Raise, ast.Return, ast.Break, ast.Continue))
        if inside and unscaled and not later and not leaves:
            scaler = scene.dotted(scene.receiver(inside[0]))
            yield RULE.at(node, say=_UPDATE, why=_RAISES, suggest=_OTHER_ARM, optimizer=scaler)


def _holds(scene: Scene, block: list[ast.stmt], method: str) -> bool:
    return any(scene.within(call, item) for call in scene.calls.get(method, ()) for item in block)


@RULE.on(ast.If)
def check(node: ast.If, scene: Scene) -> Iterator[Hit]:
    if not isinstance(node.body[-1], ast.Continue) or not _BAD_VALUE.search(scene.text(node.test)):
        return
    loop = loop_around(scene, node)
    if not isinstance(loop, LOOPS):
        return
    ran = [b for b in backward_calls(scene).inside(scene, loop) if before(b, node)]
    steps = [s for s in step_calls(scene).inside(scene, loop) if before(node, s)]
    if not ran or not steps or _calls(scene, node, "backward"):
        return
    unscaled = [
        c for c in scene.calls.get("unscale_", ()) if scene.within(c, loop) and before(c, node)
    ]
    if (
        unscaled
        and is_scaler_call(scene, unscaled[-1], "unscale_")
        and not _calls(scene, node, "update")
    ):
        scaler = scene.dotted(scene.receiver(unscaled[-1]))
        yield RULE.at(
            node, say=_UPDATE, why=_RAISES, suggest=_CALL_UPDATE, optimizer=scaler,
            fix=_fix(scene, node, f"{scaler}.update()"),
        )  # fmt: skip
        return
    if _calls(scene, node, "zero_grad") or _cleared_first(scene, loop, ran[0]):
        return
    cleared = [c for c in scene.calls.get("zero_grad", ()) if scene.within(c, loop)]
    if cleared:
        name = scene.text(cleared[0])
        yield RULE.at(
            node, optimizer=scene.dotted(scene.receiver(cleared[0])), fix=_fix(scene, node, name)
        )


def _calls(scene: Scene, node: ast.If, method: str) -> bool:
    return any(
        isinstance(part, ast.Call) and scene.last_name(part.func) == method
        for statement in node.body
        for part in scene.inside(statement)
    )


def _cleared_first(scene: Scene, loop: ast.AST, backward: ast.Call) -> bool:
    """Whether the loop clears before it goes backward."""
    return any(
        scene.within(call, loop) and before(call, backward)
        for call in scene.calls.get("zero_grad", ())
    )


def _fix(scene: Scene, node: ast.If, line: str) -> Fix:
    return safe(scene.insert_line_before(node.body[-1], line))
