"""numpy counts in float64, and torch takes that over."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from torchstone.core.fix import Fix
from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import calls_given, torch_name
from torchstone.lint.knowledge.flow import made
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS116",
    "double-from-numpy",
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
    suggest=Text(en="say the type: `{better}`", zh="写明类型：`{better}`"),
    title=Text(
        en="A tensor made from numpy values without a dtype is float64 and does not fit the "
        "model's float32",
        zh="由 numpy 值创建且未指定 dtype 的张量是 float64，与模型的 float32 不匹配",
    ),
    page=Text(
        en="""\
`torch.tensor([0.5])` is float32, `torch.tensor(np.array([0.5]))`, `torch.from_numpy(np.random.rand(3))`
and even `torch.tensor(np.log(2))` are float64. As a parameter it stays float64 through `Adam` and
makes FSDP refuse the module ("Must flatten tensors with uniform dtype").

Reported when the value plainly comes from a numpy function that gives float64: `np.random`'s
samplers, also those of a `default_rng()` or `RandomState`, `linspace`, `zeros`, `ones`, `eye` without dtype, `array` of numbers with a decimal point;
inside `nn.Parameter` or `register_buffer` also `log`, `sqrt`, `exp` and the like of a number.

Certain enough to be shown where the tensor is seen to meet the model: in a `forward`, in a dataset's
`__getitem__`, as a parameter or buffer, or given to a layer or a loss. Elsewhere it may be a statistic
that float64 suits, and is reported only on request.

Quiet when a dtype is given (by name or by its place), when the array was cast with `astype`, when the tensor is cast (`.float()`,
`.to(dtype)`) at once or later by its name, when the file works in float64 on purpose (its code,
not a comment, says float64 or double anywhere), for a single number drawn without a size (that is
a Python float), and in tests.""",
        zh="""\
`torch.tensor([0.5])` 是 float32，而 `torch.tensor(np.array([0.5]))`、`torch.from_numpy(np.random.rand(3))` 乃至
`torch.tensor(np.log(2))` 都是 float64。作为参数，它会一直以 float64 参与优化，还会让 FSDP 拒绝该模块（Must flatten
tensors with uniform dtype）。

仅当值明显来自结果为 float64 的 numpy 函数时报告：`np.random` 的采样函数（包括 `default_rng()` 与 `RandomState` 实例的），未指定 dtype 的 `linspace`、`zeros`、
`ones`、`eye`，含小数的 `array`；在 `nn.Parameter` 或 `register_buffer` 中还包括对数字求 `log`、`sqrt`、`exp` 等。

只有看得出张量会与模型相遇时才默认显示：在 `forward` 中、在数据集的 `__getitem__` 中、作为参数或缓冲区，或传给层或损失。
其他地方可能是适合 float64 的统计量，只在要求时报告。

已（按名称或位置）给出 dtype、数组已用 `astype` 转换、张量当场或之后按名字转换（`.float()`、`.to(dtype)`）、文件有意使用 float64
（代码中任何地方出现 float64 或 double，注释不算）、不带 size 只抽取一个数（得到的是 Python float）以及测试中不报告。""",
    ),
    needs=("numpy",),
    bad="""\
import numpy as np
import torch

def batch(model):
    x = torch.from_numpy(np.random.rand(8, 3))
    return model(x)
""",
    fixed="""\
@@ -5 +5 @@
-    x = torch.from_numpy(np.random.rand(8, 3))
+    x = torch.from_numpy(np.random.rand(8, 3)).float()
""",
)
_SAMPLERS = frozenset(
    f"numpy.random.{name}"
    for name in (
        "rand randn random random_sample uniform normal standard_normal beta gamma exponential "
        "laplace lognormal logistic dirichlet"
    ).split()
)
_GENERATORS = frozenset(
    f"numpy.random.{name}" for name in ("default_rng", "RandomState", "Generator")
)
# where the size stands that makes a sampler give an array rather than a Python float
_SIZE_AT = {"exponential": 1, "uniform": 2, "normal": 2, "beta": 2, "gamma": 2, "laplace": 2,
            "lognormal": 2, "logistic": 2}  # fmt: skip
# where the dtype stands when it is given without its name
_DTYPE_AT = {"numpy.zeros": 1, "numpy.ones": 1, "numpy.identity": 1, "numpy.eye": 3,
             "numpy.linspace": 5, "numpy.logspace": 5}  # fmt: skip
_STATE = ("Parameter", "register_buffer", "Buffer")
_MATH = frozenset(f"numpy.{name}" for name in "log log2 log10 sqrt exp sin cos tanh power".split())
_CASTS = frozenset(
    "float half bfloat16 double long int to type type_as to_dense bool astype".split()
)
_DOUBLE = pattern(r"float64|^double$|DoubleTensor")


@RULE.on_call("tensor", "from_numpy", "as_tensor")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A tensor without dtype out of what numpy made in float64."""
    full = scene.qualified(call.func)
    if not full.startswith("torch.") or len(call.args) != 1 or scene.keyword(call, "dtype"):
        return
    source = _double_source(call, scene)
    if source is None or scene.is_test or _works_in_double(scene) or _is_count(call, scene):
        return
    if _is_cast(call, scene):
        return
    torch = torch_name(scene)
    from_numpy = full.endswith("from_numpy")
    name = scene.brief(call.func)
    better = f"{name}(…).float()" if from_numpy else f"{name}(…, dtype={torch or 'torch'}.float32)"
    yield RULE.at(
        call,
        confidence=None if _meets_model(call, scene) else POSSIBLE,
        fix=_fix(call, from_numpy, torch, scene),
        call=name,
        source=scene.brief(source),
        better=better,
    )


def _meets_model(call: ast.Call, scene: Scene) -> bool:
    """Whether the tensor is seen to come where float32 is: a forward, a sample of a dataset, a
    parameter or buffer, a layer or a loss that gets it. A statistic on the host may be float64."""
    if scene.forward_of(call) is not None or scene.getitem_of(call) is not None:
        return True
    for taker in calls_given(scene, call):
        full = scene.qualified(taker.func)
        if full.startswith("torch.nn.") or scene.last_name(taker.func) in _STATE:
            return True
        if not full and scene.is_model(taker.func):
            return True
    return False


def _is_count(call: ast.Call, scene: Scene) -> bool:
    """Whether the array is a sum that the function keeps (`matrix += …`): a statistic, which does not
    meet the model."""
    value = call.args[0]
    return isinstance(value, ast.Name) and any(
        scene.scope(sum_) is scene.scope(call)
        and isinstance(base := _base(sum_.target), ast.Name)
        and base.id == value.id
        for sum_ in scene.all(ast.AugAssign)
    )


def _base(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node


def _works_in_double(scene: Scene) -> bool:
    """Whether the code names float64 anywhere; comments and long strings do not count."""
    found = scene.cache.get("works in double")
    if found is None:
        names = chain(
            (node.attr for node in scene.all(ast.Attribute)),
            (node.id for node in scene.all(ast.Name)),
            (node.arg or "" for node in scene.all(ast.keyword)),
            (
                node.value
                for node in scene.all(ast.Constant)
                if isinstance(node.value, str) and len(node.value) < 24
            ),
        )
        found = scene.cache["works in double"] = any(map(_DOUBLE.search, names))
    return bool(found)


def _double_source(call: ast.Call, scene: Scene) -> ast.expr | None:
    value = call.args[0]
    if isinstance(value, ast.Name):
        bound = scene.value(value)
        around = set(scene.ancestors(value))
        if bound is None or any(
            isinstance(up, (ast.If, ast.Try)) and up not in around for up in scene.ancestors(bound)
        ):
            return None
        value = bound
    if not isinstance(value, ast.Call) or scene.keyword(value, "dtype") is not None:
        return None
    full = scene.qualified(value.func)
    sampler = full if full in _SAMPLERS else _sampler_of(value, scene)
    if sampler:
        from_array = scene.last_name(call.func) == "from_numpy"
        return value if from_array or _is_sized(value, sampler, scene) else None
    if full in _DTYPE_AT and len(value.args) <= _DTYPE_AT[full]:
        return value
    if full == "numpy.array" and len(value.args) == 1 and _has_decimals(value.args[0]):
        return value
    return value if full in _MATH and _is_state(call, value, scene) else None


def _sampler_of(call: ast.Call, scene: Scene) -> str:
    """The sampler that a method of a numpy generator stands for, or ""."""
    name = f"numpy.random.{scene.method(call)}"
    source = made(scene, scene.receiver(call)) if name in _SAMPLERS else None
    if not isinstance(source, ast.Call) or scene.qualified(source.func) not in _GENERATORS:
        return ""
    typed = name.endswith(("random", "standard_normal")) and len(call.args) > 1
    return "" if typed else name


def _is_sized(call: ast.Call, sampler: str, scene: Scene) -> bool:
    """Whether a sampler gives an array: without a size it gives a Python float."""
    if scene.has_star(call) or scene.keyword(call, "size") is not None:
        return True
    return len(call.args) > _SIZE_AT.get(sampler.rpartition(".")[2], 0)


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
    if scene.last_name(up.func) not in _STATE:
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
