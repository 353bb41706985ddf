"""Reading a tensor's value on every step makes the host wait for the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.finding import Confidence
from torchstone.core.fix import Fix
from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.effects import effect_of
from torchstone.lint.facts.summary import calls_below, is_decided
from torchstone.lint.knowledge.amp import scaler_calls
from torchstone.lint.knowledge.flow import before
from torchstone.lint.knowledge.tensors import is_array, is_tensor, on_device, straight_from_loop
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule, unsafe
from torchstone.sources.scene import Function, Scene
from torchstone.sources.targets import target_of
from torchstone.sources.training import step_loop, step_loops

_DEPTH = 2  # functions between the step and the read; deeper ones are rarely on every step
Read = tuple[Scene, ast.Call]
_ACTION = pattern(r"(?<![a-zA-Z])actions?(?![a-zA-Z])")

RULE = Rule(
    "TS301",
    "item-in-step-loop",
    severity=MEDIUM,
    confidence=LIKELY,
    title=Text(
        en="A tensor's value is read on every training step, and the host waits for the device",
        zh="每个训练步都读取张量的数值，主机要等待设备",
    ),
    say=Text(
        en="`{call}` waits for the device on every step", zh="`{call}` 让每个训练步都停下来等待设备"
    ),
    why=Text(
        en="the host runs ahead and queues kernels; reading a value empties that queue, so the "
        "device then idles while the next step is being launched",
        zh="主机本来会提前排好后续核函数；读取数值会迫使队列清空，之后设备只能空等下一步的核函数下发",
    ),
    suggest=Text(
        en="keep the sum on the device (`total += loss.detach()`) and read it once every n steps",
        zh="在设备上累加（`total += loss.detach()`），每隔 n 步再读取一次",
    ),
    page=Text(
        en="Fires on `.item()`, and on `float(t)` or `int(t)` of what is evidently a tensor, where "
        "it runs on every training step: inside the innermost loop around `backward()` or "
        "`optimizer.step()`, or in a function that does both.\n\n"
        "It stays quiet where the read happens now and then: under `if step % n == 0`, under a "
        "condition that asks for logging, in an exception handler, or on the way out of the loop. "
        "It is harmless on the CPU, so a file that never speaks of a device is left alone; so are "
        "tests, values that come straight from the loader, and actions that an environment waits "
        "for.\n\n"
        "One finding stands for all reads of a loop: the first one waits, and the others find the "
        "queue empty. After `scaler.step(optimizer)`, which itself waits for the gradients, a read "
        "costs nothing and is not reported.\n\n"
        "The fix, for `total += loss.item()`, makes `total` a tensor on the device: unsafe, since "
        "later code may want a Python number.",
        zh="检查每个训练步都会执行的 `.item()`，以及对明显是张量的值调用 `float(t)`、`int(t)`：位于 "
        "`backward()` 或 `optimizer.step()` 外最内层的循环中，或位于同时完成两者的函数中。\n\n"
        "若只是偶尔读取则不报告：在 `if step % n == 0`、日志条件、异常处理中，或在跳出循环之前。"
        "在 CPU 上读取没有代价，因此完全不涉及设备的文件、测试代码、直接来自数据加载器的值以及环境所需的"
        "动作（action）不报告。\n\n"
        "一个循环中的所有读取只报告一次：第一次读取需要等待，其余的不再等待。`scaler.step(optimizer)` 本身就要等待"
        "梯度，其后的读取没有额外代价，不报告。\n\n"
        "对 `total += loss.item()` 的修复会让 `total` 变成设备上的张量；后续代码可能需要 Python "
        "数值，因此该修复标记为不安全。",
    ),
    needs=("backward",),
    words=("backward",),
    bad="""\
import torch

def train(model, loader, opt, device):
    total = 0.0
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    return total
""",
    good="""\
@@ -4 +4 @@
-    total = 0.0
+    total = torch.zeros((), device=device)
@@ -10,2 +10,2 @@
-        total += loss.item()
-    return total
+        total += loss.detach()
+    return total.item()
""",
    fixed="""\
@@ -10 +10 @@
-        total += loss.item()
+        total += loss.detach()
""",
)


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    """One finding for each loop: the first read waits, those after it find the queue empty."""
    by_loop: dict[ast.AST, list[Hit]] = {}
    for hit in (*_item_reads(scene), *_number_reads(scene), *_callee_reads(scene)):
        loop = scene.step_loop(hit.node)
        if loop is not None and not _follows_a_wait(scene, hit.node, loop):
            by_loop.setdefault(loop, []).append(hit)
    for hits in by_loop.values():
        hits.sort(key=lambda hit: (hit.confidence.rank, *scene.span(hit.node)))
        others = sum(hit.confidence == hits[0].confidence for hit in hits) - 1
        yield _merged(hits[0], others)


def _merged(first: Hit, others: int) -> Hit:
    if not others:
        return first
    say = Text(
        en=first.say.en + "; {others} more in this loop follow it",
        zh=first.say.zh + "；该循环中另有 {others} 处随后读取",
    )
    return first._replace(say=say, args={**first.args, "others": str(others)})


def _follows_a_wait(scene: Scene, node: ast.AST, loop: ast.AST) -> bool:
    """Whether the loop waits before the read anyway: `scaler.step` reads whether gradients are
    finite, and nothing is launched between it and a value that was computed before."""
    return any(
        before(call, node) and scene.within(call, loop) and not is_decided(scene, call, loop)
        for call in scaler_calls(scene, "step")
    )


def _item_reads(scene: Scene) -> Iterator[Hit]:
    """`loss.item()`"""
    for call in scene.calls.get("item", ()):
        if call.args or call.keywords or not scene.method(call):
            continue
        if not scene.in_step_loop(call) or is_array(scene, scene.receiver(call)):
            continue
        host = straight_from_loop(scene, scene.receiver(call)) or _for_environment(call, scene)
        yield RULE.at(
            call,
            confidence=POSSIBLE if host else _confidence(scene),
            fix=_fix(call, scene),
            call=scene.brief(call),
        )


def _number_reads(scene: Scene) -> Iterator[Hit]:
    """`float(loss)`"""
    for call in (*scene.calls.get("float", ()), *scene.calls.get("int", ())):
        if not isinstance(call.func, ast.Name) or len(call.args) != 1 or call.keywords:
            continue
        if scene.in_step_loop(call) and is_tensor(scene, call.args[0]):
            yield RULE.at(call, confidence=_confidence(scene), call=scene.brief(call))


def _callee_reads(scene: Scene) -> Iterator[Hit]:
    """`accuracy(out, y)` whose body reads a value"""
    if scene.is_test or not on_device(scene):
        return
    told: set[str] = set()
    for loop in step_loops(scene):
        for call in calls_below(loop):
            name = scene.dotted(call.func)
            if name in told or not scene.in_step_loop(call) or effect_of(scene, call) is not None:
                continue
            found = target_of(scene, call)
            inner = _reads(found[0], found[1]) if found is not None else None
            if inner is None or step_loop(*inner) is not None or _moved_later(scene, call):
                continue
            told.add(name)
            home, read = inner
            yield RULE.at(
                call,
                say=_THROUGH,
                call=scene.brief(call, 40),
                read=home.brief(read, 32),
                line=str(home.source.place(read.lineno)[1]),
            )


_THROUGH = Text(
    en="`{call}` waits for the device on every step: it runs `{read}` (line {line})",
    zh="`{call}` 让每个训练步都停下来等待设备：其中执行了 `{read}`（第 {line} 行）",
)


def _moved_later(scene: Scene, call: ast.Call) -> bool:
    """Whether what a call gets or gives goes to the device only after it: it is still on the host."""
    statement = scene.statement(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {
        part.id
        for node in (*targets, *call.args)
        for part in scene.inside(node)
        if isinstance(part, ast.Name)
    }
    return any(
        move.lineno > call.lineno
        and scene.function(move) is scene.function(call)
        and any(isinstance(part, ast.Name) and part.id in names for part in scene.inside(move))
        for name in ("cuda", "to", "to_cuda", "to_device", "move_to_device", "to_gpu")
        for move in scene.calls.get(name, ())
    )


def _reads(scene: Scene, function: Function, depth: int = _DEPTH) -> Read | None:
    """The `.item()` that a function always runs, by itself or through what it calls."""
    for call in calls_below(function):
        if is_decided(scene, call, function):
            continue
        if scene.method(call) == "item" and not call.args:
            if not is_array(scene, scene.receiver(call)):
                return scene, call
        elif depth and (found := target_of(scene, call)) is not None and found[1] is not function:
            inner = _reads(found[0], found[1], depth - 1)
            if inner is not None:
                return inner
    return None


def _for_environment(call: ast.Call, scene: Scene) -> bool:
    """Whether the value is an action that an environment on the host waits for."""
    statement = scene.statement(call)
    if statement is None or _ACTION.search(scene.text(statement)[:400]):
        return statement is not None
    names = (
        {scene.dotted(t) for t in statement.targets} if isinstance(statement, ast.Assign) else set()
    )
    home = scene.scope(call)
    return any(
        scene.within(call, step) or any(scene.dotted(item) in names - {""} for item in step.args)
        for step in scene.calls_in(home, "step")
        if step.args and _is_environment(scene, step)
    )


def _is_environment(scene: Scene, step: ast.Call) -> bool:
    """Whether `x.step(value)` steps an environment: no optimizer, scheduler or scaler."""
    receiver = scene.receiver(step)
    name = scene.last_name(receiver).lower()
    return not scene.is_optimizer(receiver) and not any(
        word in name for word in ("sched", "scaler", "optim", "accelerator", "engine", "profiler")
    )


def _confidence(scene: Scene) -> Confidence | None:
    return None if on_device(scene) and not scene.is_test else POSSIBLE


def _fix(call: ast.Call, scene: Scene) -> Fix | None:
    """`total += loss.item()` may stay on the device."""
    statement = scene.statement(call)
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.op, ast.Add):
        return None
    value = statement.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        value = value.left
    receiver = scene.receiver(call)
    if value is not call or receiver is None or not isinstance(statement.target, ast.Name):
        return None
    cut = isinstance(receiver, ast.Call) and scene.method(receiver) == "detach"
    return unsafe(scene.replace(call, scene.text(receiver) + ("" if cut else ".detach()")))
