"""Copying a tensor to the host on every step makes the host wait for the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.tensors import chain, goes_to_host, is_array, is_tensor, on_device
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS302",
    "host-copy-in-step-loop",
    severity=MEDIUM,
    confidence=LIKELY,
    title=Text(
        en="A tensor is copied to the host on every training step, and the host waits for the "
        "device",
        zh="每个训练步都把张量拷回主机，主机要等待设备",
    ),
    say=Text(
        en="`{call}` copies to the host on every step and waits for the device",
        zh="`{call}` 每个训练步都拷回主机，并等待设备完成",
    ),
    why=Text(
        en="the copy cannot start before every queued kernel has finished, and nothing new is "
        "queued meanwhile: the device idles after each step",
        zh="拷贝要等已排队的核函数全部完成才能开始，其间也不会排入新任务，设备在每一步之后都会空闲",
    ),
    suggest=Text(
        en="keep `.detach()` results on the device and copy them together every n steps or after "
        "the loop",
        zh="把 `.detach()` 的结果留在设备上，每隔 n 步或循环结束后一次性拷回",
    ),
    page=Text(
        en='Fires on `.cpu()`, `.numpy()`, `.tolist()` and `.to("cpu")` of what is evidently a '
        "tensor of this step, where it runs on every training step. A chain such as "
        "`.detach().cpu().numpy()` counts once.\n\n"
        "Quiet: under `if step % n`, under a condition that asks for logging, for models "
        "(`model.cpu()`), for arrays, for batches that were never moved to a device, with "
        "`non_blocking=True`, in tests, and in files that never speak of a device.",
        zh='检查每个训练步都会执行的 `.cpu()`、`.numpy()`、`.tolist()` 与 `.to("cpu")`，对象须明显是'
        "本步产生的张量；`.detach().cpu().numpy()` 这样的链只算一次。\n\n"
        "以下情形不报告：`if step % n` 或日志条件之下、模型（`model.cpu()`）、numpy 数组、从未移到"
        "设备上的批数据、带 `non_blocking=True`、测试代码，以及完全不涉及设备的文件。",
    ),
    needs=("backward",),
    bad="""\
import torch

def train(model, loader, criterion, opt, device):
    history = []
    for x, y in loader:
        loss = criterion(model(x.to(device)), y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.append(loss.detach().cpu().numpy())
    return history
""",
    good="""\
@@ -10,2 +10,2 @@
-        history.append(loss.detach().cpu().numpy())
-    return history
+        history.append(loss.detach())
+    return torch.stack(history).cpu().numpy()
""",
)


@RULE.on_call("cpu", "numpy", "tolist", "to")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`loss.cpu()`, `loss.detach().cpu().numpy()`"""
    if not goes_to_host(scene, call) or scene.keyword(call, "non_blocking") is not None:
        return
    if not scene.in_step_loop(call) or _inner(call, scene):
        return
    inside = chain(call)
    base = scene.receiver(inside[-1])
    start = inside[-1] if scene.qualified(inside[-1].func) else base
    if not is_tensor(scene, start) and not any(is_tensor(scene, part) for part in inside[1:]):
        return
    if is_array(scene, base) or scene.is_model(base):
        return
    sure = on_device(scene) and not scene.is_test
    yield RULE.at(call, confidence=None if sure else POSSIBLE, call=scene.brief(call))


def _inner(call: ast.Call, scene: Scene) -> bool:
    """Whether a longer chain around it is reported instead."""
    outer = scene.parent(call)
    while isinstance(outer, ast.Attribute):
        around = scene.parent(outer)
        if not isinstance(around, ast.Call) or around.func is not outer:
            return False
        if goes_to_host(scene, around):
            return True
        outer = scene.parent(around)
    return False
