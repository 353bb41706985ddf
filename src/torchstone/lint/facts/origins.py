"""Where a value comes from, through the functions and objects of the project.

A value is followed step by step: names to what they were bound to, attributes to what their class sets,
calls to what the function returns, parameters back to what the call passed.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from torchstone.lint.facts.callers import calls_of
from torchstone.lint.knowledge.flow import callers, made, own_nodes, passed, settled
from torchstone.sources.regions import Region
from torchstone.sources.scene import FUNCTIONS, Function, Scene
from torchstone.sources.targets import method_of, target_of

_STEPS = 12  # from a use to its making; longer ways are rare and each step may parse a file
_PLACES = 200  # on all ways together; a value with more of them has no origin to speak of
_KEEPS = frozenset(("cuda", "cpu", "to", "half", "bfloat16", "float", "double", "eval", "train",
                    "requires_grad_", "compile"))  # fmt: skip

Path = tuple[object, ...]
"""Positions and keys that lead into a tuple or dict, outermost first."""


class Frame(NamedTuple):
    """The call through which a function was entered."""

    scene: Scene
    call: ast.Call
    function: Function
    outer: Frame | None


class Place(NamedTuple):
    """An expression, the file it stands in, and the calls that led there."""

    scene: Scene
    node: ast.expr
    frame: Frame | None = None
    path: Path = ()


def origins(scene: Scene, node: ast.expr) -> list[Place]:
    """The expressions that a value may come from; one that cannot be followed stands for itself."""
    found: list[Place] = []
    todo = [(Place(scene, node), _STEPS)]
    seen: set[object] = set()
    while todo:
        place, left = todo.pop()
        if _is_known(place, seen):
            continue
        if len(seen) > _PLACES:
            return [Place(scene, node)]
        further = step(place) if left else []
        if further:
            todo += [(item, left - 1) for item in reversed(further)]
        else:
            found.append(place)
    return found


def answers(scene: Scene, node: ast.expr) -> list[Place]:
    """What the function of the project returns whose answer a value is; [] when it is no answer."""
    todo = [(Place(scene, node), _STEPS)]
    found: list[Place] = []
    seen: set[object] = set()
    while todo and len(seen) <= _PLACES:
        place, left = todo.pop()
        if _is_known(place, seen):
            continue
        if place.frame is not None and not place.path:
            found.append(place)
            continue
        further = step(place) if left else []
        todo += [(item, left - 1) for item in further]
    return found


def _is_known(place: Place, seen: set[object]) -> bool:
    """Whether a place was come by already, through the same call; a function that returns what it
    calls itself for would otherwise be followed without end."""
    key = (place.node, place.path, place.frame.call if place.frame else None)
    if key in seen:
        return True
    seen.add(key)
    return False


def region_of_answer(scene: Scene, node: ast.expr) -> Region | None:
    """What held where a function of the project made the value that it returned, when all its
    answers agree; None for what is no answer, or is mixed."""
    found = [_made_under(place) for place in answers(scene, node)]
    first = found[0] if found else None
    return first if all(item == first for item in found) else None


def _made_under(place: Place) -> Region:
    value = settled(place.scene, place.node) or place.node
    return place.scene.lexical_region(value)


def step(place: Place) -> list[Place]:
    """One step back; [] where nothing more is to be seen."""
    node = place.node
    if isinstance(node, ast.Name):
        return _of_name(place, node)
    if isinstance(node, ast.Attribute):
        return _of_attribute(place, node)
    if isinstance(node, ast.Subscript):
        key = place.scene.literal(node.slice)
        return [place._replace(node=node.value, path=(key, *place.path))]
    if isinstance(node, ast.IfExp):
        return [place._replace(node=node.body), place._replace(node=node.orelse)]
    if isinstance(node, (ast.Tuple, ast.List, ast.Dict)):
        return _part(place, node)
    return _of_call(place, node) if isinstance(node, ast.Call) else []


def _of_name(place: Place, name: ast.Name) -> list[Place]:
    scene = place.scene
    value = settled(scene, name)
    if value is not None:
        return [place._replace(node=value)]
    rows = [row for row in scene.bindings(name) if row.position <= (name.lineno, name.col_offset)]
    if rows and rows[-1].how == "unpack":
        return _unpacked(place, rows[-1].node, rows[-1].statement)
    if len(rows) == 1 and rows[0].how == "parameter":
        return _of_parameter(place, name)
    return []


def _unpacked(place: Place, target: ast.AST, statement: ast.AST) -> list[Place]:
    """`a, b = f()`: the first or second part of what f gives."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    parts = statement.targets[0]
    if not isinstance(parts, (ast.Tuple, ast.List)) or target not in parts.elts:
        return []
    if any(isinstance(item, ast.Starred) for item in parts.elts):
        return []
    return [place._replace(node=statement.value, path=(parts.elts.index(target), *place.path))]


def _of_parameter(place: Place, name: ast.Name) -> list[Place]:
    """What the call that led here passes; without one, what all calls of this file pass."""
    frame, scene = place.frame, place.scene
    function = scene.function(name)
    if frame is not None and frame.function is function:
        given = passed(frame.scene, frame.call, frame.function, name.id)
        return [Place(frame.scene, given, frame.outer, place.path)] if given is not None else []
    if function is None or frame is not None:
        return []
    if function.name == "__init__":
        sites = calls_of(scene, function) or []
        rows = [(home, passed(home, site, function, name.id)) for home, site in sites]
        found = [Place(home, given, None, place.path) for home, given in rows if given is not None]
        return found if len(found) == len(rows) else []
    given_here = [passed(scene, call, function, name.id) for call in callers(scene, function)]
    if len(given_here) == 1 and isinstance(given_here[0], ast.Call):
        return [place._replace(node=given_here[0])]
    texts = {scene.dotted(item) for item in given_here}
    first = given_here[0] if len(texts) == 1 and "" not in texts else None
    return [place._replace(node=first)] if first is not None else []


def _of_attribute(place: Place, node: ast.Attribute) -> list[Place]:
    scene = place.scene
    if scene.dotted(node.value) == "self":
        owner = scene.class_of(node)
        return _set_by(place, scene, owner, node.attr, place.frame) if owner else []
    if scene.qualified(node):
        return []
    source = made(scene, node.value)
    if not isinstance(source, ast.Call):
        return []
    found = scene.project.class_named(scene, source.func, scene.qualified(source.func))
    if found is None:
        return []
    start = method_of(found[0], found[1], "__init__")
    frame = Frame(scene, source, start[1], place.frame) if start else None
    return _set_by(place, found[0], found[1], node.attr, frame)


def _set_by(
    place: Place, scene: Scene, owner: ast.ClassDef, name: str, frame: Frame | None
) -> list[Place]:
    """What a class, or a base of it, sets an attribute to in its one place; a property's answer."""
    for item in owner.body:
        if isinstance(item, FUNCTIONS) and item.name == name and item.decorator_list:
            return [Place(scene, value, None, place.path) for value in returns(item)]
    rows = scene.attribute_sources(owner, name)
    if len(rows) == 1:
        value, position = rows[0]
        path = place.path if position is None else (position, *place.path)
        return [Place(scene, value, frame, path)]
    for base in () if rows else owner.bases:
        found = scene.project.class_named(scene, base, scene.qualified(base))
        if found is not None and found[1] is not owner:
            return _set_by(place, found[0], found[1], name, frame)
    return []


def _part(place: Place, node: ast.Tuple | ast.List | ast.Dict) -> list[Place]:
    """The part of a tuple or dict that a path names."""
    if not place.path:
        return []
    key, rest = place.path[0], place.path[1:]
    if isinstance(node, ast.Dict):
        for name, value in zip(node.keys, node.values, strict=True):
            if name is not None and place.scene.literal(name) == key:
                return [place._replace(node=value, path=rest)]
        return []
    if isinstance(key, int) and -len(node.elts) <= key < len(node.elts):
        return [place._replace(node=node.elts[key], path=rest)]
    return []


def _of_call(place: Place, call: ast.Call) -> list[Place]:
    scene = place.scene
    if scene.method(call) in _KEEPS and not place.path:
        receiver = scene.receiver(call)
        return [place._replace(node=receiver)] if receiver is not None else []
    if scene.qualified(call.func) == "torch.compile" and call.args:
        return [place._replace(node=call.args[0])]
    target = target_of(scene, call)
    if target is None:
        return []
    frame = Frame(scene, call, target[1], place.frame)
    return [Place(target[0], value, frame, place.path) for value in returns(target[1])]


def returns(function: Function) -> list[ast.expr]:
    """What the function's own `return` statements give."""
    kept: list[ast.expr] | None = getattr(function, "returned", None)
    if kept is None:
        kept = function.returned = [  # type: ignore[union-attr]
            node.value
            for node in own_nodes(function)
            if isinstance(node, ast.Return) and node.value is not None
        ]
    return kept
