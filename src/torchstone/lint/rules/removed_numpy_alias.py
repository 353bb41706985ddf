"""Names of Python's own types that numpy gave up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from torchstone.core.text import Text
from torchstone.lint.knowledge.api_use import guarded
from torchstone.lint.rule import MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import Scene
from torchstone.sources.versions import is_kept_below

RULE = Rule(
    "TS517",
    "removed-numpy-alias",
    severity=MEDIUM,
    in_every_torch=True,
    title=Text(
        en="A name of numpy is used that numpy removed in 1.24", zh="使用了 numpy 1.24 已移除的名字"
    ),
    say=Text(en="`{name}` is removed since numpy 1.24", zh="`{name}` 自 numpy 1.24 起已移除"),
    why=Text(
        en="the line ends with an AttributeError as soon as it runs",
        zh="执行到这一行时会以 AttributeError 结束",
    ),
    suggest=Text(en="write `{instead}`, which is the same type", zh="改写为 `{instead}`，类型相同"),
    page=Text(
        en="`np.int`, `np.float`, `np.object`, `np.complex`, `np.str` and `np.unicode` were other names "
        "of Python's types: deprecated in numpy 1.20, removed in 1.24. (`np.bool` and `np.long` are not "
        "meant: numpy 2 has them again.) Quiet where the project's "
        "requirements keep numpy below 1.24, in `try` and under questions of version.",
        zh="`np.int`、`np.float`、`np.object`、`np.complex`、`np.str` 与 `np.unicode` 只是 Python 类型的别名：numpy 1.20 弃用，"
        "1.24 移除（不检查 `np.bool` 与 `np.long`：numpy 2 又有了它们）。若项目依赖把 numpy 限制在 "
        "1.24 以下，或位于 `try`、版本判断之下，则不报告。",
    ),
    bad="""\
import numpy as np
import torch

def mask(n):
    return torch.from_numpy(np.zeros(n, dtype=np.int))
""",
    fixed="""\
@@ -5 +5 @@
-    return torch.from_numpy(np.zeros(n, dtype=np.int))
+    return torch.from_numpy(np.zeros(n, dtype=int))
""",
    words=("numpy",),
)
_ALIASES = {f"numpy.{name}": name for name in ("int", "float", "object", "complex", "str")} | {
    "numpy.unicode": "str"
}


@RULE.on(ast.Attribute)
def check(node: ast.Attribute, scene: Scene) -> Iterator[Hit]:
    instead = _ALIASES.get(scene.qualified(node))
    if instead is None or instead in scene.bound or guarded(scene, node):
        return
    if any(scene.project.mentions(f"{name}.{instead} = ") for name in ("np", "numpy")):
        return  # the project gives the name back to numpy
    if not _is_kept_old(scene):
        name = scene.text(node)
        yield RULE.at(node, name=name, instead=instead, fix=safe(scene.replace(node, instead)))


def _is_kept_old(scene: Scene) -> bool:
    path = scene.project.path_of(scene)
    if not path:
        return False
    folder = Path(path).parent
    known: dict[object, bool] = scene.project.summaries
    key = ("numpy below", folder)
    if key not in known:
        known[key] = is_kept_below(folder, "numpy", "1.24")
    return known[key]
