"""A dataset that moves its items to the GPU cannot run in worker processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.tensors import goes_to_device
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS323",
    "device-move-in-dataset",
    severity=MEDIUM,
    confidence=LIKELY,
    title=Text(
        en="A Dataset moves its items to the device one by one", zh="Dataset 把样本逐个搬到设备"
    ),
    say=Text(
        en="`{call}` moves each item to the device inside the Dataset",
        zh="`{call}` 在 Dataset 内把样本逐个搬到设备",
    ),
    why=Text(
        en='with worker processes this stops with "Cannot re-initialize CUDA in forked '
        'subprocess"; without them every sample pays its own copy and launch',
        zh='启用工作进程时会报错 "Cannot re-initialize CUDA in forked subprocess"；不启用时每个样本都要'
        "单独拷贝一次",
    ),
    suggest=Text(
        en="return tensors on the CPU, and move whole batches in the training loop",
        zh="返回 CPU 上的张量，在训练循环中整批搬运",
    ),
    page=Text(
        en="Fires on `.cuda()` and `.to(device)` inside `__getitem__` or `__iter__` of a class "
        "that derives from `torch.utils.data.Dataset` or `IterableDataset`, also through classes "
        "of the project. Quiet in tests and for `.to(dtype)`.\n\n"
        "Harmless only when everything is on the CPU or the dataset lives on the GPU already and "
        "is read without workers.",
        zh="检查继承自 `torch.utils.data.Dataset` 或 `IterableDataset`（包括经由项目内的类）的类中，"
        "`__getitem__` 或 `__iter__` 里的 `.cuda()` 与 `.to(device)`。测试代码与 `.to(dtype)` 不报告。\n\n"
        "只有在全部使用 CPU，或数据集本来就在 GPU 上且不启用工作进程时才无害。",
    ),
    words=("__getitem__", "__iter__"),
    bad="""\
import torch
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, i):
        return torch.from_numpy(self.images[i]).cuda()
""",
    good="""\
@@ -6 +6 @@
-        return torch.from_numpy(self.images[i]).cuda()
+        return torch.from_numpy(self.images[i])
""",
)


@RULE.on(ast.FunctionDef)
def check(function: ast.FunctionDef, scene: Scene) -> Iterator[Hit]:
    """`x.cuda()` in `__getitem__`"""
    if function.name not in ("__getitem__", "__iter__"):
        return
    confidence = POSSIBLE if scene.is_test else None
    for call in scene.inside(function):
        if isinstance(call, ast.Call) and goes_to_device(scene, call):
            if scene.getitem_of(call) is not None:
                yield RULE.at(call, confidence=confidence, call=scene.brief(call))
