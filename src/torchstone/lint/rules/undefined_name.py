"""A name that nothing binds ends training with a NameError."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import FUNCTIONS, Function, Scene

RULE = Rule(
    "TS239",
    "undefined-name",
    torch_from=(0, 1),
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{name}` is bound nowhere that this code can see",
        zh="`{name}` 在此处可见的范围内没有定义",
    ),
    why=Text(
        en="the program ends with a NameError as soon as this line runs",
        zh="执行到这一行时，程序会以 NameError 结束",
    ),
    suggest=Text(
        en="pass `{name}` as an argument, or correct the name",
        zh="把 `{name}` 作为参数传入，或更正名字",
    ),
    title=Text(
        en="A function reads a name that no scope around it binds",
        zh="函数读取了周围任何作用域都没有定义的名字",
    ),
    page=Text(
        en="""\
Reported in functions of files that use torch: a name that neither the function, nor the functions
around it, nor the file binds, imports or declares global, and that is not built in. A `model` that only `main` binds is not visible in `train`.
A name that the same block binds only later is reported, too.

Quiet in notebooks, whose names may come from other cells or the shell; in files with `exec`, `globals()` or
`import *` from other packages, which bind names that nobody can see; where a `NameError` is expected.""",
        zh="""\
检查使用 torch 的文件中的函数：若一个名字既不由该函数、外层函数或文件定义、导入或声明为 global，也不是内置名，就会报告。只在 `main` 中定义的 `model` 在 `train` 中不可见。同一代码块之后才绑定的名字也会报告。

不报告：notebook（名字可能来自其他单元或 shell）；含有 `exec`、`globals()` 或从其他包 `import *` 的文件（会定义看不到的名字）；预期会出现
`NameError` 的地方。""",
    ),
    words=("torch", "__getitem__", "model"),
    bad="""\
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
    good="""\
@@ -3 +3 @@
-def train(loader, optimizer, criterion):
+def train(model, loader, optimizer, criterion):
@@ -12 +12 @@
-    train(loader, optimizer, criterion)
+    train(model, loader, optimizer, criterion)
""",
)
_GIVEN = frozenset(dir(builtins)) | frozenset(
    "__file__ __name__ __doc__ __package__ __spec__ __loader__ __path__ __class__ __module__ "
    "__qualname__ __annotations__ __builtins__ xrange unicode raw_input basestring long unichr "
    "reduce reload cmp execfile WindowsError reveal_type".split()
)
"""What every module has, and what Python 2 had: such files are another matter."""
_HIDING = ("exec", "globals", "execfile")


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    """One finding for each name of a file."""
    if scene.source.cell_starts or any(map(scene.calls.get, _HIDING)):
        return
    stars = scene.imports.stars
    if any(scene.project.find(star, scene.path) is None for star in stars):
        return  # names that come from other packages cannot be seen
    known = _known_names(scene)
    reported: set[str] = set()
    for (_, name), nodes in _reads(scene).items():
        if name in known or name in reported:
            continue
        if scene.function(nodes[0]) is None or scene.bindings(nodes[0]):
            continue
        if any(scene.project.star(star, name, scene.path) for star in stars):
            continue
        node = next((node for node in nodes if not _expects_it(scene, node)), None)
        if node is not None:
            reported.add(name)
            yield RULE.at(node, name=name)


def _reads(scene: Scene) -> dict[tuple[ast.AST, str], list[ast.Name]]:
    """The places that read a name, by scope: what binds it is the same for all of them."""
    found: dict[tuple[ast.AST, str], list[ast.Name]] | None = scene.cache.get("names read")
    if found is None:
        found = scene.cache["names read"] = {}
        for node in scene.all(ast.Name):
            if node.ctx.__class__ is ast.Load:
                found.setdefault((scene.scope(node), node.id), []).append(node)
    return found


@RULE.on_file
def check_order(scene: Scene) -> Iterator[Hit]:
    """`resnet = getattr(resnet, name)` where `resnet` is an import, and a read in the very block whose later
    statement is the first to bind the name."""
    declared: list[ast.Global | ast.Nonlocal] = [*scene.all(ast.Global), *scene.all(ast.Nonlocal)]
    outer = {name for item in declared for name in item.names}
    for (function, name), nodes in _reads(scene).items():
        rows = scene.bindings(nodes[0]) if isinstance(function, FUNCTIONS) else []
        if not rows or name in outer or scene.scope(rows[0].node) is not function:
            continue
        first = rows[0].statement
        if rows[0].how != "assign" or not isinstance(first, ast.Assign):
            continue
        if any(scene.enclosing(row.node, ast.comprehension) for row in rows):
            continue  # a comprehension has the name for itself
        read = next((node for node in nodes if _comes_before(scene, node, first)), None)
        if read is not None and not _is_imported_inside(scene, function, name):
            yield RULE.at(read, say=_TOO_EARLY, name=name)


def _comes_before(scene: Scene, node: ast.Name, first: ast.Assign) -> bool:
    """Whether a read runs before a statement whenever that one runs: in its value, or before it in its
    block."""
    statement = scene.statement(node)
    if statement is first:
        return _is_certain(scene, node)
    if statement is None or statement.lineno > first.lineno or not _is_certain(scene, node):
        return False
    block = scene.block_of(first)
    while statement not in block:
        up = scene.parent(statement)
        if not isinstance(up, ast.With):
            return False
        statement = up
    return block.index(statement) < block.index(first)


def _is_imported_inside(scene: Scene, function: ast.AST, name: str) -> bool:
    """Whether the function itself imports or defines the name."""
    inner: list[ast.Import | ast.ImportFrom] = [*scene.all(ast.Import)]
    return any(
        scene.function(item) is function
        and any((alias.asname or alias.name).partition(".")[0] == name for alias in item.names)
        for item in [*inner, *scene.all(ast.ImportFrom)]
    ) or any(item.name == name and scene.function(item) is function for item in scene.definitions)


_ONE_ARM = Text(
    en="`{name}` is bound in one arm of a condition only and read after it in any case",
    zh="`{name}` 只在条件的一个分支中绑定，之后却无条件读取",
)


@RULE.on(ast.If)
def check_arms(choice: ast.If, scene: Scene) -> Iterator[Hit]:
    """`if normalize: advantages = …` and then `advantages` in any case."""
    function, up = scene.function(choice), scene.parent(choice)
    chained = isinstance(up, ast.If) and up.orelse == [choice]
    if function is None or chained or not _is_settled(scene, choice, function):
        return
    arms = _arms(choice)
    if len(arms) > 2 and not arms[-1]:
        return  # without an `else`, who wrote the chain may know that one of the tests holds
    arms = [arm for arm in arms if not _always_leaves(arm)]
    targets = {t.id: t for arm in arms for item in arm for t in _plain_targets(item)}
    for name, target in targets.items():
        places = [row.node for row in scene.bindings(target)]
        bound = [any(scene.within(node, item) for node in places for item in arm) for arm in arms]
        read = None if all(bound) else _first_read_after(scene, function, choice, target)
        if read is not None:
            yield RULE.at(read, say=_ONE_ARM, severity=MEDIUM, name=name)


def _always_leaves(block: list[ast.stmt]) -> bool:
    """Whether no way through a block comes to its end."""
    last = block[-1] if block else None
    if isinstance(last, ast.If):
        return bool(last.orelse) and _always_leaves(last.body) and _always_leaves(last.orelse)
    if isinstance(last, ast.Try):
        return _always_leaves(last.body) and all(_always_leaves(h.body) for h in last.handlers)
    if isinstance(last, ast.With):
        return _always_leaves(last.body)
    return isinstance(last, _ENDS)


def _arms(choice: ast.If) -> list[list[ast.stmt]]:
    """The arms of a whole if/elif/else; an empty one for an `else` that is not there."""
    rest = choice.orelse
    if len(rest) == 1 and isinstance(rest[0], ast.If):
        return [choice.body, *_arms(rest[0])]
    return [choice.body, rest]


def _is_settled(scene: Scene, choice: ast.If, function: Function) -> bool:
    """Whether a condition has one answer for all rounds of the loops around it: in others, an earlier
    round may have bound the name."""
    names = [node for node in scene.inside(choice.test) if isinstance(node, ast.Name)]
    for up in scene.ancestors(choice):
        if up is function:
            return True
        if isinstance(up, (ast.For, ast.While)):
            asks = any(isinstance(node, ast.Call) for node in scene.inside(choice.test))
            if asks or any(scene.within(row.node, up) for n in names for row in scene.bindings(n)):
                return False
        elif not isinstance(up, ast.With):
            return False
    return False


def _plain_targets(statement: ast.stmt) -> list[ast.Name]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [target for target in targets if isinstance(target, ast.Name)]


def _first_read_after(
    scene: Scene, function: Function, choice: ast.If, target: ast.Name
) -> ast.Name | None:
    """A read that every way through the function comes by, of a name that nothing else binds."""
    name, rows = target.id, scene.bindings(target)
    declared: list[ast.Global | ast.Nonlocal] = [*scene.all(ast.Global)]
    outer = any(name in item.names for item in [*declared, *scene.all(ast.Nonlocal)])
    if outer or any(not scene.within(row.statement, choice) for row in rows):
        return None
    if any(not isinstance(row.statement, ast.Assign) for row in rows):
        return None
    if _ends_program(scene, choice) or _is_imported_inside(scene, function, name):
        return None
    block = scene.block_of(choice)
    later = block[block.index(choice) + 1 :]
    for statement in later:
        if isinstance(statement, (ast.Return, ast.Assign, ast.Expr, ast.AugAssign)):
            for node in scene.inside(statement):
                if isinstance(node, ast.Name) and node.id == name and _is_certain(scene, node):
                    return node
        elif any(isinstance(node, _LEAVES) for node in scene.inside(statement)):
            return None  # what it asks may be what the first condition asked
    return None


_ENDS = (ast.Return, ast.Raise, ast.Assert, ast.Continue, ast.Break)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break, ast.Assert)


def _ends_program(scene: Scene, choice: ast.If) -> bool:
    """Whether an arm ends by a call that does not come back."""
    return any(
        isinstance(item, ast.Expr)
        and isinstance(item.value, ast.Call)
        and scene.last_name(item.value.func) in ("exit", "_exit", "fail", "error", "abort", "usage")
        for arm in _arms(choice)
        for item in arm
    )


def _is_certain(scene: Scene, node: ast.Name) -> bool:
    """Whether a read is not behind a condition of its own expression."""
    return isinstance(node.ctx, ast.Load) and not any(
        isinstance(up, (ast.IfExp, ast.BoolOp, ast.Lambda, ast.comprehension, ast.ListComp))
        for up in scene.ancestors(node)
        if not isinstance(up, ast.stmt)
    )


_TOO_EARLY = Text(
    en="`{name}` is read before this function binds it",
    zh="`{name}` 在本函数绑定之前就被读取",
)


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
