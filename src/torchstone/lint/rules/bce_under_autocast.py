"""CUDA's autocast refuses binary cross entropy on probabilities."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.finding import Confidence
from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import uses_gpu_amp
from torchstone.lint.knowledge.autocast_ops import policy
from torchstone.lint.rule import CERTAIN, HIGH, LIKELY, POSSIBLE, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS102",
    "bce-under-autocast",
    group="precision",
    severity=HIGH,
    say=Text(en="{name} usage", zh="{name} usage"),
    why=Text(en="this function raises an error under AMP", zh="该函数在AMP中会报错"),
    suggest=Text(en="use {better} instead", zh="改用{better}"),
    title=Text(
        en="Binary cross entropy on probabilities raises an error under CUDA autocast",
        zh="在 CUDA autocast 下对概率计算二元交叉熵会直接报错",
    ),
    page=Text(
        en="""\
In float16 a sigmoid rounds to exactly 1 above 8.4 and to 0 below -17.4, and the logarithm's gradient
is lost, so CUDA's autocast raises `RuntimeError: binary_cross_entropy and BCELoss are unsafe to
autocast`. `binary_cross_entropy_with_logits` / `BCEWithLogitsLoss` take the values before the
sigmoid and run in float32.

`certain` inside a CUDA autocast region, also when the region is opened by every caller of the
function; `likely` when the file opens an autocast, uses a GradScaler or casts to half, or the
autocast's device is not written down; `possible` (hidden) otherwise.

Quiet under CPU autocast, which runs the function in float32, under `autocast(enabled=False)`, in
tests, and in a function whose own autocast region has ended before the call. The fix is offered
where the argument is a sigmoid that can be dropped; elsewhere the sigmoid has to be found by
hand.""",
        zh="""\
float16 下 sigmoid 在 x 大于 8.4 时舍入为 1、小于 -17.4 时舍入为 0，对数的梯度随之丢失，因此 CUDA 的 autocast 会抛出
`RuntimeError: binary_cross_entropy and BCELoss are unsafe to autocast`。
`binary_cross_entropy_with_logits` / `BCEWithLogitsLoss` 接收 sigmoid 之前的值，并以 float32 计算。

位于 CUDA autocast 区域内（包括所有调用者都在区域内的函数）时为 `certain`（确定）；文件打开了 autocast、使用了
GradScaler 或手动转换为半精度，或 autocast 的设备未写明时为 `likely`（很可能）；其余为 `possible`（可能，默认隐藏）。

CPU autocast 会以 float32 运行该函数，不报告；`autocast(enabled=False)` 之内、测试中，以及函数自身的
autocast 区域已在调用前结束时也不报告。仅当参数就是可去掉的 sigmoid 时提供自动修复，其余情况需人工找到
sigmoid。""",
    ),
    bad=(
        """\
import torch
import torch.nn.functional as F

def step(model, x, y):
    with torch.autocast("cuda"):
        return F.binary_cross_entropy(torch.sigmoid(model(x)), y)
""",
    ),
    fixed=(
        """\
@@ -6 +6 @@
-        return F.binary_cross_entropy(torch.sigmoid(model(x)), y)
+        return F.binary_cross_entropy_with_logits(model(x), y)
""",
    ),
    good=(
        """\
import torch
import torch.nn.functional as F

def step(model, x, y):
    with torch.autocast("cuda"):
        return F.binary_cross_entropy_with_logits(model(x), y)
""",
    ),
)
_BCE = "torch.nn.functional.binary_cross_entropy"
_SIGMOIDS = frozenset(("torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit"))


@RULE.on_call("binary_cross_entropy")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """The function."""
    if scene.qualified(call.func) != _BCE:
        return
    confidence = _confidence(call, scene)
    if confidence is not None:
        yield RULE.at(
            call,
            confidence=confidence,
            fix=_fix(call, scene),
            name="binary_cross_entropy",
            better="binary_cross_entropy_with_logits",
        )


@RULE.on_call("BCELoss")
def check_module(made: ast.Call, scene: Scene) -> Iterator[Hit]:
    """The module: its instance is what must not be called under autocast."""
    if not scene.qualified(made.func).startswith("torch.nn."):
        return
    for call in _calls_of(made, scene):
        confidence = _confidence(call, scene)
        if confidence is not None:
            yield RULE.at(call, confidence=confidence, name="BCELoss", better="BCEWithLogitsLoss")


def _calls_of(made: ast.Call, scene: Scene) -> list[ast.Call]:
    up = scene.parent(made)
    if isinstance(up, ast.Call) and up.func is made:
        return [up]
    if isinstance(up, ast.Attribute):  # nn.BCELoss().cuda()
        up = scene.parent(scene.parent(up) or up)
    names = {scene.dotted(target) for target in up.targets} if isinstance(up, ast.Assign) else set()
    names.discard("")
    return [call for call in scene.all(ast.Call) if scene.dotted(call.func) in names]


def _confidence(call: ast.Call, scene: Scene) -> Confidence | None:
    if scene.is_test:
        return None
    amp_file = uses_gpu_amp(scene)
    half = bool(scene.calls.get("half") or scene.calls.get("bfloat16"))
    region = scene.region(call)
    if region.autocast_off:
        return None
    if region.autocast is None:
        if _own_region_ended(call, scene):
            return None
        return LIKELY if amp_file or half else POSSIBLE
    if policy(_BCE, region.autocast.device) != "banned":
        return None
    sure = region.autocast.device == "cuda" and region.autocast.certain
    return CERTAIN if sure else LIKELY


def _own_region_ended(call: ast.Call, scene: Scene) -> bool:
    """Whether the function opens an autocast of its own and the call stands outside of it."""
    owners: set[ast.AST | None] | None = scene.cache.get("functions with autocast")
    if owners is None:
        casts = [
            c for c in scene.calls.get("autocast", ()) if isinstance(scene.parent(c), ast.withitem)
        ]
        owners = scene.cache["functions with autocast"] = {scene.function(cast) for cast in casts}
    return scene.function(call) in owners


def _fix(call: ast.Call, scene: Scene) -> Fix | None:
    probability = scene.argument(call, 0, "input")
    if not isinstance(probability, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if scene.qualified(probability.func) in _SIGMOIDS and len(probability.args) == 1:
        logits = scene.text(probability.args[0])
    elif scene.method(probability) == "sigmoid" and not probability.args:
        logits = scene.text(probability.func.value)  # type: ignore[attr-defined]
    else:
        return None
    module = scene.text(call.func.value)
    return safe(
        scene.replace(call.func, f"{module}.binary_cross_entropy_with_logits"),
        scene.replace(probability, logits),
    )
