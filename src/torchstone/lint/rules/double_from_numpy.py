"""numpy counts in float64, and torch takes that over."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.amp import in_tests, torch_name
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS116",
    "double-from-numpy",
    group="precision",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{call}` makes a float64 tensor out of `{source}`",
        zh="`{call}` 会从 `{source}` 得到 float64 张量",
    ),
    why=Text(
        en="numpy's floating point is float64 unless told otherwise: a float32 layer raises on it "
        "(expected Float but found Double), or it slows the GPU down 32 to 64 times",
        zh="numpy 的浮点数默认是 float64：float32 的层会因此报错（expected Float but found Double），"
        "或使 GPU 计算慢 32 到 64 倍",
    ),
    suggest=Text(
        en="say the type: `{better}`",
        zh="写明类型：`{better}`",
    ),
    title=Text(
        en="A tensor made from numpy values without a dtype is float64",
        zh="由 numpy 值创建且未指定 dtype 的张量是 float64",
    ),
    page=Text(
        en="""\
`torch.tensor([0.5])` is float32, `torch.tensor(np.array([0.5]))`, `torch.from_numpy(np.random.rand(3))`
and even `torch.tensor(np.log(2))` are float64. As a parameter it stays float64 through `Adam` and
makes FSDP refuse the module ("Must flatten tensors with uniform dtype").

Reported when the value plainly comes from a numpy function that gives float64: `np.random`'s
samplers, `linspace`, `zeros`, `ones`, `eye` without dtype, `array` of numbers with a decimal point;
inside `nn.Parameter` or `register_buffer` also `log`, `sqrt`, `exp` and the like of a number.

Quiet when a dtype is given, when the array was cast with `astype`, when the tensor is cast (`.float()`,
`.to(dtype)`) at once or later by its name, when the file works in float64 on purpose (it says
float64 or double anywhere), and in tests.""",
        zh="""\
`torch.tensor([0.5])` 是 float32，而 `torch.tensor(np.array([0.5]))`、`torch.from_numpy(np.random.rand(3))` 乃至
`torch.tensor(np.log(2))` 都是 float64。作为参数，它会一直以 float64 参与优化，还会让 FSDP 拒绝该模块（Must flatten
tensors with uniform dtype）。

仅当值明显来自结果为 float64 的 numpy 函数时报告：`np.random` 的采样函数，未指定 dtype 的 `linspace`、`zeros`、
`ones`、`eye`，含小数的 `array`；在 `nn.Parameter` 或 `register_buffer` 中还包括对数字求 `log`、`sqrt`、`exp` 等。

已给出 dtype、数组已用 `astype` 转换、张量当场或之后按名字转换（`.float()`、`.to(dtype)`）、文件有意使用 float64
（任何地方出现 float64 或 double）以及测试中不报告。""",
    ),
    needs=("numpy",),
    bad=(
        """\
import numpy as np
import torch

def batch(model):
    x = torch.from_numpy(np.random.rand(8, 3))
    return model(x)
""",
        """\
import numpy as np
import torch

noise = np.random.normal(size=16)
x = torch.tensor(noise)
""",
        """\
import numpy as np
import torch
from torch import nn

class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(np.log(1 / 0.07)))
""",
    ),
    fixed=(
        """\
import numpy as np
import torch

def batch(model):
    x = torch.from_numpy(np.random.rand(8, 3)).float()
    return model(x)
""",
        """\
import numpy as np
import torch

noise = np.random.normal(size=16)
x = torch.tensor(noise, dtype=torch.float32)
""",
        """\
import numpy as np
import torch
from torch import nn

class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(np.log(1 / 0.07), dtype=torch.float32))
""",
    ),
    good=(
        """\
import numpy as np
import torch

x = torch.from_numpy(np.random.rand(8, 3)).float()
""",
        """\
import numpy as np
import torch

x = torch.tensor(np.random.rand(8, 3), dtype=torch.float32)
""",
        """\
import numpy as np
import torch

x = torch.from_numpy(np.random.rand(8, 3).astype(np.float32))
""",
        """\
import numpy as np
import torch

def batch(device):
    x = torch.from_numpy(np.random.rand(8, 3))
    return x.to(device, torch.float32)
""",
        """\
import numpy as np
import torch

torch.set_default_dtype(torch.float64)
x = torch.from_numpy(np.random.rand(8, 3))
""",
        """\
import numpy as np
import torch

x = torch.from_numpy(np.arange(8))
y = torch.from_numpy(np.array([1, 2, 3]))
z = torch.from_numpy(np.array(image))
""",
    ),
)
_SAMPLERS = frozenset(
    f"numpy.random.{name}"
    for name in (
        "rand randn random random_sample uniform normal standard_normal beta gamma exponential "
        "laplace lognormal logistic dirichlet"
    ).split()
)
_FILLERS = frozenset(
    f"numpy.{name}" for name in "linspace logspace zeros ones eye identity".split()
)
_MATH = frozenset(f"numpy.{name}" for name in "log log2 log10 sqrt exp sin cos tanh power".split())
_CASTS = frozenset("float half bfloat16 double long int to type to_dense bool astype".split())
_DOUBLE = pattern(r"float64|\bdouble\b|DoubleTensor")


@RULE.on_call("tensor", "from_numpy", "as_tensor")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A tensor without dtype out of what numpy made in float64."""
    full = scene.qualified(call.func)
    if not full.startswith("torch.") or len(call.args) != 1 or scene.keyword(call, "dtype"):
        return
    source = _double_source(call, scene)
    if source is None or in_tests(scene) or _DOUBLE.search(scene.source.text):
        return
    if _is_cast(call, scene):
        return
    torch = torch_name(scene)
    from_numpy = full.endswith("from_numpy")
    name = scene.brief(call.func)
    better = f"{name}(…).float()" if from_numpy else f"{name}(…, dtype={torch or 'torch'}.float32)"
    yield RULE.at(
        call,
        fix=_fix(call, from_numpy, torch, scene),
        call=name,
        source=scene.brief(source),
        better=better,
    )


def _double_source(call: ast.Call, scene: Scene) -> ast.expr | None:
    value = call.args[0]
    if isinstance(value, ast.Name):
        made = scene.value(value)
        around = set(scene.ancestors(value))
        if made is None or any(
            isinstance(up, (ast.If, ast.Try)) and up not in around for up in scene.ancestors(made)
        ):
            return None
        value = made
    if not isinstance(value, ast.Call) or scene.keyword(value, "dtype") is not None:
        return None
    full = scene.qualified(value.func)
    if full in _SAMPLERS or (full in _FILLERS and len(value.args) < 3):
        return value
    if full == "numpy.array" and value.args and _has_decimals(value.args[0]):
        return value
    return value if full in _MATH and _is_state(call, value, scene) else None


def _has_decimals(node: ast.expr) -> bool:
    """Whether a literal list of numbers has one with a decimal point, and nothing else."""
    stack, decimals = [node], False
    while stack:
        item = stack.pop()
        if isinstance(item, (ast.List, ast.Tuple)):
            stack.extend(item.elts)
        elif isinstance(item, ast.UnaryOp):
            stack.append(item.operand)
        elif isinstance(item, ast.Constant) and isinstance(item.value, (int, float)):
            decimals = decimals or isinstance(item.value, float)
        else:
            return False
    return decimals


def _is_state(call: ast.Call, value: ast.Call, scene: Scene) -> bool:
    """Whether the tensor becomes a parameter or buffer, made from a number rather than an array."""
    up = scene.parent(call)
    if not isinstance(up, ast.Call):
        return False
    if scene.last_name(up.func) not in ("Parameter", "register_buffer", "Buffer"):
        return False
    numeric = (ast.Constant, ast.BinOp, ast.Name, ast.Attribute, ast.UnaryOp)
    return len(value.args) == 1 and isinstance(value.args[0], numeric)


def _is_cast(call: ast.Call, scene: Scene) -> bool:
    """Whether the tensor gets another type at once, or by its name later."""
    top: ast.AST = call
    while isinstance(up := scene.parent(top), (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(up, ast.Call) and up.func is not top:
            break
        if isinstance(up, ast.Attribute) and up.attr in _CASTS and not _to_device(up, scene):
            return True
        top = up
    if not isinstance(up, ast.Assign):
        return False
    names = {scene.dotted(target) for target in up.targets}
    return any(
        scene.dotted(scene.receiver(item)) in names and not _to_device(item.func, scene)
        for name in _CASTS
        for item in scene.calls.get(name, ())
    )


def _to_device(func: ast.expr, scene: Scene) -> bool:
    """`x.to(device)` and `x.to("cuda")`, which keep the type."""
    call = scene.parent(func)
    if scene.last_name(func) != "to" or not isinstance(call, ast.Call) or call.keywords:
        return False
    return len(call.args) == 1 and (
        isinstance(call.args[0], ast.Constant) or "device" in scene.text(call.args[0])
    )


def _fix(call: ast.Call, from_numpy: bool, torch: str, scene: Scene) -> Fix | None:
    if from_numpy:
        return unsafe(scene.insert_after(call, ".float()"))
    return unsafe(scene.add_keyword(call, f"dtype={torch}.float32")) if torch else None
