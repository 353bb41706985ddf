"""Pinned batches that are copied while the host waits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.loaders import is_loader, loops_over, moves, option
from torchstone.lint.rule import LIKELY, LOW, POSSIBLE, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS320",
    "blocking-transfer",
    severity=LOW,
    confidence=LIKELY,
    title=Text(
        en="A pinned batch is copied to the GPU while the host waits",
        zh="批数据已锁页，拷到 GPU 时主机却在等待",
    ),
    say=Text(
        en="`{call}` waits for the copy, though the batch is pinned (line {line})",
        zh="批数据已锁页（第 {line} 行），`{call}` 却仍在等待拷贝完成",
    ),
    why=Text(
        en="from pinned memory the copy can run beside the computation, but only when the host "
        "does not wait for it",
        zh="锁页内存的拷贝可以与计算并行，但前提是主机不等待它",
    ),
    suggest=Text(en="pass `non_blocking=True`", zh="传入 `non_blocking=True`"),
    page=Text(
        en="Fires on `.to(device)` and `.cuda()` without `non_blocking`, on parts of a batch that "
        "come straight from a DataLoader of the same file with `pin_memory=True`.\n\n"
        "On the way to the device this is correct without further care: kernels of the same "
        "stream wait for the copy. On the way back to the host it is not, and is never suggested. "
        "The fix is unsafe only for code that writes into the host's batch right after the copy.",
        zh="检查未带 `non_blocking` 的 `.to(device)` 与 `.cuda()`，对象直接来自同一文件中启用了 "
        "`pin_memory=True` 的 DataLoader。\n\n"
        "拷向设备时无需额外处理即可保证正确：同一流中的核函数会等待拷贝完成。拷回主机时则不然，因此从不建议。"
        "修复标记为不安全，仅针对拷贝之后立即改写主机端批数据的代码。",
    ),
    needs=("pin_memory",),
    bad="""\
import torch
from torch.utils.data import DataLoader

def train(dataset, model, device):
    loader = DataLoader(dataset, batch_size=64, num_workers=8, pin_memory=True)
    for x in loader:
        model(x.to(device))
""",
    fixed="""\
@@ -7 +7 @@
-        model(x.to(device))
+        model(x.to(device, non_blocking=True))
""",
)


@RULE.on_call("DataLoader")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`DataLoader(dataset, pin_memory=True)` … `x.to(device)`"""
    if not is_loader(scene, call) or scene.literal(option(scene, call, "pin_memory")) is not True:
        return
    seen: set[ast.AST] = scene.cache.setdefault("blocking transfers", set())
    for loop in loops_over(scene, call):
        for move in moves(scene, loop):
            given = scene.keyword(move, "non_blocking") is not None or len(move.args) > 1
            if given or move in seen or not _straight(scene.receiver(move)):
                continue
            seen.add(move)
            yield RULE.at(
                move,
                confidence=POSSIBLE if scene.is_test else None,
                fix=unsafe(scene.add_keyword(move, "non_blocking=True")),
                call=scene.brief(move),
                line=str(scene.source.place(call.lineno)[1]),
            )


def _straight(receiver: ast.expr | None) -> bool:
    """A name of the batch or a part of it: what a function made of it is not pinned."""
    while isinstance(receiver, (ast.Subscript, ast.Attribute)):
        receiver = receiver.value
    return isinstance(receiver, ast.Name)
