"""model.module(x) goes past DDP: the gradients of that pass are not averaged."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import before, loops_around, made
from torchstone.lint.knowledge.wrapping import DDP, FSDP, wraps
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, safe
from torchstone.sources.scene import Scene
from torchstone.sources.training import backward_calls

RULE = Rule(
    "TS414",
    "bypassed-ddp-forward",
    group="distributed",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{call}` runs the model inside and goes past the wrapper",
        zh="`{call}` 直接运行内部模型，绕过了包装层",
    ),
    why=Text(
        en="DDP prepares its gradient exchange in its own forward: after a pass through .module the "
        "gradients stay local, and the ranks drift apart without an error",
        zh="DDP 在自己的 forward 里准备梯度交换：经 .module 前向之后梯度只留在本地，各 rank 逐渐分叉且不报错",
    ),
    suggest=Text(
        en="call `{model}(...)` in training; keep `.module` for saving and for evaluation",
        zh="训练时调用 `{model}(...)`；`.module` 只用于保存和评估",
    ),
    title=Text(
        en="The forward pass of a training step goes through .module, past DDP, so gradients are "
        "not averaged",
        zh="训练步的前向通过 .module 绕过了 DDP，梯度不会求平均",
    ),
    page=Text(
        en="Fires for `model.module(...)` and `model.module.forward(...)` in a loop or function "
        "that goes backward, when the file wraps models in DDP or FSDP. Measured on torch 2.13 with "
        "two ranks: the gradients differ.\n\n"
        "- Quiet under `no_grad` and `inference_mode`, after `model.eval()` in the same function, "
        "and for other methods of `.module`.",
        zh="文件中使用了 DDP 或 FSDP，且在会执行 backward 的循环或函数里出现 `model.module(...)` 或 "
        "`model.module.forward(...)` 时报告。在 torch 2.13 上用两个 rank 实测：梯度不一致。\n\n"
        "- 不报告：位于 `no_grad`、`inference_mode` 之下；同一函数中先调用了 `model.eval()`；`.module` 的其他方法。",
    ),
    bad=(
        """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(net, loader, optimizer):
    model = DDP(net)
    for x, y in loader:
        optimizer.zero_grad()
        loss = model.module(x, y)
        loss.backward()
        optimizer.step()
""",
    ),
    fixed=(
        """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(net, loader, optimizer):
    model = DDP(net)
    for x, y in loader:
        optimizer.zero_grad()
        loss = model(x, y)
        loss.backward()
        optimizer.step()
""",
    ),
    good=(
        """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(net, loader, optimizer):
    model = DDP(net)
    for x, y in loader:
        optimizer.zero_grad()
        loss = model(x, y)
        loss.backward()
        optimizer.step()
""",
    ),
    needs=("module", "backward"),
    words=("DistributedDataParallel", "FullyShardedDataParallel"),
)


@RULE.on_call("module", "forward")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == "forward":
        func = func.value
    yield from _hit(call, func, scene)


@RULE.on(ast.Assign)
def check_name(node: ast.Assign, scene: Scene) -> Iterator[Hit]:
    """`net = model.module` … `net(x)`"""
    value, target = node.value, node.targets[0]
    if not (isinstance(value, ast.Attribute) and value.attr == "module"):
        return
    if not isinstance(target, ast.Name):
        return
    for call in scene.calls.get(target.id, ()):
        if isinstance(call.func, ast.Name) and scene.value(call.func) is value:
            yield from _hit(call, value, scene)


def _hit(call: ast.Call, func: ast.expr, scene: Scene) -> Iterator[Hit]:
    if not isinstance(func, ast.Attribute) or func.attr != "module":
        return
    if not wraps(scene, DDP | FSDP):
        return
    name = scene.dotted(func.value)
    source = made(scene, func.value)
    known = isinstance(source, ast.Call) and scene.qualified(source.func) in DDP | FSDP
    if not name or not (known or any(item.name == name for item in wraps(scene, DDP | FSDP))):
        return
    if not _trains(scene, call) or scene.region(call).without_grad:
        return
    fix = safe(scene.replace(call.func, scene.text(func.value)))
    yield RULE.at(call, call=scene.brief(call), model=name, fix=fix)


def _trains(scene: Scene, call: ast.Call) -> bool:
    """Whether the pass is followed by a backward in the same loop or function."""
    if any(
        scene.function(item) is scene.function(call) and before(item, call)
        for item in scene.calls.get("eval", ())
    ):
        return False
    around: list[ast.AST] = list(loops_around(scene, call))
    if not around:
        around = [scene.function(call) or scene.root]
    return any(
        scene.within(item, around[0]) and before(call, item) for item in backward_calls(scene)
    )
