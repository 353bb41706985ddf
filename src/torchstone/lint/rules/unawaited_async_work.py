"""An asynchronous collective whose handle is dropped may not be done when its result is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.collectives import NAMES, collective
from torchstone.lint.rule import CERTAIN, HIGH, LIKELY, POSSIBLE, Hit, Rule, safe
from torchstone.sources.scene import Scene

_ALWAYS = ("isend", "irecv")

RULE = Rule(
    "TS411",
    "unawaited-async-work",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(en="nobody waits for `{call}`", zh="没有任何代码等待 `{call}` 完成"),
    why=Text(
        en="it returns a Work handle before the data have arrived: without wait() the tensor is "
        "read (or reused) while it is still being written, which gives wrong numbers now and then",
        zh="它在数据到达之前就返回 Work 句柄：不调用 wait()，张量可能在写入过程中就被读取或复用，偶发错误数值",
    ),
    suggest=Text(
        en="keep the handle and call wait() before the tensor is used",
        zh="保存句柄，在使用张量之前调用 wait()",
    ),
    title=Text(
        en="Nobody waits for an asynchronous collective, so its tensor is used before it is ready",
        zh="没有等待异步集合通信完成就使用其张量",
    ),
    page=Text(
        en="Fires for collectives with `async_op=True`, and for `isend` / `irecv`, whose handle is "
        "thrown away or bound to a name that is never read again.\n\n"
        "- Quiet when the handle is read anywhere: waited for, put in a list, returned, passed on.\n"
        "- With confidence `possible` only when a barrier follows, or the file synchronizes the "
        "device or its streams: that waits in another way.\n"
        "- If there is nothing to do in between, leave `async_op` out; the fix does that.",
        zh="对 `async_op=True` 的集合通信以及 `isend` / `irecv`，若句柄被丢弃，或赋给之后从未读取的变量，则报告。\n\n"
        "- 句柄只要被读取（等待、放入列表、返回、传给别处），就不报告。\n"
        "- 之后有 barrier，或文件中有设备或流的同步（以另一种方式等待）时，置信度只为 `possible`（可能）。\n"
        "- 如果中间没有其他工作，直接去掉 `async_op` 即可；自动修复就是这样做的。",
    ),
    bad="""\
import torch.distributed as dist

def average(x, n):
    dist.all_reduce(x, async_op=True)
    return x / n
""",
    fixed="""\
@@ -4 +4 @@
-    dist.all_reduce(x, async_op=True)
+    dist.all_reduce(x, async_op=False)
""",
    good="""\
import torch.distributed as dist

def average(x, n):
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    return x / n
""",
)


@RULE.on_call(*NAMES, *_ALWAYS)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    full = scene.qualified(call.func)
    name = full.rpartition(".")[2]
    given = scene.keyword(call, "async_op")
    always = name in _ALWAYS and full.startswith("torch.distributed.")
    if not always and (given is None or scene.literal(given) is not True):
        return
    if not always and collective(scene, call) is None:
        return
    up = scene.parent(call)
    if isinstance(up, ast.Expr):
        fix: Fix | None = None
        if isinstance(given, ast.Constant):
            fix = safe(scene.replace(given, "False"))
        # a barrier on the same group, or the device, ends what was started before it
        sure = POSSIBLE if _barrier_follows(scene, call) else CERTAIN
        yield RULE.at(call, confidence=sure, call=scene.brief(call), fix=fix)
    elif isinstance(up, ast.Assign) and _never_read(scene, up):
        yield RULE.at(call, call=scene.brief(call))


def _barrier_follows(scene: Scene, call: ast.Call) -> bool:
    if scene.calls.get("synchronize") or scene.calls.get("wait_stream"):
        return True
    function = scene.function(call)
    return any(
        barrier.lineno > call.lineno and scene.function(barrier) is function
        for barrier in scene.calls.get("barrier", ())
    )


def _never_read(scene: Scene, statement: ast.Assign) -> bool:
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name):
        return False
    scope = scene.scope(statement)
    return scope is not scene.root and not any(
        node.id == target.id and isinstance(node.ctx, ast.Load) and scene.within(node, scope)
        for node in scene.all(ast.Name)
    )
