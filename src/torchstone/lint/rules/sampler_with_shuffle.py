"""A DataLoader takes a sampler or shuffle=True, never both."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import made, reaches
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS406",
    "sampler-with-shuffle",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="this DataLoader gets {sampler} and shuffle=True",
        zh="该 DataLoader 同时收到 {sampler} 和 shuffle=True",
    ),
    why=Text(
        en="DataLoader raises ValueError: sampler option is mutually exclusive with shuffle",
        zh="DataLoader 会抛出 ValueError：sampler option is mutually exclusive with shuffle",
    ),
    suggest=Text(
        en="drop shuffle=True here; a DistributedSampler shuffles by itself",
        zh="去掉这里的 shuffle=True；DistributedSampler 自己会打乱",
    ),
    title=Text(
        en="A DataLoader gets a sampler together with shuffle=True, which raises an error",
        zh="DataLoader 同时传入采样器和 shuffle=True，会报错",
    ),
    page=Text(
        en="Fires when `sampler=` or `batch_sampler=` is an object that the file visibly makes, in "
        "one arm of a condition at least, and `shuffle` is the literal True. With "
        "`DistributedSampler(data) if ranks > 1 else None` the script runs on one GPU and fails on "
        "several.\n\n"
        "- Quiet for `shuffle=(sampler is None)`, and where the DataLoader stands under a condition "
        "of its own, away from the sampler.",
        zh="当 `sampler=` 或 `batch_sampler=` 是文件中明确创建的对象（至少在条件的一个分支中），且 `shuffle` 为字面量 "
        "True 时报告。对于 `DistributedSampler(data) if ranks > 1 else None`，单卡能运行，多卡就会报错。\n\n"
        "- 不报告：`shuffle=(sampler is None)`；DataLoader 自己位于另一个条件之下，与采样器不在一处。",
    ),
    bad="""\
from torch.utils.data import DataLoader, DistributedSampler

def loader(data):
    sampler = DistributedSampler(data)
    return DataLoader(data, batch_size=8, shuffle=True, sampler=sampler)
""",
    fixed="""\
@@ -5 +5 @@
-    return DataLoader(data, batch_size=8, shuffle=True, sampler=sampler)
+    return DataLoader(data, batch_size=8, shuffle=False, sampler=sampler)
""",
)


@RULE.on_call("DataLoader")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    shuffle = scene.argument(call, 2, "shuffle")
    if shuffle is None or not isinstance(shuffle, ast.Constant) or shuffle.value is not True:
        return
    if not scene.qualified(call.func).startswith("torch.utils.data"):
        return
    sampler = scene.argument(call, 3, "sampler") or scene.argument(call, 4, "batch_sampler")
    sources = _sources(scene, call, sampler)
    names = [_sampler_name(scene, source) for source in sources]
    name = next(filter(None, names), "")
    if not name:
        return
    instead = "False" if all(names) else f"{scene.dotted(sampler)} is None"
    fix = safe(scene.replace(shuffle, instead)) if all(names) or scene.dotted(sampler) else None
    yield RULE.at(call, sampler=name, fix=fix)


def _sampler_name(scene: Scene, source: ast.expr | None) -> str:
    name = scene.last_name(source.func) if isinstance(source, ast.Call) else ""
    return name if name.endswith("Sampler") else ""


def _sources(scene: Scene, call: ast.Call, sampler: ast.expr | None) -> list[ast.expr | None]:
    """What the sampler may be here: one expression, or one for each arm of a condition."""
    source = made(scene, sampler)
    if isinstance(source, ast.IfExp) and not _apart(scene, call, source):
        return [source.body, source.orelse]
    if isinstance(source, ast.Name) and source is sampler:
        rows = [row for row in scene.bindings(source) if reaches(scene, row.node, call)]
        if rows and all(row.how == "assign" and not _apart(scene, call, row.node) for row in rows):
            return [row.value for row in rows]
    return [source]


def _apart(scene: Scene, call: ast.Call, node: ast.AST) -> bool:
    """Whether a DataLoader stands under a condition that what it is given does not."""
    return any(
        isinstance(up, (ast.If, ast.IfExp, ast.Match)) and not scene.within(node, up)
        for up in scene.ancestors(call)
    )
