"""Batch norm of a frozen part goes on learning while the part is in training mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.makeup import has_batch_norm
from torchstone.lint.knowledge.amp import receivers
from torchstone.lint.knowledge.freezing import Freeze, freezes, parameters_of
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS258",
    "frozen-part-in-training-mode",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="the parameters of `{part}` are frozen, but nothing puts it into eval()",
        zh="`{part}` 的参数已冻结，但没有任何代码把它切到 eval()",
    ),
    why=Text(
        en="its batch norm layers use the statistics of each batch, and go on to change the running "
        "ones that were learned with its weights",
        zh="其中的 batch norm 使用每个批次的统计量，并继续修改随权重一起学到的滑动统计量",
    ),
    suggest=Text(
        en="call `{part}.eval()`, and again after every `train()` of the model around it",
        zh="调用 `{part}.eval()`，并在外层模型每次 `train()` 之后再调用一次",
    ),
    title=Text(
        en="A frozen part with batch norm is left in training mode",
        zh="含 batch norm 的冻结部分仍处于训练模式",
    ),
    page=Text(
        en="Reported where all parameters of a part get `requires_grad = False`, the part is seen to have "
        "batch norm, and neither its file calls `eval()` of it, or of modules that a loop goes over, nor "
        "its class has a `train` of its own. Quiet when something frees the parameters again, and for "
        "parts that come from elsewhere.",
        zh="当某一部分的所有参数都被设为 `requires_grad = False`，看得出它含有 batch norm，而其所在文件没有对它（或循环中的"
        "子模块）调用 `eval()`，所在的类也没有自己的 `train` 方法时报告。参数之后被解冻，或该部分来自别处时不报告。",
    ),
    words=("requires_grad", "requires_grad_"),
    bad="""\
import torch

class Probe(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8))
        self.head = torch.nn.Linear(8, classes)
        for parameter in self.body.parameters():
            parameter.requires_grad = False

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))
""",
    good="""\
@@ -10,0 +11,5 @@
+    def train(self, mode=True):
+        super().train(mode)
+        self.body.eval()
+        return self
+
""",
)


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    """One finding for each part."""
    rows = freezes(scene)
    told: set[str] = set()
    for row in rows if not scene.is_test else ():
        if row.on is not False or not row.whole or not row.of or row.of in told:
            continue
        freed = any(item.of.startswith(row.of) and item.on is not False for item in rows)
        part = _part(scene, row)
        if freed or part is None or _is_switched(scene, row):
            continue
        if has_batch_norm(scene, part):
            told.add(row.of)
            yield RULE.at(row.node, part=row.of)


def _part(scene: Scene, row: Freeze) -> ast.expr | None:
    """The frozen part as it is written; None for `self`, and for a single parameter."""
    for node in scene.inside(row.node):
        if parameters_of(scene, node) == row.of and isinstance(node, ast.Call):
            return scene.receiver(node) if row.of != "self" else None
        if isinstance(node, ast.Call) and scene.method(node) == "requires_grad_":
            return scene.receiver(node) if row.of != "self" else None
    return None


def _is_switched(scene: Scene, row: Freeze) -> bool:
    """Whether some code may put the part into evaluation mode: by its name, the module of a loop, or a
    `train` of its class."""
    owner = scene.class_of(row.node)
    if owner is not None and any(getattr(item, "name", "") == "train" for item in owner.body):
        return True
    names = {row.of.rpartition(".")[2]}
    for statement in scene.all(ast.Assign):
        if scene.dotted(statement.value) == row.of:  # the same part under another name
            names.update(map(scene.last_name, statement.targets))
    return any(
        not chain or not names.isdisjoint(chain.split(".")) or chain in _LOOPED
        for chain in receivers(scene, "eval")
    )


_LOOPED = frozenset("m mod module layer child l sub submodule bn self".split())
