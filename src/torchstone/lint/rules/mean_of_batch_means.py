"""Batch means of different sizes do not average to the mean."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import before, made, own_nodes, settled
from torchstone.lint.knowledge.layers import LOSSES, nn_class
from torchstone.lint.rule import LIKELY, LOW, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS213",
    "mean-of-batch-means",
    severity=LOW,
    confidence=LIKELY,
    say=Text(
        en="`{total}` sums batch means and is divided by `{divisor}`",
        zh="`{total}` 累加的是各批次均值，再除以 `{divisor}`",
    ),
    why=Text(
        en="the last batch is smaller, so its samples weigh more: with 1,001 samples in batches of "
        "100 the last one counts a hundredfold, and the score depends on the batch size",
        zh="最后一个批次较小，其样本权重偏大：1001 个样本、批大小 100 时，最后一个样本的权重是其他的 100 倍，"
        "结果还会随批大小变化",
    ),
    suggest=Text(
        en="weight each batch by its size (`loss.item() * x.size(0)`) and divide by the number of "
        "samples",
        zh="按批次大小加权（`loss.item() * x.size(0)`），再除以样本总数",
    ),
    title=Text(
        en="Batch losses are averaged without regard to the batch sizes",
        zh="对各批次损失求平均时没有考虑批次大小",
    ),
    page=Text(
        en="Follows `total += loss.item()` in a loop over a loader to the division after the "
        "loop.\n\n"
        "- Divided by `len(loader)`, LOW: off when the last batch is partial. In evaluation (under "
        "no_grad) only; elsewhere the confidence is `possible`, as a running training loss needs no "
        "such care. Quiet when the loader is made in the file with `drop_last=True`.\n"
        "- Divided by `len(loader.dataset)`, MEDIUM: a loss that is already a mean is divided by "
        "the batch size once more. Only for losses seen to have the default reduction; the MNIST "
        "example of torch is right because it uses reduction='sum'.",
        zh="从遍历加载器的循环中的 `total += loss.item()`，追踪到循环之后的除法。\n\n"
        "- 除以 `len(loader)`，LOW：最后一个批次不完整时有偏差。只在评估（no_grad）中报告；其他位置置信度为 "
        "`possible`（可能），训练过程中的累计损失不必如此讲究。加载器在文件中以 `drop_last=True` 创建时不报告。\n"
        "- 除以 `len(loader.dataset)`，MEDIUM：已经是均值的损失又被除了一次批大小。只针对确认使用默认 reduction 的"
        "损失；torch 的 MNIST 示例用的是 reduction='sum'，因此没有问题。",
    ),
    bad="""\
import torch
from torch import nn

criterion = nn.CrossEntropyLoss()

@torch.no_grad()
def evaluate(model, loader):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        total += loss.item()
    return total / len(loader)
""",
    good="""\
@@ -11,2 +11,2 @@
-        total += loss.item()
-    return total / len(loader)
+        total += loss.item() * x.size(0)
+    return total / len(loader.dataset)
""",
    words=("item", "float"),
    needs=("len",),
)
_SCALED = Text(
    en="each summand is already a mean over its batch: the result is too small by the batch size",
    zh="每一项已经是批次均值：结果比真实值小了一个批大小的倍数",
)
_FUNCTIONS = frozenset(
    ("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "binary_cross_entropy", "smooth_l1_loss")
    + ("binary_cross_entropy_with_logits", "huber_loss")
)


@RULE.on(ast.AugAssign)
def check(statement: ast.AugAssign, scene: Scene) -> Iterator[Hit]:
    target = statement.target
    if not isinstance(statement.op, ast.Add) or not isinstance(target, ast.Name):
        return
    loss = _read_back(scene, statement.value)
    loop = scene.enclosing(statement, ast.For)
    if loss is None or loop is None or scene.scope(loop) is not scene.scope(statement):
        return
    loader = _loader(scene, loop.iter)
    divided = _division(scene, loop, target.id) if loader else None
    if divided is None or not _is_mean(scene, loss):
        return
    node, divisor = divided
    if divisor == loader:
        made_here = _loader_call(scene, loop.iter)
        if made_here is not None and _drops_last(scene, made_here):
            return
        evaluates = scene.region(statement).without_grad
        yield RULE.at(
            node,
            confidence=LIKELY if evaluates else POSSIBLE,
            total=target.id,
            divisor=f"len({divisor})",
        )
    elif divisor == f"{loader}.dataset":
        yield RULE.at(
            node, severity=MEDIUM, why=_SCALED, total=target.id, divisor=f"len({divisor})"
        )


def _read_back(scene: Scene, value: ast.expr) -> ast.expr | None:
    """`loss` of `loss.item()` and `float(loss)`."""
    if not isinstance(value, ast.Call):
        return None
    if scene.method(value) == "item" and not value.args:
        return scene.receiver(value)
    if isinstance(value.func, ast.Name) and value.func.id == "float" and len(value.args) == 1:
        return value.args[0]
    return None


def _is_mean(scene: Scene, loss: ast.expr) -> bool:
    """Whether the value is a torch loss with the default reduction."""
    call = settled(scene, loss) if isinstance(loss, ast.Name) else loss
    if not isinstance(call, ast.Call):
        return False
    full = scene.qualified(call.func)
    source = call.func if isinstance(call.func, ast.Call) else made(scene, call.func)
    if full:
        name = full.rpartition(".")[2] if full.startswith("torch.nn.functional.") else ""
    else:
        name = nn_class(scene, source.func) if isinstance(source, ast.Call) else ""
    if name in _FUNCTIONS:
        given: ast.Call | None = call
    elif name in LOSSES:
        given = source if isinstance(source, ast.Call) else None
    else:
        return False
    if given is None or scene.has_star(given):
        return False
    reduction = scene.keyword(given, "reduction")
    old = [scene.keyword(given, word) for word in ("size_average", "reduce")]
    return not any(old) and (reduction is None or scene.literal(reduction) == "mean")


def _loader(scene: Scene, iterated: ast.expr) -> str:
    """What a loop goes over, below enumerate(), tqdm() and the like."""
    call = _loader_name(scene, iterated)
    return scene.dotted(call)


def _loader_name(scene: Scene, iterated: ast.expr) -> ast.expr:
    while isinstance(iterated, ast.Call) and iterated.args:
        if scene.last_name(iterated.func) not in ("enumerate", "tqdm", "trange", "track", "iter"):
            break
        iterated = iterated.args[0]
    return iterated


def _loader_call(scene: Scene, iterated: ast.expr) -> ast.Call | None:
    source = made(scene, _loader_name(scene, iterated))
    return source if isinstance(source, ast.Call) else None


def _drops_last(scene: Scene, call: ast.Call) -> bool:
    given = scene.keyword(call, "drop_last")
    return scene.has_star(call) or (given is not None and scene.literal(given) is not False)


def _division(scene: Scene, loop: ast.For, name: str) -> tuple[ast.AST, str] | None:
    """The first division of a name by a len() behind a loop, and what is counted."""
    for node in own_nodes(scene.scope(loop)):
        if not before(loop, node) or scene.within(node, loop):
            continue
        by: ast.expr | None = None
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            by = node.value if scene.last_name(node.target) == name else None
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            left = node.left
            by = node.right if isinstance(left, ast.Name) and left.id == name else None
        if isinstance(by, ast.Call) and scene.last_name(by.func) == "len" and len(by.args) == 1:
            counted = scene.dotted(by.args[0])
            if counted:
                return node, counted
    return None
