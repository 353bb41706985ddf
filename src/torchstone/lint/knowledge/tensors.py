"""Which expressions are tensors that a training step made on its device."""

from __future__ import annotations

import ast
import re

from torchstone.core.pattern import pattern
from torchstone.sources import training
from torchstone.sources.scene import Scene

_DEVICE_WORDS = pattern(
    r"cuda|device|accelerat|fabric|\bnpu\b|\bxpu\b|\bmps\b|\bhpu\b|deepspeed", re.I
)
_CRITERION = pattern(r"(?:^|_)(?:criterion|criteria|loss_?fn|loss_?func(?:tion)?)\d*$", re.I)
_MADE_BY_MODEL = pattern(r"loss|logit|pred|out|score|prob|feat|hidden|embed|y_?hat", re.I)
_OUTPUT_FIELDS = frozenset(("loss", "logits", "last_hidden_state"))
_WRAPPERS = frozenset(("accelerator", "fabric", "strategy", "engine", "manager", "booster"))
# methods of a tensor whose answer is again a tensor on the same device
_METHODS = frozenset(
    "detach clone sum mean max min amax amin argmax argmin abs norm exp log sqrt pow eq ne gt lt ge "
    "le any all float half bfloat16 double long int bool squeeze unsqueeze view reshape flatten "
    "softmax log_softmax sigmoid std var isnan isinf isfinite cuda data prod clamp round gather "
    "topk sort add mul div sub matmul contiguous transpose permute t".split()
)
# functions of torch that answer with something on the host, or make a tensor there
_ON_HOST = frozenset(
    f"torch.{name}"
    for name in (
        "tensor as_tensor from_numpy zeros ones empty full rand randn randint randperm arange eye "
        "linspace logspace device is_tensor is_grad_enabled numel load save Size Generator finfo "
        "iinfo manual_seed seed initial_seed get_rng_state set_rng_state get_default_dtype "
        "set_default_dtype set_grad_enabled no_grad enable_grad inference_mode autocast compile "
        "allclose equal is_floating_point is_complex is_storage get_num_threads set_num_threads "
        "typename result_type promote_types can_cast"
    ).split()
)
_DEEPER = (
    "torch.nn.functional.",
    "torch.linalg.",
    "torch.special.",
    "torch.fft.",
    "torch.autograd.grad",
)
_PAIRS = frozenset(
    f"torch.{name}" for name in ("max", "min", "topk", "sort", "median", "mode", "unbind")
)


def on_device(scene: Scene) -> bool:
    """Whether the file speaks of a device at all; on the CPU nothing is asynchronous."""
    found = scene.cache.get("speaks of a device")
    if found is None:
        text = scene.source.text
        plain = "cuda" in text or "device" in text  # the usual words, without an expression
        found = (
            plain
            or bool(_DEVICE_WORDS.search(text))
            or any(
                isinstance(given, (ast.Name, ast.Attribute))
                and not scene.dtype_literal(given)
                and "type" not in scene.last_name(given)
                for call in scene.calls.get("to", ())
                for given in call.args[:1]
            )
        )
        scene.cache["speaks of a device"] = found
    return bool(found)


def backward_names(scene: Scene, around: ast.AST | None = None) -> frozenset[str]:
    """Names, as written, of what `backward` runs on in the file, or below one node."""
    known: dict[ast.AST | None, frozenset[str]] = scene.cache.setdefault("backward names", {})
    if around not in known:
        known[around] = _backward_names(scene, around)
    return known[around]


def _backward_names(scene: Scene, around: ast.AST | None) -> frozenset[str]:
    found: set[str] = set()
    calls = training.backward_calls(scene)
    for call in calls if around is None else calls.inside(scene, around):
        for target in _backward_targets(scene, call):
            found.update(_leaf_names(scene, target))
    return frozenset(found)


def _backward_targets(scene: Scene, call: ast.Call) -> list[ast.expr]:
    receiver = scene.receiver(call)
    if scene.last_name(receiver).lower().rpartition("_")[2] in _WRAPPERS:
        return call.args[:1]
    if isinstance(receiver, ast.Call) and scene.method(receiver) == "scale":
        return receiver.args[:1]
    if call.args and _takes_steps(scene, receiver):
        return call.args[:1]  # an engine, whatever it is called
    return [receiver] if receiver is not None else []


def _takes_steps(scene: Scene, node: ast.expr | None) -> bool:
    """Whether the file calls `step` or `zero_grad` on it: no tensor has these."""
    name = scene.dotted(node)
    return bool(name) and any(
        scene.dotted(scene.receiver(call)) == name
        for method in ("step", "zero_grad")
        for call in scene.calls.get(method, ())
    )


_OF_LOSS = pattern(
    r"(?:scale|scaling|scaler|factor|weight|coeff?|coefficient|lambda|ratio)s?\d*$", re.I
)


def sounds_like_loss(name: str) -> bool:
    """Whether a name speaks of a loss, and not of what one is multiplied with."""
    return "loss" in name.lower() and _OF_LOSS.search(name) is None


def _leaf_names(scene: Scene, node: ast.expr) -> set[str]:
    if isinstance(node, ast.BinOp):
        left, right = _leaf_names(scene, node.left), _leaf_names(scene, node.right)
        if isinstance(node.op, ast.Div):
            return left  # what a loss is divided by is a number: micro-batches, world size
        if isinstance(node.op, ast.Mult):
            # one factor is the loss, the other its weight
            named = [side for side in (left, right) if any(map(sounds_like_loss, side))]
            return named[0] if len(named) == 1 else left | right
        return left | right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _leaf_names(scene, node.func.value) if scene.method(node) in _METHODS else set()
    name = scene.dotted(node)
    return {name} if name else set()


def is_criterion(scene: Scene, func: ast.expr) -> bool:
    """Whether what is called is a loss: by its name, or because it was made as one."""
    if _CRITERION.search(scene.last_name(func)):
        return True
    full = scene.qualified(func)
    if full.startswith("torch.nn.functional."):
        return full.endswith(("_loss", "cross_entropy", "_with_logits"))
    made = scene.origin(func)
    return isinstance(made, ast.Call) and bool(
        re.fullmatch(r"torch\.nn\.(?:modules\.loss\.)?\w*Loss", scene.qualified(made.func))
    )


def is_tensor(scene: Scene, node: ast.AST | None, depth: int = 6) -> bool:
    """Whether an expression is, as far as the file tells, a tensor that lives on the device."""
    if node is None or not depth:
        return False
    if isinstance(node, ast.Name):
        return _name_is_tensor(scene, node, depth)
    if isinstance(node, ast.Call):
        return _call_is_tensor(scene, node, depth)
    if isinstance(node, ast.Attribute):
        if scene.dotted(node) in backward_names(scene):
            return True
        return node.attr in _OUTPUT_FIELDS and _is_output(scene, node.value)
    if isinstance(node, ast.Subscript):
        return is_tensor(scene, node.value, depth - 1)
    if isinstance(node, ast.BinOp):
        return is_tensor(scene, node.left, depth - 1) or is_tensor(scene, node.right, depth - 1)
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return is_tensor(scene, node.operand, depth - 1)
    if isinstance(node, ast.Compare):
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            return False
        return any(is_tensor(scene, side, depth - 1) for side in (node.left, *node.comparators))
    return False


def _name_is_tensor(scene: Scene, node: ast.Name, depth: int) -> bool:
    value = scene.value(node)
    if value is not None:
        return is_tensor(scene, value, depth - 1) or _goes_backward(scene, node, value)
    last = _last_binding_value(scene, node)
    if isinstance(last, ast.Call):
        return scene.qualified(last.func) in _PAIRS or (
            bool(_MADE_BY_MODEL.search(node.id))
            and (scene.is_model(last.func) or is_criterion(scene, last.func))
        )
    return False


def _goes_backward(scene: Scene, node: ast.Name, value: ast.expr) -> bool:
    """Whether `backward` runs on the very value that a name stands for here."""
    return any(
        isinstance(target, ast.Name) and target.id == node.id and scene.value(target) is value
        for call in training.backward_calls(scene).inside(scene, scene.scope(node))
        for target in _backward_targets(scene, call)
    )


def _last_binding_value(scene: Scene, node: ast.Name) -> ast.expr | None:
    """The right side of the last `a, b = …` before a name."""
    before = [row for row in scene.bindings(node) if row.position < (node.lineno, node.col_offset)]
    if before and before[-1].how == "unpack" and isinstance(before[-1].statement, ast.Assign):
        return before[-1].statement.value
    return None


def _is_output(scene: Scene, node: ast.expr) -> bool:
    made = scene.value(node) if isinstance(node, ast.Name) else node
    return isinstance(made, ast.Call) and scene.is_model(made.func)


def _call_is_tensor(scene: Scene, call: ast.Call, depth: int) -> bool:
    method = scene.method(call)
    if method:
        if goes_to_device(scene, call):
            return True
        if method == "to":
            return not goes_to_host(scene, call) and is_tensor(
                scene, scene.receiver(call), depth - 1
            )
        if method in _METHODS:
            return is_tensor(scene, scene.receiver(call), depth - 1)
    full = scene.qualified(call.func)
    if full.startswith("torch."):
        if full in _ON_HOST:
            return scene.keyword(call, "device") is not None and full.rpartition(".")[2] != "device"
        if full == "torch.nn.utils.clip_grad_norm_" or full.startswith(_DEEPER):
            return True
        return full.count(".") == 1 and full[6:7].islower() and _takes_tensor(scene, call, depth)
    if full:
        return False
    return is_criterion(scene, call.func) or (
        isinstance(call.func, (ast.Name, ast.Attribute))
        and scene.is_model(call.func)
        and _MADE_BY_MODEL.search(_assigned_name(scene, call)) is not None
    )


def _takes_tensor(scene: Scene, call: ast.Call, depth: int) -> bool:
    """Whether one of a torch function's arguments is a tensor of the device."""
    for argument in call.args:
        parts = argument.elts if isinstance(argument, (ast.List, ast.Tuple)) else [argument]
        if any(is_tensor(scene, part, depth - 1) for part in parts):
            return True
    return False


def _assigned_name(scene: Scene, call: ast.Call) -> str:
    statement = scene.parent(call)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return scene.last_name(statement.targets[0])
    return ""


def goes_to_host(scene: Scene, call: ast.Call) -> bool:
    """Whether a call brings a tensor to the CPU: `.cpu()`, `.numpy()`, `.to("cpu")`."""
    method = scene.method(call)
    if method in ("cpu", "numpy", "tolist"):
        return True
    if method != "to":
        return False
    target = scene.argument(call, 0, "device")
    if isinstance(target, ast.Call) and scene.qualified(target.func) == "torch.device":
        target = scene.argument(target, 0)
    literal = scene.literal(target)
    return isinstance(literal, str) and literal.startswith("cpu")


def goes_to_device(scene: Scene, call: ast.Call) -> bool:
    """Whether a call moves something to an accelerator: `.cuda()`, `.to(device)`, `.to("cuda:0")`."""
    method = scene.method(call)
    if method in ("cuda", "npu", "xpu"):
        return True
    return method == "to" and is_device(scene, scene.argument(call, 0, "device"))


def is_device(scene: Scene, node: ast.AST | None) -> bool:
    """Whether an expression stands for a device that is, or may well be, an accelerator."""
    if node is None:
        return False
    if isinstance(node, ast.Call):
        return scene.qualified(node.func) == "torch.device" and not _is_cpu(scene, node)
    literal = scene.literal(node)
    if isinstance(literal, str):
        return literal.partition(":")[0] in ("cuda", "npu", "xpu", "mps", "hpu", "mlu")
    return "device" in scene.last_name(node).lower() and not _is_cpu(scene, scene.value(node))


def _is_cpu(scene: Scene, made: ast.expr | None) -> bool:
    if isinstance(made, ast.Call) and scene.qualified(made.func) == "torch.device":
        made = scene.argument(made, 0)
    literal = scene.literal(made)
    return isinstance(literal, str) and literal.startswith("cpu")


def chain(node: ast.AST | None) -> list[ast.Call]:
    """The method calls of `x.a().b().c()`, outermost first."""
    found: list[ast.Call] = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        found.append(node)
        node = node.func.value
    return found


_HOST_MADE = frozenset(f"torch.{name}" for name in "rand randn randint randperm zeros ones full "
                       "tensor arange linspace multinomial bernoulli".split())  # fmt: skip


def is_made_on_host(scene: Scene, node: ast.AST | None) -> bool:
    """Whether a tensor is made on the spot and nobody says on which device: it is on the host."""
    calls = chain(node)
    first = calls[-1] if calls else None
    return (
        first is not None
        and scene.qualified(first.func) in _HOST_MADE
        and not any(word.arg in ("device", None) for word in first.keywords)
        and not any(_is_value(scene, item) for item in first.args)
        and not any(goes_to_device(scene, call) for call in calls)
        and "set_default_device" not in scene.calls
    )


def _is_value(scene: Scene, node: ast.expr) -> bool:
    """Whether an argument may itself be a tensor on a device."""
    return not isinstance(node, ast.Constant) and any(
        isinstance(part, ast.Name) for part in scene.inside(node)
    )


def is_array(scene: Scene, node: ast.AST | None) -> bool:
    """Whether an expression is numpy's, or made on the host, so that reading it costs nothing."""
    if is_made_on_host(scene, node):
        return True
    for call in chain(node):
        if scene.qualified(call.func).startswith("numpy.") or goes_to_host(scene, call):
            return True
    base = node
    while isinstance(base, (ast.Attribute, ast.Subscript, ast.Call)):
        base = base.func if isinstance(base, ast.Call) else base.value
    if scene.qualified(base).partition(".")[0] in ("numpy", "pandas", "math", "random"):
        return True
    if (isinstance(base, ast.Name) and base is not node) or isinstance(node, ast.Name):
        value = scene.value(base)
        return value is not None and value is not node and is_array_value(scene, value)
    return False


def is_array_value(scene: Scene, value: ast.expr) -> bool:
    """Whether a right side is plainly numpy's or the host's."""
    while isinstance(value, ast.Subscript):
        value = value.value
    if is_made_on_host(scene, value):
        return True
    if not isinstance(value, ast.Call):
        return False
    if scene.qualified(value.func).partition(".")[0] in ("numpy", "pandas", "math", "random"):
        return True
    return any(goes_to_host(scene, call) for call in chain(value))


def straight_from_loop(scene: Scene, node: ast.AST | None) -> bool:
    """Whether an expression hangs on a name that only a for-loop binds: data still on the host."""
    base = node
    while isinstance(base, (ast.Attribute, ast.Subscript, ast.Call)):
        base = base.func if isinstance(base, ast.Call) else base.value
    if not isinstance(base, ast.Name):
        return False
    rows = scene.bindings(base)
    return bool(rows) and all(row.how == "loop" for row in rows)
