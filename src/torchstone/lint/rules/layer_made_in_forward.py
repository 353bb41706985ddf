"""A layer made inside forward has new random weights on every call, and is always in training."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.layers import DROPOUTS, WITH_WEIGHTS, nn_class
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS219",
    "layer-made-in-forward",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="nn.{layer} is made anew on every forward pass", zh="每次前向计算都会新建一个 nn.{layer}"
    ),
    why=Text(
        en="its weights are drawn at random on every call, no optimizer ever sees them, and they "
        "stay on the CPU",
        zh="它的权重每次调用都重新随机初始化，优化器永远看不到，也始终留在 CPU 上",
    ),
    suggest=Text(
        en="make the layer once in __init__ (`self.layer = nn.{layer}(...)`) and call it here",
        zh="在 __init__ 中创建一次（`self.layer = nn.{layer}(...)`），这里只调用",
    ),
    title=Text(
        en="A layer with weights or dropout is made anew in every forward pass, so it never "
        "trains or always drops",
        zh="每次前向计算都新建带权重的层或 dropout：权重得不到训练，dropout 无法关闭",
    ),
    page=Text(
        en="Fires for torch.nn classes with weights, and for dropout, that are made inside an "
        "nn.Module's `forward` and called there: `nn.Linear(4, 4)(x)`, or a local name that is "
        "called.\n\n"
        "- A new module is in training mode, so `nn.Dropout(p)(x)` drops in evaluation too.\n"
        "- Classes without state (`nn.ReLU`, `nn.Softmax`, pooling, losses) are harmless and "
        "quiet.\n"
        "- Quiet when the layer is stored on `self` (lazy creation).",
        zh="在 nn.Module 的 `forward` 中新建并直接调用带权重的 torch.nn 类或 dropout 时报告："
        "`nn.Linear(4, 4)(x)`，或赋给局部变量再调用。\n\n"
        "- 新模块处于训练模式，因此 `nn.Dropout(p)(x)` 在评估时也会丢弃。\n"
        "- 无状态的类（`nn.ReLU`、`nn.Softmax`、池化、损失）没有影响，不报告。\n"
        "- 存到 `self` 上（惰性创建）时不报告。",
    ),
    bad="""\
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return nn.Linear(x.shape[-1], 10)(x)
""",
    good="""\
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 10)

    def forward(self, x):
        return self.layer(x)
""",
    words=tuple(sorted(WITH_WEIGHTS | DROPOUTS)),
    needs=("forward",),
)

_DROPS = Text(
    en="a new module is in training mode whatever the model's is: it drops values after "
    "model.eval() too",
    zh="新建的模块总处于训练模式，与模型的模式无关：model.eval() 之后仍会丢弃",
)


@RULE.on_call(*sorted(WITH_WEIGHTS | DROPOUTS))
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    name = nn_class(scene, call.func)
    if not name or not _called(call, scene) or scene.forward_of(call) is None:
        return
    drops = name in DROPOUTS
    if drops and scene.literal(scene.argument(call, 0, "p")) == 0:
        return
    yield RULE.at(call, layer=name, why=_DROPS if drops else None)


def _called(call: ast.Call, scene: Scene) -> bool:
    """Whether the layer is called where it is made, or through a local name."""
    up = scene.parent(call)
    if isinstance(up, ast.Call) and up.func is call:
        return True
    outer: ast.AST = call
    while isinstance(up, ast.Attribute):
        if up.attr == "eval":
            return False
        outer = scene.parent(up) or up  # nn.Linear(...).to(device)(x)
        up = scene.parent(outer)
    if isinstance(up, ast.Call) and up.func is outer:
        return True
    if not isinstance(up, ast.Assign) or not isinstance(up.targets[0], ast.Name):
        return False
    local = up.targets[0].id
    function = scene.function(call)
    uses = [
        item
        for item in scene.calls.get(local, ())
        if isinstance(item.func, ast.Name) and scene.function(item) is function
    ]
    kept = any(
        scene.last_name(item.value) == local
        and isinstance(item.targets[0], (ast.Attribute, ast.Subscript))
        for item in scene.all(ast.Assign)
        if scene.function(item) is function
    )
    return bool(uses) and not kept
