"""Moving a model after DDP has wrapped it cuts the hooks that average its gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import before, loops_around, reaches, same_scope
from torchstone.lint.knowledge.wrapping import Wrap, wraps
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

_MOVES = ("cpu", "cuda", "to", "half", "bfloat16", "float", "double", "type", "to_empty")
_CASTS = ("half", "bfloat16", "float", "double", "type")

RULE = Rule(
    "TS407",
    "moved-after-ddp",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{move}` changes the parameters after DistributedDataParallel wrapped them (line {line})",
        zh="`{move}` 在 DistributedDataParallel（第 {line} 行）包装之后改动了参数",
    ),
    why=Text(
        en="DDP hangs its hooks on the parameters' gradient accumulators; a move or cast replaces "
        "these, the hooks are lost, and the ranks train apart without any error",
        zh="DDP 把钩子挂在参数的梯度累加节点上；移动或转换类型会换掉这些节点，钩子丢失，各 rank 各自训练且不报错",
    ),
    suggest=Text(
        en="move and cast the model first, then wrap it; after a move, wrap it again",
        zh="先移动和转换模型，再包装；若移动过，需要重新包装",
    ),
    title=Text(
        en="A model is moved or cast after DistributedDataParallel wrapped it, and the ranks "
        "train apart",
        zh="DistributedDataParallel 包装之后又移动或转换模型，各 rank 会各自训练",
    ),
    page=Text(
        en="Fires for `.cpu()`, `.cuda()`, `.to()`, `.half()` and the like on the wrapped model, or "
        "on the model inside, when it is used for a forward pass afterwards. Measured on torch "
        "2.13: after `.double().float()` the gradients of two ranks no longer agree.\n\n"
        "- `.to(device)` and `.cuda()` are quiet when the model was moved before it was wrapped or "
        "`device_ids` are given: then they change nothing.\n"
        "- `.cpu()` right before saving, with no forward after it, is quiet.\n"
        "- pytorch issue 104336.",
        zh="对包装后的模型或其内部模型调用 `.cpu()`、`.cuda()`、`.to()`、`.half()` 等，且之后仍用于前向计算时报告。"
        "在 torch 2.13 上实测：`.double().float()` 之后两个 rank 的梯度不再一致。\n\n"
        "- 若包装前已移动过模型，或给出了 `device_ids`，`.to(device)` 和 `.cuda()` 不改变任何东西，不报告。\n"
        "- 保存之前的 `.cpu()`，且之后没有前向计算，不报告。\n"
        "- pytorch issue 104336。",
    ),
    bad="""\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def run(rank, model, optimizer, x):
    model = model.to(rank)
    ddp_model = DDP(model, device_ids=[rank])
    ddp_model.cpu()
    ddp_model.cuda(rank)
    ddp_model(x).sum().backward()
    optimizer.step()
""",
    good="""\
@@ -7,2 +6,0 @@
-    ddp_model.cpu()
-    ddp_model.cuda(rank)
""",
    words=("DistributedDataParallel",),
)


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    for wrap in wraps(scene):
        if wrap.name:
            yield from _moved(scene, wrap)


def _moved(scene: Scene, wrap: Wrap) -> Iterator[Hit]:
    call = wrap.call
    placed = _placed_before(scene, wrap)
    names = {wrap.name, wrap.inner} - {""}
    moves: list[ast.Call] = []
    for method in _MOVES:
        moves += [
            item
            for item in scene.calls.get(method, ())
            if scene.dotted(scene.receiver(item)) in names and reaches(scene, call, item)
        ]
    for move in sorted(moves, key=lambda item: item.lineno):
        if _changes(scene, move, placed) and _used_after(scene, move, wrap):
            if not _unwrapped(scene, wrap, move):
                yield RULE.at(move, move=scene.brief(move), line=str(call.lineno))
            return


def _placed_before(scene: Scene, wrap: Wrap) -> bool:
    """Whether the model is on its device when it is wrapped."""
    if any(wrap.option(word) is not None for word in ("device_ids", "output_device")):
        return True
    if len(wrap.call.args) > 1 or not wrap.direct:
        return True  # what a function of the project does before it wraps is its own business
    inner = wrap.call.args[0] if wrap.call.args else None
    if isinstance(inner, ast.Call) and scene.method(inner) in ("to", "cuda"):
        return True
    return any(
        scene.dotted(scene.receiver(item)).split(".")[0] == wrap.inner.split(".")[0] != ""
        and same_scope(scene, item, wrap.call)
        and before(item, wrap.call)
        for method in ("to", "cuda")
        for item in scene.calls.get(method, ())
    ) or any(
        scene.method(node) in ("to", "cuda")
        for row in _inner_values(scene, wrap)
        for node in scene.inside(row)
        if isinstance(node, ast.Call)
    )


def _inner_values(scene: Scene, wrap: Wrap) -> list[ast.expr]:
    inner = wrap.call.args[0] if wrap.call.args else None
    if not isinstance(inner, ast.Name):
        return []
    return [row.value for row in scene.bindings(inner) if row.value is not None]


def _changes(scene: Scene, move: ast.Call, placed: bool) -> bool:
    """Whether the move is one: to another device or dtype."""
    method = scene.last_name(move.func)
    if method in ("cpu", "to_empty", *_CASTS):
        return True
    arguments = [*move.args, *(keyword.value for keyword in move.keywords)]
    if method == "to" and any(scene.dtype_literal(item) for item in arguments):
        return True
    if any(scene.literal(item) == "cpu" for item in arguments):
        return True
    return not placed


def _used_after(scene: Scene, move: ast.Call, wrap: Wrap) -> bool:
    """Whether the wrapped model runs again behind the move."""
    for node in scene.all(ast.Call):
        if not same_scope(scene, node, move):
            continue
        runs = scene.dotted(node.func) == wrap.name
        handed = any(
            scene.dotted(item) == wrap.name
            for item in (*node.args, *(keyword.value for keyword in node.keywords))
        ) and scene.last_name(node.func) not in ("save", "print", "len", "isinstance", "unwrap")
        if (runs or handed) and (reaches(scene, move, node) or _same_loop(scene, move, node)):
            return True
    statement = scene.statement(move)
    return isinstance(statement, ast.Return) and scene.last_name(move.func) in ("to", "cuda")


def _same_loop(scene: Scene, move: ast.Call, node: ast.Call) -> bool:
    loops = loops_around(scene, move)
    return any(loop in loops for loop in loops_around(scene, node))


def _unwrapped(scene: Scene, wrap: Wrap, move: ast.Call) -> bool:
    """Whether the name stands for something else again: `model = model.module`."""
    receiver = scene.receiver(move)
    if not isinstance(receiver, ast.Name):
        return False
    name = scene.dotted(receiver)
    value = scene.value(receiver)
    if name == wrap.name and value is not None and value is not wrap.call:
        return not (isinstance(value, ast.Call) and scene.method(value) in _MOVES)
    return False
