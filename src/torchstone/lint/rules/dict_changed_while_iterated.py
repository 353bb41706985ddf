"""A dict that changes its size while a loop runs over it ends the loop with an error."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene
from torchstone.sources.tree import below

RULE = Rule(
    "TS252",
    "dict-changed-while-iterated",
    torch_from=(0, 1),
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{name}` changes its size while the loop runs over it",
        zh="`{name}` 在循环遍历的同时改变了大小",
    ),
    why=Text(
        en="Python raises a RuntimeError in the next round, or a key is missed",
        zh="Python 会在下一轮抛出 RuntimeError，或漏掉某个键",
    ),
    suggest=Text(
        en="loop over `list({name})`, or fill a new dict",
        zh="遍历 `list({name})`，或写入一个新的 dict",
    ),
    title=Text(
        en="A dict gets or loses keys inside the loop over it", zh="在遍历 dict 的循环中增删它的键"
    ),
    page=Text(
        en="Reported for `del`, `pop` and stores under another key when the loop goes on afterwards. A loop over `list(…)` or a copy is quiet.",
        zh="当循环之后继续执行时，报告 `del`、`pop` 以及写入其他键。遍历 `list(…)` 或副本时不报告。",
    ),
    words=("torch", "state_dict"),
    bad="""\
import torch

def without_prefix(state):
    for name, tensor in state.items():
        state[name[7:]] = tensor
        del state[name]
    return state
""",
    good="""\
@@ -4 +4 @@
-    for name, tensor in state.items():
+    for name, tensor in list(state.items()):
""",
)


@RULE.on(ast.For)
def check(loop: ast.For, scene: Scene) -> Iterator[Hit]:
    """`for name in state: del state[name]`"""
    name = _iterated(scene, loop)
    if not name:
        return
    for node in below(loop):
        if scene.enclosing(node, ast.For, ast.While) is loop and _changes(scene, node, name, loop):
            statement = scene.statement(node)
            if statement is not None and not _ends(scene, statement, loop):
                yield RULE.at(statement, name=name)
                return


def _iterated(scene: Scene, loop: ast.For) -> str:
    """The dict that a loop runs over: by itself is not enough, a list may lose elements as well."""
    node = loop.iter
    if isinstance(node, ast.Call) and scene.method(node) in ("items", "keys", "values"):
        if not node.args and not _may_be_table(scene, scene.receiver(node)):
            return scene.dotted(scene.receiver(node))
    return ""


def _may_be_table(scene: Scene, node: ast.expr | None) -> bool:
    """Whether a value may be a table of pandas, whose `keys()` are a snapshot: what a method gave in a file
    that imports pandas."""
    if not any(full.partition(".")[0] == "pandas" for full in scene.imports.aliases.values()):
        return False
    made = scene.origin(node)
    return isinstance(made, ast.Call) and scene.last_name(made.func) not in _GIVES_DICT


_GIVES_DICT = frozenset("dict OrderedDict defaultdict Counter state_dict load vars".split())


def _changes(scene: Scene, node: ast.AST, name: str, loop: ast.For) -> bool:
    if isinstance(node, ast.Delete):
        return any(
            isinstance(target, ast.Subscript) and scene.dotted(target.value) == name
            for target in node.targets
        )
    if isinstance(node, ast.Call) and scene.method(node) == "pop":
        return scene.dotted(scene.receiver(node)) == name
    return False


def _ends(scene: Scene, statement: ast.stmt, loop: ast.For) -> bool:
    """Whether the loop, or the name's meaning, ends after the statement."""
    block = scene.block_of(statement)
    after = block[block.index(statement) + 1 :] if statement in block else []
    leaves = any(isinstance(item, (ast.Break, ast.Return, ast.Raise)) for item in after)
    return leaves or isinstance(statement, ast.Return)
