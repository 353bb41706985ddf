"""Batches from pageable memory are copied twice on their way to the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.loaders import is_loader, loops_over, moves, option, trains_on
from torchstone.lint.rule import LIKELY, LOW, MEDIUM, POSSIBLE, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS306",
    "unpinned-loader",
    severity=MEDIUM,
    confidence=LIKELY,
    title=Text(
        en="Batches go to the GPU from memory that is not pinned, and each copy waits",
        zh="批数据从未锁页的内存拷到 GPU，每次拷贝都要等待",
    ),
    say=Text(
        en="batches of this DataLoader go to the GPU (line {line}) without pin_memory",
        zh="该 DataLoader 的批数据会拷到 GPU（第 {line} 行），却没有启用 pin_memory",
    ),
    why=Text(
        en="the driver first copies pageable memory into a pinned buffer of its own, and the copy "
        "cannot overlap with the computation",
        zh="驱动须先把可分页内存复制到自己的锁页缓冲区，而且这次拷贝无法与计算重叠",
    ),
    suggest=Text(
        en="pass pin_memory={value}, and move batches with non_blocking=True",
        zh="传入 pin_memory={value}，并用 non_blocking=True 搬运批数据",
    ),
    page=Text(
        en="Fires when a DataLoader without `pin_memory` is bound to a name, a loop of the same "
        "file goes over that name and moves parts of the batch with `.cuda()` or `.to(device)`, "
        "and the file speaks of CUDA. A loader that a function returns, alone or in a tuple, is "
        "followed to the callers in the file.\n\n"
        "Which value: `True` where the target is always a GPU, `torch.cuda.is_available()` where "
        "the code also runs on the CPU (pinning without a GPU only warns). Pinned memory cannot be "
        "swapped out: on a machine short of memory leave it off. Custom batch types need a "
        "`pin_memory()` method of their own. With pinned batches `non_blocking=True` lets the copy "
        "overlap with the step before.\n\n"
        "The fix is unsafe only because it uses more page-locked memory.",
        zh="触发条件：未启用 `pin_memory` 的 DataLoader 绑定到某个名字，同一文件中有循环遍历它并用 "
        "`.cuda()` 或 `.to(device)` 搬运批数据，且文件涉及 CUDA。函数单独或以元组返回的 loader，"
        "会跟踪到文件内的调用处。\n\n"
        "取值：目标总是 GPU 时用 `True`；代码也会在 CPU 上运行时用 `torch.cuda.is_available()`（没有 "
        "GPU 时锁页只会给出警告）。锁页内存不能换出，内存紧张的机器上应保持关闭。自定义批类型需要自己实现 "
        "`pin_memory()` 方法。批数据锁页之后，`non_blocking=True` 可让拷贝与上一步计算重叠。\n\n"
        "修复标记为不安全，仅因为它会占用更多锁页内存。",
    ),
    needs=("cuda",),
    bad="""\
import torch
from torch.utils.data import DataLoader

def train(dataset, model):
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    loader = DataLoader(dataset, batch_size=64, num_workers=8)
    for x, y in loader:
        model(x.to(device), y.to(device))
""",
    good="""\
import torch
from torch.utils.data import DataLoader

def train(dataset, model):
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    pin = torch.cuda.is_available()
    loader = DataLoader(dataset, batch_size=64, num_workers=8, pin_memory=pin)
    for x, y in loader:
        model(x.to(device, non_blocking=True), y.to(device, non_blocking=True))
""",
    fixed="""\
@@ -6 +6 @@
-    loader = DataLoader(dataset, batch_size=64, num_workers=8)
+    loader = DataLoader(dataset, batch_size=64, num_workers=8, pin_memory=torch.cuda.is_available())
""",
)


@RULE.on_call("DataLoader")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`DataLoader(dataset)` … `for x in loader: x.cuda()`"""
    if not is_loader(scene, call):
        return
    given = option(scene, call, "pin_memory")
    if given is not None and scene.literal(given) is not False:
        return
    moved = _moved(scene, call)
    if moved is None:
        return
    always = scene.method(moved) == "cuda" or not _may_be_cpu(scene)
    value = "True" if always else "torch.cuda.is_available()"
    edit = (
        scene.add_keyword(call, f"pin_memory={value}")
        if given is None
        else scene.replace(given, value)
    )
    yield RULE.at(
        call,
        severity=None if trains_on(scene, call) else LOW,
        confidence=POSSIBLE if scene.is_test else None,
        fix=unsafe(edit),
        value=value,
        line=str(scene.source.place(moved.lineno)[1]),
    )


def _moved(scene: Scene, call: ast.Call) -> ast.Call | None:
    """The first call that moves a part of this loader's batches to the device."""
    for loop in loops_over(scene, call):
        if found := moves(scene, loop):
            return found[0]
    return None


def _may_be_cpu(scene: Scene) -> bool:
    """Whether the file asks if there is a GPU, and can say so by the name `torch`."""
    return bool(scene.calls.get("is_available")) and scene.imports.aliases.get("torch") == "torch"
