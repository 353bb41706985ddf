"""A GPU call returns before the work is done; a clock around it measures the launch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.summary import calls_below
from torchstone.lint.knowledge.tensors import on_device
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene
from torchstone.sources.targets import is_outside

RULE = Rule(
    "TS325",
    "timing-without-synchronize",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{clock}` is read before the GPU has finished `{call}`",
        zh="读取 `{clock}` 时 GPU 还没有完成 `{call}`",
    ),
    why=Text(
        en="CUDA calls return at once: the difference is the time to launch the kernels, not to run "
        "them",
        zh="CUDA 调用会立即返回：测得的是启动 kernel 的时间，而不是执行时间",
    ),
    suggest=Text(
        en="call torch.cuda.synchronize() before each reading of the clock, or use CUDA events",
        zh="每次读取时钟之前调用 torch.cuda.synchronize()，或使用 CUDA event",
    ),
    title=Text(
        en="GPU work is timed with the host's clock and no synchronize",
        zh="用主机时钟给 GPU 计时而没有同步",
    ),
    page=Text(
        en="Fires where a clock is read, a model is called right after in the same block, and the "
        "difference is taken without anything in between that waits for the device "
        "(`synchronize`, `.item()`, `.cpu()`, an event), in code that measures speed: no backward "
        "in the function, and names that speak of inference, latency, speed or benchmarks.\n\n"
        "- Quiet in files that never speak of a device.",
        zh="在同一代码块中读取时钟、随后调用模型、再求时间差，其间没有任何等待设备的操作（`synchronize`、`.item()`、"
        "`.cpu()`、event），且代码是在测速（函数中没有 backward，名称与推理、延迟、速度或基准有关）时报告。\n\n"
        "- 从未提到设备的文件不报告。",
    ),
    bad="""\
import time
import torch

@torch.no_grad()
def measure_latency(model, x):
    model.cuda().eval()
    start = time.time()
    model(x.cuda())
    return time.time() - start
""",
    good="""\
@@ -6,0 +7 @@
+    torch.cuda.synchronize()
@@ -8,0 +10 @@
+    torch.cuda.synchronize()
""",
    needs=("time",),
)
_CLOCKS = frozenset(("time.time", "time.perf_counter", "time.monotonic", "timeit.default_timer"))
_MEASURES = pattern(r"infer|latenc|speed|bench|throughput|fps|time|timing|profil|measure", re.I)
_WAITS = frozenset(
    "synchronize item cpu numpy tolist record elapsed_time wait barrier print all_reduce gather "
    "save decode batch_decode tqdm asnumpy".split()
)


@RULE.on_call("time", "perf_counter", "monotonic", "default_timer")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`start = time.time()` … `model(x)` … `time.time() - start`"""
    if scene.qualified(call.func) not in _CLOCKS or scene.is_test or not on_device(scene):
        return
    statement, function = scene.statement(call), scene.function(call)
    if not isinstance(statement, ast.Assign) or statement.value is not call or function is None:
        return
    name = scene.dotted(statement.targets[0])
    block = scene.block_of(statement)
    rest = block[block.index(statement) + 1 :]
    stop = next((i for i, item in enumerate(rest) if _reads(scene, item, name)), None)
    if (
        not name
        or stop is None
        or _trains(scene, function)
        or not _measures(scene, rest[stop], function)
    ):
        return
    between = [item for step in rest[:stop] for item in calls_below(step)]
    between += [item for item in calls_below(rest[stop]) if scene.is_model(item.func)]
    model = next((item for item in between if _is_forward(scene, item)), None)
    if model is None or any(
        scene.last_name(item.func) in _WAITS for item in _all(between, rest[stop])
    ):
        return
    if not all(
        _is_forward(scene, item)
        or scene.qualified(item.func)
        or is_outside(scene, item)
        or scene.method(item) in ("cuda", "to")
        for item in between
    ):
        return  # what cannot be read may wait
    yield RULE.at(model, call=scene.brief(model), clock=scene.text(call))


def _all(between: list[ast.Call], last: ast.stmt) -> list[ast.Call]:
    return [*between, *calls_below(last)]


def _reads(scene: Scene, statement: ast.stmt, name: str) -> bool:
    """Whether a statement takes the difference to the first reading."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and scene.dotted(node.right) == name
        and not isinstance(scene.parent(node), ast.Compare)  # a limit, not a measurement
        for node in scene.inside(statement)
    )


def _measures(scene: Scene, statement: ast.stmt, function: ast.AST) -> bool:
    names = [getattr(function, "name", "")]
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names += [scene.text(target) for target in targets]
    return any(_MEASURES.search(name) for name in names)


def _trains(scene: Scene, function: ast.AST) -> bool:
    return any(scene.within(item, function) for item in scene.calls.get("backward", ()))


def _is_forward(scene: Scene, call: ast.Call) -> bool:
    return isinstance(call.func, (ast.Name, ast.Attribute)) and (
        scene.is_model(call.func) and not scene.qualified(call.func)
    )
