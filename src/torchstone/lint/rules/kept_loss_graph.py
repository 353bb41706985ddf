"""Adding up losses with their graphs keeps every step's graph alive."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.origins import Place, answers
from torchstone.lint.facts.summary import summary_within
from torchstone.lint.knowledge.flow import loop_around, own_nodes
from torchstone.lint.knowledge.tensors import backward_names, chain, sounds_like_loss
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule, safe
from torchstone.lint.values.analysis import value_at
from torchstone.sources.scene import LOOPS, MISSING, Function, Scene
from torchstone.sources.targets import target_of
from torchstone.sources.training import backward_calls

_CUTS = frozenset(("item", "detach", "cpu", "numpy", "tolist", "float"))
_EMPTIES = ("clear", "pop", "popleft", "detach_")

RULE = Rule(
    "TS314",
    "kept-loss-graph",
    severity=MEDIUM,
    highest=MEDIUM,
    confidence=LIKELY,
    title=Text(
        en="Losses are collected with their graphs, so memory grows with every step",
        zh="收集损失时连同计算图一起保留，内存逐步增长",
    ),
    say=Text(
        en="`{kept}` keeps `{loss}` with its graph: memory grows with every step",
        zh="`{kept}` 连同计算图一起保留了 `{loss}`，内存随每一步增长",
    ),
    why=Text(
        en="the graph's nodes live as long as the loss that points to them; measured on a 12-layer "
        "encoder: 0.46 MB of host memory per step after backward, and all activations of the step "
        "if backward did not run",
        zh="只要损失还在，它指向的计算图节点就不会释放；在 12 层编码器上实测：反向之后每步增长 0.46 MB "
        "主机内存，若未执行反向，则该步的全部激活值都会保留",
    ),
    suggest=Text(en="keep `{loss}.detach()` instead", zh="改为保留 `{loss}.detach()`"),
    page=Text(
        en="Fires in a training loop on `total += loss`, `total = total + loss` and "
        "`losses.append(loss)`, where `loss` is what `backward()` runs on in that loop and the "
        "total or the list was made before the loop; also on dicts of losses, stores under a new key each round (`losses[step] = loss`), running means "
        "(`m = 0.9 * m + 0.1 * loss`), sums that an object keeps, meters of the project, and on a loss "
        "that a function of the project differentiates and returns with its graph.\n\n"
        "Quiet when the loss was cut off before (`.item()`, `.detach()`), when the total itself "
        "goes through `backward()`, when the total or list is made anew inside the loop, and when "
        "the list is a `deque` with a limit.\n\n"
        "The fix puts `.detach()` after the loss: the values stay the same. `.item()` would also "
        "cut the graph, but makes the host wait on every step (see item-in-step-loop).",
        zh="检查训练循环中的 `total += loss`、`total = total + loss` 与 `losses.append(loss)`，其中 "
        "`loss` 是该循环中执行 `backward()` 的对象，而累计值或列表在循环之前创建；损失的字典、每轮写入新位置（`losses[step] = loss`）、滑动平均"
        "（`m = 0.9 * m + 0.1 * loss`）、对象保存的累计值、项目自己的计量器，以及项目中的函数反向之后连同计算图返回的"
        "损失也会检查。\n\n"
        "若损失事先已切断（`.item()`、`.detach()`）、累计值本身要执行 `backward()`、累计值或列表在循环内"
        "重新创建，或列表是有长度限制的 `deque`，则不报告。\n\n"
        "修复是在损失后面加上 `.detach()`，数值不变。`.item()` 也能切断计算图，但会让主机每步等待设备"
        "（见 item-in-step-loop）。",
    ),
    words=("backward",),
    needs=("backward",),
    bad="""\
import torch

def train(model, loader, criterion, opt):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss
    return total / len(loader)
""",
    fixed="""\
@@ -10 +10 @@
-        total += loss
+        total += loss.detach()
""",
)


@RULE.on(ast.AugAssign)
def check_sum(node: ast.AugAssign, scene: Scene) -> Iterator[Hit]:
    """`total += loss`, `logs["loss"] += loss`"""
    if isinstance(node.op, ast.Add) and not isinstance(node.value, ast.Constant):
        yield from _kept(node, node.target, node.value, scene)


@RULE.on(ast.Assign)
def check_assign(node: ast.Assign, scene: Scene) -> Iterator[Hit]:
    """`total = total + loss`, `ema = 0.9 * ema + 0.1 * loss`"""
    if len(node.targets) != 1:
        return
    grown = [
        arm
        for arm in _arms(node.value)
        if isinstance(arm, ast.BinOp) and isinstance(arm.op, ast.Add)
    ]
    if not grown or _training_loop(scene, node) is None:
        return
    target = scene.text(node.targets[0])
    for value in grown:
        if any(scene.text(part) == target for part in _leaves(value)):
            yield from _kept(node, node.targets[0], value, scene)


@RULE.on(ast.Assign)
def check_store(node: ast.Assign, scene: Scene) -> Iterator[Hit]:
    """`losses[step] = loss`: a new place on every step; under one key only the last is kept"""
    target = node.targets[0]
    if isinstance(target, ast.Subscript) and scene.literal(target.slice) is MISSING:
        if _training_loop(scene, node) is not None and not _same_place(scene, target, node):
            yield from _kept(node, target.value, node.value, scene)


def _same_place(scene: Scene, target: ast.Subscript, node: ast.Assign) -> bool:
    """Whether the key does not change from round to round: nothing that the loop binds is in it."""
    loop = _training_loop(scene, node)
    bound = (
        {
            part.id
            for part in own_nodes(loop)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        if loop is not None
        else set()
    )
    around = loop_around(scene, loop) if loop is not None else None
    if isinstance(around, ast.For):
        bound |= {part.id for part in scene.inside(around.target) if isinstance(part, ast.Name)}
    key = {part.id for part in scene.inside(target.slice) if isinstance(part, ast.Name)}
    return bound.isdisjoint(key)


@RULE.on_call("append", "add_")
def check_append(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`losses.append(loss)`, `history["loss"].append(loss)`, `total.add_(loss)`"""
    receiver = scene.receiver(call)
    if len(call.args) != 1 or receiver is None or not isinstance(scene.parent(call), ast.Expr):
        return
    if _training_loop(scene, call) is None:
        return
    made = scene.origin(receiver)
    plain = isinstance(made, (ast.List, ast.ListComp, ast.Subscript)) or (
        isinstance(made, ast.Call) and scene.last_name(made.func) in ("list", "zeros", "tensor")
    )
    if plain:
        yield from _kept(call, receiver, call.args[0], scene)


@RULE.on_call("update", "add")
def check_meter(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`meter.update(loss, n)` where the project's meter adds up what it is given"""
    if not call.args or scene.receiver(call) is None or _training_loop(scene, call) is None:
        return
    found = target_of(scene, call)
    if found is not None and _adds_up(found[0], found[1]):
        yield from _kept(call, call.args[0], call.args[0], scene)


def _adds_up(scene: Scene, method: Function) -> bool:
    """Whether a method keeps a sum or list of its first argument as it is given."""
    names = [item.arg for item in method.args.args[1:2]]
    if not names:
        return False
    for node in own_nodes(method):
        if isinstance(node, ast.Name) and node.id == names[0] and isinstance(node.ctx, ast.Store):
            return False  # bound anew: most likely to a number
    return any(_stores(scene, node, names[0]) for node in own_nodes(method)) and not any(
        isinstance(node, ast.Call) and scene.last_name(node.func) in (*_CUTS, "isinstance")
        for node in own_nodes(method)
    )


def _stores(scene: Scene, node: ast.AST, name: str) -> bool:
    """`self.total += v * n`, `self.rows.append(v)`"""
    if isinstance(node, ast.AugAssign):
        kept = scene.dotted(node.target).startswith("self.")
        return kept and any(scene.dotted(part) == name for part in _leaves(node.value))
    if not isinstance(node, ast.Call) or scene.method(node) != "append" or len(node.args) != 1:
        return False
    holder = scene.receiver(node)
    owner, field = scene.class_of(node), scene.dotted(holder).partition(".")[2]
    listed = owner is not None and any(
        isinstance(value, (ast.List, ast.Dict))
        or scene.last_name(getattr(value, "func", value)) == "list"
        for value in scene.attribute_values(owner, field)
    )
    return listed and scene.dotted(node.args[0]) == name


def _kept(node: ast.AST, holder: ast.expr, value: ast.expr, scene: Scene) -> Iterator[Hit]:
    loop = _training_loop(scene, node)
    if loop is None or scene.region(node).without_grad:
        return
    name = _holder(scene, holder)
    if not isinstance(loop, LOOPS) and not name.startswith("self."):
        return  # only what belongs to the object outlives one call of a step function
    if not name or (name in backward_names(scene) and holder is not value):
        return
    if holder is not value and (_anew(scene, name, loop) or _short_lived(scene, name, loop)):
        return
    if "." not in name and _micro_batches(scene, loop):
        return
    losses = _with_parts(scene, loop)
    for loss in _leaves(value):
        if (scene.dotted(loss) in losses or _returned(scene, loss)) and not _cut(scene, loss):
            yield RULE.at(
                node,
                confidence=POSSIBLE if scene.is_test else None,
                fix=_fix(scene, loss),
                kept=scene.brief(node),
                loss=scene.text(loss),
            )
            return


def _training_loop(scene: Scene, node: ast.AST) -> ast.AST | None:
    """The loop (or step function) around a node that goes backward each time, by itself or in a
    function of the project."""
    loop = scene.step_loop(node)
    if loop is not None:
        return loop
    around = loop_around(scene, node)
    known: dict[ast.AST, bool] = scene.cache.setdefault("loops that train", {})
    if around is not None and around not in known:
        known[around] = summary_within(scene, around).has(Effect.BACKWARD)
    return around if around is not None and known[around] else None


def _holder(scene: Scene, holder: ast.expr) -> str:
    """What keeps the sum, as written; for `logs["loss"]` the whole of it."""
    if isinstance(holder, ast.Subscript) and scene.dotted(holder.value):
        return scene.text(holder)
    return scene.dotted(holder)


def _with_parts(scene: Scene, loop: ast.AST) -> frozenset[str]:
    """The losses that the loop differentiates, and the losses that those are sums of."""
    found = set(backward_names(scene, loop))
    for node in own_nodes(loop):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            if any(scene.dotted(target) in found for target in node.targets):
                names = {scene.dotted(part) for part in _leaves(node.value)}
                found |= set(filter(sounds_like_loss, names))
    return frozenset(found)


def _returned(scene: Scene, value: ast.expr) -> bool:
    """Whether a call of the project gives back the very loss that it differentiates."""
    found = answers(scene, value)
    return bool(found) and all(_is_loss(place) for place in found)


def _is_loss(place: Place) -> bool:
    """Whether a returned value is what its function differentiates, graph and all."""
    home, node = place.scene, place.node
    function = home.function(node)
    name = home.dotted(node)
    if function is None or not name or _cut(home, node) or _rebound(home, function, name):
        return False
    return name in backward_names(home, function) or name in _with_parts(home, function)


def _rebound(scene: Scene, function: Function, name: str) -> bool:
    """Whether a function binds the loss anew after its backward pass."""
    last = max((c.lineno for c in backward_calls(scene).inside(scene, function)), default=0)
    return any(
        isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Store)
        and scene.dotted(node) == name
        and node.lineno > last
        for node in own_nodes(function)
    )


def _leaves(node: ast.expr) -> list[ast.expr]:
    """The operands of an arithmetic expression; what a tensor is divided by is a number."""
    if isinstance(node, ast.Dict):
        return [leaf for value in node.values for leaf in _leaves(value)]
    if isinstance(node, (ast.Tuple, ast.List)):
        return [leaf for value in node.elts for leaf in _leaves(value)]
    if isinstance(node, ast.BinOp):
        right = [] if isinstance(node.op, (ast.Div, ast.FloorDiv)) else _leaves(node.right)
        return [*_leaves(node.left), *right]
    return [node]


def _arms(value: ast.expr) -> list[ast.expr]:
    return [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]


def _anew(scene: Scene, name: str, loop: ast.AST) -> bool:
    """Whether the loop itself makes or empties the holder."""
    for node in scene.inside(loop):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                grows = any(
                    isinstance(arm, ast.BinOp)
                    and any(scene.text(part) == name for part in _leaves(arm))
                    for arm in _arms(node.value)
                )
                named = any(
                    scene.dotted(part) in (name, name.partition("[")[0]) or scene.text(part) == name
                    for part in parts
                )
                if not grows and named:
                    return True
        elif isinstance(node, ast.Call) and scene.method(node) in _EMPTIES:
            if scene.dotted(scene.receiver(node)) in (name, name.partition("[")[0]):
                return True
        elif isinstance(node, ast.Delete):
            if any(name in scene.text(target) for target in node.targets):
                return True
    return False


def _short_lived(scene: Scene, name: str, loop: ast.AST) -> bool:
    """Whether a few rounds per batch are added up (`for _ in range(n)` inside the loop over the
    data) and the sum begins anew with the next batch: nothing grows."""
    outer = loop_around(scene, loop)
    if outer is None or not _anew(scene, name, outer):
        return False
    steps_itself = any(
        not scene.within(call, loop) for call in backward_calls(scene).inside(scene, outer)
    )
    if steps_itself:
        return True
    return not _counts(scene, outer) and (_counts(scene, loop) or _reads_batch(scene, outer, loop))


def _micro_batches(scene: Scene, loop: ast.AST) -> bool:
    """Whether a function takes one optimizer step after a loop that only goes backward: a sum of its
    own ends with that step."""
    function = scene.function(loop)
    if function is None or loop_around(scene, loop) is not None:
        return False
    steps = summary_within(scene, function).has(Effect.STEP)
    return steps and not summary_within(scene, loop).has(Effect.STEP)


def _reads_batch(scene: Scene, outer: ast.AST, loop: ast.AST) -> bool:
    """Whether every round of the inner loop computes on what the outer one goes over."""
    target = outer.target if isinstance(outer, ast.For) else None
    names = (
        {part.id for part in scene.inside(target) if isinstance(part, ast.Name)}
        if target
        else set()
    )
    return any(
        isinstance(node, ast.Name) and node.id in names
        for statement in getattr(loop, "body", ())
        for node in scene.inside(statement)
    )


def _counts(scene: Scene, loop: ast.AST) -> bool:
    """Whether a loop goes over numbers rather than data."""
    return not isinstance(loop, ast.For) or any(
        isinstance(part, ast.Call) and scene.last_name(part.func) in ("range", "trange", "count")
        for part in scene.inside(loop.iter)
    )


def _cut(scene: Scene, loss: ast.expr) -> bool:
    """Whether the name was bound to a value without graph just before."""
    if value_at(scene, loss).graph is False:
        return True
    value = scene.value(loss)
    return value is not None and any(scene.method(call) in _CUTS for call in chain(value))


def _fix(scene: Scene, loss: ast.expr) -> Fix:
    return safe(scene.insert_after(loss, ".detach()"))
