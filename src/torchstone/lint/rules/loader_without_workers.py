"""A DataLoader without workers loads data while the device waits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.knowledge.loaders import in_memory, is_loader, option, trains_on
from torchstone.lint.knowledge.tensors import on_device
from torchstone.lint.rule import LIKELY, LOW, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.scene import Scene

_CHOSEN = Text(
    en="this DataLoader has num_workers=0, so every batch is loaded while the device waits",
    zh="该 DataLoader 设为 num_workers=0，加载每个批次时设备都在等待",
)

RULE = Rule(
    "TS305",
    "loader-without-workers",
    severity=MEDIUM,
    confidence=LIKELY,
    aliases=("TOR401",),
    say=Text(
        en="this DataLoader has no num_workers, so every batch is loaded while the device waits",
        zh="该 DataLoader 未设置 num_workers，加载每个批次时设备都在等待",
    ),
    why=Text(
        en="with num_workers=0 reading, decoding and collating run in the training process between "
        "two steps; worker processes do it during the step before",
        zh="num_workers=0 时，读取、解码与拼批都在两步之间由训练进程完成；工作进程则可在前一步计算期间完成",
    ),
    suggest=Text(
        en="start with num_workers = min(8, CPU cores // GPUs of the machine), then raise it until "
        "the step time stops falling",
        zh="先取 num_workers = min(8, CPU 核数 // 本机 GPU 数)，再逐步增大，直到单步耗时不再下降",
    ),
    title=Text(
        en="A DataLoader without num_workers loads every batch while the device waits",
        zh="DataLoader 未设置 num_workers，加载每个批次时设备都在等待",
    ),
    page=Text(
        en="The right value depends on the machine: each rank starts its own workers, so all ranks "
        "of a machine together should not have more workers than cores "
        "(`len(os.sched_getaffinity(0))` counts those a container may use). Eight is a ceiling to "
        "start from, since more workers mean more memory for copies of the dataset.\n\n"
        "An explicit `num_workers=0` is reported as LOW: somebody chose it. Quiet for datasets "
        "that are known to be in memory (`TensorDataset`, lists, ranges), where workers only add "
        "copies; when the arguments are hidden behind `**kwargs`; and in tests. Files that never "
        "speak of a device are reported as `possible` only.",
        zh="合适的取值取决于机器：每个 rank 都会启动自己的工作进程，同一台机器上所有 rank 的工作进程总数"
        "不宜超过核数（`len(os.sched_getaffinity(0))` 给出容器可用的核数）。以 8 为起步上限，因为工作"
        "进程越多，数据集副本占用的内存越多。\n\n"
        "显式写出的 `num_workers=0` 属于有意选择，降为 LOW。已知位于内存中的数据集（`TensorDataset`、"
        "列表、range）不报告，此时工作进程只会增加拷贝；参数藏在 `**kwargs` 中以及测试代码也不报告。"
        "完全不涉及设备的文件只作为 `possible`（可能）报告。",
    ),
    bad="""\
import torch
from torch.utils.data import DataLoader

def make(dataset, device):
    return DataLoader(dataset, batch_size=64, shuffle=True)
""",
    good="""\
import torch
from torch.utils.data import DataLoader

def make(dataset, device):
    return DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8)
""",
)


_FILES = pattern(
    r"image|img|audio|wav|video|speech|folder|lmdb|jpeg|transform|augment|vision|cifar|coco|path|root"
    r"|h5py|cv2|PIL",
    re.I,
)


def _is_costly(scene: Scene, call: ast.Call) -> bool:
    """Whether training waits for items that are read and transformed one by one; numbers that are
    in memory already gain little from workers."""
    data = scene.origin(scene.argument(call, 0, "dataset"))
    return trains_on(scene, call) and data is not None and bool(_FILES.search(scene.text(data)))


@RULE.on_call("DataLoader")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`DataLoader(dataset)`"""
    if not is_loader(scene, call) or not (call.args or call.keywords):
        return
    given = option(scene, call, "num_workers")
    if (given is not None and scene.literal(given) != 0) or in_memory(scene, call):
        return
    sure = on_device(scene) and not scene.is_test
    yield RULE.at(
        call,
        severity=None if given is None and _is_costly(scene, call) else LOW,
        confidence=None if sure else POSSIBLE,
        say=None if given is None else _CHOSEN,
    )
