"""With NCCL every process must choose its GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.callers import calls_of
from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.summary import summary_within
from torchstone.lint.rule import LIKELY, LOW, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS413",
    "nccl-without-set-device",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="NCCL is started, but no process chooses its GPU, and `{use}` means GPU 0 on every rank",
        zh="启动了 NCCL，但各进程没有选择自己的 GPU，`{use}` 在每个 rank 上都指向 GPU 0",
    ),
    why=Text(
        en="all ranks of a node put their tensors on GPU 0: out of memory there, or NCCL's "
        "'Duplicate GPU detected' error",
        zh="同一节点的所有 rank 都把张量放到 GPU 0：显存不足，或 NCCL 报 'Duplicate GPU detected'",
    ),
    suggest=Text(
        en="call torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before init_process_group, "
        "or pass device_id=",
        zh="在 init_process_group 之前调用 torch.cuda.set_device(int(os.environ['LOCAL_RANK']))，或传入 device_id=",
    ),
    title=Text(
        en="An NCCL process group without torch.cuda.set_device puts every rank on GPU 0",
        zh="使用 NCCL 进程组却没有调用 torch.cuda.set_device，所有 rank 都落在 GPU 0 上",
    ),
    page=Text(
        en="Fires when a file starts a process group with the literal backend 'nccl', never calls "
        "`set_device` nor passes `device_id`, and uses the current device: `.cuda()` or 'cuda' "
        "without an index.\n\n"
        "- Where every use names a GPU (`.to(rank)`), the confidence is `possible` and the severity "
        "LOW: barrier() and the object collectives still go by the current device.\n"
        "- Quiet when the file sets CUDA_VISIBLE_DEVICES, and when a caller, or a function that it "
        "calls, sets the device.",
        zh="文件以字面量 'nccl' 启动进程组，既没有调用 `set_device` 也没有传 `device_id`，且使用了当前设备（不带编号的 "
        "`.cuda()` 或 'cuda'）时报告。\n\n"
        "- 若所有用法都指明了 GPU（`.to(rank)`），置信度为 `possible`（可能），严重度 LOW：barrier() 和对象类集合通信仍使用当前设备。\n"
        "- 文件设置了 CUDA_VISIBLE_DEVICES，或调用者及其调用的函数设置了设备时不报告。",
    ),
    bad="""\
import torch
import torch.distributed as dist

def main(net, loader):
    dist.init_process_group("nccl")
    net.cuda()
    for x in loader:
        net(x.cuda())
""",
    good="""\
@@ -0,0 +1 @@
+import os
@@ -4,0 +6 @@
+    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
""",
)
_INDEXED = Text(
    en="NCCL is started without torch.cuda.set_device",
    zh="启动了 NCCL，但没有调用 torch.cuda.set_device",
)
_INDEXED_WHY = Text(
    en="barrier() and the object collectives use the current device, GPU 0 on every rank",
    zh="barrier() 和对象类集合通信使用当前设备，即每个 rank 上的 GPU 0",
)


@RULE.on_call("init_process_group")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if not scene.qualified(call.func).startswith("torch.distributed"):
        return
    if scene.literal(scene.argument(call, 0, "backend")) != "nccl" or scene.has_star(call):
        return
    if scene.literal(scene.keyword(call, "world_size")) == 1:
        return
    if scene.keyword(call, "device_id") is not None or scene.calls.get("set_device"):
        return
    if "CUDA_VISIBLE_DEVICES" in scene.source.text:
        return
    function = scene.function(call)
    sites = (calls_of(scene, function) or []) if function is not None else []
    if any(_sets_device(home, site) for home, site in sites):
        return
    homes = {home.path: home for home in (scene, *(home for home, _ in sites))}
    uses = [(home, use) for home in homes.values() if (use := _current_device(home)) is not None]
    if uses:
        home, use = uses[0]
        yield RULE.at(call, use=home.brief(use))
    elif scene.calls.get("cuda") or scene.calls.get("to"):
        yield RULE.at(call, severity=LOW, confidence=POSSIBLE, say=_INDEXED, why=_INDEXED_WHY)


def _sets_device(scene: Scene, site: ast.Call) -> bool:
    """Whether the file that starts the processes sets the device, or a function that it calls."""
    if scene.calls.get("set_device") or "CUDA_VISIBLE_DEVICES" in scene.source.text:
        return True
    return summary_within(scene, scene.function(site) or scene.root).has(Effect.SET_DEVICE)


def _current_device(scene: Scene) -> ast.Call | None:
    """A use of the current GPU: `.cuda()`, `.to("cuda")`, `torch.device("cuda")`."""
    for call in scene.calls.get("cuda", ()):
        if not call.args and not call.keywords and scene.method(call):
            return call
    for name in ("to", "device"):
        for call in scene.calls.get(name, ()):
            if len(call.args) == 1 and not call.keywords:
                given = call.args[0]
                if isinstance(given, ast.Constant) and given.value == "cuda":
                    return call
    return None
