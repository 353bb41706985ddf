"""A tensor made under inference_mode can never take part in autograd again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.callers import calls_of
from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.origins import region_of_answer
from torchstone.lint.facts.summary import summary_within
from torchstone.lint.knowledge.flow import before, own_nodes
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.regions import INFERENCE
from torchstone.sources.scene import Scene
from torchstone.sources.training import backward_calls

RULE = Rule(
    "TS232",
    "inference-tensor-in-training",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{name}` is made under inference_mode and used where gradients are recorded",
        zh="`{name}` 在 inference_mode 下创建，却用在记录梯度的地方",
    ),
    why=Text(
        en="an inference tensor cannot be saved for backward: the first operator that needs it "
        "raises a RuntimeError",
        zh="推理张量不能为反向传播保存：第一个需要它的算子会抛出 RuntimeError",
    ),
    suggest=Text(
        en="use torch.no_grad() for what training goes on to use, or `.clone()` it outside",
        zh="训练还要用到的值改用 torch.no_grad()，或在外面对其 `.clone()`",
    ),
    title=Text(
        en="A tensor made under inference_mode is used in the training step",
        zh="训练步骤使用了在 inference_mode 下创建的张量",
    ),
    page=Text(
        en="Fires for a name that is bound inside `with torch.inference_mode():` and read after the "
        "block, in a function that goes on to call backward() or whose answer goes to code that does; "
        "and for what a function of the project computed under `inference_mode`.\n\n"
        "- Quiet when it is cloned, turned into numbers, or only compared or printed.",
        zh="当某个名称在 `with torch.inference_mode():` 中赋值，之后在调用 backward() 的函数、或结果交给这类代码的函数里被读取时报告；项目中"
        "在 `inference_mode` 下计算并返回的值同样报告。\n\n"
        "- 若已克隆、转换为数值，或只用于比较、打印，则不报告。",
    ),
    bad="""\
import torch

def step(model, teacher, x, opt):
    with torch.inference_mode():
        target = teacher(x)
    loss = (model(x) - target).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    fixed="""\
@@ -4 +4 @@
-    with torch.inference_mode():
+    with torch.no_grad():
""",
    words=("inference_mode",),
)
_HARMLESS = frozenset(
    ("item", "clone", "tolist", "cpu", "numpy", "shape", "size", "device", "dtype")
)


@RULE.on_call("inference_mode")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if scene.qualified(call.func) not in INFERENCE or call.args or call.keywords:
        return
    block = scene.statement(call)
    if not isinstance(block, ast.With):
        return
    home = scene.scope(block)
    later: list[ast.AST] = [
        b for b in backward_calls(scene) if scene.scope(b) is home and before(block, b)
    ]
    later = later or _answers_to_training(scene, block)
    if not later:
        return
    names = {
        node.id
        for statement in block.body
        for node in scene.inside(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for node in sorted(scene.all(ast.Name), key=lambda n: (n.lineno, n.col_offset)):
        if node.id in names and isinstance(node.ctx, ast.Load) and scene.scope(node) is home:
            if _feeds(scene, node, block, later[-1]):
                fix = safe(scene.replace(call.func, scene.text(call.func)[:-14] + "no_grad"))
                yield RULE.at(block, name=node.id, fix=fix)
                return


def _answers_to_training(scene: Scene, block: ast.With) -> list[ast.AST]:
    """The `return` statements behind a block, when code that goes backward calls the function."""
    function = scene.function(block)
    if function is None or scene.region(function.body[-1]).without_grad:
        return []
    ends: list[ast.AST] = [
        n for n in own_nodes(function) if isinstance(n, ast.Return) and before(block, n)
    ]
    trained = any(
        summary_within(home, home.function(site) or home.root).has(Effect.BACKWARD)
        for home, site in (calls_of(scene, function) or () if ends else ())
    )
    return sorted(ends, key=lambda item: getattr(item, "lineno", 0)) if trained else []


@RULE.on(ast.Assign)
def check_answer(statement: ast.Assign, scene: Scene) -> Iterator[Hit]:
    """`goal = targets(x)`, where `targets` computes under inference_mode"""
    target = statement.targets[0]
    if not isinstance(statement.value, ast.Call) or not isinstance(target, ast.Name):
        return
    home = scene.scope(statement)
    later = [b for b in backward_calls(scene) if scene.scope(b) is home and before(statement, b)]
    if not later or not scene.project.mentions("inference_mode"):
        return
    reads = [n for n in scene.all(ast.Name) if n.id == target.id and scene.scope(n) is home]
    used = any(
        isinstance(n.ctx, ast.Load) and _feeds(scene, n, statement, later[-1]) for n in reads
    )
    region = region_of_answer(scene, statement.value) if used else None
    if region is not None and region.inference_mode:
        yield RULE.at(statement, name=target.id)


def _feeds(scene: Scene, node: ast.Name, block: ast.stmt, backward: ast.AST) -> bool:
    """Whether a read between the block and backward computes with the tensor itself."""
    last = block.end_lineno or 0
    if not last < node.lineno <= getattr(backward, "lineno", 0) or scene.region(node).without_grad:
        return False
    if any(row.node.lineno > last for row in scene.bindings(node) if hasattr(row.node, "lineno")):
        return False
    up = scene.parent(node)
    if isinstance(up, ast.Attribute):
        return up.attr not in _HARMLESS
    if isinstance(up, ast.Call):
        return node in up.args and scene.last_name(up.func) not in ("print", "len", "float", "int")
    return isinstance(up, (ast.BinOp, ast.keyword))
