"""A parameter cannot be changed in place while autograd watches."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.finding import Confidence
from torchstone.core.text import Text
from torchstone.lint.facts.callers import calls_of
from torchstone.lint.facts.summary import calls_below
from torchstone.lint.knowledge.flow import own_nodes, settled
from torchstone.lint.knowledge.layers import is_parameter
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.scene import Scene
from torchstone.sources.targets import is_outside, target_of

_FACTORIES = frozenset(
    f"torch.{name}"
    for name in ("zeros", "ones", "rand", "randn", "empty", "full", "tensor", "eye", "linspace",
                 "zeros_like", "ones_like", "rand_like", "randn_like", "empty_like", "arange",
                 "normal", "full_like")
)  # fmt: skip
_IN_PLACE = (
    "add_", "sub_", "mul_", "div_", "copy_", "zero_", "fill_", "clamp_", "uniform_", "normal_",
    "addcdiv_", "addcmul_", "lerp_", "clamp_min_", "clamp_max_", "exponential_", "masked_fill_",
    "index_fill_", "index_copy_", "neg_", "abs_", "sqrt_", "pow_", "trunc_", "random_",
)  # fmt: skip

RULE = Rule(
    "TS209",
    "in-place-on-leaf",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{text}` changes a leaf that requires grad in place",
        zh="`{text}` 原地修改了需要梯度的叶子张量",
    ),
    why=Text(
        en="outside no_grad this raises RuntimeError: a leaf Variable that requires grad is being "
        "used in an in-place operation",
        zh="在 no_grad 之外会抛出 RuntimeError：a leaf Variable that requires grad is being used in "
        "an in-place operation",
    ),
    suggest=Text(
        en="put the update under `with torch.no_grad():`",
        zh="把更新放到 `with torch.no_grad():` 之下",
    ),
    title=Text(
        en="A leaf tensor that requires grad is changed in place outside no_grad, which raises an "
        "error",
        zh="在 no_grad 之外原地修改需要梯度的叶子张量，会报错",
    ),
    page=Text(
        en="Fires for `w += ...`, `w[i] = ...` and in-place methods (`w.add_()`, `w.copy_()`) on a "
        "name that was made with `requires_grad=True` or as nn.Parameter, on `self.w` of a module "
        "that is a Parameter, and on `p` in `for p in model.parameters()`.\n\n"
        "- Quiet under `no_grad`, `inference_mode` and `set_grad_enabled(False)`, also when every "
        "caller of the function is; for `.data` and `.grad`; and for parameters made with "
        "`requires_grad=False`.\n"
        "- `torch.nn.init` functions open no_grad by themselves.",
        zh="对 `requires_grad=True` 创建的变量或 nn.Parameter、模块里是 Parameter 的 `self.w`、以及 "
        "`for p in model.parameters()` 中的 `p`，若出现 `w += ...`、`w[i] = ...` 或原地方法"
        "（`w.add_()`、`w.copy_()`），则报告。\n\n"
        "- 不报告：位于 `no_grad`、`inference_mode`、`set_grad_enabled(False)` 之下，或函数的所有调用方都在其中；"
        "`.data` 和 `.grad`；`requires_grad=False` 的参数。\n"
        "- `torch.nn.init` 的函数自带 no_grad。",
    ),
    bad="""\
import torch

w = torch.randn(3, requires_grad=True)
loss = (w * x).sum()
loss.backward()
w -= 0.1 * w.grad
""",
    good="""\
@@ -6 +6,2 @@
-w -= 0.1 * w.grad
+with torch.no_grad():
+    w -= 0.1 * w.grad
""",
    words=("requires_grad", "Parameter", "parameters", "named_parameters", "bias", "weight"),
    needs=("torch",),
)


@RULE.on(ast.AugAssign)
def on_augmented(statement: ast.AugAssign, scene: Scene) -> Iterator[Hit]:
    target = statement.target
    leaf = target.value if isinstance(target, ast.Subscript) else target
    yield from _check(statement, leaf, scene)


@RULE.on(ast.Assign)
def on_assigned(statement: ast.Assign, scene: Scene) -> Iterator[Hit]:
    target = statement.targets[0]
    if isinstance(target, ast.Subscript):
        yield from _check(statement, target.value, scene)


@RULE.on_call(*_IN_PLACE)
def on_method(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    receiver = scene.receiver(call)
    if receiver is not None and scene.method(call):
        yield from _check(call, receiver, scene)


def _check(node: ast.AST, leaf: ast.expr, scene: Scene) -> Iterator[Hit]:
    if not isinstance(leaf, (ast.Name, ast.Attribute)) or not _is_leaf(leaf, scene):
        return
    if _freed(scene, leaf) or scene.region(node).without_grad or _switched_off(scene, node, leaf):
        return
    yield RULE.at(
        node,
        severity=None if _callers_seen(scene, node) else MEDIUM,
        confidence=_confidence(scene, node),
        text=scene.brief(node),
    )


def _switched_off(scene: Scene, node: ast.AST, leaf: ast.expr) -> bool:
    """Whether a function that gets the model before (`toggle_grad(model, False)`) sets requires_grad, or
    cannot be read."""
    loop = scene.enclosing(node, ast.For)
    source = loop.iter if isinstance(leaf, ast.Name) and isinstance(loop, ast.For) else None
    model = scene.dotted(scene.receiver(source)) if isinstance(source, ast.Call) else ""
    root = scene.function(node)
    for call in calls_below(root) if model and root is not None else ():
        if call.lineno >= getattr(node, "lineno", 0) or is_outside(scene, call):
            continue
        if any(scene.dotted(item) == model for item in call.args):
            found = target_of(scene, call)
            if found is None or any(
                isinstance(part, ast.Attribute) and part.attr.startswith("requires_grad")
                for part in own_nodes(found[1])
            ):
                return True
    return False


def _callers_seen(scene: Scene, node: ast.AST) -> bool:
    """Whether everybody who calls the function is to be seen: another may do so without gradients."""
    function = scene.function(node)
    if function is None or function.name in ("forward", "training_step"):
        return True
    return bool(calls_of(scene, function))


def _confidence(scene: Scene, node: ast.AST) -> Confidence | None:
    """A `reset_parameters` that the project never calls is torch's to call, without gradients."""
    function = scene.function(node)
    if function is None or function.name != "reset_parameters":
        return None
    return None if calls_of(scene, function) else POSSIBLE


def _is_leaf(leaf: ast.Name | ast.Attribute, scene: Scene) -> bool:
    if isinstance(leaf, ast.Attribute):
        owner = scene.class_of(leaf)
        if owner is None or scene.dotted(leaf.value) != "self":
            return False
        values = scene.attribute_values(owner, leaf.attr)
        return (
            bool(values)
            and all(_requires_grad(scene, value) for value in values)
            and scene.is_module_class(owner)
        )
    rows = scene.bindings(leaf)
    if len(rows) == 1 and rows[0].how in ("loop", "unpack"):
        return _is_parameter_of(leaf, scene)
    value = settled(scene, leaf)
    return value is not None and (_requires_grad(scene, value) or _is_view_of_weight(scene, value))


def _is_view_of_weight(scene: Scene, value: ast.expr) -> bool:
    """`layer.bias.view(3, -1)`: a view of a leaf is no more to be written than the leaf."""
    if not isinstance(value, ast.Call) or scene.method(value) not in ("view", "reshape", "view_as"):
        return False
    source = scene.receiver(value)
    return (
        isinstance(source, ast.Attribute)
        and source.attr in ("weight", "bias")
        and scene.dotted(source.value) != "self"
    )


def _is_parameter_of(leaf: ast.Name, scene: Scene) -> bool:
    """Whether a name runs over `model.parameters()`."""
    for up in scene.ancestors(leaf):
        if isinstance(up, ast.For):
            target = up.target
            paired = isinstance(target, ast.Tuple) and len(target.elts) == 2
            last = target.elts[1] if isinstance(target, ast.Tuple) and paired else target
            if isinstance(last, ast.Name) and last.id == leaf.id:
                name = "named_parameters" if paired else "parameters"
                return isinstance(up.iter, ast.Call) and scene.method(up.iter) == name
    return False


def _requires_grad(scene: Scene, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    if is_parameter(scene, value.func):
        on = scene.argument(value, 1, "requires_grad")
        return on is None or scene.literal(on) is True
    if scene.method(value) == "requires_grad_":
        on = scene.argument(value, 0, "requires_grad")
        source = scene.receiver(value)
        made = isinstance(source, ast.Call) and (
            scene.qualified(source.func) in _FACTORIES
            or scene.method(source) in ("detach", "clone")
        )
        return made and (on is None or scene.literal(on) is True)
    if scene.qualified(value.func) in _FACTORIES:
        return scene.literal(scene.keyword(value, "requires_grad")) is True
    return False


def _freed(scene: Scene, leaf: ast.expr) -> bool:
    """Whether the file sets requires_grad of this tensor to something else."""
    name = scene.dotted(leaf)
    for statement in scene.all(ast.Assign):
        target = statement.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            if scene.dotted(target.value) == name:
                return True
    return any(
        scene.dotted(scene.receiver(call)) in (name, "self")
        for call in scene.calls.get("requires_grad_", ())
    )
