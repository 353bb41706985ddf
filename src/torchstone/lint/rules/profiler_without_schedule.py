"""A profiler around a whole training loop records every step and slows all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources import training
from torchstone.sources.scene import LOOPS, Scene

_PROFILERS = frozenset(
    ("torch.profiler.profile", "torch.autograd.profiler.profile", "torch.profiler.profiler.profile")
)

RULE = Rule(
    "TS322",
    "profiler-without-schedule",
    severity=MEDIUM,
    confidence=LIKELY,
    torch_from=(1, 8),
    title=Text(
        en="A profiler without a schedule records every step and fills the memory",
        zh="性能剖析器没有设置 schedule，记录训练循环的每一步，占满内存",
    ),
    say=Text(
        en="this profiler records every step of the loop in line {line}",
        zh="该剖析器会记录第 {line} 行循环的每一步",
    ),
    why=Text(
        en="each operation of each step becomes an event that stays in memory until the end: the "
        "loop slows down, and memory grows with every step",
        zh="每一步的每个操作都会生成一个事件并一直留在内存中：循环变慢，内存逐步增长",
    ),
    suggest=Text(
        en="give it a schedule, `schedule=torch.profiler.schedule(wait=1, warmup=1, active=3)`, and "
        "call `prof.step()` each time round",
        zh="为其设置 `schedule=torch.profiler.schedule(wait=1, warmup=1, active=3)`，并在每一步调用 "
        "`prof.step()`",
    ),
    page=Text(
        en="Fires on a with-statement that opens a torch profiler without `schedule` around a "
        "training loop. Quiet under an `if`, when the loop leaves by a `break` after some steps, "
        "when it goes over `range` of a written number of at most 100, and in tests.",
        zh="检查在训练循环外打开、且未设置 `schedule` 的 torch 剖析器 with 语句。位于 `if` 之下、循环在若干步"
        "后 `break` 退出、遍历不超过 100 的字面量 `range`，以及测试代码不报告。",
    ),
    words=("profile",),
    needs=("backward",),
    bad="""\
import torch
from torch.profiler import profile

def train(model, loader, opt):
    with profile(profile_memory=True) as prof:
        for x in loader:
            loss = model(x).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
""",
    good="""\
@@ -2 +2 @@
-from torch.profiler import profile
+from torch.profiler import profile, schedule
@@ -5 +5,2 @@
-    with profile(profile_memory=True) as prof:
+    plan = schedule(wait=1, warmup=1, active=3)
+    with profile(profile_memory=True, schedule=plan) as prof:
@@ -10,0 +12 @@
+            prof.step()
""",
)


@RULE.on(ast.With)
def check(node: ast.With, scene: Scene) -> Iterator[Hit]:
    """`with profile(): for x in loader: …`"""
    for item in node.items:
        call = item.context_expr
        if not isinstance(call, ast.Call) or scene.qualified(call.func) not in _PROFILERS:
            continue
        if scene.keyword(call, "schedule") is not None or scene.has_star(call):
            continue
        if scene.keyword(call, "enabled") is not None or len(call.args) > 0:
            continue
        loop = _loop(node, scene)
        if loop is not None and scene.enclosing(node, ast.If) is None:
            yield RULE.at(
                call,
                confidence=POSSIBLE if scene.is_test else None,
                line=str(scene.source.place(loop.lineno)[1]),
            )


def _loop(node: ast.With, scene: Scene) -> ast.For | ast.AsyncFor | ast.While | None:
    for loop in training.step_loops(scene):
        if isinstance(loop, LOOPS) and scene.within(loop, node) and not _short(loop, scene):
            return loop
    return None


def _short(loop: ast.For | ast.AsyncFor | ast.While, scene: Scene) -> bool:
    if any(isinstance(part, ast.Break) for part in ast.walk(loop)):
        return True
    if isinstance(loop, ast.While) or not isinstance(loop.iter, ast.Call):
        return False
    count = scene.literal(scene.argument(loop.iter, 0))
    ranged = scene.last_name(loop.iter.func) == "range" and len(loop.iter.args) == 1
    return ranged and isinstance(count, int) and count <= 100
