"""retain_graph=True on the last backward of a step keeps what nobody will use, or hides a leak."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import before, exclusive, loop_around
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.sources.scene import LOOPS, Scene
from torchstone.sources.training import backward_calls

RULE = Rule(
    "TS210",
    "needless-retain-graph",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="retain_graph=True on the only backward of each step",
        zh="每一步唯一的 backward 使用了 retain_graph=True",
    ),
    why=Text(
        en="no second backward uses the kept buffers; if it is there to silence 'backward through "
        "the graph a second time', a tensor of an earlier step is still in the loss, and each step "
        "goes back through all steps before: time and memory grow",
        zh="没有第二次 backward 使用保留的缓冲；若是为了消除“backward through the graph a second time”报错，"
        "说明损失里仍连着之前步骤的张量，每一步都要回溯全部历史，时间和显存不断增长",
    ),
    suggest=Text(
        en="drop retain_graph and detach what is carried over from step to step (hidden state, "
        "running mean)",
        zh="去掉 retain_graph，并对跨步传递的张量（隐藏状态、滑动平均等）调用 detach()",
    ),
    title=Text(
        en="The graph is retained although no second backward follows in the step, which costs "
        "memory",
        zh="一步之内没有第二次 backward，却用 retain_graph=True 保留计算图，浪费显存",
    ),
    page=Text(
        en="Fires for `backward(retain_graph=True)` in a loop that also builds the loss, when no "
        "other backward or `torch.autograd.grad` follows in the same round.\n\n"
        "- Quiet for two losses over one graph (all but the last backward need it), for a loop over "
        "losses that were made outside it, and when the value is not the literal True.\n"
        "- If removing it raises, the error names the real problem: something is not detached.",
        zh="当循环内既构造损失又调用 `backward(retain_graph=True)`，而同一轮里之后没有其他 backward 或 "
        "`torch.autograd.grad` 时报告。\n\n"
        "- 不报告：同一计算图上的多个损失（除最后一次外都需要保留）；遍历在循环外创建的损失；取值不是字面量 True。\n"
        "- 去掉后若报错，错误信息指出的才是真正的问题：有张量没有 detach。",
    ),
    bad="""\
import torch

def train(rnn, loader, optimizer, hidden):
    for x, y in loader:
        optimizer.zero_grad()
        out, hidden = rnn(x, hidden)
        loss = (out - y).pow(2).mean()
        loss.backward(retain_graph=True)
        optimizer.step()
""",
    fixed="""\
@@ -8 +8 @@
-        loss.backward(retain_graph=True)
+        loss.backward()
""",
    good="""\
@@ -6 +6 @@
-        out, hidden = rnn(x, hidden)
+        out, hidden = rnn(x, hidden.detach())
@@ -8 +8 @@
-        loss.backward(retain_graph=True)
+        loss.backward()
""",
    needs=("retain_graph", "backward"),
)


@RULE.on_call("backward")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    given = scene.keyword(call, "retain_graph")
    if given is None or scene.literal(given) is not True or call not in backward_calls(scene):
        return
    loop = loop_around(scene, call)
    if loop is None or not _builds(scene, call, loop):
        return
    others = [
        other
        for other in (*backward_calls(scene), *scene.calls.get("grad", ()))
        if other is not call and scene.within(other, loop) and not exclusive(scene, other, call)
    ]
    if any(before(call, other) for other in others) or _handed_on(scene, call, loop):
        return
    yield RULE.at(call, fix=_fix(scene, call))


def _builds(scene: Scene, call: ast.Call, loop: ast.AST) -> bool:
    """Whether the loss comes out of a model that runs inside the loop."""
    receiver = scene.receiver(call)
    while isinstance(receiver, ast.Call):  # scaler.scale(loss).backward()
        receiver = receiver.args[0] if receiver.args else scene.receiver(receiver)
    if not isinstance(receiver, ast.Name):
        return False
    rows = [row for row in scene.bindings(receiver) if scene.within(row.node, loop)]
    if not rows or any(row.how == "loop" for row in rows):
        return False
    return any(
        (isinstance(node, ast.Call) and scene.is_model(node.func)) or _applies(scene, node)
        for node in scene.inside(loop)
    )


def _applies(scene: Scene, node: ast.AST) -> bool:
    """A call of a plain name or `self.x` with arguments whose outcome is bound: a forward pass."""
    return (
        isinstance(node, ast.Call)
        and bool(node.args)
        and isinstance(scene.parent(node), ast.Assign)
        and not isinstance(scene.enclosing(node, *LOOPS), type(None))
        and (isinstance(node.func, ast.Name) or scene.dotted(node.func).startswith("self."))
    )


def _handed_on(scene: Scene, call: ast.Call, loop: ast.AST) -> bool:
    """Whether the loss goes to a function afterwards that may go backward again."""
    receiver = scene.receiver(call)
    return any(
        isinstance(node, ast.Call)
        and before(call, node)
        and any(scene.dotted(item) == scene.dotted(receiver) != "" for item in node.args)
        and scene.last_name(node.func) not in ("print", "float", "append", "log", "update")
        for node in scene.inside(loop)
    )


def _fix(scene: Scene, call: ast.Call) -> Fix | None:
    if call.args or len(call.keywords) != 1:
        return None
    return unsafe(scene.replace_between(call.func, call, "()"))
