"""CUDA's autocast refuses binary cross entropy on probabilities."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.facts.callers import calls_of
from torchstone.lint.knowledge.amp import uses_gpu_amp
from torchstone.lint.knowledge.autocast_ops import policy
from torchstone.lint.rule import CERTAIN, HIGH, LIKELY, Hit, Rule, safe
from torchstone.lint.values.losses import loss_calls
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS102",
    "bce-under-autocast",
    severity=HIGH,
    confidence=LIKELY,
    words=("torch",),
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

The function counts, and every call of a `BCELoss` object, wherever it was made: in a container of
losses, passed to a trainer, kept as an attribute. `certain` inside a CUDA autocast region, also when
the region is opened by every caller of the function; `likely` where nobody can tell whether autocast
reaches the place.

Quiet where it was thought harmless, which `--strict` reports with the reason: under CPU autocast, which
runs the function in float32; under `autocast(enabled=False)`; in a function whose own autocast region
has ended before the call; where every call of the function is seen to stand outside of any; in projects
without autocast; in tests. The fix is offered
where the argument is a sigmoid that can be dropped; elsewhere the sigmoid has to be found by
hand.""",
        zh="""\
float16 下 sigmoid 在 x 大于 8.4 时舍入为 1、小于 -17.4 时舍入为 0，对数的梯度随之丢失，因此 CUDA 的 autocast 会抛出
`RuntimeError: binary_cross_entropy and BCELoss are unsafe to autocast`。
`binary_cross_entropy_with_logits` / `BCEWithLogitsLoss` 接收 sigmoid 之前的值，并以 float32 计算。

函数本身以及对 `BCELoss` 对象的每次调用都计入，无论对象在哪里创建：损失的容器中、传给训练器，或保存为属性。位于 CUDA
autocast 区域内（包括所有调用者都在区域内的函数）时为 `certain`（确定）；无法判断 autocast 是否影响此处时为 `likely`（很可能）。

被认为无害时不报告（`--strict` 会报告并说明原因）：CPU autocast 会以 float32 运行该函数；`autocast(enabled=False)` 之内；
函数自身的 autocast 区域已在调用前结束；函数的所有调用都在区域之外；项目不使用 autocast；测试。仅当参数就是可去掉的 sigmoid 时提供自动修复，其余情况需人工找到
sigmoid。""",
    ),
    bad="""\
import torch
import torch.nn.functional as F

def step(model, x, y):
    with torch.autocast("cuda"):
        return F.binary_cross_entropy(torch.sigmoid(model(x)), y)
""",
    fixed="""\
@@ -6 +6 @@
-        return F.binary_cross_entropy(torch.sigmoid(model(x)), y)
+        return F.binary_cross_entropy_with_logits(model(x), y)
""",
)
_BCE = "torch.nn.functional.binary_cross_entropy"
_SIGMOIDS = frozenset(("torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit"))
_NO_AMP = Text("no file of the project opens autocast", "项目中没有文件打开 autocast")
_SWITCHED_OFF = Text("autocast is switched off around it", "其外层关闭了 autocast")
_ALLOWED = Text("autocast on this device does not refuse it", "该设备上的 autocast 不会拒绝它")
_OUTSIDE = Text("every way to it leads outside autocast", "到达此处的路径都在 autocast 之外")


@RULE.on_call("binary_cross_entropy")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """The function."""
    if scene.qualified(call.func) == _BCE:
        fix = _fix(call, scene)
        yield _hit(call, scene, "binary_cross_entropy", "binary_cross_entropy_with_logits", fix)


@RULE.on_file
def check_modules(scene: Scene) -> Iterator[Hit]:
    """An object of `BCELoss`, wherever it was made, is what must not be called under autocast."""
    project = scene.project
    if not project.mentions("BCELoss") or not (project.mentions("autocast") or project.strict):
        return
    for loss in loss_calls(scene, frozenset(("BCELoss",))):
        yield _hit(loss.call, scene, "BCELoss", "BCEWithLogitsLoss", None)


def _hit(call: ast.Call, scene: Scene, name: str, better: str, fix: Fix | None) -> Hit:
    cast = scene.region(call).autocast
    sure = cast is not None and cast.device == "cuda" and cast.certain
    return RULE.at(
        call,
        confidence=CERTAIN if sure else LIKELY,
        harmless=_harmless(call, scene),
        fix=fix,
        name=name,
        better=better,
    )


def _harmless(call: ast.Call, scene: Scene) -> Text | None:
    """Why autocast does not reach a call; None where nothing shows that."""
    region = scene.region(call)
    if region.autocast_off:
        return _SWITCHED_OFF
    if region.autocast is not None:
        return None if policy(_BCE, region.autocast.device) == "banned" else _ALLOWED
    function = scene.function(call)
    casts = (
        [*scene.calls_in(function, "half"), *scene.calls_in(function, "bfloat16")]
        if function
        else []
    )
    if casts:
        return None
    if not uses_gpu_amp(scene) and not scene.project.mentions("autocast"):
        return _NO_AMP
    return _OUTSIDE if _own_region_ended(call, scene) or _known_outside(call, scene) else None


def _known_outside(call: ast.Call, scene: Scene) -> bool:
    """Whether every way to the place is seen, and none of them opens an autocast."""
    function = scene.function(call)
    if function is None:
        return True
    sites = calls_of(scene, function)
    if not sites and not uses_gpu_amp(scene):
        return True  # a file of its own: autocast stands in others, and nobody is seen to call it
    return bool(sites) and all(home.region(site).autocast is None for home, site in sites or ())


def _own_region_ended(call: ast.Call, scene: Scene) -> bool:
    """Whether the function opens an autocast of its own and the call stands outside of it."""
    home = scene.function(call) or scene.root
    return any(
        isinstance(scene.parent(cast), ast.withitem) for cast in scene.calls_in(home, "autocast")
    )


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
