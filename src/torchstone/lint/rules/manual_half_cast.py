"""Casting by hand takes values out of autocast's care."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.callers import calls_of
from torchstone.lint.facts.origins import origins
from torchstone.lint.facts.paths import special_cases
from torchstone.lint.knowledge.amp import FUNCTION_BASES, trains, uses_gpu_amp
from torchstone.lint.knowledge.flow import own_nodes
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, unsafe
from torchstone.lint.values.analysis import analysis_of, value_at
from torchstone.lint.values.half_operands import OPTIMIZER, works_for_optimizer
from torchstone.lint.values.halved import half_cast
from torchstone.lint.values.value import HALVES, Kind
from torchstone.sources.scene import Scene
from torchstone.sources.targets import target_of

RULE = Rule(
    "TS101",
    "manual-half-cast",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(en=".{cast} call detected", zh=".{cast} call detected"),
    why=Text(en="a manual cast can bypass AMP's protection", zh="手动类型转换可能绕过AMP保护"),
    suggest=Text(
        en="remove .{cast} and use `with autocast()`", zh="删除.{cast}，使用with autocast()"
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

Reported for `.half()`, `.bfloat16()`, and `.to(…)` or `.type(…)` with a half type, however it is
written: a name, an attribute, a constant of another file. It counts in the `forward` of an
`nn.Module`, in code that trains or uses AMP, and in helpers that such code calls.

Quiet where the case was thought harmless, which `--strict` reports with the reason: a network that is
frozen, or evaluated and never given to an optimizer; a constant table; no gradients, or autocast
switched off on purpose; a custom `autograd.Function` or optimizer, which chooses its own types; behind a
test on a dtype; an argument of a kernel that takes only half, or of a network that may itself be half;
copies for checkpoints; files and functions whose names say that they convert, export or evaluate; code
that nothing that trains calls; tests.""",
        zh="""\
autocast 让权重保持 float32，并按算子选择精度：矩阵乘法用半精度，求和、范数、指数和损失用 float32。
手动转换会跳过这一选择：在 autocast 之外，其后的一切都以半精度计算，float16 求和超过 65504 即溢出，小于
6e-8 的梯度变为 0。对整个模型调用 `model.half()` 还会让 `GradScaler` 报错（Attempting to unscale FP16
gradients），并使 Adam 默认的 `eps=1e-8` 舍入为 0。

`.half()`、`.bfloat16()`，以及带半精度类型的 `.to(…)`、`.type(…)` 都会报告，无论类型怎样写：名字、属性或其他文件中的
常量。涵盖 `nn.Module` 的 `forward`、训练或使用 AMP 的代码，以及它们调用的辅助函数。

被认为无害时不报告（`--strict` 会报告并说明原因）：已冻结的网络，或只用于评估、从未交给优化器的网络；常量表；不求梯度，
或有意关闭 autocast；自定义 `autograd.Function` 或优化器自行选择类型；受 dtype 判断保护；只接受半精度的内核的参数，或本身可能是
半精度的网络的参数；写入检查点的副本；名称表明用于转换、导出或评估的文件和函数；训练代码不会调用的代码；测试。""",
    ),
    bad="""\
import torch

def step(x, w):
    with torch.autocast("cuda"):
        x = x.half()
        return x @ w
""",
    fixed="""\
@@ -5 +4,0 @@
-        x = x.half()
""",
)
_AT_WORK = pattern(r"^_*(?:train|fit|step|.*_step$|training|forward|compute_loss|loss)", re.I)
_ELSEWHERE = pattern(
    r"conver|export|save|quant|pack|ckpt|checkpoint|infer|predict|generat|eval|valid|demo|bench"
    r"|state_dict|merge|onnx|trace|__torch|fake|dequant|tokeniz|test",
    re.I,
)
_ELSEWHERE_FILE = pattern(r"conver|export|quanti|infer|demo|bench|generat|predict|onnx", re.I)
_MASKS = pattern(r"mask|bias_?table|indices|(?:^|_)ids?$|buffer", re.I)
_KERNELS = pattern(
    r"grouped_mm|flash|scaled_(?:mm|dot)|attention|attn|kernel|quant|gemm|fft|triton|cutlass", re.I
)
_COPIES = pattern(r"(?:^|[._])(?:ema|teacher|target_net|frozen|ref(?:erence)?)(?:$|[._])", re.I)
_ENGINES = frozenset(("deepspeed", "apex", "colossalai", "fairscale", "megatron", "fairseq"))
_ENGINE_WORDS = pattern(r"FP16_?Optimizer|master_params|initialize_megatron|use_deepspeed", re.I)


_NO_GRADIENT = Text("no gradient is computed here", "此处不计算梯度")
_SWITCHED_OFF = Text("autocast is switched off around it", "其外层有意关闭了 autocast")
_MASK = Text(
    "a mask or index is cast, not a value that trains", "转换的是掩码或索引，不是参与训练的值"
)
_CONSTANT = Text("the value is made of constants", "该值由常量构成")
_FROZEN = Text("the network is frozen or only evaluated", "该网络已冻结或只用于评估")
_NO_OPTIMIZER = Text("no optimizer of the project gets its weights", "项目中没有优化器使用其权重")
_OWN_TYPES = Text(
    "a custom function or optimizer chooses its own types", "自定义函数或优化器自行选择类型"
)
_TESTED = Text("a test on a dtype stands in front of it", "其前有 dtype 判断")
_KERNEL = Text("it goes into a kernel that takes half precision", "传给只接受半精度的内核")
_NETWORK = Text("the network that gets it may be half itself", "接收它的网络本身可能是半精度")
_COPY = Text("a copy is cast, or something that is saved", "转换的是副本或要保存的内容")
_ENGINE = Text(
    "an engine that keeps float32 weights runs this file", "由保留 float32 权重的引擎运行"
)
_NAMED = Text(
    "its file or function is named as one that does not train", "文件或函数的名称表明它不用于训练"
)
_NOT_TRAINED = Text("nothing that trains is seen to call it", "未见训练代码调用它")


@RULE.on_call("half", "bfloat16", "to", "type")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A cast to half, however it is written."""
    receiver = scene.receiver(call)
    if receiver is None or not scene.method(call) or not _casts_to_half(call, scene):
        return
    if isinstance(receiver, ast.Call) and scene.last_name(receiver.func) == "super":
        return
    text = scene.text(call)[len(scene.text(receiver)) :].strip().removeprefix(".")
    yield RULE.at(
        call,
        harmless=_harmless(call, receiver, scene),
        fix=_fix(call, receiver, scene),
        cast=" ".join(text.split()),
    )


def _casts_to_half(call: ast.Call, scene: Scene) -> bool:
    if half_cast(scene, call):
        return True
    if scene.method(call) in ("half", "bfloat16") or not scene.project.mentions("16"):
        return False
    named = scene.keyword(call, "dtype")
    rows = [*call.args, *([named] if named is not None else ())]
    return any(
        isinstance(item, (ast.Name, ast.Attribute)) and _is_half_type(scene, item) for item in rows
    )


def _is_half_type(scene: Scene, node: ast.expr) -> bool:
    """Whether a name stands for a half type on every way to it; nothing is walked for that."""
    if "device" in scene.text(node):
        return False
    places = origins(scene, node)
    return bool(places) and all(
        place.scene.dtype_literal(place.node) in HALVES
        or (
            (found := analysis_of(place.scene).named_value(place.node)).kind is Kind.DTYPE
            and found.name in HALVES
        )
        for place in places
    )


def _harmless(call: ast.Call, receiver: ast.expr, scene: Scene) -> Text | None:
    """Why a cast does no harm; None where nothing shows that."""
    if not scene.project.doubtful and (found := _by_name(call, scene)):
        return found  # nobody will read the reason: the cheapest is enough
    return (
        _by_place(call, scene)
        or _by_value(call, receiver, scene)
        or _by_use(call, scene)
        or _by_name(call, scene)
    )


def _by_place(call: ast.Call, scene: Scene) -> Text | None:
    region, owner = scene.region(call), scene.class_of(call)
    if region.without_grad:
        return _NO_GRADIENT
    if region.autocast_off:
        return _SWITCHED_OFF
    if owner is not None and scene.derives(owner, FUNCTION_BASES):
        return _OWN_TYPES
    if works_for_optimizer(scene, call):
        return OPTIMIZER
    if _tests_dtype(scene, call):
        return _TESTED
    engine = special_cases(scene, call) & {"no-scaler", "engine"} or _names_an_engine(scene)
    return _ENGINE if engine else None


def _by_value(call: ast.Call, receiver: ast.expr, scene: Scene) -> Text | None:
    value = value_at(scene, receiver)
    if isinstance(receiver, ast.Compare) or value.dtypes == {"bool"}:
        return _MASK
    if _MASKS.search(scene.last_name(receiver)):
        return _MASK
    if value.constant and value.kind is Kind.TENSOR:
        return _CONSTANT
    if _is_copy(call, receiver, scene):
        return _COPY
    if value.kind is Kind.MODULE and not scene.project.mentions("optim"):
        return _NO_OPTIMIZER
    return _FROZEN if analysis_of(scene).is_only_evaluated(value) else None


def _by_use(call: ast.Call, scene: Scene) -> Text | None:
    if _feeds_kernel(call, scene):
        return _KERNEL
    if _for_unknown_network(scene, call):
        return _NETWORK
    return _NO_GRADIENT if _evaluated_by_callee(scene, call) else None


def _by_name(call: ast.Call, scene: Scene) -> Text | None:
    function = scene.function(call)
    name = function.name if function else ""
    stem = scene.path.replace("\\", "/").rpartition("/")[2]
    if _ELSEWHERE.search(name) or _ELSEWHERE_FILE.search(stem):
        return _NAMED
    if scene.forward_of(call) is not None or _AT_WORK.search(name):
        return None
    if trains(scene) or uses_gpu_amp(scene):
        return None
    sites = calls_of(scene, function) if function is not None else []
    return (
        None if any(trains(home) or uses_gpu_amp(home) for home, _ in sites or ()) else _NOT_TRAINED
    )


def _tests_dtype(scene: Scene, node: ast.AST) -> bool:
    """Whether a place runs only when a test on a dtype says so."""
    child = node
    for up in scene.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test:
            if any(scene.last_name(part) == "dtype" for part in scene.inside(up.test)):
                return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
        child = up
    return False


def _for_unknown_network(scene: Scene, call: ast.Call) -> bool:
    """Whether the value is cast right where a network gets it that nobody can look into."""
    up = scene.parent(call)
    return (
        isinstance(up, ast.Call)
        and call in up.args
        and not scene.qualified(up.func)
        and value_at(scene, up.func).kind is not Kind.MODULE
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


def _names_an_engine(scene: Scene) -> bool:
    """Whether the file imports or names an engine; one search for all casts of a file."""
    found: bool | None = scene.cache.get("half engine")
    if found is None:
        roots = {full.partition(".")[0] for full in scene.imports.aliases.values()}
        words = not roots.isdisjoint(_ENGINES) or _ENGINE_WORDS.search(scene.source.text)
        found = scene.cache["half engine"] = bool(words)
    return found


def _is_copy(call: ast.Call, receiver: ast.expr, scene: Scene) -> bool:
    """Whether a copy is cast, or what is cast goes into a checkpoint."""
    if isinstance(scene.parent(call), ast.Dict) or _COPIES.search(scene.dotted(receiver)):
        return True
    return any(
        isinstance(part, ast.Call)
        and scene.last_name(part.func) in ("deepcopy", "copy", "save", "state_dict")
        for part in (*scene.inside(receiver), *scene.ancestors(call))
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


def _fix(call: ast.Call, receiver: ast.expr, scene: Scene) -> Fix | None:
    """Take the cast away; `.to(…)` that also moves is left alone."""
    if len(call.args) + len(call.keywords) > 1:
        return None
    bare = scene.text(receiver)
    statement = scene.parent(call)
    idle = isinstance(statement, ast.Assign) and [scene.text(t) for t in statement.targets] == [
        bare
    ]
    if isinstance(statement, ast.stmt) and (idle or isinstance(statement, ast.Expr)):
        edit = scene.delete_line(statement)
        return unsafe(edit) if edit is not None else None
    return unsafe(scene.replace(call, bare))
