"""`.next()` of an iterator is Python 2's."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS518",
    "iterator-next-method",
    severity=MEDIUM,
    confidence=LIKELY,
    in_every_torch=True,
    title=Text(
        en="`.next()` is called of an iterator over a DataLoader",
        zh="对 DataLoader 的迭代器调用了 `.next()`",
    ),
    say=Text(en="iterators have no `.next()`: `{call}`", zh="迭代器没有 `.next()` 方法：`{call}`"),
    why=Text(
        en="Python 3's iterators have `__next__` alone; those of a DataLoader had both until torch 1.13",
        zh="Python 3 的迭代器只有 `__next__`；DataLoader 的迭代器在 torch 1.13 之前两者都有",
    ),
    suggest=Text(en="write `next({of})`", zh="改写为 `next({of})`"),
    page=Text(
        en="Reported for `x.next()` without arguments where `x` was made by `iter(…)`, or is named as an "
        "iterator in a file that calls `iter`. Quiet where the project has a `next` of its own.",
        zh="检查不带参数的 `x.next()`：`x` 由 `iter(…)` 得到，或在调用了 `iter` 的文件中以迭代器命名。项目自己定义了 `next` "
        "时不报告。",
    ),
    words=("torch",),
    needs=("next", "iter"),
    bad="""\
import torch

def train(model, loader, steps):
    batches = iter(loader)
    for _ in range(steps):
        model(batches.next())
""",
    fixed="""\
@@ -6 +6 @@
-        model(batches.next())
+        model(next(batches))
""",
)
_NAMED = pattern(r"(?:^|_)iter(?:s|ator|_list)?$|_iter(?:ator)?_|(?:^|_)dataiter$|loader_iter")


@RULE.on_call("next")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    receiver = scene.receiver(call) if scene.method(call) == "next" else None
    if receiver is None or call.args or call.keywords:
        return
    if "next" in scene.bound or scene.project.mentions("def next("):
        return
    base = receiver.value if isinstance(receiver, ast.Subscript) else receiver
    made = scene.origin(base)
    iterates = isinstance(made, ast.Call) and scene.last_name(made.func) == "iter"
    if iterates or (scene.calls.get("iter") and _NAMED.search(scene.last_name(base))):
        text = scene.text(receiver)
        yield RULE.at(
            call, call=scene.brief(call), of=text, fix=safe(scene.replace(call, f"next({text})"))
        )
