"""A tensor that `forward` makes on the CPU cannot meet the model's tensors on a GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.lint.values.analysis import value_at
from torchstone.lint.values.torch_calls import FACTORIES
from torchstone.lint.values.value import Kind
from torchstone.sources.scene import Function, Scene
from torchstone.sources.tree import below

RULE = Rule(
    "TS250",
    "cpu-tensor-in-forward",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{text}` joins a tensor made on the CPU with one on the model's device",
        zh="`{text}` 把在 CPU 上创建的张量与模型所在设备上的张量放在一起运算",
    ),
    why=Text(
        en="on a GPU it ends with 'Expected all tensors to be on the same device'",
        zh="在 GPU 上会以 Expected all tensors to be on the same device 结束",
    ),
    suggest=Text(
        en="pass `device=` of the input where the tensor is made",
        zh="创建张量时传入输入的 `device=`",
    ),
    title=Text(
        en="A module makes a tensor on the CPU and joins it with its inputs",
        zh="模块在 CPU 上创建张量并与输入一起运算",
    ),
    page=Text(
        en="""\
Followed are factories without `device` in the methods of an `nn.Module`, through assignments, branches and helpers, to the place where they meet
an input, a parameter or what a layer gives. Tensors without dimensions may meet any device; indices may stay on the CPU.

Quiet in projects that never name a GPU or set a default device.""",
        zh="""\
在 `nn.Module` 的方法中，没有 `device` 的工厂函数会被沿赋值、分支和辅助函数追踪，直到与输入、参数或某层的输出一起运算之处。零维张量可以与任何设备的
张量运算；索引可以留在 CPU 上。

从不提到 GPU 或设置了默认设备的项目不报告。""",
    ),
    words=("arange", "zeros", "ones", "linspace", "eye", "rand", "randn", "full", "from_numpy"),
    needs=("Module",),
    bad="""\
import torch
from torch import nn

class Positions(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)

    def forward(self, x):
        places = torch.arange(x.size(1)).float()
        return self.layer(x) + places

def run(x):
    return Positions(4).cuda()(x)
""",
    good="""\
@@ -10 +10 @@
-        places = torch.arange(x.size(1)).float()
+        places = torch.arange(x.size(1), device=x.device).float()
""",
)
_JOINS = frozenset(
    "cat stack where matmul mm bmm mul add sub div einsum lerp maximum minimum dot".split()
)
_METHODS = frozenset(
    "mul add sub div matmul mm bmm mul_ add_ sub_ div_ masked_fill masked_fill_ where maximum minimum".split()
)
_DEFAULTS = ("set_default_device", "set_default_tensor_type")


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    """One finding for each function."""
    project = scene.project
    if not project.mentions("cuda") or any(map(project.mentions, _DEFAULTS)) or scene.is_test:
        return
    for function in _makers(scene):
        for node in below(function):
            if _meets(scene, node) and not _is_placed(scene, node):
                yield RULE.at(node, text=scene.brief(node))
                break


def _makers(scene: Scene) -> list[Function]:
    """The methods of modules that make a tensor without a device, in order."""
    found: dict[Function, None] = {}
    for name in FACTORIES - {"tensor"}:
        for call in scene.calls.get(name, ()):
            function = scene.function(call)
            owner = scene.parent(function) if function is not None else None
            if (
                function is None
                or not isinstance(owner, ast.ClassDef)
                or function.name == "__init__"
            ):
                continue
            if scene.keyword(call, "device") is None and scene.is_module_class(owner):
                found[function] = None
    return list(found)


def _meets(scene: Scene, node: ast.AST) -> bool:
    """Whether an operation joins a tensor of the CPU with one that the caller placed."""
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Call) and _joins(scene, node):
        receiver = scene.receiver(node) if scene.method(node) else None
        parts = [*([receiver] if receiver is not None else []), *node.args]
        parts = [item for part in parts for item in _items(part)]
    else:
        return False
    places = {value_at(scene, part).device for part in parts if _is_tensor(scene, part)}
    return {"cpu", "given"} <= places


def _joins(scene: Scene, call: ast.Call) -> bool:
    full = scene.qualified(call.func)
    if full:
        return full.startswith("torch.") and full.rpartition(".")[2] in _JOINS
    return scene.method(call) in _METHODS


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]


def _is_tensor(scene: Scene, node: ast.expr) -> bool:
    """What an operator or a layer gave, or an argument that is used as a tensor."""
    value = value_at(scene, node)
    if value.kind is Kind.TENSOR or isinstance(node, ast.Call):
        return True
    if not isinstance(node, ast.Name):
        return False
    function = scene.function(node)
    return value.device == "given" and any(
        isinstance(part, ast.Attribute)
        and part.attr in ("shape", "size", "view", "device", "permute", "transpose", "reshape")
        and scene.dotted(part.value) == node.id
        for part in (below(function) if function is not None else ())
    )


def _is_placed(scene: Scene, node: ast.AST) -> bool:
    """Whether a `with torch.device(…)` around it chooses the device."""
    return any(
        isinstance(up, ast.With) and "device" in scene.text(up.items[0].context_expr)
        for up in scene.ancestors(node)
    )
