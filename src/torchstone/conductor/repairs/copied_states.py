"""A state that is kept for later is copied."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, called, fix, parsed
from torchstone.conductor.repairs._trees import with_import
from torchstone.core.finding import Finding
from torchstone.core.fix import Edit, Fix
from torchstone.core.place import Place

RULES = ("EX105", "EX126")


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    here = file.calls(finding.line, "state_dict")
    found = [(file, call) for call in here] or list(_kept_in(file)) or list(_kept_elsewhere(file))
    for home in dict.fromkeys(one for one, _ in found):
        changes = [_copied(home, call) for one, call in found if one is home]
        yield fix(
            [*with_import(home, "copy"), *changes], "keep a copy of the state", "保存状态的副本"
        )


def _copied(file: SourceFile, call: ast.Call) -> Edit:
    """`copy.copy(model.state_dict())` copies the dictionary and not the tensors: it is replaced as a whole."""
    for node in ast.walk(file.tree):
        shallow = isinstance(node, ast.Call) and called(node) in ("copy", "dict", "OrderedDict")
        if shallow and isinstance(node, ast.Call) and call in (*node.args, _owner(node)):
            return file.replace(node, f"copy.deepcopy({file.source(call)})")
    return file.replace(call, f"copy.deepcopy({file.source(call)})")


def _owner(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _kept_in(file: SourceFile) -> Iterator[tuple[SourceFile, ast.Call]]:
    """States that are assigned, as they are or in a shallow copy: they are read later."""
    for node in ast.walk(file.tree):
        values = node.value if isinstance(node, ast.Assign) else None
        for value in values.elts if isinstance(values, ast.Tuple) else (values,):
            if not isinstance(value, ast.Call) or called(value) == "deepcopy":
                continue
            for inner in (value, *value.args, _owner(value)):
                if isinstance(inner, ast.Call) and called(inner) == "state_dict":
                    yield file, inner
                    break


def _kept_elsewhere(file: SourceFile) -> Iterator[tuple[SourceFile, ast.Call]]:
    """In the files of the project beside this one: the class that keeps the best weights often has one of its own."""
    folder = (file.home / file.path).parent
    for path in sorted(folder.glob("*.py")):
        other = parsed(file.home, Place(str(path.relative_to(file.home))))
        if other is not None and other.path != file.path:
            yield from _kept_in(other)
