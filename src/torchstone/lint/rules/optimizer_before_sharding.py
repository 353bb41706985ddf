"""Sharding replaces the parameters, and the optimizer keeps the old ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import before, reaches, same_scope
from torchstone.lint.knowledge.freezing import parameters_of
from torchstone.lint.knowledge.layers import OPTIMIZERS
from torchstone.lint.knowledge.wrapping import FSDP, FULLY_SHARD
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS415",
    "optimizer-before-sharding",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{optimizer}` is made before {shard} replaces the parameters of `{model}` (line {line})",
        zh="`{optimizer}` 在 {shard}（第 {line} 行）替换 `{model}` 的参数之前就已创建",
    ),
    why=Text(
        en="{shard} puts new, sharded parameters in place of the old ones: the optimizer holds "
        "tensors that get no gradient, and step() changes nothing in the model",
        zh="{shard} 会用新的分片参数替换原来的参数：优化器持有的张量得不到梯度，step() 不会改变模型",
    ),
    suggest=Text(
        en="shard the model first, then make the optimizer", zh="先对模型分片，再创建优化器"
    ),
    title=Text(
        en="An optimizer made before fully_shard or FSDP replaces the parameters changes nothing "
        "in the model",
        zh="在 fully_shard 或 FSDP 替换参数之前创建的优化器，更新不到模型",
    ),
    page=Text(
        en="Fires when one function makes a torch optimizer over `model.parameters()` and, further "
        "down, shards the same `model` with `fully_shard` or FullyShardedDataParallel. Measured on "
        "torch 2.13: after `fully_shard` none of the optimizer's tensors is a parameter of the "
        "model, and none gets a gradient.\n\n"
        "- Quiet when the optimizer is made again after the sharding.\n"
        "- FSDP1 with use_orig_params=True is reported too: its documentation asks for the same "
        "order.",
        zh="同一函数先用 `model.parameters()` 创建 torch 优化器，之后又用 `fully_shard` 或 "
        "FullyShardedDataParallel 对同一 `model` 分片时报告。在 torch 2.13 上实测：`fully_shard` 之后，"
        "优化器持有的张量没有一个是模型的参数，也没有一个得到梯度。\n\n"
        "- 分片之后重新创建优化器时不报告。\n"
        "- use_orig_params=True 的 FSDP1 同样报告：其文档要求相同的顺序。",
    ),
    bad="""\
import torch
from torch.distributed.fsdp import fully_shard

def build(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    return model, optimizer
""",
    good="""\
@@ -5 +4,0 @@
-    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
@@ -8,0 +8 @@
+    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
""",
    words=("fully_shard", "FullyShardedDataParallel"),
)


@RULE.on_call(*OPTIMIZERS)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if not scene.qualified(call.func).startswith("torch.optim."):
        return
    model = parameters_of(scene, scene.argument(call, 0, "params"))
    if not model:
        return
    for name in ("fully_shard", "FullyShardedDataParallel"):
        for shard in scene.calls.get(name, ()):
            if scene.qualified(shard.func) not in FSDP | FULLY_SHARD or not shard.args:
                continue
            if scene.dotted(shard.args[0]) != model or not reaches(scene, call, shard):
                continue
            if not _made_again(scene, shard, model):
                yield RULE.at(
                    call,
                    optimizer=scene.brief(call, 40),
                    shard=name,
                    model=model,
                    line=str(shard.lineno),
                )
                return


def _made_again(scene: Scene, shard: ast.Call, model: str) -> bool:
    """Whether an optimizer over the model is made behind the sharding too."""
    return any(
        same_scope(scene, other, shard)
        and before(shard, other)
        and parameters_of(scene, scene.argument(other, 0, "params")) == model
        for name in OPTIMIZERS
        for other in scene.calls.get(name, ())
    )
