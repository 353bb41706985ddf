"""The values of expressions at a point of a path."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from torchstone.lint.values.dtypes import CASTS, TENSOR_TYPES, half_of
from torchstone.lint.values.torch_calls import (
    Given,
    cast_of,
    device_of,
    layer_called,
    layer_made,
    method_called,
    operated,
)
from torchstone.lint.values.value import (
    HALVES,
    NONE,
    NUMBER,
    PARTS,
    UNKNOWN,
    UNKNOWN_TYPE,
    Kind,
    Mark,
    Value,
    joined,
)
from torchstone.sources.regions import Region
from torchstone.sources.scene import MISSING, Scene
from torchstone.sources.values import DTYPES

if TYPE_CHECKING:
    from torchstone.lint.values.analysis import Analysis
    from torchstone.lint.values.state import State

_DEEP = 60  # expressions nested more deeply are not followed: Python's own stack is limited
_OPERATORS = {ast.MatMult: "matmul", ast.Pow: "pow", ast.Div: "div", ast.Mod: "remainder"}
_NUMBERS = frozenset(("shape", "ndim", "device", "is_cuda", "requires_grad", "training"))
_VIEWS = frozenset(("T", "mT", "H", "real", "imag"))


class Evaluation:
    """Works out expressions; what is found is noted for the rules to ask."""

    def __init__(self, analysis: Analysis, function: ast.AST, state: State, region: Region) -> None:
        self.analysis = analysis
        self.scene: Scene = analysis.scene
        self.function = function
        self.state = state
        self.region = region
        self._depth = 0

    def value(self, node: ast.expr | None) -> Value:
        if node is None or self._depth > _DEEP:
            return UNKNOWN
        self._depth += 1
        try:
            found = self._value(node)
        finally:
            self._depth -= 1
        self.analysis.note(node, found)
        return found

    def mark(self, node: ast.AST) -> Mark:
        return self.scene.path, getattr(node, "lineno", 0), getattr(node, "col_offset", 0)

    def _value(self, node: ast.expr) -> Value:
        work_out = _BY_KIND.get(node.__class__)
        return work_out(self, node) if work_out is not None else self._rarer(node)

    def _several(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        return _container(enumerate([self.value(item) for item in node.elts]))

    def _rarer(self, node: ast.expr) -> Value:
        if isinstance(node, ast.IfExp):
            self.value(node.test)
            return joined(self.value(node.body), self.value(node.orelse))
        if isinstance(node, ast.UnaryOp):
            return self.value(node.operand)._replace(mark=None, content=UNKNOWN_TYPE)
        if isinstance(node, ast.BoolOp):
            return joined(*map(self.value, node.values))
        if isinstance(node, ast.NamedExpr):
            found = self.value(node.value)
            self.state.bind(node.target.id, found)
            return found
        if isinstance(node, (ast.Starred, ast.Await)):
            return self.value(node.value)
        if isinstance(node, ast.Compare):
            rows = [self.value(node.left), *map(self.value, node.comparators)]
            number = all(row.kind is not Kind.TENSOR for row in rows)
            types = frozenset(("bool",))
            kind = Kind.UNKNOWN if number else Kind.TENSOR
            return Value(kind, dtypes=types, graph=False, device=device_of(rows))
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            self._comprehend(node.generators)
            return _container([(0, self.value(node.elt))])
        if isinstance(node, ast.DictComp):
            self._comprehend(node.generators)
            self.value(node.key)
            return _container([("", self.value(node.value))])
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    self.value(part.value)
            return NUMBER
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            self.value(node.value)
        return UNKNOWN

    def _constant(self, node: ast.Constant) -> Value:
        if node.value is None:
            return NONE
        if isinstance(node.value, str):
            dtype = node.value.removeprefix("torch.").removeprefix("cuda.")
            if dtype in TENSOR_TYPES:
                return Value(Kind.DTYPE, TENSOR_TYPES[dtype], dtypes=frozenset())
        return NUMBER

    def _comprehend(self, generators: list[ast.comprehension]) -> None:
        for generator in generators:
            self.store(generator.target, element_of(self.value(generator.iter)))
            for test in generator.ifs:
                self.value(test)

    def _dict(self, node: ast.Dict) -> Value:
        rows: list[tuple[object, Value]] = []
        for key, item in zip(node.keys, node.values, strict=True):
            name = self.scene.literal(key) if key is not None else MISSING
            value = self.value(item)
            if key is None:
                rows += value.parts
            else:
                rows.append((name if isinstance(name, (str, int)) else "", value))
        return _container(rows)

    def _operation(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if left.kind is Kind.NUMBER and right.kind is Kind.NUMBER:
            return NUMBER._replace(constant=left.constant and right.constant)
        operator = _OPERATORS.get(type(node.op), "add")
        return operated(operator, Given((left, right), {}), self.region)

    # -- names ------------------------------------------------------------------------------------

    def _name(self, node: ast.Name) -> Value:
        found = self.state.names.get(node.id)
        if found is not None:
            return found
        full = self.scene.qualified(node)
        if full:
            return self._imported(node, full)
        return self.analysis.outer_value(node, self.function)

    def _imported(self, node: ast.expr, full: str) -> Value:
        if full.startswith("torch."):
            return torch_name(full)
        if full.startswith("math."):
            return NUMBER
        return self.analysis.project_value(node, full)

    def _attribute(self, node: ast.Attribute) -> Value:
        chain = self.scene.dotted(node)
        if chain in self.state.names:
            return self.state.names[chain]
        full = self.scene.qualified(node)
        if full:
            return self._imported(node, full)
        return self._of(self.value(node.value), node.attr)

    def _of(self, base: Value, name: str) -> Value:
        """An attribute of a value."""
        for key, part in base.parts:
            if key == name:
                return part
        if name == "module" and base.wrapped:
            return base._replace(wrapped="")
        if base.home is not None and base.kind in (Kind.OBJECT, Kind.MODULE, Kind.CLASS):
            return self.analysis.attribute(base, name)
        if name in _NUMBERS:
            return NUMBER._replace(constant=False)
        if name == "dtype":
            one = next(iter(base.dtypes)) if len(base.dtypes) == 1 else ""
            return Value(Kind.DTYPE if one else Kind.UNKNOWN, one, dtypes=frozenset())
        if name == "data":
            return base._replace(graph=False, mark=None)
        if name == "module" and base.kind is Kind.MODULE:
            return base
        if name in _VIEWS or (base.lowered and name != "loss"):
            return base._replace(mark=None)
        return UNKNOWN._replace(mark=_part_mark(base, name))

    def _subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        if isinstance(node.slice, ast.expr):
            self.value(node.slice)
        key = self.scene.literal(node.slice)
        if base.kind in (Kind.CONTAINER, Kind.MODULE) or base.parts:
            return base.part(key)
        if base.kind is Kind.NUMBER:
            return NUMBER
        part = _part_mark(base, key) if isinstance(key, (str, int)) else None
        # one element may have no dimension left, and then meets tensors of every device
        device = base.device if isinstance(node.slice, (ast.Slice, ast.Tuple)) else ""
        return base._replace(mark=part, device=device)

    # -- stores -----------------------------------------------------------------------------------

    def store(self, target: ast.expr, value: Value) -> None:
        """Bind what an assignment, a loop or a `with` names."""
        if isinstance(target, ast.Name):
            self.analysis.note(target, value)
            self.state.bind(target.id, value)
        elif isinstance(target, ast.Attribute):
            self._store_attribute(target, value)
        elif isinstance(target, ast.Subscript):
            base, key = self.value(target.value), self.scene.literal(target.slice)
            changed = base.with_part(key if isinstance(key, (str, int)) else "", value)
            chain = self.scene.dotted(target.value)
            if chain:
                self.state.names[chain] = changed
            self.state.change(base.mark, lambda old: old.with_part(key, value))
        elif isinstance(target, ast.Starred):
            self.store(target.value, _container([(0, element_of(value))]))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for place, part in enumerate(target.elts):
                self.store(part, value.part(place))

    def _store_attribute(self, target: ast.Attribute, value: Value) -> None:
        base = self.value(target.value)
        if target.attr == "requires_grad" and base.kind is Kind.PARAMETERS:
            self.state.change(base.mark, lambda old: old._replace(frozen=True))
            self.analysis.happened("frozen", base.mark)
        chain = self.scene.dotted(target)
        if chain:
            self.state.bind(chain, value)

    # -- calls ------------------------------------------------------------------------------------

    def _given(self, call: ast.Call) -> Given:
        positional = [self.value(item) for item in call.args]
        named = {item.arg or "": self.value(item.value) for item in call.keywords}
        return Given(positional, named)

    def _call(self, call: ast.Call) -> Value:
        given = self._given(call)
        full = self.scene.qualified(call.func)
        if full.startswith(("torch.", "torchvision.")):
            return self._torch_call(call, full, given)
        if full.startswith("math."):
            return NUMBER
        func = call.func
        if isinstance(func, ast.Attribute) and not full:
            return self._method(call, func, given)
        return self._called(call, self.value(func), given)

    def _torch_call(self, call: ast.Call, full: str, given: Given) -> Value:
        name = full.rpartition(".")[2]
        if full.startswith("torch.optim.") and name[:1].isupper():
            for value in (*given.positional, *given.named.values()):
                for part in (value, *(part for _, part in value.parts)):
                    self.analysis.happened("optimized", part.mark)
            return Value(Kind.OPTIMIZER, full, dtypes=frozenset(), mark=self.mark(call))
        if name == "GradScaler":
            return Value(Kind.SCALER, full, dtypes=frozenset(), mark=self.mark(call))
        if name == "compile":
            return given.positional[0] if given.positional else UNKNOWN
        if name == "Parameter":
            inner = given.positional[0] if given.positional else UNKNOWN
            mark = self.mark(call)
            return inner._replace(
                kind=Kind.TENSOR, graph=True, constant=False, mark=mark, device="given"
            )
        if full.startswith("torch.nn.") and name[:1].isupper():
            return layer_made(full, given, self.mark(call))
        if full.startswith("torchvision.models."):
            return Value(Kind.MODULE, full, dtypes=frozenset(("float32",)), mark=self.mark(call))
        if name in TENSOR_TYPES:
            return Value(Kind.TENSOR, dtypes=frozenset((TENSOR_TYPES[name],)), constant=True)
        if name[:1].isupper() or name in _CONTEXTS:
            return UNKNOWN
        if name in SIZED:
            self._learn_numbers(call.args, given)
        return operated(full, given, self.region)

    def _learn_numbers(self, args: list[ast.expr], given: Given) -> None:
        """What is the end of a range, or a size, is a number from here on."""
        for item, value in zip(args, given.positional, strict=True):
            chain = self.scene.dotted(item)
            if chain and value.kind is Kind.UNKNOWN and not value.parts:
                self.state.bind(chain, NUMBER._replace(constant=False, mark=value.mark))

    def _method(self, call: ast.Call, func: ast.Attribute, given: Given) -> Value:
        receiver, method = self.value(func.value), func.attr
        if self.scene.dotted(func) in self.state.names:
            return self._called(call, self.value(func), given)
        if receiver.kind is Kind.MODULE:
            return self._module_method(call, receiver, method, given)
        if receiver.kind is Kind.OBJECT or receiver.kind is Kind.CLASS:
            return self._called(call, self.value(func), given)
        if receiver.kind is Kind.CONTAINER:
            return self._container_method(func, receiver, method, given)
        if receiver.kind is Kind.UNKNOWN and method in _OF_MODULES:
            return self._module_method(call, receiver, method, given)
        model = self.scene.is_model(func.value) or self.scene.is_model(func)
        if receiver.kind is Kind.UNKNOWN and model and cast_of(method, given) is None:
            return self._model_output() if method not in ("cuda", "cpu", "to") else receiver
        return method_called(receiver, method, given, self.region)

    def _container_method(
        self, func: ast.Attribute, receiver: Value, method: str, given: Given
    ) -> Value:
        if method in ("append", "add") and given.positional:
            chain = self.scene.dotted(func.value)
            changed = receiver.with_part(len(receiver.parts), given.positional[0])
            if chain:
                self.state.names[chain] = changed
        if method in ("get", "pop", "values", "items") and receiver.parts:
            found = element_of(receiver)
            return found if method in ("get", "pop") else _container([(0, found)])
        return UNKNOWN

    def _module_method(self, call: ast.Call, module: Value, method: str, given: Given) -> Value:
        dtype = cast_of(method, given) if method in (*CASTS, "to", "type") else None
        if dtype:
            return self._changed(module, lambda old: old._replace(dtypes=frozenset((dtype,))))
        if method in ("eval", "train"):
            off = method == "eval" or self._is_false(call)
            self.analysis.happened("eval" if off else "train", module.mark)
            return self._changed(module, lambda old: old._replace(mode="eval" if off else "train"))
        if method == "requires_grad_":
            off = self._is_false(call)
            if off:
                self.analysis.happened("frozen", module.mark)
            return self._changed(module, lambda old: old._replace(frozen=off))
        if method in ("parameters", "named_parameters"):
            return Value(Kind.PARAMETERS, dtypes=module.dtypes, graph=True, mark=module.mark)
        if method in ("add_module", "append") and given.positional:
            layer = given.positional[-1]
            self.analysis.add(module.mark, layer)
            return self._changed(module, lambda old: old.with_part(len(old.parts), layer))
        if method in ("cuda", "cpu", "to", "share_memory", "apply", "float", "compile"):
            return module
        if method == "forward":
            return self._module_called(module, given)
        if module.home is not None or module.parts:
            return self._called(call, self.value(call.func), given)
        return self._model_output()

    def _is_false(self, call: ast.Call) -> bool:
        given = call.args[0] if call.args else self.scene.keyword(call, "mode")
        return self.scene.literal(given) is False

    def _changed(self, module: Value, change: Callable[[Value], Value]) -> Value:
        self.state.change(module.mark, change)
        return change(module)

    def _called(self, call: ast.Call, callee: Value, given: Given) -> Value:
        if callee.kind is Kind.CLASS and callee.home is not None:
            return self.analysis.instance(callee, self.mark(call))
        if callee.kind is Kind.FUNCTION and callee.home is not None:
            return self.analysis.answer(callee, self.region)
        if callee.kind is Kind.MODULE:
            return self._module_called(callee, given)
        known = self._model_output() if self.scene.is_model(call.func) else UNKNOWN
        return known._replace(mark=self.mark(call))

    def _module_called(self, module: Value, given: Given) -> Value:
        if module.home is None:
            return layer_called(module, given, self.region)
        found = self.analysis.forward_of(module)
        if module.is_half and (found.may_be_half or "" in found.dtypes):
            return found._replace(dtypes=(found.dtypes & HALVES) or module.dtypes)
        half = half_of(self.region)
        if "" in found.dtypes and half:
            types = (found.dtypes - {""}) | {half}
            return found._replace(dtypes=types, lowered=True)
        return found

    def _model_output(self) -> Value:
        """What a model gives that cannot be looked into: half where autocast is open."""
        half = half_of(self.region)
        graph = False if self.region.without_grad else None
        types = frozenset((half,)) if half else UNKNOWN_TYPE
        return Value(dtypes=types, lowered=bool(half), graph=graph)


_BY_KIND: dict[type[ast.AST], Callable[[Evaluation, Any], Value]] = {
    ast.Name: Evaluation._name,
    ast.Attribute: Evaluation._attribute,
    ast.Call: Evaluation._call,
    ast.Constant: Evaluation._constant,
    ast.BinOp: Evaluation._operation,
    ast.Subscript: Evaluation._subscript,
    ast.Tuple: Evaluation._several,
    ast.List: Evaluation._several,
    ast.Set: Evaluation._several,
    ast.Dict: Evaluation._dict,
}
_OF_MODULES = frozenset("eval train parameters named_parameters requires_grad_".split())
SIZED = frozenset(("arange", "linspace", "logspace", "eye"))
"""Functions that take numbers alone; a size may also be a tuple."""
_CONTEXTS = frozenset("no_grad enable_grad inference_mode set_grad_enabled autocast device".split())


def _part_mark(base: Value, key: object) -> Mark | None:
    """The mark of what an object holds: the same each time it is asked for."""
    if base.mark is None:
        return None
    path, line, column = base.mark
    return f"{path}[{key}]", line, column


def torch_name(full: str) -> Value:
    """What a name of torch stands for: a dtype, a class or a function."""
    name = full.removeprefix("torch.").removeprefix("cuda.")
    if name in DTYPES:
        return Value(Kind.DTYPE, DTYPES[name], dtypes=frozenset())
    if name in TENSOR_TYPES:
        return Value(Kind.DTYPE, TENSOR_TYPES[name], dtypes=frozenset())
    return Value(Kind.FUNCTION, full, dtypes=frozenset())


def _container(rows: Iterable[tuple[object, Value]]) -> Value:
    parts = tuple(rows)[:PARTS]
    constant = all(value.constant for _, value in parts)
    return Value(Kind.CONTAINER, dtypes=frozenset(), constant=constant, parts=parts)


def element_of(value: Value) -> Value:
    """What a loop over a value gives."""
    if value.parts:
        return joined(*(part for _, part in value.parts))
    if value.kind is Kind.PARAMETERS:
        return value
    return UNKNOWN if value.kind is not Kind.TENSOR else value._replace(mark=None)
