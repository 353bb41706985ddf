"""A state dict that is kept without a copy changes together with the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS243",
    "state-dict-not-copied",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{target}` keeps the tensors of `{model}` themselves, not a copy",
        zh="`{target}` 保存的是 `{model}` 的张量本身，而不是副本",
    ),
    why=Text(
        en="`state_dict()` refers to the parameters: every later step or load changes what was kept, and loading it back does nothing",
        zh="`state_dict()` 只引用参数：之后每一步或每次加载都会改变保存的内容，再加载回来不起作用",
    ),
    suggest=Text(
        en="keep `copy.deepcopy({model}.state_dict())`",
        zh="改用 `copy.deepcopy({model}.state_dict())`",
    ),
    title=Text(
        en="A state dict is kept to be loaded back, but it is not a copy",
        zh="保存 state dict 以便之后恢复，但没有复制",
    ),
    page=Text(
        en="""\
Reported when what `model.state_dict()` gives is bound to a name or attribute, is loaded back into the same model, and the model is
trained or gets another state in between. A state that is written to a file, cloned or copied is quiet.""",
        zh="""\
当 `model.state_dict()` 的结果被绑定到名字或属性、之后又加载回同一个模型，而其间模型经过训练或加载了其他状态时报告。
写入文件、克隆或复制的状态不报告。""",
    ),
    needs=("load_state_dict",),
    bad="""\
import torch

def fit(model, loader, optimizer, loss_of, score):
    best, kept = 0.0, None
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            loss_of(model(x), y).backward()
            optimizer.step()
        if score(model) > best:
            best, kept = score(model), model.state_dict()
    model.load_state_dict(kept)
""",
    good="""\
@@ -0,0 +1,2 @@
+import copy
+
@@ -11 +13 @@
-            best, kept = score(model), model.state_dict()
+            best, kept = score(model), copy.deepcopy(model.state_dict())
""",
)


@RULE.on_call("state_dict")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`kept = model.state_dict()` … `model.load_state_dict(kept)`"""
    model = scene.dotted(scene.receiver(call))
    target = _target(scene, call)
    name = scene.dotted(target)
    if not model or target is None or not name or "optim" in model or "sched" in model:
        return
    area = scene.class_of(call) if name.startswith("self.") else scene.function(call)
    if area is None:
        return
    if _is_merged(scene, area, name):
        return
    back = [item for item in _loads(scene, area, model) if _gives(scene, item, name)]
    if back and _changes_between(scene, area, call, model, name):
        yield RULE.at(call, target=name, model=model)


def _is_merged(scene: Scene, area: ast.AST, name: str) -> bool:
    """Whether other tensors are put into the state, to be given back with it: `state.update(loaded)`."""
    updated = any(
        scene.dotted(scene.receiver(item)) == name and scene.within(item, area)
        for item in scene.calls.get("update", ())
    )
    return updated or any(
        isinstance(node.ctx, ast.Store) and scene.dotted(node.value) == name
        for node in scene.all(ast.Subscript)
        if scene.within(node, area)
    )


def _target(scene: Scene, call: ast.Call) -> ast.expr | None:
    """What takes the state as it is."""
    up = scene.parent(call)
    if isinstance(up, ast.Assign) and up.value is call:
        return up.targets[0]
    outer = scene.parent(up) if isinstance(up, ast.Tuple) else None
    if isinstance(outer, ast.Assign) and isinstance(up, ast.Tuple) and outer.value is up:
        names = outer.targets[0]
        if isinstance(names, ast.Tuple) and len(names.elts) == len(up.elts):
            return names.elts[up.elts.index(call)]
    return None


def _loads(scene: Scene, area: ast.AST, model: str) -> list[ast.Call]:
    return [
        item
        for item in scene.calls.get("load_state_dict", ())
        if scene.within(item, area) and scene.dotted(scene.receiver(item)) == model and item.args
    ]


def _gives(scene: Scene, call: ast.Call, name: str) -> bool:
    return scene.dotted(call.args[0]) == name


def _changes_between(scene: Scene, area: ast.AST, call: ast.Call, model: str, name: str) -> bool:
    """Whether the model is trained, or gets another state, while the first one is kept."""
    others = [item for item in _loads(scene, area, model) if not _gives(scene, item, name)]
    steps = [
        item
        for word in ("step", "backward")
        for item in scene.calls.get(word, ())
        if scene.within(item, area) and "sched" not in scene.text(item.func)
    ]
    if name.startswith("self."):
        return bool(others)
    loops = [up for up in scene.ancestors(call) if isinstance(up, (ast.For, ast.While))]
    return any(
        item.lineno > call.lineno or any(scene.within(item, loop) for loop in loops)
        for item in (*others, *steps)
    )
