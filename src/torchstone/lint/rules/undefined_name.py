"""A name that nothing binds ends training with a NameError."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene
from torchstone.sources.training import step_loops

RULE = Rule(
    "TS239",
    "undefined-name",
    group="correctness",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{name}` is bound nowhere that this code can see",
        zh="`{name}` 在此处可见的范围内没有定义",
    ),
    why=Text(
        en="the step ends with a NameError as soon as this line runs",
        zh="执行到这一行时，训练步会以 NameError 结束",
    ),
    suggest=Text(
        en="pass `{name}` as an argument, or correct the name",
        zh="把 `{name}` 作为参数传入，或更正名字",
    ),
    title=Text(
        en="Training code reads a name that no scope around it binds",
        zh="训练代码读取了周围任何作用域都没有定义的名字",
    ),
    page=Text(
        en="""\
Reported in functions that hold a training step, and in the `forward` of an `nn.Module`: a name that
neither the function, nor the functions around it, nor the file binds, imports or declares global, and
that is not built in. A `model` that only `main` binds is not visible in `train`.

Quiet in notebooks, whose names may come from other cells or the shell; in files with `import *`, `exec`
or `globals()`, which bind names that nobody can see; where a `NameError` is expected.""",
        zh="""\
检查包含训练步的函数，以及 `nn.Module` 的 `forward`：若一个名字既不由该函数、外层函数或文件定义、导入或声明为 global，
也不是内置名，就会报告。只在 `main` 中定义的 `model` 在 `train` 中不可见。

不报告：notebook（名字可能来自其他单元或 shell）；含有 `import *`、`exec` 或 `globals()` 的文件（会定义看不到的名字）；预期会出现
`NameError` 的地方。""",
    ),
    words=("backward", "forward"),
    bad=(
        """\
import torch

def train(loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

def main(loader, optimizer, criterion):
    model = torch.nn.Linear(4, 4)
    train(loader, optimizer, criterion)
""",
    ),
    good=(
        """\
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

def main(loader, optimizer, criterion):
    model = torch.nn.Linear(4, 4)
    train(model, loader, optimizer, criterion)
""",
    ),
)
_GIVEN = frozenset(dir(builtins)) | frozenset(
    "__file__ __name__ __doc__ __package__ __spec__ __loader__ __path__ __class__ __module__ "
    "__qualname__ __annotations__ __builtins__ xrange unicode raw_input basestring long unichr "
    "reduce reload cmp execfile WindowsError reveal_type".split()
)
"""What every module has, and what Python 2 had: such files are another matter."""
_HIDING = ("exec", "globals", "locals", "vars", "setattr", "execfile")


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    """One finding for each name of a function."""
    if scene.imports.stars or scene.source.cell_starts or any(map(scene.calls.get, _HIDING)):
        return
    functions = _training_functions(scene)
    known = _known_names(scene) if functions else frozenset()
    told: set[tuple[ast.AST, str]] = set()
    for node in scene.all(ast.Name) if functions else ():
        if node.id in known or not isinstance(node.ctx, ast.Load):
            continue
        function = scene.function(node)
        if function not in functions or (function, node.id) in told or scene.bindings(node):
            continue
        if function is not None and not _expects_it(scene, node):
            told.add((function, node.id))
            yield RULE.at(node, name=node.id)


def _training_functions(scene: Scene) -> set[ast.AST | None]:
    """The functions that hold a training step, and the `forward` of modules."""
    found: set[ast.AST | None] = set()
    for loop in step_loops(scene):
        found.add(loop if isinstance(loop, ast.FunctionDef) else scene.function(loop))
    found.update(item for item in scene.all(ast.FunctionDef) if item.name == "forward")
    return found - {None}


def _known_names(scene: Scene) -> frozenset[str]:
    """Names that are bound in other ways than by a store: imports, definitions, handlers, patterns."""
    names = set(scene.imports.aliases)
    names.update(item.name for item in scene.definitions)
    names.update(item.name for item in scene.all(ast.ExceptHandler) if item.name)
    for given in scene.all(ast.Global):
        names.update(given.names)
    for taken in scene.all(ast.Nonlocal):
        names.update(taken.names)
    names.update(item.name or "" for item in scene.all(ast.MatchAs))
    names.update(item.name or "" for item in scene.all(ast.MatchStar))
    names.update(item.rest or "" for item in scene.all(ast.MatchMapping))
    for imported in scene.all(ast.Import):
        names.update(alias.name.partition(".")[0] for alias in imported.names)
    return frozenset(names) | _GIVEN


def _expects_it(scene: Scene, node: ast.AST) -> bool:
    """Whether a handler around the place is there for just that error."""
    return any(
        isinstance(up, ast.Try)
        and any(
            item.type is None
            or "Error" in scene.text(item.type)
            or "Exception" in scene.text(item.type)
            for item in up.handlers
        )
        for up in scene.ancestors(node)
    )
