"""What the objects of a class have, as far as all of its bases are known; and who derives from it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import NamedTuple

from torchstone.lint.knowledge.torch_names import names_of
from torchstone.sources.files import Files
from torchstone.sources.scene import FUNCTIONS, Scene
from torchstone.sources.targets import method_of

_BASES = 6  # classes that are looked at on the way up
_PLAIN = frozenset(
    "object ABC abc.ABC Generic typing.Generic torch.utils.data.Dataset torch.utils.data.dataset.Dataset "
    "torch.utils.data.IterableDataset".split()
)
"""Classes of others that give their objects nothing that training code asks for."""
_MODULES = ("torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module")
_FUNCTIONS = ("torch.autograd.Function", "torch.autograd.function.Function")
_CONTEXT = frozenset(
    "save_for_backward saved_tensors saved_variables mark_dirty mark_non_differentiable needs_input_grad "
    "set_materialize_grads save_for_forward apply".split()
)
"""What a function of autograd has, being the context of its own."""
_MODULE_STATE = frozenset("training dump_patches call_super_init".split())
_NAMERS = ("register_buffer", "register_parameter", "add_module", "register_module", "setattr")
_OPEN = frozenset(
    "__getattr__ __getattribute__ __setattr__ __new__ __class_getitem__ __setstate__".split()
)
"""A class that defines one of these has attributes that nobody can see."""
# each begins with a line's end, which is found without a try at every byte
_CLASS = re.compile(rb"\n[ \t]*class[ \t]+\w+[ \t]*\(([^)]*)\)")
_STORED = re.compile(rb"\.(\w+)[ \t]*(?:=(?!=)|[-+*/|&]=|:[ \t]*\w)")
_QUOTED = re.compile(rb"[\"'](\w+)[\"']")
_BOUND = re.compile(rb"\n[ \t]+(\w+)[ \t]*[:=]")
_FUNCTION = re.compile(rb"\n[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)")


def members_of(scene: Scene, owner: ast.ClassDef, depth: int = _BASES) -> frozenset[str] | None:
    """Every attribute and method that an object of a class has; None when that is not known."""
    known: dict[ast.ClassDef, frozenset[str] | None] = scene.cache.setdefault("members", {})
    if owner not in known:
        known[owner] = None  # a class that derives from itself is not known
        known[owner] = _members(scene, owner, depth)
    return known[owner]


def _members(scene: Scene, owner: ast.ClassDef, depth: int) -> frozenset[str] | None:
    own = _own(scene).get(owner)
    if own is None or not depth or owner.decorator_list or owner.keywords:
        return None
    names = set(own)
    for base in owner.bases:
        found = _of_base(scene, owner, base, depth)
        if found is None:
            return None
        names |= found
    return frozenset(names)


def _of_base(
    scene: Scene, owner: ast.ClassDef, base: ast.expr, depth: int
) -> frozenset[str] | None:
    node = base.value if isinstance(base, ast.Subscript) else base
    full = scene.qualified(node) or scene.dotted(node)
    if full in _PLAIN:
        return frozenset()
    if full in _FUNCTIONS:
        return _CONTEXT
    if full in _MODULES:
        return frozenset(names_of("torch.nn.Module")) | _MODULE_STATE
    found = scene.project.class_named(scene, node, scene.qualified(node))
    if found is None or found[1] is owner:
        return None
    return members_of(found[0], found[1], depth - 1)


def _own(scene: Scene) -> dict[ast.ClassDef, set[str] | None]:
    """What each class of a file binds itself; None for a class that binds what nobody can see."""
    table: dict[ast.ClassDef, set[str] | None] | None = scene.cache.get("own members")
    if table is None:
        table = scene.cache["own members"] = {
            owner: _in_body(owner) for owner in scene.all(ast.ClassDef)
        }
        for node in scene.all(ast.Attribute):
            if node.ctx.__class__ is ast.Load:
                if node.attr in ("__dict__", "__setattr__"):
                    _open(scene, table, node)
            elif isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                names = _names(scene, table, node)
                if names is not None:
                    names.add(node.attr)
        for word in (*_NAMERS, "vars", "delattr", "exec"):
            for call in scene.calls.get(word, ()):
                _named_by_call(scene, table, call, word)
    return table


def _in_body(owner: ast.ClassDef) -> set[str] | None:
    """The methods, classes and names that the body of a class binds."""
    names: set[str] = set()
    stack: list[ast.AST] = list(owner.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((item.asname or item.name).partition(".")[0] for item in node.names)
        else:
            stack.extend(ast.iter_child_nodes(node))
    return None if names & _OPEN else names


def _names(
    scene: Scene, table: dict[ast.ClassDef, set[str] | None], node: ast.AST
) -> set[str] | None:
    owner = scene.enclosing(node, ast.ClassDef)
    return table.get(owner) if owner is not None else None


def _open(scene: Scene, table: dict[ast.ClassDef, set[str] | None], node: ast.AST) -> None:
    owner = scene.enclosing(node, ast.ClassDef)
    if owner is not None:
        table[owner] = None


def _named_by_call(
    scene: Scene, table: dict[ast.ClassDef, set[str] | None], call: ast.Call, word: str
) -> None:
    """`self.register_buffer("mask", …)` binds `mask`; a name that is worked out may be any."""
    place = 1 if word == "setattr" else 0
    given = call.args[place] if len(call.args) > place else scene.keyword(call, "name")
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        names = _names(scene, table, call)
        if names is not None:
            names.add(given.value)
    else:
        _open(scene, table, call)


class Outline(NamedTuple):
    """What can be seen of a project's classes and functions without parsing them."""

    bases: frozenset[bytes]
    """Every word that stands in the bases of a class."""
    mixed: frozenset[bytes]
    """Those that stand beside another base."""
    functions: Counter[bytes]
    """How often a function of a name is defined."""
    set_outside: frozenset[bytes]
    """Attributes that are set on anything but `self`."""
    quoted: frozenset[bytes]
    """Words that are a string of their own."""
    bound: frozenset[bytes]
    """Attributes that are set on anything, and names that the body of a class may bind."""


def outline_of(project: Files) -> Outline:
    """One pass over the bytes of all files."""
    project.shared = True
    found: Outline | None = project.summaries.get("outline")
    if found is None:
        bases: set[bytes] = set()
        mixed: set[bytes] = set()
        functions: Counter[bytes] = Counter()
        outside: set[bytes] = set()
        quoted: set[bytes] = set()
        bound: set[bytes] = set()
        for text in project.contents():
            data = b"\n" + text
            functions.update(_FUNCTION.findall(data))
            quoted.update(_QUOTED.findall(data))
            bound.update(_BOUND.findall(data))
            for match in _STORED.finditer(data):
                bound.add(match[1])
                if not data.endswith(b"self", 0, match.start()):
                    outside.add(match[1])
            for given in _CLASS.findall(data):
                words = re.findall(rb"\w+", given)
                bases.update(words)
                if b"," in given:
                    mixed.update(words)
        found = Outline(
            frozenset(bases),
            frozenset(mixed),
            functions,
            frozenset(outside),
            frozenset(quoted),
            frozenset(bound),
        )
        project.summaries["outline"] = found
    return found


def has_subclass(project: Files, owner: ast.ClassDef) -> bool:
    return owner.name.encode() in outline_of(project).bases


def is_completed_elsewhere(scene: Scene, owner: ast.ClassDef) -> bool:
    """Whether a class is a part of others: mixed into them, without an `__init__`, or neither made nor
    derived from here."""
    if owner.name.encode() in outline_of(scene.project).mixed:
        return True
    if method_of(scene, owner, "__init__") is None:
        return True
    if scene.is_module_class(owner) or owner.bases:
        return False
    used = has_subclass(scene.project, owner) or scene.project.files_that_call(owner.name)
    return not used


def is_bound_elsewhere(project: Files, name: str, by_subclass: bool) -> bool:
    """Whether some file sets an attribute of this name from outside of its class, or names it in a
    string; for a class with subclasses, whether anything in the project binds the name."""
    word, known = name.encode(), outline_of(project)
    if word in known.set_outside or word in known.quoted:
        return True
    return by_subclass and (word in known.bound or word in known.functions)
