"""Without zero_grad, every step adds its gradients to those of all steps before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.facts.callers import calls_of
from torchstone.lint.facts.effects import Effect, cleared_by_hand, effect_of
from torchstone.lint.facts.returned import maker_of
from torchstone.lint.facts.summary import sites_of, summary_within
from torchstone.lint.knowledge.flow import (
    exclusive,
    functions,
    loops_around,
    made,
    own_nodes,
    parameters,
    passed,
)
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, safe
from torchstone.sources.scene import Function, Scene
from torchstone.sources.targets import target_of
from torchstone.sources.training import Calls, backward_calls, step_calls

RULE = Rule(
    "TS201",
    "missing-zero-grad",
    group="correctness",
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
        "- A step function without a loop is reported only when nothing in the file clears "
        "gradients and the optimizer is made in the same file.",
        zh="当一个循环里既有 `backward()` 又有优化器的 `step()`，而循环体及其调用的项目内函数都没有清空梯度"
        "（优化器、模型或引擎的 `zero_grad`，`p.grad = None`，`p.grad.zero_()`）时报告。\n\n"
        "- 只在循环之前清空，或每个 epoch 只清空一次而每个批次都 `step()`，都不算清空。\n"
        "- 有多个优化器时逐个判断：循环里只清空了其他优化器的梯度时报告；模型的 `zero_grad` 或其他清空方式对所有"
        "优化器都算数。\n"
        "- 梯度累积是正常写法：每个批次 backward，每 n 次 step 并 zero_grad。\n"
        "- 以下情况不报告：`step` 接收闭包；优化器或模型在循环内重新创建；优化器不是 torch 自带的类；"
        "循环把优化器或模型交给看不到源码的函数。\n"
        "- 没有循环的单步函数，仅当整个文件都没有清空梯度、且优化器在同一文件创建时才报告。",
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
    needs=("backward", "step"),
)

_SAY_OTHERS = Text(
    en="`{step}` runs in a loop that clears the gradients of {cleared} only",
    zh="`{step}` 所在的循环只清空了 {cleared} 的梯度",
)


@RULE.on_call("step")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if call not in step_calls(scene):
        return
    optimizer = _optimizer(call, scene)
    if optimizer is None:
        return
    backward = backward_calls(scene)
    loop = next((up for up in loops_around(scene, call) if backward.inside(scene, up)), None)
    cleared = ""
    if loop is not None:
        if _clears(scene, loop) and not _clears_elsewhere(scene, loop, call):
            cleared = _cleared_instead(scene, loop, optimizer)
            if not cleared:
                return
        if _anew(scene, loop, optimizer) or _unseen(scene, loop, call):
            return
    elif not _lone_step(scene, call, optimizer, backward):
        return
    if not _plain_optimizer(scene, optimizer):
        return
    yield RULE.at(
        call,
        step=scene.brief(call),
        optimizer=scene.text(optimizer),
        cleared=cleared,
        say=_SAY_OTHERS if cleared else None,
        about=(optimizer,),
        fix=_fix(scene, call, loop, optimizer, backward),
    )


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


def _lone_step(scene: Scene, call: ast.Call, optimizer: ast.expr, backward: Calls) -> bool:
    """Whether a step function, called once a step, leaves nobody in the file to clear."""
    function = scene.function(call)
    if function is None or not backward.of(scene, function):
        return False
    if isinstance(optimizer, ast.Name) and optimizer.id in parameters(function):
        return not _clears(scene, function) and _never_cleared(scene, function, optimizer.id)
    source = made(scene, optimizer)
    if not isinstance(source, ast.Call) or scene.function(source) is function:
        return False
    if not any(loops_around(scene, use) for use in _uses(scene, function.name)):
        return False
    return not cleared_by_hand(scene, scene.root) and not any(
        found is not None and found[0] is Effect.ZERO_GRAD
        for found in (effect_of(scene, other) for other in scene.all(ast.Call))
    )


def _never_cleared(scene: Scene, function: Function, optimizer: str) -> bool:
    """Whether every call of a step function stands in a loop that hands it torch's own optimizer,
    does not clear its gradients and shows it to nobody who might."""
    sites = calls_of(scene, function) or []
    return bool(sites) and all(
        (loops := loops_around(home, site))
        and (given := passed(home, site, function, optimizer)) is not None
        and (source := maker_of(home, given)) is not None
        and source.name.startswith("torch.optim.")
        and not (does := summary_within(home, loops[-1])).has(Effect.ZERO_GRAD)
        and not does.hides(home.dotted(given))
        for home, site in sites
    )


def _uses(scene: Scene, name: str) -> list[ast.Call]:
    return scene.calls.get(name, []) if len(functions(scene).get(name, ())) == 1 else []


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
