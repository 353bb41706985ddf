"""CUDA's autocast refuses binary cross entropy on probabilities."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.finding import Confidence, Severity
from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.facts.callers import calls_of
from torchstone.lint.knowledge.amp import uses_gpu_amp
from torchstone.lint.knowledge.autocast_ops import policy
from torchstone.lint.rule import CERTAIN, HIGH, LIKELY, MEDIUM, POSSIBLE, Hit, Rule, safe
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
function; `likely` when the autocast's device is not written down or the same function casts to half.
MEDIUM when the file uses AMP and nobody can tell whether it reaches the place; `possible` (hidden)
when nothing speaks of AMP.

Quiet under CPU autocast, which runs the function in float32, under `autocast(enabled=False)`, in
tests, in a function whose own autocast region has ended before the call, and where every call of the
function is seen to stand outside of any. The fix is offered
where the argument is a sigmoid that can be dropped; elsewhere the sigmoid has to be found by
hand.""",
        zh="""\
float16 下 sigmoid 在 x 大于 8.4 时舍入为 1、小于 -17.4 时舍入为 0，对数的梯度随之丢失，因此 CUDA 的 autocast 会抛出
`RuntimeError: binary_cross_entropy and BCELoss are unsafe to autocast`。
`binary_cross_entropy_with_logits` / `BCEWithLogitsLoss` 接收 sigmoid 之前的值，并以 float32 计算。

位于 CUDA autocast 区域内（包括所有调用者都在区域内的函数）时为 `certain`（确定）；autocast 的设备未写明，或同一函数
手动转换为半精度时为 `likely`（很可能）。文件使用 AMP 但无法判断它是否影响此处时为 MEDIUM；没有任何 AMP 迹象时为
`possible`（可能，默认隐藏）。

CPU autocast 会以 float32 运行该函数，不报告；`autocast(enabled=False)` 之内、测试中，以及函数自身的
autocast 区域已在调用前结束，或函数的所有调用都在区域之外时也不报告。仅当参数就是可去掉的 sigmoid 时提供自动修复，其余情况需人工找到
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
    judged = _judged(call, scene)
    if judged is not None:
        yield RULE.at(
            call,
            severity=judged[0],
            confidence=judged[1],
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
        judged = _judged(call, scene)
        if judged is not None:
            severity, confidence = judged
            yield RULE.at(
                call,
                severity=severity,
                confidence=confidence,
                name="BCELoss",
                better="BCEWithLogitsLoss",
            )


def _calls_of(made: ast.Call, scene: Scene) -> list[ast.Call]:
    up = scene.parent(made)
    if isinstance(up, ast.Call) and up.func is made:
        return [up]
    if isinstance(up, ast.Attribute):  # nn.BCELoss().cuda()
        up = scene.parent(scene.parent(up) or up)
    names = {scene.dotted(target) for target in up.targets} if isinstance(up, ast.Assign) else set()
    names.discard("")
    return [
        call
        for call in scene.all(ast.Call)
        if scene.dotted(call.func) in names and _same_owner(scene, call, made)
    ]


def _same_owner(scene: Scene, call: ast.Call, made: ast.Call) -> bool:
    """Whether a name means the same thing at both places: a local, a global, a field of one class."""
    if isinstance(call.func, ast.Attribute):
        return scene.class_of(call) is scene.class_of(made)
    home = scene.scope(made)
    if scene.scope(call) is home:
        return True
    bound = scene.bindings(call.func) if isinstance(call.func, ast.Name) else []
    return any(row.value is not None and scene.within(made, row.value) for row in bound)


def _judged(call: ast.Call, scene: Scene) -> tuple[Severity, Confidence] | None:
    """HIGH where autocast is known to be open, or the same function casts to half; MEDIUM where the
    file uses AMP and nobody can tell whether it reaches the place."""
    if scene.is_test:
        return None
    region = scene.region(call)
    if region.autocast_off:
        return None
    if region.autocast is None:
        return None if _own_region_ended(call, scene) else _without_region(call, scene)
    if policy(_BCE, region.autocast.device) != "banned":
        return None
    sure = region.autocast.device == "cuda" and region.autocast.certain
    return HIGH, CERTAIN if sure else LIKELY


def _without_region(call: ast.Call, scene: Scene) -> tuple[Severity, Confidence] | None:
    casts = [*scene.calls.get("half", ()), *scene.calls.get("bfloat16", ())]
    if any(scene.function(cast) is scene.function(call) for cast in casts):
        return HIGH, LIKELY
    if not casts and not uses_gpu_amp(scene):
        return HIGH, POSSIBLE
    return None if _known_outside(call, scene) else (MEDIUM, LIKELY)


def _known_outside(call: ast.Call, scene: Scene) -> bool:
    """Whether every way to the place is seen, and none of them opens an autocast."""
    function = scene.function(call)
    if function is None:
        return True
    sites = calls_of(scene, function)
    return bool(sites) and all(home.region(site).autocast is None for home, site in sites or ())


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
