"""A model in two wrappers sends every gradient twice."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.returned import maker_of
from torchstone.lint.knowledge.flow import made
from torchstone.lint.knowledge.wrapping import DDP, FSDP
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

_PARALLEL = DDP | FSDP | {"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"}

RULE = Rule(
    "TS408",
    "ddp-wrapped-twice",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{model}` is already wrapped in {first} (line {line})",
        zh="`{model}` 已经用 {first} 包装过（第 {line} 行）",
    ),
    why=Text(
        en="both wrappers hook every parameter: each gradient is sent twice, buffers are broadcast "
        "twice, and the state dict gets keys that begin with module.module.",
        zh="两层包装都会给每个参数挂钩子：梯度传输两遍，缓冲区广播两遍，state dict 的键会以 module.module. 开头",
    ),
    suggest=Text(
        en="wrap once; to wrap anew, take the inner model first (`{model}.module`)",
        zh="只包装一次；如需重新包装，先取出内部模型（`{model}.module`）",
    ),
    title=Text(
        en="A model that is already wrapped in DDP or FSDP is wrapped again",
        zh="已用 DDP 或 FSDP 包装的模型又被包装一次",
    ),
    page=Text(
        en="Fires when the argument of DistributedDataParallel or FullyShardedDataParallel is, "
        "without a branch in between, the outcome of such a wrapper (or of DataParallel).\n\n"
        "- Gradients stay right (measured on torch 2.13), so this is a matter of time, memory and "
        "checkpoints.\n"
        "- Nested FSDP over submodules is normal and quiet: only the same object counts.",
        zh="当传给 DistributedDataParallel 或 FullyShardedDataParallel 的参数（中间没有分支）已是这类包装（或 "
        "DataParallel）的结果时报告。\n\n"
        "- 梯度仍然正确（在 torch 2.13 上实测），影响的是时间、内存和检查点。\n"
        "- 对子模块嵌套使用 FSDP 是正常写法，不报告：只看同一个对象。",
    ),
    bad="""\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def build(net, rank):
    net = DDP(net, device_ids=[rank])
    model = DDP(net, device_ids=[rank])
    return model
""",
    good="""\
@@ -5 +4,0 @@
-    net = DDP(net, device_ids=[rank])
""",
)


@RULE.on_call("DistributedDataParallel", "FullyShardedDataParallel")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if scene.qualified(call.func) not in DDP | FSDP or not call.args:
        return
    inner = call.args[0]
    source = made(scene, inner)
    if source is call or not isinstance(source, ast.Call):
        return
    full = scene.qualified(source.func)
    if full not in _PARALLEL and (made_by := maker_of(scene, source)) is not None:
        full = made_by.name
    if full in _PARALLEL and scene.function(source) is scene.function(call):
        yield RULE.at(
            call, model=scene.brief(inner), first=full.rpartition(".")[2], line=str(source.lineno)
        )
