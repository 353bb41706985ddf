"""A synchronize on every step takes away the overlap of host and device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.scene import Scene

_CALLS = frozenset(
    f"torch.{home}.synchronize"
    for home in ("cuda", "accelerator", "npu", "xpu", "mps", "hpu", "mlu")
)
_CLOCKS = frozenset(("time.time", "time.perf_counter", "time.monotonic"))
_MEASURES = pattern(r"bench|profil|timing|latency|speed|throughput|perf", re.IGNORECASE)

RULE = Rule(
    "TS312",
    "synchronize-in-step-loop",
    severity=MEDIUM,
    confidence=LIKELY,
    title=Text(
        en="The host waits for the device on every training step", zh="每个训练步都同步设备"
    ),
    say=Text(
        en="`{call}` makes the host wait for the device on every step",
        zh="`{call}` 让主机在每个训练步都等待设备",
    ),
    why=Text(
        en="the host cannot queue the next step while it waits, so the device idles between steps; "
        "ordering within a stream needs no synchronize",
        zh="主机等待期间无法排入下一步，设备在两步之间空闲；同一流内的先后顺序本来就有保证，无需同步",
    ),
    suggest=Text(
        en="remove it; to measure time use `torch.cuda.Event(enable_timing=True)` and read it every "
        "n steps",
        zh="将其删除；若要计时，用 `torch.cuda.Event(enable_timing=True)`，每隔 n 步读取一次",
    ),
    page=Text(
        en="Fires on `torch.cuda.synchronize()`, `torch.accelerator.synchronize()` and their like "
        "where they run on every training step.\n\n"
        "Quiet under `if step % n`, under a condition that asks for profiling or logging, and in "
        "exception handlers. Files and functions whose name says that they measure (bench, "
        "profile, latency, …) and tests are reported as `possible` only: a benchmark needs the "
        "synchronize.",
        zh="检查每个训练步都会执行的 `torch.cuda.synchronize()`、`torch.accelerator.synchronize()` 等。\n\n"
        "在 `if step % n`、性能剖析或日志条件之下以及异常处理中不报告。文件名或函数名表明用于测量"
        "（bench、profile、latency 等）以及测试代码只作为 `possible`（可能）报告：基准测试确实需要同步。",
    ),
    needs=("backward",),
    bad="""\
import torch

def train(model, loader, opt):
    for x in loader:
        loss = model(x.cuda()).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        torch.cuda.synchronize()
""",
    good="""\
@@ -9 +8,0 @@
-        torch.cuda.synchronize()
""",
)


def _before_clock(scene: Scene, call: ast.Call) -> bool:
    """Whether the next statement reads a clock: then the wait is what makes the figure right."""
    statement = scene.statement(call)
    if statement is None:
        return False
    block = scene.block_of(statement)
    after = block[block.index(statement) + 1 : block.index(statement) + 2]
    return any(
        isinstance(node, ast.Call) and scene.qualified(node.func) in _CLOCKS
        for item in after
        for node in scene.inside(item)
    )


@RULE.on_call("synchronize")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.cuda.synchronize()`"""
    if scene.qualified(call.func) not in _CALLS or not scene.in_step_loop(call):
        return
    measured = (
        _MEASURES.search(f"{PurePath(scene.path).stem} {scene.scope_name(call)}")
        or scene.is_test
        or _before_clock(scene, call)
    )
    yield RULE.at(call, confidence=POSSIBLE if measured else None, call=scene.brief(call))
