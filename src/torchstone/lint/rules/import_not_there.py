"""An import of something that the project does not have ends with an ImportError."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.imports import lack_of
from torchstone.lint.knowledge.api_use import guarded
from torchstone.lint.knowledge.torch_names import closest
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS257",
    "import-not-there",
    torch_from=(0, 1),
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="this project has no module `{module}`{meant}", zh="本项目没有模块 `{module}`{meant}"
    ),
    why=Text(
        en="the import ends with an ImportError, and with it whatever imports this file",
        zh="导入会以 ImportError 结束，导入本文件的代码也随之失败",
    ),
    suggest=Text(
        en="import it from where it is now, or remove the import",
        zh="从它现在所在的位置导入，或删除该导入",
    ),
    title=Text(
        en="An import names something that the project does not have",
        zh="导入了项目中不存在的内容",
    ),
    page=Text(
        en="Reported for relative imports, and for imports from a folder that stands beside the file or above "
        "it, when the module is not there, or is there and binds no such name. What is left behind when a "
        "file or a class is renamed is found this way.\n\n"
        "Quiet under `try`, `TYPE_CHECKING` and questions of version, for modules that are built or generated "
        "(`_C`, `version`, `*_pb2`, what `setup.py` names), for folders with the name of a package of "
        "others (`datasets`, `transformers`), where several modules of the project could be meant, and for "
        "modules with `__getattr__`, `globals()` or names that come from other packages.",
        zh="检查相对导入，以及从本文件旁边或上层文件夹的导入：模块不存在，或模块存在但没有绑定该名字时报告。文件或类改名后"
        "遗留的导入由此发现。\n\n"
        "不报告：位于 `try`、`TYPE_CHECKING`、版本判断之下；构建或生成的模块（`_C`、`version`、`*_pb2`、`setup.py` 中提到的"
        "名字）；与他人的包同名的文件夹（`datasets`、`transformers`）；项目中有多个模块可能是所指；含有 `__getattr__`、"
        "`globals()` 或名字来自其他包的模块。",
    ),
    words=("torch", "__getitem__", "model", "models", "train"),
    bad="""\
import torch
from .no_such_module import Net

def run(x):
    return Net()(x)
""",
    good="""\
import torch

try:
    from .no_such_module import Net
except ImportError:
    Net = torch.nn.Identity
""",
)
_NO_NAME = Text(
    en="`{module}` of this project has no `{name}`{meant}",
    zh="本项目的 `{module}` 中没有 `{name}`{meant}",
)


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    """One finding for a file: its first import that fails ends it."""
    if scene.source.cell_starts:
        return
    hits = [
        hit
        for node in scene.all(ast.ImportFrom)
        if not guarded(scene, node) and not scene.enclosing(node, ast.If)
        for hit in [_judge(node, scene)]
        if hit is not None
    ]
    if hits:
        first = min(hits, key=lambda hit: (hit.severity.rank, hit.node.lineno))  # type: ignore[attr-defined]
        lines = ", ".join(
            str(scene.source.place(hit.node.lineno)[1])  # type: ignore[attr-defined]
            for hit in hits
            if hit is not first
        )
        yield first._replace(say=_with(first.say, lines), args={**first.args, "lines": lines})


def _judge(node: ast.ImportFrom, scene: Scene) -> Hit | None:
    for alias in node.names:
        lack = lack_of(scene, node, alias)
        if lack is not None:
            near = closest(lack.name or (node.module or "").rpartition(".")[2], lack.near)
            return RULE.at(
                node,
                say=_NO_NAME if lack.name else None,
                severity=None if scene.function(node) is None else MEDIUM,
                module="." * node.level + (node.module or ""),
                name=lack.name,
                meant=f" (`{near}`?)" if near else "",
            )
    return None


def _with(say: Text, lines: str) -> Text:
    if not lines:
        return say
    return Text(
        en=say.en + "; the imports of line {lines} fail, too",
        zh=say.zh + "；第 {lines} 行的导入也会失败",
    )
