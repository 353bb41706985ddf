"""Convolutions in half precision want channels last."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, LOW, POSSIBLE, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS316",
    "channels-first-under-amp",
    severity=LOW,
    confidence=LIKELY,
    torch_from=(1, 5),
    say=Text(
        en="convolutions run under autocast on CUDA with channels-first tensors",
        zh="卷积在 CUDA autocast 下使用通道在前的张量",
    ),
    why=Text(
        en="half-precision tensor-core kernels of cuDNN work on NHWC, so NCHW tensors are "
        "transposed on the way in and out of every convolution",
        zh="cuDNN 的半精度张量核心内核按 NHWC 计算，NCHW 张量在每个卷积前后都要转置",
    ),
    suggest=Text(
        en="once: `model = model.to(memory_format=torch.channels_last)`, and the same for each "
        "batch of images",
        zh="执行一次 `model = model.to(memory_format=torch.channels_last)`，并对每个图像批次做同样处理",
    ),
    title=Text(
        en="Convolutions run under CUDA autocast with channels-first tensors, which each of them "
        "must transpose",
        zh="卷积在 CUDA autocast 下使用通道在前的张量，每次卷积都要转换布局",
    ),
    page=Text(
        en="Fires once per file that makes `Conv2d` layers, runs its model in a training step under "
        "autocast on CUDA, and never mentions `channels_last`. For 3D convolutions the format is "
        "`torch.channels_last_3d`.\n\n"
        "The gain depends on the network: large for plain convolutional networks, small or none "
        "for depthwise convolutions, few channels, or where operators without channels-last "
        "kernels make tensors contiguous again. Measure. `torch.compile` chooses the layout by "
        "itself: quiet where it is used.",
        zh="若文件创建了 `Conv2d`、在训练步中于 CUDA autocast 下运行模型、且从未提到 `channels_last`，则每个"
        "文件报告一次。三维卷积对应的格式是 `torch.channels_last_3d`。\n\n"
        "收益取决于网络：普通卷积网络收益大，深度可分离卷积、通道数少，或中间有算子不支持该布局时收益很小"
        "甚至没有，请实测。`torch.compile` 会自行选择布局，使用它时不报告。",
    ),
    words=("autocast",),
    needs=("Conv2d",),
    bad="""\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 3)

def train(model, loader, opt, criterion):
    for x, y in loader:
        with torch.autocast('cuda', dtype=torch.bfloat16):
            loss = criterion(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    good="""\
@@ -9,0 +10 @@
+    model = model.to(memory_format=torch.channels_last)
@@ -10,0 +12 @@
+        x = x.to('cuda', memory_format=torch.channels_last)
@@ -12 +14 @@
-            loss = criterion(model(x.cuda()), y.cuda())
+            loss = criterion(model(x), y.cuda())
""",
)


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    """Once per file."""
    if "channels_last" in scene.source.text or scene.is_test:
        return
    if any(
        scene.qualified(call.func) == "torch.compile" for call in scene.calls.get("compile", ())
    ):
        return
    convolves = any(
        scene.qualified(call.func).startswith("torch.nn.") for call in scene.calls.get("Conv2d", ())
    )
    for forward in _forwards(scene) if convolves else ():
        autocast = scene.lexical_region(forward).autocast
        if autocast is not None and autocast.device == "cuda" and autocast.node is not None:
            yield RULE.at(autocast.node, confidence=None if autocast.certain else POSSIBLE)
            return


def _forwards(scene: Scene) -> Iterator[ast.Call]:
    """Calls of a model in a training step."""
    for call in scene.all(ast.Call):
        if scene.step_loop(call) is not None and not scene.qualified(call.func):
            if scene.is_model(call.func):
                yield call
