"""model.module(x) goes past DDP: the gradients of that pass are not averaged."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.callers import calls_of
from torchstone.lint.facts.origins import returns
from torchstone.lint.facts.summary import calls_below
from torchstone.lint.knowledge.flow import before, loops_around, parameters, passed, settled
from torchstone.lint.knowledge.wrapping import DDP, FSDP, wrapped_by, wraps
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, safe
from torchstone.sources.scene import Scene
from torchstone.sources.targets import target_of
from torchstone.sources.training import backward_calls

RULE = Rule(
    "TS414",
    "bypassed-ddp-forward",
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
    bad="""\
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
    fixed="""\
@@ -8 +8 @@
-        loss = model.module(x, y)
+        loss = model(x, y)
""",
    words=("backward",),
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


@RULE.on_file
def check_unwrapped(scene: Scene) -> Iterator[Hit]:
    """`unwrap(model)(x)`, where a function of the project gives `model.module` back"""
    for call in scene.all(ast.Call):
        opened = call.func if isinstance(call.func, ast.Call) else None
        if isinstance(call.func, ast.Name) and call in _in_training_scopes(scene):
            opened = value if isinstance(value := settled(scene, call.func), ast.Call) else None
        inner = _unwrapped(scene, opened) if opened is not None else None
        if inner is not None and _is_wrapped(scene, inner) and _trains(scene, call):
            yield RULE.at(call, call=scene.brief(call), model=scene.dotted(inner))


def _in_training_scopes(scene: Scene) -> set[ast.Call]:
    """The calls of functions that go backward: elsewhere a bare name is not worth a look."""
    found: set[ast.Call] | None = scene.cache.get("calls beside backward")
    if found is None:
        homes = {scene.function(call) or scene.root for call in backward_calls(scene)}
        found = {call for home in homes for call in calls_below(home)}
        scene.cache["calls beside backward"] = found
    return found


@RULE.on(ast.FunctionDef)
def check_property(function: ast.FunctionDef, scene: Scene) -> Iterator[Hit]:
    """`self.bare(x)`, where the property `bare` gives `self.model.module` back"""
    owner = scene.parent(function)
    if not isinstance(owner, ast.ClassDef) or not any(
        scene.last_name(item) in ("property", "cached_property") for item in function.decorator_list
    ):
        return
    given = returns(function)
    if len(given) != 1 or not isinstance(given[0], ast.Attribute) or given[0].attr != "module":
        return
    for call in scene.calls.get(function.name, ()):
        if scene.class_of(call) is owner and scene.dotted(call.func) == f"self.{function.name}":
            if _is_wrapped(scene, given[0].value) and _trains(scene, call):
                yield RULE.at(call, call=scene.brief(call), model=scene.dotted(given[0].value))


def _hit(call: ast.Call, func: ast.expr, scene: Scene) -> Iterator[Hit]:
    if not isinstance(func, ast.Attribute) or func.attr != "module":
        return
    name = scene.dotted(func.value)
    if not name:
        return
    known = _is_wrapped(scene, func.value) and _trains(scene, call)
    if (known or _from_training_callers(scene, call, func.value)) and not scene.region(
        call
    ).without_grad:
        fix = safe(scene.replace(call.func, scene.text(func.value)))
        yield RULE.at(call, call=scene.brief(call), model=name, fix=fix)


def _is_wrapped(scene: Scene, model: ast.expr) -> bool:
    name = scene.dotted(model)
    return wrapped_by(scene, model, DDP | FSDP) is not None or any(
        item.name == name for item in wraps(scene, DDP | FSDP)
    )


def _unwrapped(scene: Scene, call: ast.Call) -> ast.expr | None:
    """The argument whose `.module` a function of the project gives back."""
    found = target_of(scene, call)
    for value in returns(found[1]) if found is not None else ():
        assert found is not None
        home, function = found
        for node in home.inside(value):
            if isinstance(node, ast.Attribute) and node.attr == "module":
                return passed(scene, call, function, home.dotted(node.value))
    return None


def _from_training_callers(scene: Scene, call: ast.Call, model: ast.expr) -> bool:
    """Whether a training step hands a wrapped model to the function that goes past the wrapper."""
    function = scene.function(call)
    if function is None or not isinstance(model, ast.Name) or model.id not in parameters(function):
        return False
    for home, site in calls_of(scene, function) or ():
        given = passed(home, site, function, model.id)
        if given is not None and _is_wrapped(home, given) and _trains(home, site):
            if not home.region(site).without_grad:
                return True
    return False


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
