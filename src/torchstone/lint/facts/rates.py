"""What a rate can be: one whose default is 0 and that nobody of the project sets is always 0."""

from __future__ import annotations

import ast

from torchstone.lint.knowledge.flow import parameters, passed
from torchstone.sources.scene import Function, Scene
from torchstone.sources.targets import method_of

_FILES = 8  # a class that more files make objects of is not followed


def is_never_set(scene: Scene, rate: ast.expr | None) -> bool:
    """Whether `self.rate` (or `self.layer.p`) comes from a parameter of `__init__` whose default is 0
    and that no call of the project passes."""
    owner = scene.class_of(rate) if rate is not None else None
    field = _field(scene, rate)
    if owner is None or not field:
        return False
    values = scene.attribute_values(owner, field)
    start = method_of(scene, owner, "__init__")
    if len(values) != 1 or start is None or start[0] is not scene:
        return False
    name = _source(scene, values[0])
    return (
        name in parameters(start[1])
        and _is_zero(scene, start[1], name)
        and not _is_passed(scene, owner, start[1], name)
    )


def _field(scene: Scene, rate: ast.expr | None) -> str:
    """`rate` of `self.rate`, `layer` of `self.layer.p`."""
    chain = scene.dotted(rate).split(".")
    if chain[0] != "self" or len(chain) not in (2, 3) or (len(chain) == 3 and chain[2] != "p"):
        return ""
    return chain[1]


def _source(scene: Scene, value: ast.expr) -> str:
    """The name that a field is set to, itself or as the rate of a dropout layer."""
    if isinstance(value, ast.Call) and "Dropout" in scene.last_name(value.func):
        value = scene.argument(value, 0, "p") or value
    return value.id if isinstance(value, ast.Name) else ""


def _is_zero(scene: Scene, start: Function, name: str) -> bool:
    positional = [*start.args.posonlyargs, *start.args.args]
    defaults = dict(
        zip(
            [item.arg for item in reversed(positional)], reversed(start.args.defaults), strict=False
        )
    )
    value = defaults.get(name)
    return value is not None and scene.literal(value) in (0, None, False)


def _is_passed(scene: Scene, owner: ast.ClassDef, start: Function, name: str) -> bool:
    """Whether some call gives the rate, or might; a class that nobody is seen to use is a library's."""
    homes = scene.project.files_that_call(owner.name)
    if not homes or len(homes) > _FILES or scene.project.mentions(f"({owner.name})"):
        return True  # a base of other classes, which pass on what they like
    seen = False
    for path in homes:
        home = scene.project.load(path, scene)
        for call in home.calls.get(owner.name, ()) if home is not None else ():
            assert home is not None
            seen = True
            if home.has_star(call) or passed(home, call, start, name) is not None:
                return True
    return not seen
