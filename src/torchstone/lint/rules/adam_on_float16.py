"""Adam's eps is zero in float16."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import asks_precision
from torchstone.lint.knowledge.flow import before
from torchstone.lint.knowledge.numbers import number
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS124",
    "adam-on-float16",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="{optimizer} optimises `{model}`, whose weights are float16",
        zh="{optimizer} 优化的 `{model}` 权重为 float16",
    ),
    why=Text(
        en="its eps ({eps}) rounds to 0 in float16, so a parameter whose gradient is small or 0 "
        "becomes NaN or inf in the first step",
        zh="其 eps（{eps}）在 float16 下舍入为 0，梯度很小或为 0 的参数在第一步就会变成 NaN 或 inf",
    ),
    suggest=Text(
        en="keep the weights in float32 and use torch.autocast, or pass fused=True or eps=1e-4",
        zh="让权重保持 float32 并使用 torch.autocast，或传入 fused=True 或 eps=1e-4",
    ),
    title=Text(
        en="Adam or a relative with its default eps turns float16 weights into NaN or inf",
        zh="Adam 类优化器以默认 eps 优化 float16 权重，会使其变为 NaN 或 inf",
    ),
    page=Text(
        en="""\
The state of an optimizer has the type of the weights. In float16 the squared gradient underflows
(a gradient of 1e-5 squares to 0), and `sqrt(0) + 1e-8` is 0: the update is 0/0 or x/0. On torch 2.13
one step of Adam, AdamW, NAdam, Adamax, RMSprop or Adagrad with a zero gradient gives NaN weights.
`fused=True` computes in float32 inside and is safe from this, but float16 weights still lose every
update smaller than 1/2048 of themselves.

Reported when `x.half()`, `x.to(torch.float16)` or `from_pretrained(…, dtype=torch.float16)` (older:
`torch_dtype=`) stands before the optimizer is made from `x.parameters()` in the same function or at
module level. Quiet when `x` is cast up or made anew in between (`get_peft_model` keeps its adapters
in float32), with an eps of 6e-8 or more, with
`fused=True`, for bfloat16, behind a test on a precision flag, and in tests.""",
        zh="""\
优化器状态的类型与权重相同。float16 下梯度平方会下溢（1e-5 的平方为 0），`sqrt(0) + 1e-8` 等于 0，更新量成为 0/0
或 x/0。在 torch 2.13 上，Adam、AdamW、NAdam、Adamax、RMSprop、Adagrad 对零梯度走一步，权重即为 NaN。`fused=True`
在内部以 float32 计算，可避免此问题，但 float16 权重仍会丢失小于自身 1/2048 的更新。

判定：同一函数或模块顶层中，`x.half()`、`x.to(torch.float16)` 或 `from_pretrained(…, dtype=torch.float16)`（旧写法
`torch_dtype=`）出现在以 `x.parameters()` 创建优化器之前。其间 `x` 被转回或重新创建（`get_peft_model` 的适配器保持
float32）、eps 不小于 6e-8、`fused=True`、bfloat16、受精度开关判断保护以及测试中不报告。""",
    ),
    bad="""\
import torch

model = Net().cuda().half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
""",
    good="""\
import torch

model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
""",
    needs=("parameters",),
)
_EPS = {
    "Adam": 1e-8,
    "AdamW": 1e-8,
    "NAdam": 1e-8,
    "Adamax": 1e-8,
    "RMSprop": 1e-8,
    "Adagrad": 1e-10,
}
_FLUSHED = 2.0**-25
_OTHERS = pattern(r"cast|peft|kbit|lora|float32|fp32|prepare|convert|adapter")


@RULE.on_call(*_EPS)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """An optimizer of the Adam family over weights that were cast to float16."""
    full = scene.qualified(call.func)
    name = full.rpartition(".")[2]
    if not full.startswith("torch.optim.") or not call.args or scene.is_test:
        return
    given = scene.keyword(call, "eps")
    eps = number(scene, given) if given is not None else _EPS[name]
    if eps is None or eps > _FLUSHED or scene.literal(scene.keyword(call, "fused")) is True:
        return
    for part in scene.inside(call.args[0]):
        if isinstance(part, ast.Call) and scene.method(part) == "parameters":
            model = scene.receiver(part)
            if model is not None and _is_float16(model, call, scene):
                yield RULE.at(
                    call,
                    optimizer=name,
                    model=scene.brief(model),
                    eps=f"{eps:g}",
                    about=_held(call, scene),
                )
                return


def _held(call: ast.Call, scene: Scene) -> tuple[ast.expr, ...]:
    """The name of the optimizer: a strategy that gets it may keep float32 weights of its own."""
    up = scene.parent(call)
    return tuple(up.targets) if isinstance(up, ast.Assign) else ()


def _is_float16(model: ast.expr, call: ast.Call, scene: Scene) -> bool:
    name = scene.dotted(model)
    if not name:
        return False
    casts = [item for item in scene.calls.get("half", ()) if not item.args]
    casts += [
        item
        for item in scene.calls.get("to", ())
        if any(scene.dtype_literal(argument) == "float16" for argument in item.args)
        or scene.dtype_literal(scene.keyword(item, "dtype")) == "float16"
    ]
    casts += [
        item
        for item in scene.calls.get("from_pretrained", ())
        if any(
            scene.dtype_literal(scene.keyword(item, key)) == "float16"
            for key in ("torch_dtype", "dtype")
        )
    ]
    for cast in casts:
        if scene.scope(cast) is not scene.scope(call) or not before(cast, call):
            continue
        if name in _names_of(cast, scene) and not asks_precision(scene, cast):
            return not _cast_back(name, cast, call, scene)
    return False


def _names_of(cast: ast.Call, scene: Scene) -> set[str]:
    """What a cast applies to: `x` of `x.half()`, and of `x = Net().half()`."""
    names = {scene.dotted(scene.receiver(cast))}
    top: ast.AST = cast
    while isinstance(up := scene.parent(top), (ast.Attribute, ast.Call)):
        if isinstance(up, ast.Call) and up.func is not top:
            return names
        top = up
    if isinstance(up, ast.Assign):
        names.update(scene.dotted(target) for target in up.targets)
    return names


def _cast_back(name: str, cast: ast.Call, call: ast.Call, scene: Scene) -> bool:
    """Whether the weights are float32 again, or others, when the optimizer is made."""
    for item in scene.all(ast.Call):
        if not (before(cast, item) and before(item, call)):
            continue
        receiver, called = scene.dotted(scene.receiver(item)), scene.last_name(item.func)
        if called == "float" or (
            called == "to" and any(scene.dtype_literal(given) == "float32" for given in item.args)
        ):
            loop = scene.enclosing(item, ast.For)
            if receiver == name or (loop is not None and _mentions(loop.iter, name, scene)):
                return True
        elif _OTHERS.search(called) and any(_mentions(given, name, scene) for given in item.args):
            return True
    return False


def _mentions(node: ast.expr, name: str, scene: Scene) -> bool:
    return any(scene.dotted(part) == name for part in scene.inside(node))
