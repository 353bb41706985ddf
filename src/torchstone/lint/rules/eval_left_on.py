"""After an evaluation inside the training loop, the model must go back to training mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import (
    before,
    callee,
    callers,
    loops_around,
    own_nodes,
    parameters,
    passed,
    same_scope,
)
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.names import dotted
from torchstone.sources.scene import Scene
from torchstone.sources.training import step_calls

RULE = Rule(
    "TS205",
    "eval-left-on",
    group="correctness",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{model}.eval()` runs inside the training loop, and nothing there calls train() again",
        zh="训练循环中调用了 `{model}.eval()`，之后没有再调用 train()",
    ),
    why=Text(
        en="from the second round on the model trains in evaluation mode: dropout is off and batch "
        "norm neither uses nor updates batch statistics",
        zh="从第二轮起模型一直在评估模式下训练：dropout 失效，batch norm 既不使用也不更新批统计量",
    ),
    suggest=Text(
        en="call `{model}.train()` at the top of every epoch, before the training batches",
        zh="在每个 epoch 开头、训练批次之前调用 `{model}.train()`",
    ),
    title=Text(
        en="A training loop switches the model to eval() and never back",
        zh="训练循环把模型切到 eval() 后没有切回",
    ),
    page=Text(
        en="Fires when a loop that steps an optimizer also puts the trained model into `eval()`, "
        "itself or in a function of this file that it calls, and neither the loop nor any function "
        "it calls uses `train()`.\n\n"
        "- `eval()` once before the loop is a choice (frozen statistics) and quiet; so is a loop "
        "that leaves right after the evaluation.\n"
        "- Quiet when the model is handed to a function that cannot be seen (it may call "
        "`train()`), and for models that the loop does not train: a teacher, a metric.\n"
        "- Harmless for a model without dropout and batch norm.",
        zh="当一个执行优化器 step 的循环，自身或通过本文件内的函数把被训练的模型切到 `eval()`，而循环及其调用的函数"
        "都没有 `train()` 时报告。\n\n"
        "- 在循环之前只调用一次 `eval()` 是有意为之（固定统计量），不报告；评估后立即退出循环也不报告。\n"
        "- 模型被交给看不到源码的函数（其中可能调用 `train()`）、或不是被训练的模型（教师模型、指标）时不报告。\n"
        "- 没有 dropout 和 batch norm 的模型不受影响。",
    ),
    bad=(
        """\
import torch

def fit(model, loader, valid, optimizer, epochs):
    model.train()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, y in valid:
                model(x, y)
""",
        """\
import torch

def validate(net, valid):
    net.eval()
    with torch.no_grad():
        return sum(net(x, y).item() for x, y in valid)

def fit(model, loader, valid, optimizer, epochs):
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()
        print(validate(model, valid))
""",
        """\
import torch

model = build()
optimizer = torch.optim.AdamW(model.parameters())

@torch.no_grad()
def estimate_loss():
    model.eval()
    return sum(model(x).item() for x in valid) / len(valid)

def train(steps):
    for it in range(steps):
        if it % 100 == 0:
            print(estimate_loss())
        loss = model(batch(it))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    good=(
        """\
import torch

def fit(model, loader, valid, optimizer, epochs):
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, y in valid:
                model(x, y)
""",
        """\
import torch

def train(net, loader, optimizer):
    net.train()
    for x, y in loader:
        optimizer.zero_grad()
        net(x, y).backward()
        optimizer.step()

def validate(net, valid):
    net.eval()

def main(model, loader, valid, optimizer):
    for epoch in range(3):
        train(model, loader, optimizer)
        validate(model, valid)
""",
        """\
import torch

def distill(model, teacher, loader, optimizer):
    for x, y in loader:
        teacher.eval()
        with torch.no_grad():
            t = teacher(x)
        optimizer.zero_grad()
        model(x, t).backward()
        optimizer.step()
""",
        """\
import torch

def tune(model, loader, optimizer):
    model.eval()
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
""",
        """\
import torch

def fit(model, loader, valid, optimizer):
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
        if step == 1000:
            model.eval()
            break
""",
    ),
    needs=("step", "eval"),
)


@RULE.on_call("eval")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    name = scene.dotted(scene.receiver(call))
    if not name or call.args or not scene.method(call) or not step_calls(scene):
        return
    for site, model in _sites(call, name, scene):
        loop = next((up for up in loops_around(scene, site) if _steps(scene, up)), None)
        if loop is None or _leaves(scene, site, loop):
            continue
        if not _trains(scene, loop, model) or _back_again(scene, loop, 3, model):
            continue
        if _earlier(scene, loop, model):
            continue
        yield RULE.at(call, model=name)
        return


def _sites(call: ast.Call, name: str, scene: Scene) -> Iterator[tuple[ast.Call, str]]:
    """The call itself, and the calls of its function, with the model's name there."""
    yield call, name
    function = scene.function(call)
    if function is None:
        return
    for site in callers(scene, function):
        if name in parameters(function):
            model = scene.dotted(passed(scene, site, function, name))
        else:
            model = name if name.startswith("self.") or _outer(call, function, scene) else ""
        if model:
            yield site, model


def _outer(call: ast.Call, function: ast.AST, scene: Scene) -> bool:
    """Whether the model is a variable around the function, global or of a closure."""
    base, _ = dotted(scene.receiver(call) or call)
    rows = scene.bindings(base) if isinstance(base, ast.Name) else []
    return bool(rows) and scene.scope(rows[0].node) is not function


def _steps(scene: Scene, loop: ast.AST) -> bool:
    """Whether a loop steps an optimizer, itself or in a function of this file."""
    steps = step_calls(scene)
    if any(scene.within(step, loop) for step in steps):
        return True
    for node in own_nodes(loop):
        found = callee(scene, node, here=True) if isinstance(node, ast.Call) else None
        if found is not None:
            if any(scene.within(step, found[1]) for step in steps):
                return True
    return False


def _leaves(scene: Scene, site: ast.Call, loop: ast.AST) -> bool:
    """Whether the loop ends right after the evaluation."""
    statement: ast.AST | None = scene.statement(site)
    while isinstance(statement, ast.stmt) and statement is not loop:
        if isinstance(scene.block_of(statement)[-1], (ast.Break, ast.Return, ast.Raise)):
            return True
        statement = scene.parent(statement)
    return False


def _trains(scene: Scene, loop: ast.AST, model: str) -> bool:
    """Whether the loop runs the model with gradients, or hands it to what steps."""
    for node in own_nodes(loop):
        if not isinstance(node, ast.Call):
            continue
        if scene.dotted(node.func) == model and not scene.lexical_region(node).without_grad:
            return True
        found = callee(scene, node, here=True)
        if found is None:
            continue
        if any(scene.within(step, found[1]) for step in step_calls(scene)):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if any(scene.dotted(item) == model for item in given) or model.startswith("self."):
                return True
    return False


def _back_again(scene: Scene, root: ast.AST, depth: int, model: str) -> bool:
    """Whether train() may be called below a node, or by what it calls."""
    for node in scene.inside(root):
        if not isinstance(node, ast.Call):
            continue
        if scene.method(node) == "train":
            return True
        found = callee(scene, node)
        if found is None:
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if any(scene.dotted(item) in (model, "self") for item in given):
                if not scene.qualified(node.func).startswith("torch."):
                    return True
        elif depth and found[1] is not root and _back_again(found[0], found[1], depth - 1, "?"):
            return True
    return False


def _earlier(scene: Scene, loop: ast.AST, model: str) -> bool:
    """Whether the model is put into eval() before the loop as well: then it is meant."""
    return any(
        scene.dotted(scene.receiver(other)) == model
        and same_scope(scene, other, loop)
        and before(other, loop)
        for other in scene.calls.get("eval", ())
    )
