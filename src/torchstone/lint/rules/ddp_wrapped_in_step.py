"""DDP is wrapped around a model once, not on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import callers, loops_around, own_nodes
from torchstone.lint.knowledge.wrapping import DDP, FSDP, wraps
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene
from torchstone.sources.training import backward_calls, step_calls, step_loops

_STEP_METHODS = ("forward", "training_step", "train_step", "compute_loss")

RULE = Rule(
    "TS409",
    "ddp-wrapped-in-step",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="the model is wrapped in {wrapper} again on every {where}",
        zh="每次{where}都会重新用 {wrapper} 包装模型",
    ),
    why=Text(
        en="each wrap sends all parameters to every rank and hangs a further set of hooks on them; "
        "steps that use the bare model are not averaged at all, so the ranks drift apart",
        zh="每次包装都会把全部参数广播一遍，并再挂一组钩子；直接使用原模型的步骤完全不做梯度平均，各 rank 逐渐分叉",
    ),
    suggest=Text(
        en="wrap once, before the optimizer and the loop, and use the wrapped model throughout",
        zh="在创建优化器和进入循环之前只包装一次，之后始终使用包装后的模型",
    ),
    title=Text(
        en="The model is wrapped in DDP or FSDP anew on every training step",
        zh="每个训练步都重新用 DDP 或 FSDP 包装模型",
    ),
    page=Text(
        en="Fires when DistributedDataParallel or FullyShardedDataParallel is applied inside a loop "
        "that goes backward, in `forward` or `training_step`, or in a function of the file that is "
        "called from there.\n\n"
        "- Quiet when the model itself is made in the same loop or function (one model per round, "
        "as in tests and sweeps).\n"
        "- The bug that gave this rule its case wrapped on every second step only.",
        zh="在会执行 backward 的循环、`forward` 或 `training_step` 中，或在从这些位置调用的本文件函数中，应用 "
        "DistributedDataParallel 或 FullyShardedDataParallel 时报告。\n\n"
        "- 模型本身也在该循环或函数中创建（每轮一个模型，如测试和参数搜索）时不报告。\n"
        "- 最初的案例是每隔一步才包装一次。",
    ),
    bad="""\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = load()

def get_model(step):
    if step % 2 == 0:
        return model
    return DDP(model)

class Trainer:
    def training_step(self, inputs):
        net = get_model(self.step)
        loss = net(inputs)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
""",
    good="""\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(load())

class Trainer:
    def training_step(self, inputs):
        loss = model(inputs)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
""",
)
_LOOP = Text("round of the training loop", "训练循环迭代")
_CALL = Text("call of {name}", "调用 {name} ")


@RULE.on_call("DistributedDataParallel", "FullyShardedDataParallel")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    full = scene.qualified(call.func)
    if full not in DDP | FSDP or not call.args:
        return
    where = _where(scene, call, call.args[0])
    if where is None:
        function = scene.function(call)
        sites = callers(scene, function) if function is not None else []
        if function is not None and not _made_in(scene, function, call.args[0]):
            for site in sites:
                where = _where(scene, site, None)
                if where is not None:
                    break
    if where is not None:
        say = Text(
            RULE.say.en.replace("{where}", where.en), RULE.say.zh.replace("{where}", where.zh)
        )
        yield RULE.at(call, say=say, wrapper=full.rpartition(".")[2])


@RULE.on_file
def check_callee(scene: Scene) -> Iterator[Hit]:
    """`model = wrap(model)` on every step, where a function of the project wraps"""
    for wrap in wraps(scene, DDP | FSDP):
        where = None if wrap.direct else _where(scene, wrap.call, _given(wrap.call))
        if where is not None:
            say = Text(
                RULE.say.en.replace("{where}", where.en), RULE.say.zh.replace("{where}", where.zh)
            )
            yield RULE.at(wrap.call, say=say, wrapper=wrap.within.name.rpartition(".")[2])


def _given(call: ast.Call) -> ast.expr | None:
    return call.args[0] if call.args else None


def _where(scene: Scene, node: ast.AST, model: ast.expr | None) -> Text | None:
    """The loop or method around a place that runs once a step."""
    backward = [*backward_calls(scene), *step_calls(scene)]
    for loop in loops_around(scene, node):
        if any(scene.within(item, loop) for item in backward):
            if model is not None and isinstance(loop, ast.For) and _uses(scene, node, loop.target):
                return None  # a sweep over ways to wrap
            return None if model is not None and _made_in(scene, loop, model) else _LOOP
    function = scene.function(node)
    if function is None:
        return None
    if function.name in _STEP_METHODS or function in step_loops(scene):
        named = function.name in _STEP_METHODS and scene.class_of(function) is not None
        looped = any(loops_around(scene, site) for site in callers(scene, function))
        if (named or looped) and not (model is not None and _made_in(scene, function, model)):
            return Text(
                _CALL.en.replace("{name}", function.name), _CALL.zh.replace("{name}", function.name)
            )
    return None


def _uses(scene: Scene, node: ast.AST, target: ast.expr) -> bool:
    names = {n.id for n in scene.inside(target) if isinstance(n, ast.Name)}
    return any(isinstance(n, ast.Name) and n.id in names for n in scene.inside(node))


def _made_in(scene: Scene, outer: ast.AST, model: ast.expr) -> bool:
    """Whether the model comes into being inside the loop or function."""
    used = {n.id for n in scene.inside(model) if isinstance(n, ast.Name)} - {"self"}
    if not isinstance(model, (ast.Name, ast.Attribute)):
        return True
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in used
        and not _rewraps(scene, node)
        for node in own_nodes(outer)
    )  # fmt: skip


def _rewraps(scene: Scene, name: ast.Name) -> bool:
    """`model = DDP(model)` makes no new model."""
    statement = scene.statement(name)
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Call) and scene.qualified(value.func) in DDP | FSDP
