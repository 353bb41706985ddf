"""Without zero_grad, every step adds its gradients to those of all steps before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.facts.effects import Effect, cleared_by_hand
from torchstone.lint.facts.returned import maker_of
from torchstone.lint.facts.summary import NOTHING, handed, sites_of, summary_within
from torchstone.lint.knowledge.flow import (
    exclusive,
    loops_around,
    made,
    own_nodes,
    parameters,
    passed,
)
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import LOOPS, Scene
from torchstone.sources.targets import target_of
from torchstone.sources.training import Calls, backward_calls, step_calls

RULE = Rule(
    "TS201",
    "missing-zero-grad",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{step}` runs in a loop that never clears the gradients",
        zh="`{step}` 所在的循环从未清空梯度",
    ),
    why=Text(
        en="backward() adds to .grad: without zero_grad the step at iteration n follows the sum of "
        "all n gradients, so updates grow and old batches keep steering the model",
        zh="backward() 会把梯度累加到 .grad：不调用 zero_grad，第 n 次更新用的是前 n 个批次梯度之和，"
        "更新量不断增大，旧批次持续影响模型",
    ),
    suggest=Text(
        en="call `{optimizer}.zero_grad()` once per step, before backward()",
        zh="每一步在 backward() 之前调用一次 `{optimizer}.zero_grad()`",
    ),
    title=Text(
        en="A training loop steps the optimizer but never clears the gradients",
        zh="训练循环调用了优化器的 step()，却从未清空梯度",
    ),
    page=Text(
        en="Fires when a loop holds both `backward()` and the optimizer's `step()`, and nothing in "
        "that loop, nor in the project's functions it calls, clears gradients: `zero_grad` of an "
        "optimizer, model or engine, `p.grad = None`, `p.grad.zero_()`.\n\n"
        "- `zero_grad()` only before the loop, or only once an epoch while `step()` runs every "
        "batch, does not help.\n"
        "- With several optimizers each is asked for: reported when the loop clears only the "
        "gradients of other optimizers that it steps. `zero_grad` of a model, or any other way of "
        "clearing, counts for all of them.\n"
        "- Accumulation is fine: backward every batch, step and zero_grad every n-th.\n"
        "- Quiet when the step takes a closure, when the optimizer or the model is made anew inside "
        "the loop, when the optimizer is not torch's own but a class whose `step` may clear, and "
        "when the loop hands the optimizer or the model to a function that cannot be seen.\n"
        "- A step in a function or an object of the project is reported at its call in the loop.\n"
        "- MEDIUM where a test on the loop's counter (`i == 0`) decides about clearing and not about the "
        "step.",
        zh="当一个循环里既有 `backward()` 又有优化器的 `step()`，而循环体及其调用的项目内函数都没有清空梯度"
        "（优化器、模型或引擎的 `zero_grad`，`p.grad = None`，`p.grad.zero_()`）时报告。\n\n"
        "- 只在循环之前清空，或每个 epoch 只清空一次而每个批次都 `step()`，都不算清空。\n"
        "- 有多个优化器时逐个判断：循环里只清空了其他优化器的梯度时报告；模型的 `zero_grad` 或其他清空方式对所有"
        "优化器都算数。\n"
        "- 梯度累积是正常写法：每个批次 backward，每 n 次 step 并 zero_grad。\n"
        "- 以下情况不报告：`step` 接收闭包；优化器或模型在循环内重新创建；优化器不是 torch 自带的类；"
        "循环把优化器或模型交给看不到源码的函数。\n"
        "- 由项目中的函数或对象执行的更新，在循环里的调用处报告。\n"
        "- 若清空与否取决于循环计数器（`i == 0`），而更新不受其限制，则为 MEDIUM。",
    ),
    bad="""\
import torch
from torch import nn, optim

model = nn.Linear(10, 2)
optimizer = optim.Adam(model.parameters(), lr=1e-4)
criterion = nn.CrossEntropyLoss()
for epoch in range(10):
    for data, label in loader:
        loss = criterion(model(data), label)
        loss.backward()
        optimizer.step()
""",
    fixed="""\
@@ -9,0 +10 @@
+        optimizer.zero_grad()
""",
    words=("backward",),
)

_SAY_OTHERS = Text(
    en="`{step}` runs in a loop that clears the gradients of {cleared} only",
    zh="`{step}` 所在的循环只清空了 {cleared} 的梯度",
)


_SAY_SELDOM = Text(
    en="`{step}` runs on every round of the loop, but gradients are cleared only if `{test}`",
    zh="`{step}` 每一轮都执行，但只有在 `{test}` 时才清空梯度",
)


@RULE.on_call("step")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    optimizer = _optimizer(call, scene) if call in step_calls(scene) else None
    backward = backward_calls(scene)
    loop = next((up for up in loops_around(scene, call) if backward.inside(scene, up)), None)
    if optimizer is None or loop is None or not _plain_optimizer(scene, optimizer):
        return
    if _anew(scene, loop, optimizer) or _unseen(scene, loop, call):
        return
    seldom, cleared = _clears_now_and_then(scene, loop, call), ""
    if seldom is None and _clears(scene, loop) and not _clears_elsewhere(scene, loop, call):
        cleared = _cleared_instead(scene, loop, optimizer)
        if not cleared:
            return
    yield RULE.at(
        call,
        step=scene.brief(call),
        optimizer=scene.text(optimizer),
        cleared=cleared,
        test=scene.brief(seldom) if seldom is not None else "",
        say=_SAY_SELDOM if seldom is not None else _SAY_OTHERS if cleared else None,
        severity=MEDIUM if seldom is not None else None,
        about=(optimizer,),
        fix=None if seldom is not None else _fix(scene, call, loop, optimizer, backward),
    )


@RULE.on_file
def check_through(scene: Scene) -> Iterator[Hit]:
    """`train_step(model, x)` or `engine.step()` in a loop, where a function of the project steps"""
    for loop in scene.all(*LOOPS):
        if loops_around(scene, loop) or scene.is_test:
            continue
        sites = list(sites_of(scene, loop, Effect.STEP))
        does = summary_within(scene, loop) if sites else NOTHING
        if not does.has(Effect.BACKWARD) or does.has(Effect.ZERO_GRAD):
            continue
        for site, _ in sites:
            optimizer = _stepped_inside(scene, site)
            if optimizer and not any(does.hides(name) for name in handed(scene, site)):
                yield RULE.at(site, step=scene.brief(site), optimizer=optimizer)
                break


def _stepped_inside(scene: Scene, site: ast.Call) -> str:
    """The optimizer of torch that the called function steps; "" when it steps none, or several."""
    found = target_of(scene, site)
    if found is None:
        return ""
    home, function = found
    steps = step_calls(home).of(home, function)
    optimizer = _optimizer(steps[0], home) if len(steps) == 1 else None
    if isinstance(optimizer, ast.Name) and optimizer.id in parameters(function):
        source = maker_of(scene, passed(scene, site, function, optimizer.id))
    else:
        source = maker_of(home, optimizer)
    if optimizer is None or source is None or not source.name.startswith("torch.optim."):
        return ""
    inside = source.scene is home and home.function(source.call) is function
    return "" if inside or source.name.endswith(".LBFGS") else home.text(optimizer)


def _optimizer(call: ast.Call, scene: Scene) -> ast.expr | None:
    """The optimizer that steps; None when a closure may clear the gradients."""
    receiver = scene.receiver(call)
    if receiver is not None and scene.is_optimizer(receiver):
        return None if call.args or call.keywords else receiver
    return call.args[0] if len(call.args) == 1 else None


def _plain_optimizer(scene: Scene, optimizer: ast.expr) -> bool:
    """Whether the optimizer is torch's own, or unknown; not a class that may clear by itself."""
    source = made(scene, optimizer)
    if not isinstance(source, ast.Call):
        return isinstance(source, (ast.Name, ast.Attribute, ast.Subscript))
    full = scene.qualified(source.func)
    return full.startswith("torch.optim.") and not full.endswith(".LBFGS")


def _clears(scene: Scene, root: ast.AST) -> bool:
    """Whether something below a node, or a function it calls, clears gradients."""
    return summary_within(scene, root).has(Effect.ZERO_GRAD)


def _clears_now_and_then(scene: Scene, loop: ast.AST, step: ast.Call) -> ast.expr | None:
    """The question about the round under which alone the loop clears, while it steps on every round."""
    calls = [call for call, _ in sites_of(scene, loop, Effect.ZERO_GRAD)]
    asked = [_round_asked(scene, call, loop, step) for call in calls]
    if not asked or None in asked or cleared_by_hand(scene, loop):
        return None
    return None if _round_asked(scene, step, loop) is not None else asked[0]


def _round_asked(
    scene: Scene, node: ast.AST, loop: ast.AST, but: ast.AST | None = None
) -> ast.expr | None:
    """The test on a counter of the loop (`i == 0`, `step % n`) that decides whether a node runs."""
    counters = {
        part.id
        for target in (getattr(loop, "target", None),)
        for part in (scene.inside(target) if target is not None else ())
        if isinstance(part, ast.Name)
    }
    for up in scene.ancestors(node):
        if up is loop:
            return None
        if isinstance(up, ast.If) and (but is None or not scene.within(but, up)):
            parts = scene.inside(up.test)
            counted = any(isinstance(part, ast.Name) and part.id in counters for part in parts)
            if counted and any(map(_is_asked, parts)):
                return up.test
    return None


def _is_asked(part: ast.AST) -> bool:
    """`i == 0`, `i % n`"""
    if isinstance(part, ast.BinOp):
        return isinstance(part.op, ast.Mod)
    return isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Eq)


def _clears_elsewhere(scene: Scene, loop: ast.AST, step: ast.Call) -> bool:
    """Whether the loop clears only in arms of branches that exclude the step."""
    calls = [call for call, _ in sites_of(scene, loop, Effect.ZERO_GRAD)]
    places = [*calls, *cleared_by_hand(scene, loop)]
    return bool(places) and all(exclusive(scene, place, step) for place in places)


def _cleared_instead(scene: Scene, loop: ast.AST, optimizer: ast.expr) -> str:
    """The other optimizers of a loop, when it clears theirs and nothing else; else ""."""
    own = scene.dotted(optimizer)
    stepped = {
        scene.dotted(other): other
        for call in step_calls(scene).inside(scene, loop)
        if (other := _optimizer(call, scene)) is not None
    }
    names = [event.subject for _, event in sites_of(scene, loop, Effect.ZERO_GRAD)]
    if own in names or not stepped.keys() >= set(names) or cleared_by_hand(scene, loop):
        return ""
    mine, others = _given(scene, optimizer), [stepped[name] for name in names]
    if mine and any(_given(scene, other) == mine for other in others):
        return ""
    if _models(scene, optimizer) <= {model for other in others for model in _models(scene, other)}:
        return ""  # the others clear the very same parameters, or nobody knows whose
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))


def _models(scene: Scene, optimizer: ast.expr) -> set[str]:
    """The models whose parameters an optimizer was made for."""
    source = made(scene, optimizer)
    return {
        scene.dotted(scene.receiver(part))
        for part in (scene.inside(source) if isinstance(source, ast.Call) else ())
        if isinstance(part, ast.Call) and scene.method(part) in ("parameters", "named_parameters")
    } - {""}


def _given(scene: Scene, optimizer: ast.expr) -> str:
    """What an optimizer was made for, as written."""
    source = made(scene, optimizer)
    return scene.text(source.args[0]) if isinstance(source, ast.Call) and source.args else ""


def _anew(scene: Scene, loop: ast.AST, optimizer: ast.expr) -> bool:
    """Whether the optimizer comes into being inside the loop."""
    name = scene.dotted(optimizer)
    return any(
        scene.dotted(node) == name
        for node in own_nodes(loop)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store)
    )


def _unseen(scene: Scene, loop: ast.AST, step: ast.Call) -> bool:
    """Whether the loop hands the optimizer, or all of `self`, to code outside the project."""
    optimizer = _optimizer(step, scene)
    name = scene.dotted(optimizer)
    for node in own_nodes(loop):
        if not isinstance(node, ast.Call) or node is step:
            continue
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if any(scene.dotted(item) in (name, "self") for item in given):
            if scene.last_name(node.func) not in ("step", "unscale_", "print", "len", "scale"):
                return target_of(scene, node) is None
    return False


def _fix(
    scene: Scene, call: ast.Call, loop: ast.AST | None, optimizer: ast.expr, backward: Calls
) -> Fix | None:
    """Clear before the one backward that stands beside the step."""
    statement = scene.statement(call)
    if loop is None or statement is None:
        return None
    block = scene.block_of(statement)
    beside = [
        item
        for item in block[: block.index(statement)]
        if isinstance(item, ast.Expr) and item.value in backward
    ]
    inside = backward.inside(scene, loop)
    if len(beside) != 1 or len(inside) != 1:
        return None
    return safe(scene.insert_line_before(beside[0], f"{scene.text(optimizer)}.zero_grad()"))
