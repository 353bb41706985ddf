"""The values of one file, worked out function by function when a rule asks.

A function is walked once. What reaches its parameters is what all calls of the project pass; what a
call gives is what the function's returns give. A function that asks about itself, or stands too deep in
a chain of questions, gets no answer: unknown stays unknown.
"""

from __future__ import annotations

import ast
import weakref
from collections import defaultdict

from torchstone.lint.facts.callers import calls_of
from torchstone.lint.knowledge.flow import passed
from torchstone.lint.values.halved import is_halved
from torchstone.lint.values.reach import (
    half_may_reach,
    hands_on,
    is_called_near_half,
    is_speaker,
    tells,
)
from torchstone.lint.values.value import (
    NO_TYPE,
    NUMBER,
    UNKNOWN,
    UNKNOWN_TYPE,
    Home,
    Kind,
    Mark,
    Value,
    joined,
)
from torchstone.lint.values.walk import Walk
from torchstone.sources.regions import Region
from torchstone.sources.scene import FUNCTIONS, Function, Scene
from torchstone.sources.targets import method_of, visible_function

_DEPTH = 8  # functions that wait for each other's answers
_SCOPES = (*FUNCTIONS, ast.Module)


def analysis_of(scene: Scene) -> Analysis:
    """The analysis of a file; there is one for each."""
    found: Analysis | None = scene.cache.get("values")
    if found is None:
        found = scene.cache["values"] = Analysis(scene)
    return found


def value_at(scene: Scene, node: ast.expr | None) -> Value:
    """What is known of an expression where it stands."""
    return analysis_of(scene).at(node) if node is not None else UNKNOWN


class Analysis:
    """What is known of the values of one file."""

    def __init__(self, scene: Scene) -> None:
        # the file keeps its analysis: a reference back would make a circle that only the collector,
        # which rests, could free
        self._scene = weakref.ref(scene)
        self._facts: dict[ast.AST, Value] = {}
        self._returned: dict[ast.AST, Value] = {}
        self._running: set[object] = set()
        self._events: dict[str, set[Mark]] = defaultdict(set)
        self._added: dict[Mark, list[Value]] = defaultdict(list)
        self._attributes: dict[tuple[ast.ClassDef, str], Value] = {}

    @property
    def scene(self) -> Scene:
        found = self._scene()
        assert found is not None  # whoever asks holds the file
        return found

    # -- questions --------------------------------------------------------------------------------

    def at(self, node: ast.expr) -> Value:
        self.run(self._scope(node))
        return self._facts.get(node, UNKNOWN)

    def is_only_evaluated(self, value: Value) -> bool:
        """Whether the file freezes a network, or evaluates it and never trains it."""
        if value.mark is None:
            return False
        self.run_all()
        if value.mark in self._events["frozen"]:
            return True
        trained = self._events["train"] | self._events["optimized"]
        return value.mark in self._events["eval"] and value.mark not in trained

    def returned_by(self, function: Function) -> Value:
        self.run(function)
        return self._returned.get(function, UNKNOWN)

    def run_all(self) -> None:
        """Walk every function of the file."""
        for function in (self.scene.root, *self.scene.definitions):
            if isinstance(function, _SCOPES):
                self.run(function)

    def _scope(self, node: ast.AST) -> ast.AST:
        scope = self.scene.scope(node)
        while isinstance(scope, ast.Lambda):
            scope = self.scene.scope(scope)
        return scope

    # -- walking ----------------------------------------------------------------------------------

    def run(self, scope: ast.AST) -> None:
        scene = self.scene  # held while it is walked
        depth: int = scene.project.summaries.get("values depth", 0)
        if scope in self._returned or scope in self._running or depth > _DEPTH:
            return
        self._running.add(scope)
        scene.project.summaries["values depth"] = depth + 1
        try:
            names = self._parameters(scope) if isinstance(scope, FUNCTIONS) else {}
            body: list[ast.stmt] = scope.body  # type: ignore[attr-defined]
            region = self._region(body[0]) if body else Region()
            self._returned[scope] = Walk(self, scope, names).run(body, region)
        except RecursionError:
            self._returned[scope] = UNKNOWN  # too deep to be followed: nothing is known of it
        finally:
            scene.project.summaries["values depth"] = depth
            self._running.discard(scope)

    def _region(self, node: ast.AST) -> Region:
        function = self.scene.function(node)
        if function is not None and is_called_near_half(self.scene, function):
            return self.scene.region(
                node
            )  # callers are asked only if one of them may open a region
        return self.scene.lexical_region(node)

    def region_inside(self, block: ast.With | ast.AsyncWith) -> Region:
        return self._region(block.body[0])

    def note(self, node: ast.AST, value: Value) -> None:
        """Keep what is known of a node on every path that comes by."""
        known = self._facts.get(node)
        if known is not value:
            self._facts[node] = value if known is None else joined(known, value)

    def happened(self, event: str, mark: Mark | None) -> None:
        """Note what is done to an object: `eval`, `train`, `frozen` or `optimized`."""
        if mark is not None:
            self._events[event].add(mark)

    def add(self, mark: Mark | None, layer: Value) -> None:
        """Note a layer that is added to a container of modules after it was made."""
        if mark is not None and layer not in self._added[mark]:
            self._added[mark].append(layer)

    # -- parameters -------------------------------------------------------------------------------

    def _parameters(self, function: Function) -> dict[str, Value]:
        given = function.args
        rows = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        owner = self.scene.parent(function)
        names: dict[str, Value] = {}
        inside = False
        """Whether tensors that it is given are where the module is."""
        if isinstance(owner, ast.ClassDef) and rows and rows[0].arg == "self":
            names["self"] = self._own(owner)
            inside = names["self"].kind is Kind.MODULE and function.name != "__init__"
            rows = rows[1:]
        if rows:
            sites, numbers = self._sites(function), _numbers(given)
            for row in rows:
                found = self._parameter(function, row.arg, sites)
                if found.kind is Kind.UNKNOWN and row.arg in numbers:
                    found = NUMBER._replace(constant=False)
                if inside and not found.device:
                    found = found._replace(device="given")
                own = (self.scene.path, row.lineno, row.col_offset)
                names[row.arg] = found._replace(mark=found.mark or own)
        return names

    def _sites(self, function: Function) -> list[tuple[Scene, ast.Call]]:
        """The calls of a function; a module's `forward` has callers that nobody can tell apart."""
        if function.name in ("forward", "__call__") or function.name.startswith("test"):
            return []
        return calls_of(self.scene, function) or []

    def _parameter(
        self, function: Function, name: str, sites: list[tuple[Scene, ast.Call]]
    ) -> Value:
        rows: list[Value] = []
        for scene, site in sites:
            given = passed(scene, site, function, name)
            if given is None:
                continue
            # a caller that says nothing of half precision is walked for what objects are made of
            wanted = function.name == "__init__" or half_may_reach(scene, site)
            wanted = wanted or hands_on(scene)
            found = analysis_of(scene).at(given) if wanted else UNKNOWN
            # what the numbers of a test are says nothing of a training
            rows.append(found._replace(content=UNKNOWN_TYPE) if scene.is_test else found)
        return joined(*rows) if rows else UNKNOWN

    def _own(self, owner: ast.ClassDef) -> Value:
        """`self`, in a class of this file."""
        home = self._home(owner)
        if not self.scene.is_module_class(owner):
            return Value(Kind.OBJECT, home=home, dtypes=NO_TYPE)
        half = is_halved(self.scene, owner)
        types = frozenset(("float32", half) if half else ("float32",))
        return Value(Kind.MODULE, home=home, dtypes=types)

    # -- names and objects of the project -----------------------------------------------------------

    def _home(self, node: ast.ClassDef | Function) -> Home:
        return Home(self.scene.path, node.name, node.lineno)

    def outer_value(self, node: ast.Name, function: ast.AST) -> Value:
        """A name that the function itself does not bind: a definition, a global, a closure's."""
        inner = visible_function(self.scene, node)
        if inner is not None:
            return Value(Kind.FUNCTION, home=self._home(inner), dtypes=NO_TYPE)
        found = self.scene.project.definition(self.scene, node, "")
        if found is not None:
            return self._defined(found)
        rows = self.scene.bindings(node)
        if not rows or self._scope(rows[0].node) is function:
            return UNKNOWN
        self.run(self._scope(rows[0].node))
        known = [self._facts[row.node] for row in rows if row.node in self._facts]
        return joined(*known) if len(known) == len(rows) else UNKNOWN

    def project_value(self, node: ast.expr, full: str) -> Value:
        """An imported name: a function, a class or a global of another file."""
        project = self.scene.project
        found = project.definition(self.scene, node, full)
        if found is not None:
            return self._defined(found)
        module, _, name = full.rpartition(".")
        path = project.find(module, self.scene.path) if module else None
        other = project.load(path, self.scene) if path else None
        return analysis_of(other).global_value(name) if other is not None else UNKNOWN

    def named_value(self, node: ast.expr) -> Value:
        """What an imported name stands for, without a walk of the function that it is used in."""
        full = self.scene.qualified(node)
        return self.project_value(node, full) if full and not full.startswith("torch.") else UNKNOWN

    def global_value(self, name: str) -> Value:
        """What a name of the file stands for when all of it has run."""
        self.run(self.scene.root)
        rows = [
            self._facts[part]
            for statement in self.scene.root.body
            if isinstance(statement, (ast.Assign, ast.AnnAssign))
            for part in ast.walk(statement)
            if isinstance(part, ast.Name)
            and part.id == name
            and part in self._facts
            and isinstance(part.ctx, ast.Store)
        ]
        return joined(*rows) if rows else UNKNOWN

    def _defined(self, found: tuple[Scene, ast.AST]) -> Value:
        scene, node = found
        kind = Kind.CLASS if isinstance(node, ast.ClassDef) else Kind.FUNCTION
        assert isinstance(node, (ast.ClassDef, *FUNCTIONS))
        return Value(kind, home=analysis_of(scene)._home(node), dtypes=NO_TYPE)

    def _there(self, home: Home) -> tuple[Scene, ast.ClassDef | Function] | None:
        """The file and the definition that a home names."""
        scene = self.scene.project.named(home.path, self.scene)
        if scene is None:
            return None
        table: dict[tuple[str, int], ast.ClassDef | Function] | None = scene.cache.get("homes")
        if table is None:
            table = scene.cache["homes"] = {(n.name, n.lineno): n for n in scene.definitions}
        node = table.get((home.name, home.line))
        return (scene, node) if node is not None else None

    def instance(self, callee: Value, mark: Mark) -> Value:
        """An object of a class of the project."""
        there = self._there(callee.home) if callee.home else None
        if there is None or not isinstance(there[1], ast.ClassDef):
            return UNKNOWN
        if not there[0].is_module_class(there[1]):
            return Value(Kind.OBJECT, home=callee.home, dtypes=NO_TYPE, mark=mark)
        return Value(Kind.MODULE, home=callee.home, dtypes=frozenset(("float32",)), mark=mark)

    def answer(self, callee: Value, region: Region) -> Value:
        """What a function of the project gives."""
        there = self._there(callee.home) if callee.home else None
        if there is None or isinstance(there[1], ast.ClassDef):
            return UNKNOWN
        speaks = is_speaker(self.scene.project, there[1].name) or tells(*there)
        if region.autocast is None and not speaks:
            return UNKNOWN  # nothing that it says could make its answer half, or tell more of it
        return _settled(analysis_of(there[0]).returned_by(there[1]))._replace(mark=None)

    def forward_of(self, module: Value) -> Value:
        """What a module of the project gives when it is called."""
        there = self._there(module.home) if module.home else None
        if there is None or not isinstance(there[1], ast.ClassDef):
            return UNKNOWN
        found = method_of(there[0], there[1], "forward")
        return _settled(analysis_of(found[0]).returned_by(found[1])) if found else UNKNOWN

    def attribute(self, base: Value, name: str) -> Value:
        """What `object.name` stands for: a method, or what its class sets."""
        there = self._there(base.home) if base.home else None
        if there is None or not isinstance(there[1], ast.ClassDef):
            return UNKNOWN
        found = analysis_of(there[0]).class_attribute(there[1], name)
        if found.device == "cpu":
            found = found._replace(device="")  # moved, perhaps, since it was set
        if found.kind is Kind.MODULE and base.kind is Kind.MODULE and base.may_be_half:
            return found._replace(dtypes=base.dtypes)
        return found

    def class_attribute(self, owner: ast.ClassDef, name: str, depth: int = 5) -> Value:
        key = (owner, name)
        if key in self._attributes:
            return self._attributes[key]
        if key in self._running:
            return UNKNOWN
        self._running.add(key)
        try:
            found = self._attributes[key] = self._class_attribute(owner, name, depth)
        finally:
            self._running.discard(key)
        return found

    def _class_attribute(self, owner: ast.ClassDef, name: str, depth: int) -> Value:
        for item in owner.body:
            if isinstance(item, FUNCTIONS) and item.name == name:
                home = self._home(item)
                is_property = any("property" in ast.dump(mark) for mark in item.decorator_list)
                value = Value(Kind.FUNCTION, home=home, dtypes=NO_TYPE)
                return self.returned_by(item) if is_property else value
        rows = []
        for source, place in self.scene.attribute_sources(owner, name):
            value = self.at(source)
            rows.append(value if place is None else value.part(place))
        if rows:
            whole = joined(*rows)
            for layer in self._added.get(whole.mark, ()) if whole.mark else ():
                whole = whole.with_part(len(whole.parts), layer)
            return whole
        for base in owner.bases if depth else ():
            found = self.scene.project.class_named(self.scene, base, self.scene.qualified(base))
            if found is not None and found[1] is not owner:
                value = analysis_of(found[0]).class_attribute(found[1], name, depth - 1)
                if value != UNKNOWN:
                    return value
        return UNKNOWN


def _settled(value: Value) -> Value:
    """What a function gives: where its returns differ in what the numbers are (probabilities in
    evaluation alone, say), nobody can tell which of them a caller gets."""
    parts = tuple((key, _settled(part)) for key, part in value.parts)
    content = UNKNOWN_TYPE if len(value.content) > 1 else value.content
    return value._replace(content=content, parts=parts)


def _numbers(given: ast.arguments) -> set[str]:
    """The parameters that are numbers, by their annotations and defaults."""
    placed = [*given.posonlyargs, *given.args]
    defaults = dict(
        zip([row.arg for row in reversed(placed)], reversed(given.defaults), strict=False)
    )
    defaults |= {
        row.arg: value
        for row, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if value is not None
    }
    noted = {
        row.arg
        for row in (*placed, *given.kwonlyargs)
        if isinstance(row.annotation, ast.Name) and row.annotation.id in ("int", "float")
    }
    return noted | {
        name
        for name, value in defaults.items()
        if isinstance(value, ast.Constant) and type(value.value) in (int, float)
    }
