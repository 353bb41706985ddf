"""Which function of the project a call runs: through imports, classes, attributes and bases."""

from __future__ import annotations

import ast

from torchstone.sources.scene import FUNCTIONS, Function, Scene

_BASES = 5  # classes that are looked at on the way up
_VALUES = 6  # steps from a name to the call that made it

Target = tuple[Scene, Function]


def target_of(scene: Scene, call: ast.Call, here: bool = False) -> Target | None:
    """The function that a call runs, and its file; with `here`, only one of this file.

    That there is none, or one of this file, is kept. One of another file is looked up again: what
    holds the trees of other files would keep them all in memory.
    """
    known: dict[tuple[ast.Call, bool], Function | None] = scene.cache.setdefault("targets", {})
    key = (call, here)
    if key in known:
        own = known[key]
        return None if own is None else (scene, own)
    found = _target(scene, call, here)
    if found is None:
        known[key] = None
    elif found[0] is scene:
        known[key] = found[1]
    return found


def _target(scene: Scene, call: ast.Call, here: bool) -> Target | None:
    func = call.func
    if isinstance(func, ast.Name):
        return _named(scene, func, here)
    if not isinstance(func, ast.Attribute):
        return None
    if _is_super(func.value):
        owner = scene.class_of(call)
        found = _inherited(scene, owner, func.attr) if owner is not None else None
    elif isinstance(func.value, ast.Name) and func.value.id in ("self", "cls"):
        owner = scene.class_of(call)
        found = method_of(scene, owner, func.attr) if owner is not None else None
    else:
        found = None if here else _on_module(scene, func)
        if found is None:
            made = class_of_value(scene, func.value)
            found = method_of(made[0], made[1], func.attr) if made is not None else None
    return found if found is None or not here or found[0] is scene else None


def function_named(scene: Scene, node: ast.AST) -> Target | None:
    """The function of the project that a name or an attribute chain stands for."""
    if isinstance(node, ast.Name):
        return _named(scene, node, here=False)
    return _on_module(scene, node) if isinstance(node, ast.Attribute) else None


def _named(scene: Scene, name: ast.Name, here: bool) -> Target | None:
    """A bare name: a function that is visible from here, or an imported one."""
    visible = visible_function(scene, name)
    if visible is not None:
        return scene, visible
    if here or name.id not in scene.imports.aliases:
        return None
    return _function(scene.project.definition(scene, name, scene.qualified(name)))


def visible_function(scene: Scene, name: ast.Name) -> Function | None:
    """The function that a bare name means in its own lexical scope, when there is just one."""
    table: dict[tuple[ast.AST, str], list[Function]] | None = scene.cache.get("functions by scope")
    if table is None:
        table = scene.cache["functions by scope"] = {}
        items: list[Function] = [*scene.all(ast.FunctionDef), *scene.all(ast.AsyncFunctionDef)]
        for item in items:
            if not isinstance(scene.parent(item), ast.ClassDef):
                table.setdefault((scene.scope(item), item.name), []).append(item)
    scope: ast.AST = scene.scope(name)
    while True:
        found = table.get((scope, name.id))
        if found:
            return found[0] if len(found) == 1 else None
        if scope is scene.root:
            return None
        scope = scene.scope(scope)


def _on_module(scene: Scene, func: ast.Attribute) -> Target | None:
    """`helpers.loss(x)` after `import helpers`."""
    full = scene.qualified(func)
    return _function(scene.project.definition(scene, func, full)) if full else None


def _function(found: tuple[Scene, ast.AST] | None) -> Target | None:
    if found is None:
        return None
    if isinstance(found[1], FUNCTIONS):
        return found[0], found[1]
    return None


def _is_super(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


def method_of(scene: Scene, owner: ast.ClassDef, name: str, depth: int = _BASES) -> Target | None:
    """A method of a class, or of the first of its bases that has it."""
    for item in owner.body:
        if isinstance(item, FUNCTIONS) and item.name == name:
            return scene, item
    return _inherited(scene, owner, name, depth) if depth else None


def _inherited(scene: Scene, owner: ast.ClassDef, name: str, depth: int = _BASES) -> Target | None:
    for base in owner.bases:
        found = scene.project.class_named(scene, base, scene.qualified(base))
        if found is not None and found[1] is not owner:
            method = method_of(found[0], found[1], name, depth - 1)
            if method is not None:
                return method
    return None


def class_of_value(scene: Scene, node: ast.AST | None) -> tuple[Scene, ast.ClassDef] | None:
    """The class of the project that a value is an object of, by its making or its annotation."""
    node = unwrapped(scene, node)
    source = scene.origin(node) if isinstance(node, (ast.Name, ast.Attribute)) else node
    if isinstance(source, ast.Call):
        return scene.project.class_named(scene, source.func, scene.qualified(source.func))
    if isinstance(source, ast.Name):
        rows = scene.bindings(source)
        if len(rows) == 1 and isinstance(rows[0].node, ast.arg):
            note = rows[0].node.annotation
            if isinstance(note, (ast.Name, ast.Attribute)):
                return scene.project.class_named(scene, note, scene.qualified(note))
            return _class_given(scene, rows[0].node) if note is None else None
    return None


_Class = tuple[Scene, ast.ClassDef]
_FILES = 8  # a class that more files make objects of is not followed


def _class_given(scene: Scene, parameter: ast.arg) -> _Class | None:
    """The class of the object that a constructor is given, when all who call it agree."""
    function = scene.function(parameter)
    owner = scene.parent(function) if function is not None else None
    if function is None or function.name != "__init__" or not isinstance(owner, ast.ClassDef):
        return None
    known: dict[ast.arg, tuple[str, str] | None] = scene.cache.setdefault("classes given", {})
    if parameter not in known:
        known[parameter] = None  # an object that is given to itself is not followed
        found = _classes_given(scene, owner, function, parameter)
        homes = {(item[0].path, item[1].name) if item else None for item in found}
        known[parameter] = homes.pop() if len(homes) == 1 else None
    home = known[parameter]
    other = scene.project.named(home[0], scene) if home is not None else None
    if home is None or other is None:
        return None
    named = [item for item in other.all(ast.ClassDef) if item.name == home[1]]
    return (other, named[0]) if len(named) == 1 else None


def _classes_given(
    scene: Scene, owner: ast.ClassDef, function: Function, parameter: ast.arg
) -> list[_Class | None]:
    """The class of what each call passes; None for one that cannot be seen."""
    project = scene.project
    names = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    place = names.index(parameter.arg) - 1 if parameter.arg in names else len(names)
    homes = project.files_that_call(owner.name)
    found: list[_Class | None] = []
    for path in homes if len(homes) <= _FILES else ():
        other = project.load(path, scene)
        for call in other.calls.get(owner.name, ()) if other is not None else ():
            assert other is not None
            made = project.class_named(other, call.func, other.qualified(call.func))
            if made is not None and made[1].lineno == owner.lineno and made[0].path == scene.path:
                given = other.argument(call, place, parameter.arg)
                found.append(class_of_value(other, given))
    return found


def unwrapped(scene: Scene, node: ast.AST | None) -> ast.AST | None:
    """The model of `accelerator.unwrap_model(model)`, and of `model.module`."""
    for _ in range(2):
        if isinstance(node, ast.Call) and scene.last_name(node.func) in _UNWRAPS and node.args:
            node = node.args[0]
        elif isinstance(node, ast.Attribute) and node.attr == "module":
            node = node.value
    return node


_UNWRAPS = ("unwrap_model", "extract_model_from_parallel")


def is_outside(scene: Scene, call: ast.Call) -> bool:
    """Whether what a call runs is known not to be code of the project: torch's, Python's own, or
    another package's."""
    func = call.func
    if isinstance(func, ast.Name) and func.id not in scene.imports.aliases:
        return func.id in _BUILTINS and func.id not in scene.bound
    full = scene.qualified(func)
    return full.startswith(_PACKAGES)


_BUILTINS = frozenset(
    "print len range enumerate zip isinstance hasattr getattr setattr int float str bool list dict "
    "tuple set sum min max abs round sorted reversed any all map filter next iter type id repr "
    "super open vars issubclass callable divmod pow".split()
)
_PACKAGES = ("torch.", "numpy.", "os.", "time.", "math.", "logging.", "random.", "json.", "sys.",
             "shutil.", "wandb.", "tqdm", "itertools.", "functools.", "copy.", "pathlib.",
             "torchvision.", "collections.")  # fmt: skip
