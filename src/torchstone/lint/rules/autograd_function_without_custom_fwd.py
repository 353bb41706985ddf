"""Autocast is open in a custom forward and closed in its backward, unless it is told."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import NamedTuple

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.facts.callers import calls_of
from torchstone.lint.knowledge.amp import FUNCTION_BASES, torch_name
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.sources.scene import FUNCTIONS, Function, Scene

RULE = Rule(
    "TS106",
    "autograd-function-without-custom-fwd",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="autograd.Function `{name}` does not say how it behaves under autocast",
        zh="自定义 autograd.Function `{name}` 未声明在 autocast 下的行为",
    ),
    why=Text(
        en="forward runs `{op}` under autocast in half, backward runs outside it on the saved "
        "float32 tensors: mixed types raise, or gradients are computed in another precision",
        zh="forward 中的 `{op}` 在 autocast 下以半精度运行，backward 却在其外作用于保存的 float32 张量："
        "类型不一致会报错，或以另一种精度计算梯度",
    ),
    suggest=Text(
        en="decorate forward with {fwd} and backward with {bwd}",
        zh="给 forward 加上 {fwd}，给 backward 加上 {bwd}",
    ),
    title=Text(
        en="A custom autograd.Function without custom_fwd and custom_bwd gets mixed types under "
        "autocast",
        zh="自定义 autograd.Function 缺少 custom_fwd / custom_bwd，在 autocast 下会遇到混合精度的"
        "输入",
    ),
    page=Text(
        en="""\
`custom_fwd` notes whether autocast was on in forward, `custom_bwd` restores that state in backward;
`custom_fwd(cast_inputs=torch.float32)` switches autocast off for a kernel that takes one type only.
Since torch 2.4 they live in `torch.amp` and take `device_type`; before, in `torch.cuda.amp`.

Reported when forward and backward both do arithmetic that autocast lowers (matrix products,
convolutions, linear layers, attention) and it is applied under autocast, or in the `forward` of a
module in a project that uses autocast. Where only one of them does, no such call is seen, or the work
is done by a kernel that cannot be looked into, it is `possible`.

Quiet when both methods are decorated, when the function asks for the state itself
(`torch.is_autocast_enabled`) or opens its own `autocast` region, when every call of it stands under
`autocast(enabled=False)`, and when there is nothing to lower: identity and gradient-scaling functions, rounding, collectives, indexing. Quiet in tests.""",
        zh="""\
`custom_fwd` 记录 forward 时 autocast 是否开启，`custom_bwd` 在 backward 中恢复该状态；
`custom_fwd(cast_inputs=torch.float32)` 则为只接受一种类型的内核关闭 autocast。自 torch 2.4 起它们位于
`torch.amp` 并需传入 `device_type`，此前位于 `torch.cuda.amp`。

当 forward 和 backward 都含有会被 autocast 降精度的运算（矩阵乘、卷积、线性层、注意力），并且它在 autocast 之下、或在使用
autocast 的项目中某个模块的 `forward` 里被调用时报告。只有其中之一含有、看不到这样的调用，或计算由无法查看的内核完成时，
只按 `possible`（可能）报告。

以下情况不报告：两个方法都已装饰；函数自行查询状态（`torch.is_autocast_enabled`）或打开自己的 `autocast`
区域；所有调用都在 `autocast(enabled=False)` 之下；没有可降精度的运算（恒等、梯度缩放、取整、集合通信、索引）；测试。""",
    ),
    words=("Function",),
    bad="""\
import torch

class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.t(), x.t() @ grad

def step(x, w):
    with torch.autocast("cuda"):
        return Product.apply(x, w)
""",
    fixed="""\
@@ -4,0 +5 @@
+    @torch.amp.custom_fwd(device_type="cuda")
@@ -9,0 +11 @@
+    @torch.amp.custom_bwd(device_type="cuda")
""",
)
_BUILTINS = frozenset(dir(builtins))
_COMPUTING = (ast.MatMult, ast.Pow, ast.Div)
_PASSING = frozenset(
    "view view_as reshape clone detach neg contiguous expand expand_as round sign clamp mul type_as "
    "save_for_backward mark_dirty mark_non_differentiable set_materialize_grads to size dim numel "
    "transpose permute squeeze unsqueeze flatten chunk split cat stack all_reduce all_gather "
    "reduce_scatter broadcast gather scatter index_select narrow floor ceil empty zeros ones "
    "new_zeros new_empty append extend get_world_size get_rank wait apply copy_ t T get items".split()
)
_NO_AMP = Text("no file of the project opens autocast", "项目中没有文件打开 autocast")
_UNTOUCHED = Text("it computes nothing that autocast touches", "其中没有 autocast 会影响的运算")
_SWITCHED_OFF = Text(
    "autocast is switched off around every call", "所有调用的外层都关闭了 autocast"
)
_OUTSIDE = Text("every call of it stands outside autocast", "所有调用都在 autocast 之外")
_FILES = 8  # a name that more files call is too common to be followed
_ASKS = frozenset(
    "is_autocast_enabled get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled "
    "autocast custom_fwd custom_bwd maybe_autocast".split()
)


@RULE.on(ast.ClassDef)
def check(owner: ast.ClassDef, scene: Scene) -> Iterator[Hit]:
    """A Function subclass with arithmetic and no decorators."""
    methods = {item.name: item for item in owner.body if isinstance(item, FUNCTIONS)}
    forward, backward = methods.get("forward"), methods.get("backward")
    if forward is None or backward is None or not scene.derives(owner, FUNCTION_BASES):
        return
    bare = [item for item in (forward, backward) if not _is_decorated(item, scene)]
    if not bare:
        return
    work = [_work(method, scene) for method in (forward, backward)]
    if any(item.asks for item in work):
        return
    op = next((item.op for item in work if item.op), "")
    fwd, bwd = _decorators(scene)
    yield RULE.at(
        owner,
        harmless=_harmless(scene, owner, op),
        fix=_fix(forward, backward, scene),
        name=owner.name,
        op=op or owner.name,
        fwd=fwd,
        bwd=bwd,
    )


def _harmless(scene: Scene, owner: ast.ClassDef, op: str) -> Text | None:
    """Why autocast does not matter to a Function; None where nothing shows that."""
    if not scene.project.mentions("autocast"):
        return _NO_AMP
    if not op:
        return _UNTOUCHED
    sites = _sites(scene, owner)
    if sites and all(home.region(site).autocast_off for home, site in sites):
        return _SWITCHED_OFF
    if sites and not any(_may_be_cast(*site) for site in sites):
        return _OUTSIDE
    return None


def _sites(scene: Scene, owner: ast.ClassDef) -> list[tuple[Scene, ast.Call]]:
    """The calls of the Function's `apply`, in this file and in those that name it."""
    homes = [scene]
    paths = scene.project.files_that_call(f"{owner.name}.apply")
    for path in paths if len(paths) <= _FILES else ():
        home = scene.project.load(path, scene)
        if home is not None and home is not scene:
            homes.append(home)
    return [
        (home, call)
        for home in homes
        for call in (*home.calls.get("apply", ()), *_renamed(home, owner))
        if home.last_name(home.receiver(call)) == owner.name or not home.method(call)
    ]


def _renamed(scene: Scene, owner: ast.ClassDef) -> list[ast.Call]:
    """Calls of `product` after `product = Product.apply`."""
    return [
        call
        for statement in scene.all(ast.Assign)
        if isinstance(value := statement.value, ast.Attribute)
        and value.attr == "apply"
        and scene.last_name(value.value) == owner.name
        for target in statement.targets
        for call in scene.calls.get(scene.last_name(target), ())
    ]


def _may_be_cast(scene: Scene, site: ast.Call) -> bool:
    """Whether autocast is open at a call, or may be: unless all callers are seen, nobody knows."""
    region = scene.region(site)
    if region.autocast is not None or region.autocast_off:
        return region.autocast is not None
    function = scene.function(site)
    if function is None:
        return False
    if scene.forward_of(site) is not None:
        return True
    sites = calls_of(scene, function) or []
    return not sites or any(
        home.region(call).autocast is not None or home.function(call) is not None
        for home, call in sites
    )


def _is_decorated(method: Function, scene: Scene) -> bool:
    for decorator in method.decorator_list:
        func = decorator.func if isinstance(decorator, ast.Call) else decorator
        if "custom" in scene.last_name(func) or "autocast" in scene.last_name(func):
            return True
    return False


class Work(NamedTuple):
    """What a method computes that autocast may touch."""

    asks: bool
    """Whether it asks about autocast itself."""
    op: str
    """The first operator that does more than pass its input on."""


def _work(method: Function, scene: Scene) -> Work:
    asks, op = False, ""
    for part in scene.inside(method):
        if isinstance(part, ast.BinOp) and isinstance(part.op, _COMPUTING):
            op = op or ("@" if isinstance(part.op, ast.MatMult) else scene.brief(part, 32))
        if not isinstance(part, ast.Call):
            continue
        name = scene.last_name(part.func)
        asks = asks or name in _ASKS
        full = scene.qualified(part.func)
        kernel = isinstance(part.func, ast.Subscript) or name in ("forward", "fwd")
        kernel = kernel or (isinstance(part.func, ast.Name) and name not in _BUILTINS)
        if kernel or (
            (full.startswith("torch.") or scene.method(part)) and not _passes(name, full)
        ):
            op = op or name or scene.brief(part.func, 32)
    return Work(asks, op)


def _passes(name: str, full: str) -> bool:
    """Whether a call hands its input on: views, copies, signs, collectives, what a context keeps."""
    return (
        name in _PASSING
        or full.startswith(("torch.distributed.", "torch.cuda."))
        or "_like" in name
    )


def _decorators(scene: Scene) -> tuple[str, str]:
    """The two decorators as the project's torch spells them."""
    torch = torch_name(scene) or "torch"
    old = scene.project.torch is not None and scene.project.torch < (2, 4)
    home, device = ("cuda.amp", "") if old else ("amp", '(device_type="cuda")')
    return f"@{torch}.{home}.custom_fwd{device}", f"@{torch}.{home}.custom_bwd{device}"


def _fix(forward: Function, backward: Function, scene: Scene) -> Fix | None:
    if not torch_name(scene) or _is_decorated(forward, scene) or _is_decorated(backward, scene):
        return None
    fwd, bwd = _decorators(scene)
    return unsafe(scene.insert_line_before(forward, fwd), scene.insert_line_before(backward, bwd))
