"""A tensor that is made on the CPU and then moved costs an allocation and a copy too many."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.tensors import is_device
from torchstone.lint.rule import LIKELY, LOW, POSSIBLE, Hit, Rule, safe, unsafe
from torchstone.sources.scene import Scene

_EXACT = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "arange", "eye"))
_INEXACT = frozenset(("torch.linspace", "torch.logspace"))
_RANDOM = frozenset(f"torch.{name}" for name in ("rand", "randn", "randint", "randperm"))

RULE = Rule(
    "TS309",
    "tensor-made-on-cpu",
    severity=LOW,
    confidence=LIKELY,
    title=Text(
        en="A tensor is made on the CPU and then copied to the device",
        zh="张量先在 CPU 上创建，再拷到设备，多了一次拷贝",
    ),
    say=Text(
        en="`{make}(...)` is made on the CPU and then moved",
        zh="`{make}(...)` 先在 CPU 上创建，再搬到设备",
    ),
    why=Text(
        en="it is allocated and filled on the host, then copied from pageable memory, which waits "
        "for the copy to end",
        zh="先在主机上分配并填充，再从可分页内存拷贝，且须等待拷贝结束",
    ),
    suggest=Text(
        en="make it where it is needed: `{make}(..., device={device})`",
        zh="直接在目标设备上创建：`{make}(..., device={device})`",
    ),
    page=Text(
        en="Fires on `.cuda()` and `.to(device)` straight after a torch function that makes a "
        "tensor (`zeros`, `ones`, `empty`, `full`, `arange`, `eye`, `linspace`, `logspace`, "
        "`rand`, `randn`, `randint`, `randperm`). MEDIUM in a training step or a module's "
        "`forward`, LOW elsewhere.\n\n"
        "Not reported: `torch.tensor(data)`, whose data is on the host anyway; calls with their "
        "own `device=`, `generator=` or `out=`; `.to(x)` where it is not plain that `x` is a "
        "device; tests.\n\n"
        "The fix is safe where the content is exact. It is unsafe for random tensors (the CPU and "
        "the GPU draw different numbers from the same seed) and for fractional ranges, which may "
        "round differently in the last digit.",
        zh="检查紧跟在创建张量的 torch 函数（`zeros`、`ones`、`empty`、`full`、`arange`、`eye`、"
        "`linspace`、`logspace`、`rand`、`randn`、`randint`、`randperm`）之后的 `.cuda()` 与 "
        "`.to(device)`。位于训练步或模块的 `forward` 中为 MEDIUM，其余为 LOW。\n\n"
        "不报告：`torch.tensor(data)`（数据本来就在主机上）；自带 `device=`、`generator=` 或 `out=` 的"
        "调用；无法确定 `x` 是设备的 `.to(x)`；测试代码。\n\n"
        "内容精确的张量可安全修复。随机张量的修复不安全（相同种子在 CPU 与 GPU 上产生的随机数不同）；"
        "小数区间也不安全，末位舍入可能不同。",
    ),
    bad="""\
import torch

def mask(n, device):
    return torch.zeros(n, n).to(device)
""",
    fixed="""\
@@ -4 +4 @@
-    return torch.zeros(n, n).to(device)
+    return torch.zeros(n, n, device=device)
""",
)


@RULE.on_call("cuda", "to")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.zeros(n).to(device)`"""
    made = scene.receiver(call)
    if not isinstance(made, ast.Call):
        return
    full = scene.qualified(made.func)
    if full not in _EXACT | _INEXACT | _RANDOM:
        return
    if any(keyword.arg in ("device", "generator", "out", None) for keyword in made.keywords):
        return
    device = _device(call, scene)
    if not device:
        return
    yield RULE.at(
        call,
        confidence=POSSIBLE if scene.is_test else None,
        fix=_fix(call, made, scene, device, exact=full in _EXACT and not _fractions(made, scene)),
        make=scene.text(made.func),
        device=device,
    )


def _device(call: ast.Call, scene: Scene) -> str:
    """What to write after `device=`, or "" when the target is no evident device."""
    if scene.method(call) == "cuda":
        given = scene.argument(call, 0, "device")
        return scene.text(given) if given is not None else "'cuda'"
    given = scene.argument(call, 0, "device")
    return scene.text(given) if given is not None and is_device(scene, given) else ""


def _fix(call: ast.Call, made: ast.Call, scene: Scene, device: str, *, exact: bool) -> Fix | None:
    """Move the device into the making, when the call moved and did nothing else."""
    extra = [k for k in call.keywords if k.arg not in ("device", "non_blocking")]
    if extra or len(call.args) > 1 or "\n" in device:
        return None
    if scene.span(made)[2] != scene.span(call)[2]:
        return None
    edits = (scene.add_keyword(made, f"device={device}"), scene.replace_between(made, call, ""))
    return safe(*edits) if exact else unsafe(*edits)


def _fractions(made: ast.Call, scene: Scene) -> bool:
    """Whether `arange` may round, and round differently on another device."""
    dtype = scene.dtype_literal(scene.keyword(made, "dtype"))
    return scene.last_name(made.func) == "arange" and (
        dtype.startswith(("float", "bfloat"))
        or any(isinstance(scene.literal(argument), float) for argument in made.args)
    )
