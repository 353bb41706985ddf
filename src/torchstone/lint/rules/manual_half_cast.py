"""Casting by hand takes values out of autocast's care."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.finding import Confidence
from torchstone.core.fix import Fix
from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.paths import special_cases
from torchstone.lint.knowledge.amp import (
    FUNCTION_BASES,
    asks_precision,
    receivers,
    trains,
    uses_gpu_amp,
)
from torchstone.lint.knowledge.flow import own_nodes
from torchstone.lint.rule import HIGH, LIKELY, POSSIBLE, Hit, Rule, unsafe
from torchstone.sources.scene import Scene
from torchstone.sources.targets import target_of
from torchstone.sources.training import backward_calls

RULE = Rule(
    "TS101",
    "manual-half-cast",
    group="precision",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(en=".{cast}() call detected", zh=".{cast}() call detected"),
    why=Text(
        en="a manual cast can bypass AMP's protection",
        zh="手动类型转换可能绕过AMP保护",
    ),
    suggest=Text(
        en="remove .{cast}() and use `with autocast()`",
        zh="删除.{cast}()，使用with autocast()",
    ),
    title=Text(
        en="A cast to half precision by hand takes values out of autocast's care, so sums "
        "can overflow and small gradients vanish",
        zh="手动转换为半精度使数值脱离 autocast 的保护，求和可能溢出，小梯度会变为 0",
    ),
    page=Text(
        en="""\
Autocast keeps weights in float32 and picks the type per operator: matrix products in half, sums,
norms, exponentials and losses in float32. A value cast by hand skips that choice. Outside autocast
everything after it runs in half; in float16 sums overflow at 65504 and gradients below 6e-8 become
0. A whole model cast with `model.half()` also makes `GradScaler` fail ("Attempting to unscale FP16
gradients") and Adam's default `eps=1e-8` round to 0.

Reported at `likely` or `certain` in the `forward` of an `nn.Module`, in functions called `step`,
`train…` and the like, and anywhere in a file that runs `backward()` or uses AMP.

Harmless, and therefore only `possible` (hidden by default): files that do not train, such as
inference, export, conversion and quantisation scripts; tests; a model that is put into `eval()` or
frozen; under `no_grad`, `inference_mode` or `autocast(enabled=False)`; behind a test on a dtype or
a precision flag; inside a custom `autograd.Function`; masks; arguments of kernels that take only
half, such as flash attention and grouped matmuls; copies that go into a checkpoint.""",
        zh="""\
autocast 让权重保持 float32，并按算子选择精度：矩阵乘法用半精度，求和、范数、指数和损失用 float32。
手动转换会跳过这一选择：在 autocast 之外，其后的一切都以半精度计算，float16 求和超过 65504 即溢出，小于
6e-8 的梯度变为 0。对整个模型调用 `model.half()` 还会让 `GradScaler` 报错（Attempting to unscale FP16
gradients），并使 Adam 默认的 `eps=1e-8` 舍入为 0。

在 `nn.Module` 的 `forward`、名为 `step`、`train…` 等的函数，以及任何运行 `backward()` 或使用 AMP 的
文件中，以 `likely`（很可能）或 `certain`（确定）报告。

以下情况无害，只按 `possible`（可能）报告（默认隐藏）：不训练的文件（推理、导出、转换、量化脚本）；测试；已 `eval()`
或冻结的模型；处于 `no_grad`、`inference_mode` 或 `autocast(enabled=False)` 之内；受 dtype 或精度开关
判断保护；自定义 `autograd.Function` 内部；掩码；只接受半精度的内核（flash attention、分组矩阵乘）的参数；写入检查点的副本。""",
    ),
    bad=(
        """\
import torch

def step(x, w):
    with torch.autocast("cuda"):
        x = x.half()
        return x @ w
""",
    ),
    fixed=(
        """\
@@ -5 +4,0 @@
-        x = x.half()
""",
    ),
    good=(
        """\
import torch

def step(x, w):
    with torch.autocast("cuda"):
        return x @ w
""",
    ),
)
_TRAINING = pattern(r"^_*(?:train|fit|step|.*_step$|training|forward|compute_loss|loss)", re.I)
_HARMLESS = pattern(
    r"conver|export|save|load|quant|pack|ckpt|checkpoint|ema|infer|predict|generat|sampl|eval|valid"
    r"|demo|bench|state_dict|merge|onnx|trace|teacher|cache|__torch|fake|dequant|init|tokeniz|test",
    re.I,
)
_NOT_ACTIVATIONS = pattern(r"mask|bias_?table|indices|(?:^|_)ids?$|buffer", re.I)
_KERNELS = pattern(
    r"grouped_mm|flash|scaled_(?:mm|dot)|attention|attn|kernel|quant|gemm|fft|triton|cutlass", re.I
)
_COPIES = pattern(r"(?:^|[._])(?:ema|teacher|target_net|frozen|ref(?:erence)?)(?:$|[._])", re.I)
_HARMLESS_FILE = pattern(r"conver|export|quanti|infer|demo|bench|generat|predict|onnx", re.I)
_ENGINES = frozenset(("deepspeed", "apex", "colossalai", "fairscale", "megatron", "fairseq"))
_ENGINE_WORDS = pattern(r"FP16_?Optimizer|master_params|initialize_megatron|use_deepspeed", re.I)
_SUFFIX = pattern(r"\s*\.\s*(?:half|bfloat16)\s*\(\s*\)$")


@RULE.on_call("half", "bfloat16")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """Judge the place: is this where values train?"""
    if not scene.method(call) or call.args or call.keywords:
        return
    receiver = scene.receiver(call)
    if isinstance(receiver, ast.Call) and scene.last_name(receiver.func) == "super":
        return
    cast = scene.method(call)
    confidence = _confidence(call, receiver, scene)
    yield RULE.at(call, confidence=confidence, cast=cast, fix=_fix(call, scene))


def _confidence(call: ast.Call, receiver: ast.expr | None, scene: Scene) -> Confidence:
    function = scene.function(call)
    name = function.name if function else ""
    at_work = scene.forward_of(call) is not None or bool(_TRAINING.search(name))
    file_trains = trains(scene) or uses_gpu_amp(scene)
    if not at_work and not file_trains:
        return POSSIBLE
    if _harmless(call, receiver, name, scene) or _by_engine(scene, call):
        return POSSIBLE
    region = scene.region(call)
    if region.without_grad or region.autocast_off:
        return POSSIBLE
    if region.autocast is not None:
        return LIKELY
    if _for_network(scene, call) or _evaluated_by_callee(scene, call):
        return POSSIBLE
    if uses_gpu_amp(scene):
        return LIKELY
    trained = _is_trained(scene, call, receiver) or (at_work and _makes_loss(scene))
    return LIKELY if trained else POSSIBLE


def _for_network(scene: Scene, call: ast.Call) -> bool:
    """Whether the value is cast right where a network gets it: that network may itself be half."""
    up = scene.parent(call)
    return (
        isinstance(up, ast.Call)
        and call in up.args
        and not scene.qualified(up.func)
        and any(
            scene.is_model(part) for part in scene.inside(up.func) if isinstance(part, ast.expr)
        )
    )


def _evaluated_by_callee(scene: Scene, call: ast.Call) -> bool:
    """Whether a function of the project gets the value and runs its network without gradients."""
    up = scene.parent(call)
    found = target_of(scene, up) if isinstance(up, ast.Call) and call in up.args else None
    return found is not None and any(
        isinstance(node, ast.Call) and found[0].lexical_region(node).without_grad
        for node in own_nodes(found[1])
    )


def _makes_loss(scene: Scene) -> bool:
    """Whether the file computes a loss of torch: then its forward is one that trains."""
    return any(
        scene.qualified(call.func).startswith("torch.nn.functional.")
        for name in scene.calls
        if name.endswith(("_loss", "cross_entropy", "_with_logits"))
        for call in scene.calls[name]
    )


def _by_engine(scene: Scene, call: ast.Call) -> bool:
    """Whether something else than autocast runs the file in half: an engine that keeps its own
    float32 weights, or a branch for when there is no scaler."""
    if special_cases(scene, call) & {"no-scaler", "engine"}:
        return True
    return _names_an_engine(scene)


def _names_an_engine(scene: Scene) -> bool:
    """Whether the file imports or names such an engine; one search for all casts of a file."""
    found: bool | None = scene.cache.get("half engine")
    if found is None:
        roots = {full.partition(".")[0] for full in scene.imports.aliases.values()}
        words = not roots.isdisjoint(_ENGINES) or _ENGINE_WORDS.search(scene.source.text)
        found = scene.cache["half engine"] = bool(words)
    return found


def _is_trained(scene: Scene, call: ast.Call, receiver: ast.expr | None) -> bool:
    """Whether an optimizer of torch gets the parameters of the model that is cast."""
    statement = scene.statement(call)
    names = {scene.dotted(receiver)}
    if isinstance(statement, ast.Assign):
        names.update(scene.dotted(target) for target in statement.targets)
    return bool(backward_calls(scene)) and any(
        not names.isdisjoint(_models_in(scene, call))
        for call in scene.all(ast.Call)
        if _optimizes(scene, call)
    )


def _optimizes(scene: Scene, call: ast.Call) -> bool:
    """Whether a call makes an optimizer: torch's own, or one by its name."""
    return scene.qualified(call.func).startswith("torch.optim.") or "optim" in (
        scene.dotted(call.func).lower()
    )


def _models_in(scene: Scene, call: ast.Call) -> set[str]:
    """The models whose parameters a call is given."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    found = {scene.dotted(item) for item in given}
    return found | {
        scene.dotted(scene.receiver(part))
        for item in given
        for part in scene.inside(item)
        if isinstance(part, ast.Call) and scene.method(part) in ("parameters", "named_parameters")
    }


def _harmless(call: ast.Call, receiver: ast.expr | None, function: str, scene: Scene) -> bool:
    stem = scene.path.replace("\\", "/").rpartition("/")[2]
    if scene.is_test or _HARMLESS.search(function) or _HARMLESS_FILE.search(stem):
        return True
    if isinstance(receiver, ast.Compare) or scene.dotted(receiver) == "self":
        return True
    if _NOT_ACTIVATIONS.search(scene.last_name(receiver)) or _is_copy(call, receiver, scene):
        return True
    owner = scene.class_of(call)
    if owner is not None and scene.derives(owner, FUNCTION_BASES):
        return True
    return _feeds_kernel(call, scene) or _is_frozen(call, scene) or asks_precision(scene, call)


def _is_copy(call: ast.Call, receiver: ast.expr | None, scene: Scene) -> bool:
    """Whether a copy is cast, or what is cast goes into a checkpoint."""
    if isinstance(scene.parent(call), ast.Dict) or _COPIES.search(scene.dotted(receiver)):
        return True
    return any(
        isinstance(part, ast.Call) and scene.last_name(part.func) in ("deepcopy", "copy", "save")
        for part in (*(scene.inside(receiver) if receiver else ()), *scene.ancestors(call))
    )


def _feeds_kernel(call: ast.Call, scene: Scene) -> bool:
    """Whether the value goes straight, or by a name, into a kernel that takes only half."""
    child: ast.AST = call
    for up in scene.ancestors(call):
        if isinstance(up, ast.Call) and up.func is not child:
            return bool(_KERNELS.search(scene.last_name(up.func)))
        if isinstance(up, ast.Assign):
            names = {target.id for target in up.targets if isinstance(target, ast.Name)}
            return not names.isdisjoint(_kernel_arguments(scene).get(scene.scope(call), ()))
        if isinstance(up, ast.stmt):
            return False
        child = up
    return False


def _kernel_arguments(scene: Scene) -> dict[ast.AST, set[str]]:
    """Names that go into half-only kernels, by the function they stand in."""
    found: dict[ast.AST, set[str]] | None = scene.cache.get("half kernels")
    if found is None:
        found = scene.cache["half kernels"] = {}
        for call in scene.all(ast.Call):
            if _KERNELS.search(scene.last_name(call.func)):
                names = {part.id for part in scene.inside(call) if isinstance(part, ast.Name)}
                found.setdefault(scene.scope(call), set()).update(names)
    return found


def _is_frozen(call: ast.Call, scene: Scene) -> bool:
    """Whether the model that is cast is only ever evaluated: `eval()` or `requires_grad_(False)`."""
    chain, up = call, scene.parent(call)
    while isinstance(up, ast.Attribute) and isinstance(outer := scene.parent(up), ast.Call):
        if up.attr in ("eval", "requires_grad_", "generate", "state_dict"):
            return True
        chain, up = outer, scene.parent(outer)
    base: ast.AST | None = chain
    while isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute):
        if base.func.attr in ("eval", "requires_grad_"):
            return True
        base = base.func.value
    names = {scene.dotted(base)}
    if isinstance(up, ast.Assign):
        names.update(scene.dotted(target) for target in up.targets)
    names.discard("")

    def called(*methods: str) -> bool:
        return any(not names.isdisjoint(receivers(scene, method)) for method in methods)

    if called("eval", "requires_grad_", "generate") and not called("train", "parameters"):
        return True
    return _gradients_go(scene, call)


def _gradients_go(scene: Scene, call: ast.Call) -> bool:
    """Whether the function goes on to switch gradients off: what is cast is stored or served."""
    found: set[ast.AST | None] | None = scene.cache.get("gradients switched off")
    if found is None:
        found = scene.cache["gradients switched off"] = {
            scene.function(statement)
            for statement in scene.all(ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Attribute)
            and target.attr == "requires_grad"
            and scene.literal(statement.value) is False
        }
    function = scene.function(call)
    return function is not None and function in found


def _fix(call: ast.Call, scene: Scene) -> Fix | None:
    bare = _SUFFIX.sub("", scene.text(call))
    statement = scene.parent(call)
    idle = isinstance(statement, ast.Assign) and [scene.text(t) for t in statement.targets] == [
        bare
    ]
    if isinstance(statement, ast.stmt) and (idle or isinstance(statement, ast.Expr)):
        edit = scene.delete_line(statement)
        return unsafe(edit) if edit is not None else None
    return unsafe(scene.replace(call, bare))
