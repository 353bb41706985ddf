"""Which functions, classes and objects of the project a value may be.

Not sensitive to order: a name is everything that is ever bound to it. Containers and the wrappers of
libraries (`DDP(model)`, `nn.ModuleList([...])`, `accelerator.prepare(model)`) are what was put into
them. All calls are followed until nothing new is learned.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from torchstone.sources.program.names import Names
from torchstone.sources.program.outline import (
    Attribute,
    Call,
    Expression,
    Function,
    Key,
    Name,
    Outline,
)

_VISITS = 12
"""Times that a function is looked at again because something it reads has grown: each carries a
value one call further, and most functions settle after three."""
_MOST = 12
"""Things that one name may be: more are a registry or a configuration, and say nothing."""
_FEW = 2
"""Classes with a method of a name up to which a call on an unknown object is taken for theirs."""
_OF_BUILTINS = frozenset(name for kind in (str, bytes, list, dict, set) for name in dir(kind))
"""Methods of Python's own objects: of an unknown one they say nothing."""
_PUTS = frozenset(
    "append appendleft extend insert add update setdefault add_module register_module".split()
)
"""Methods of Python's containers, and of torch's, that put something into them."""
_WRAPPED = ("module", "_orig_mod", "_fsdp_wrapped_module")
"""Attributes under which libraries keep the model that they wrap."""
_BY_LIBRARIES = ("forward", "__call__", "__getitem__", "__iter__", "__next__", "__len__")
"""Methods that torch calls of an object it is given: modules, datasets, samplers."""
_BY_LOOPS = ("__iter__", "__next__", "__getitem__", "__len__", "__enter__", "__exit__")


class Kind(IntEnum):
    """What a value may be."""

    FUNCTION = 0
    CLASS = 1
    OBJECT = 2
    MODULE = 3
    OUTSIDE = 4


class Ref(NamedTuple):
    """Something of the project, or something that is known not to be of it."""

    kind: Kind
    key: Key


OUTSIDE = Ref(Kind.OUTSIDE, Key("", ""))
Refs = dict[Ref, None]
"""A set that keeps its order: what is left out where there is too much must not change from run to run."""


class Slot(NamedTuple):
    """Something that holds values: a local name, an attribute of a class, what a function returns."""

    kind: str
    key: Key
    name: str = ""


class Edge(NamedTuple):
    """A call: where it stands, and the function that it runs."""

    caller: Key
    site: int
    """Number of the call in the caller; -1 for what runs without one, such as a loop's `__iter__`."""
    called: Key
    handed: bool = False
    """The function was handed to a library, which calls it."""


class Flow:
    """Values of all names of a project, and the calls that follow from them."""

    def __init__(self, outlines: dict[str, Outline], names: Names) -> None:
        self._outlines, self._names = outlines, names
        self._held: dict[Slot, Refs] = {}
        self._readers: dict[Slot, dict[Key, None]] = defaultdict(dict)
        self._reader = Key("", "")
        self._waiting: dict[Key, None] = {}
        self._methods: dict[str, list[Key]] = defaultdict(list)
        self._lines: dict[Key, list[Key]] = {}
        self._bound: dict[Key, frozenset[str]] = {}
        self._homes: dict[tuple[Key, str], str | None] = {}
        """The scope that binds a name, as it is read in a function."""
        self._fixed: dict[tuple[Key, str], Refs] = {}
        """What imported names stand for, as they are read in a function."""
        self.edges: dict[Edge, None] = {}
        for item in (item for one in outlines.values() for item in one.functions.values()):
            self._waiting[item.key] = None
            self._bound[item.key] = _bound_names(item)
            if item.owner:
                self._methods[item.name].append(item.key)

    def settle(self) -> None:
        """Look at every function, and again at those that read something that has grown."""
        visits: dict[Key, int] = defaultdict(int)
        while self._waiting:
            key = next(iter(self._waiting))
            del self._waiting[key]
            visits[key] += 1
            if visits[key] <= _VISITS:
                self._reader = key
                self._read(self._outlines[key.path].functions[key.scope])

    def _get(self, slot: Slot) -> Refs:
        """What is held, as it grows: not to be changed."""
        self._readers[slot][self._reader] = None
        return self._held.setdefault(slot, {})

    def _add(self, slot: Slot, refs: Iterable[Ref]) -> None:
        held = self._held.setdefault(slot, {})
        before = len(held)
        if before < _MOST:
            held.update(dict.fromkeys(refs))
            if len(held) > before:
                self._waiting.update(self._readers[slot])

    # -- one function

    def _read(self, function: Function) -> None:
        key = function.key
        for name, value in function.bindings:
            self._add(Slot("local", key, name), self._value(value, function))
        for names, value in function.iterated:
            items = self._items(value, function)
            for name in names:
                self._add(Slot("local", key, name), items)
        for holder, attribute, value in function.stored:
            given = self._value(value, function)
            for ref in tuple(self._value(holder, function)):
                if ref.kind in (Kind.OBJECT, Kind.CLASS):
                    self._add(Slot("attribute", ref.key, attribute), given)
        for value in function.returned:
            self._add(Slot("return", key), self._value(value, function))
        for value in function.evaluated:
            self._value(value, function)
        for name, note in function.annotations.items():
            self._add(Slot("local", key, name), _instances(self._value(note, function)))

    def _items(self, value: Expression, function: Function) -> Refs:
        """The items of what is looped over: of a container what was put into it, of an object of the
        project what its methods give."""
        found = self._value(value, function)
        items = dict(found)
        for ref in tuple(found):
            if ref.kind is Kind.OBJECT:
                for name in _BY_LOOPS:
                    if method := self._method(ref.key, name):
                        self._run(function, -1, method, (), ())
                        items |= self._get(Slot("return", method))
        return items

    # -- expressions

    def _value(self, value: Expression, function: Function) -> Refs:
        if isinstance(value, Name):
            return self._name(value.id, function)
        if isinstance(value, Attribute):
            return self._attribute(value, function)
        if isinstance(value, Call):
            return self._call(value, function)
        found: Refs = {}
        for part in value.parts:
            found |= self._value(part, function)
        return found

    def _name(self, name: str, function: Function) -> Refs:
        """A name where it is read: local, of a function around it, of the file, imported."""
        outline = self._outlines[function.key.path]
        if name in ("self", "cls") and function.takes_self:
            kind = Kind.OBJECT if name == "self" else Kind.CLASS
            return {Ref(kind, Key(outline.path, function.owner)): None}
        place = (function.key, name)
        home = self._homes.get(place, "?")
        if home == "?":
            home = self._homes[place] = self._home(outline, function.key.scope, name)
        if home is None:
            fixed = self._fixed.get(place)
            if fixed is None:
                fixed = self._fixed[place] = self._imported(outline, name)
            return fixed
        return self._defined(outline, home, name)

    def _home(self, outline: Outline, scope: str, name: str) -> str | None:
        """The scope that binds a name where it is read; None where an import must."""
        while True:
            inner = f"{scope}.{name}" if scope else name
            known = outline.functions.get(inner)
            if (known is not None and not known.owner) or inner in outline.classes:
                return scope
            if name in self._bound.get(Key(outline.path, scope), ()):
                return scope
            if not scope:
                return None
            scope = scope.rpartition(".")[0]

    def _defined(self, outline: Outline, scope: str, name: str) -> Refs:
        found = self._get(Slot("local", Key(outline.path, scope), name))
        inner = f"{scope}.{name}" if scope else name
        known = outline.functions.get(inner)
        if known is not None and not known.owner:
            return {Ref(Kind.FUNCTION, Key(outline.path, inner)): None} | found
        if inner in outline.classes:
            return {Ref(Kind.CLASS, Key(outline.path, inner)): None} | found
        return found

    def _imported(self, outline: Outline, name: str) -> Refs:
        full = outline.aliases.get(name)
        if full is not None:
            return self._qualified(full, outline)
        for star in outline.stars:
            if found := _inside(self._qualified(f"{star}.{name}", outline)):
                return found
        return {}

    def _qualified(self, full: str, outline: Outline) -> Refs:
        """What a dotted name of another file stands for."""
        found = self._names.definition(full, outline)
        if found is None:
            return {OUTSIDE: None}
        path, scope = found
        home = self._outlines[path]
        if not scope:
            return {Ref(Kind.MODULE, Key(path, "")): None}
        if scope in home.functions:
            return {Ref(Kind.FUNCTION, Key(path, scope)): None}
        if scope in home.classes:
            return {Ref(Kind.CLASS, Key(path, scope)): None}
        return self._get(Slot("local", Key(path, ""), scope))

    def _attribute(self, value: Attribute, function: Function) -> Refs:
        base = value.base
        if (
            isinstance(base, Call)
            and isinstance(base.function, Name)
            and base.function.id == "super"
        ):
            return {
                Ref(Kind.FUNCTION, item): None for item in self._inherited(function, value.name)
            }
        if (full := self._dotted(value, function)) and (found := self._of_project(full, function)):
            return found
        found = {}
        for ref in tuple(self._value(base, function)):
            found |= self._member(ref, value.name, function)
        return found

    def _dotted(self, value: Expression, function: Function) -> str:
        """`package.module.name` of a chain of names that begins with an import."""
        names: list[str] = []
        while isinstance(value, Attribute):
            names.append(value.name)
            value = value.base
        full = (
            self._outlines[function.key.path].aliases.get(value.id)
            if isinstance(value, Name)
            else None
        )
        return ".".join((full, *reversed(names))) if full else ""

    def _of_project(self, full: str, function: Function) -> Refs:
        return _inside(self._qualified(full, self._outlines[function.key.path]))

    def _member(self, ref: Ref, name: str, function: Function) -> Refs:
        if ref.kind is Kind.OUTSIDE:
            return {OUTSIDE: None}
        if ref.kind is Kind.MODULE:
            outline = self._outlines[ref.key.path]
            found = self._name(name, outline.functions[""])
            return found or self._qualified(f"{outline.module}.{name}", outline)
        if ref.kind is Kind.FUNCTION:
            return {}
        found = self._stored(ref.key, name)
        if method := self._method(ref.key, name):
            known = self._outlines[method.path].functions[method.scope]
            if known.is_property:
                self._run(function, -1, method, (), ())
                found |= self._get(Slot("return", method))
            else:
                found[Ref(Kind.FUNCTION, method)] = None
        if not found and name in _WRAPPED:
            return {ref: None}
        return found

    def _stored(self, key: Key, name: str) -> Refs:
        """What a class or one of its bases binds to an attribute."""
        found: Refs = {}
        for home in self._line(key):
            found |= self._get(Slot("attribute", home, name))
            owner = self._outlines[home.path]
            top = owner.functions[""]
            for value in owner.classes[home.scope].members.get(name, ()):
                found |= self._value(value, top)
        return found

    # -- classes

    def _line(self, key: Key) -> list[Key]:
        """A class and its bases in the project, the nearest first."""
        found = self._lines.get(key)
        if found is None:
            self._lines[key] = [key]  # where a base leads back to the class
            found = self._lines[key] = self._find_line(key)
        return found

    def _find_line(self, key: Key) -> list[Key]:
        found, waiting = [key], [key]
        while waiting:
            here = waiting.pop(0)
            outline = self._outlines[here.path]
            top = outline.functions[""]
            for base in outline.classes[here.scope].bases:
                for ref in self._value(base, top):
                    if ref.kind is Kind.CLASS and ref.key not in found:
                        found.append(ref.key)
                        waiting.append(ref.key)
        return found

    def _method(self, key: Key, name: str) -> Key | None:
        for home in self._line(key):
            scope = f"{home.scope}.{name}"
            if scope in self._outlines[home.path].functions:
                return Key(home.path, scope)
        return None

    def _inherited(self, function: Function, name: str) -> Iterator[Key]:
        """The method that `super().name` means."""
        outline = self._outlines[function.key.path]
        scope = function.key.scope
        while scope and scope not in outline.classes:
            scope = scope.rpartition(".")[0]
        if scope:
            for home in self._line(Key(outline.path, scope))[1:]:
                inner = f"{home.scope}.{name}"
                if inner in self._outlines[home.path].functions:
                    yield Key(home.path, inner)
                    return

    # -- calls

    def _call(self, call: Call, function: Function) -> Refs:
        positional = tuple(self._value(item, function) for item in call.positional)
        named = tuple((name, self._value(item, function)) for name, item in call.named)
        called = self._value(call.function, function)
        known = _inside(called)
        if not called:
            self._guess(call, function)
        result: Refs = {}
        outside = not known
        for ref in known:
            if ref.kind is Kind.CLASS:
                result[Ref(Kind.OBJECT, ref.key)] = None
                if method := self._method(ref.key, "__init__"):
                    self._run(function, call.site, method, positional, named)
                outside = True  # a base outside of the project may keep what it is given
                continue
            target = self._target(ref)
            if target is None:
                outside = True
                result[ref] = None
                continue
            self._run(function, call.site, target, positional, named)
            result |= self._get(Slot("return", target))
        if outside and not any(ref.kind is Kind.CLASS for ref in known):
            result |= self._give_away(call, function, positional, named)
        return result

    def _target(self, ref: Ref) -> Key | None:
        """The function that a call of a value runs."""
        if ref.kind is Kind.FUNCTION:
            return ref.key
        if ref.kind is Kind.OBJECT:
            return self._method(ref.key, "__call__") or self._method(ref.key, "forward")
        return None

    def _run(
        self,
        caller: Function,
        site: int,
        called: Key,
        positional: tuple[Refs, ...],
        named: tuple[tuple[str, Refs], ...],
    ) -> None:
        """Write a call down and hand its arguments to the parameters."""
        self.edges[Edge(caller.key, site, called)] = None
        function = self._outlines[called.path].functions[called.scope]
        names = list(function.parameters)
        if function.takes_self:
            names = names[1:]
        for name, refs in zip(names, positional, strict=False):
            self._add(Slot("local", called, name), refs)
        for rest in function.rest:
            for refs in (
                *positional[len(names) :],
                *(refs for name, refs in named if name not in names),
            ):
                self._add(Slot("local", called, rest), refs)
        for name, refs in named:
            if name in names:
                self._add(Slot("local", called, name), refs)

    def _give_away(
        self,
        call: Call,
        function: Function,
        positional: tuple[Refs, ...],
        named: tuple[tuple[str, Refs], ...],
    ) -> Refs:
        """A library is called: it may call the functions it is given, it may use the objects, and
        what it returns may hold them. A method of an object gives the object back."""
        given: Refs = {}
        for refs in (*positional, *(refs for _, refs in named)):
            given |= refs
        if len(given) > _MOST:
            return {OUTSIDE: None}
        for ref in given:
            if ref.kind is Kind.FUNCTION:
                self.edges[Edge(function.key, call.site, ref.key, handed=True)] = None
            elif ref.kind is Kind.OBJECT:
                for method in self._used_by_libraries(ref.key):
                    self.edges[Edge(function.key, call.site, method, handed=True)] = None
        if isinstance(call.function, Attribute):
            if call.function.name in _PUTS:
                self._put_into(call.function.base, given, function)
            base = self._value(call.function.base, function)
            given |= {ref: None for ref in base if ref.kind is Kind.OBJECT}
        return given | {OUTSIDE: None}

    def _put_into(self, container: Expression, given: Refs, function: Function) -> None:
        """`blocks.append(Block())`: a container holds what is put into it."""
        if isinstance(container, Name):
            home = self._home(self._outlines[function.key.path], function.key.scope, container.id)
            if home is not None:
                self._add(Slot("local", Key(function.key.path, home), container.id), given)
        elif isinstance(container, Attribute):
            for ref in tuple(self._value(container.base, function)):
                if ref.kind in (Kind.OBJECT, Kind.CLASS):
                    self._add(Slot("attribute", ref.key, container.name), given)

    def _used_by_libraries(self, key: Key) -> Iterator[Key]:
        """Methods that a library calls of an object: those of its protocols, and every method of a
        class that derives from one of a framework."""
        for home in self._line(key):
            outline = self._outlines[home.path]
            framework = any(
                _is_framework(base) and self._names.definition(base, outline) is None
                for base in outline.classes[home.scope].bases_named
            )
            for scope, item in outline.functions.items():
                public = framework and not item.name.startswith("_")
                if item.owner == home.scope and (public or item.name in _BY_LIBRARIES):
                    yield Key(home.path, scope)

    def _guess(self, call: Call, function: Function) -> None:
        """A method of an object of which nothing is known, where only a class or two have it. What
        it is given and gives back is not followed: a wrong guess stays one call."""
        if isinstance(call.function, Attribute) and call.function.name not in _OF_BUILTINS:
            found = self._methods.get(call.function.name, [])
            for key in found if len(found) <= _FEW else ():
                self.edges[Edge(function.key, call.site, key)] = None


def _instances(refs: Refs) -> Refs:
    """What an annotation says about a value."""
    return {Ref(Kind.OBJECT, ref.key): None for ref in refs if ref.kind is Kind.CLASS}


def _inside(refs: Refs) -> Refs:
    """Those that are of the project."""
    return {ref: None for ref in refs if ref is not OUTSIDE}


def _is_framework(base: str) -> bool:
    """Whether a base class is of a library whose methods are overridden: neither torch, whose
    protocols are known, nor Python's own."""
    top = base.partition(".")[0]
    return bool(base) and top != "torch" and top not in sys.stdlib_module_names


def _bound_names(function: Function) -> frozenset[str]:
    names = {name for name, _ in function.bindings}
    names.update(name for group, _ in function.iterated for name in group)
    return frozenset((*names, *function.parameters, *function.rest))
