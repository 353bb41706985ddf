"""The user's source with every call, operator, slice and write turned into a call of its site.

A site stands in the new tree as a text constant that nothing else uses; after compilation the
constant is replaced by the function that records. So the user's names and globals stay untouched.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Sequence

from torchstone.dataflow.tracing.sites import Site
from torchstone.dataflow.tracing.tree_nodes import (
    holds_item,
    is_left_alone,
    load_again,
    load_name,
    names_of,
    place_at,
    store_name,
    tests_of_constants_stay,
    text_of,
)

MARK = "\0torchstone-site:"
SLICE = "\0torchstone-slice"

_VIEWS = frozenset("T mT H mH real imag flat".split())
"""Attributes that are arrays of their own."""
_LARGEST_COPY = 96
"""Nodes of an expression that may stand twice: nested sites double it again and again."""
_CODE_OF_ITS_OWN = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""They compile to code objects, of which the rewritten code must have as many as the source."""


class Rewriter(ast.NodeTransformer):
    """One file. `sites` are in the order of their numbers. With `only`, nothing but calls and
    items of these names is rewritten. A `block` is traced from its own statements on: the function
    around it is no part of a site."""

    def __init__(self, file: str, only: tuple[str, ...] = (), *, block: bool = False) -> None:
        self.file = file
        self._only = only
        self.sites: list[Site] = []
        self.doubled: set[int] = set()
        """Numbers of the sites beside which the source stands as it was."""
        self._scope: list[str] = []
        self._block = block
        self._targets: dict[int, tuple[str, ...]] = {}
        self._temporaries = 0

    # ---- what is left as it is -------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if self._block:  # the function that stands for a block has its name, not one of its own
            self._block = False
            node.body = self.statements(node.body)
            return node
        node.args.defaults = [self.visit(item) for item in node.args.defaults]
        node.args.kw_defaults = [item and self.visit(item) for item in node.args.kw_defaults]
        self._enter(node.name, function=True)
        node.body = self.statements(node.body)
        self._leave(function=True)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.args.defaults = [self.visit(item) for item in node.args.defaults]
        node.args.kw_defaults = [item and self.visit(item) for item in node.args.kw_defaults]
        self._enter("<lambda>", function=True)
        node.body = self.visit(node.body)
        self._leave(function=True)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._enter(node.name, function=False)
        node.body = self.statements(node.body)
        self._leave(function=False)
        return node

    def _enter(self, name: str, *, function: bool) -> None:
        self._scope.append(name)
        if function:
            self._scope.append("<locals>")

    def _leave(self, *, function: bool) -> None:
        del self._scope[-2 if function else -1 :]

    def visit_Match(self, node: ast.Match) -> ast.AST:
        node.subject = self.visit(node.subject)
        for case in node.cases:
            case.guard = case.guard and self.visit(case.guard)
            case.body = self.statements(case.body)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            self._name_result(node.value, [node.target])
            node.value = self.visit(node.value)
        return node

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements of one block, rewritten."""
        new: list[ast.stmt] = []
        for statement in body:
            made = self.visit(statement)
            new.extend(made if isinstance(made, list) else [made])
        return new

    # ---- writes ------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        self._name_result(node.value, node.targets)
        written = [target for target in node.targets if holds_item(target)]
        node.value = self.visit(node.value)
        if self._only:
            return node
        if not written:
            node.targets = [self._target(target) for target in node.targets]
            return node
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            return self._item_write(node.targets[0], node.value, node)
        return self._spread(node)

    def _spread(self, node: ast.Assign) -> list[ast.stmt]:
        """`a[0], b = c` and `a[0] = b = c`: into a temporary name first, then one by one."""
        whole = self._temporary()
        out: list[ast.stmt] = [place_at(ast.Assign([store_name(whole)], node.value), node)]
        for target in node.targets:
            out += self._unpack(target, whole, node)
        names: list[ast.expr] = [ast.Name(n, ast.Del()) for n in self._made_since(whole)]
        out.append(place_at(ast.Delete(names), node))
        return out

    def _unpack(self, target: ast.expr, source: str, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(target, ast.Subscript):
            return [self._item_write(target, load_name(source), node)]
        if not isinstance(target, (ast.Tuple, ast.List)) or not holds_item(target):
            return [place_at(ast.Assign([self._target(target)], load_name(source)), node)]
        parts: list[ast.expr] = []
        after: list[ast.stmt] = []
        for element in target.elts:
            starred = isinstance(element, ast.Starred)
            inner = element.value if isinstance(element, ast.Starred) else element
            if holds_item(inner):
                name = self._temporary()
                part: ast.expr = store_name(name)
                after += self._unpack(inner, name, node)
            else:
                part = self._target(inner)
            parts.append(ast.Starred(part, ast.Store()) if starred else part)
        first = place_at(ast.Assign([ast.Tuple(parts, ast.Store())], load_name(source)), node)
        return [first, *after]

    def _item_write(self, target: ast.Subscript, value: ast.expr, node: ast.stmt) -> ast.stmt:
        """`a[i] = v` evaluates v, a, i in this order; so does the call."""
        inputs = (text_of(value), text_of(target.value))
        arguments = [value, self.visit(target.value), self._index(target.slice)]
        call = self._site("set", "", target, arguments, inputs, (text_of(target.value),))
        plain = ast.Assign([ast.Subscript(arguments[1], arguments[2], ast.Store())], value)
        return self._statement_or_plain(call, ast.Expr(call), plain, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        op, target = type(node.op).__name__, node.target
        if self._only:
            node.value = self.visit(node.value)
            return node
        inputs = (text_of(target), text_of(node.value))
        if isinstance(target, ast.Name) or (
            isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
        ):
            value = self.visit(node.value)
            old = load_again(target)
            call = self._site("update", op, target, [old, value], inputs, (text_of(target),))
            plain = ast.AugAssign(target, node.op, value)
            return self._statement_or_plain(call, ast.Assign([target], call), plain, node)
        if isinstance(target, ast.Subscript):
            value = self.visit(node.value)
            arguments = [self.visit(target.value), self._index(target.slice), value]
            names = (text_of(target.value), text_of(node.value))
            call = self._site("update_item", op, target, arguments, names, (text_of(target.value),))
            place = ast.Subscript(arguments[0], arguments[1], ast.Store())
            plain = ast.AugAssign(place, node.op, value)
            return self._statement_or_plain(call, ast.Expr(call), plain, node)
        node.value = self.visit(node.value)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        self._name_result(node.value, [node.target])
        node.value = self.visit(node.value)
        return node

    def _target(self, target: ast.expr) -> ast.expr:
        """The parts of a target that are evaluated: `f(x).y = 1`."""
        if isinstance(target, ast.Attribute):
            target.value = self.visit(target.value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            target.elts = [self._target(element) for element in target.elts]
        elif isinstance(target, ast.Starred):
            target.value = self._target(target.value)
        return target

    def visit_Delete(self, node: ast.Delete) -> ast.AST:
        return node

    # ---- values ------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if is_left_alone(node.func) or not self._wanted(node.func):
            node.func = self.visit(node.func)
            node.args = [self.visit(item) for item in node.args]
            for keyword in node.keywords:
                keyword.value = self.visit(keyword.value)
            return node
        receiver = text_of(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        inputs = (
            receiver,
            *(text_of(a) for a in node.args),
            *(text_of(k.value) for k in node.keywords),
        )
        targets = self._targets.get(id(node), ())
        func = self.visit(node.func)
        arguments = [func, *(self.visit(item) for item in node.args)]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        call = self._site("call", "", node, arguments, inputs, targets)
        call.keywords = node.keywords
        return self._or_plain(call, ast.Call(func, arguments[1:], node.keywords))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            return node
        operands = [node.left, node.right]
        return self._operator(
            "binary", node.op, node, operands, lambda new: ast.BinOp(new[0], node.op, new[1])
        )

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, (ast.Not, ast.UAdd)) or isinstance(node.operand, ast.Constant):
            node.operand = self.visit(node.operand)
            return node
        return self._operator(
            "unary", node.op, node, [node.operand], lambda new: ast.UnaryOp(node.op, new[0])
        )

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        ordered = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
        if len(node.ops) != 1 or not isinstance(node.ops[0], ordered):
            self.generic_visit(node)
            return node
        operands = [node.left, node.comparators[0]]
        return self._operator(
            "compare",
            node.ops[0],
            node,
            operands,
            lambda new: ast.Compare(new[0], node.ops, [new[1]]),
        )

    def _wanted(self, node: ast.expr) -> bool:
        if not self._only:
            return True
        text = text_of(node)
        if isinstance(node, ast.Subscript):  # self.datasets[i][j]
            text = text_of(node.value)
        return text in self._only

    def _operator(
        self,
        kind: str,
        op: ast.AST,
        node: ast.expr,
        operands: list[ast.expr],
        plain: Callable[[list[ast.expr]], ast.expr],
    ) -> ast.AST:
        if self._only:
            self.generic_visit(node)
            return node
        inputs = tuple(text_of(item) for item in operands)
        targets = self._targets.get(id(node), ())
        arguments = [self.visit(item) for item in operands]
        made = self._site(kind, type(op).__name__, node, arguments, inputs, targets)
        return self._or_plain(made, plain(arguments))

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not isinstance(node.ctx, ast.Load) or not self._wanted(node.value):
            self.generic_visit(node)
            return node
        inputs = (text_of(node.value), "")
        targets = self._targets.get(id(node), ())
        arguments = [self.visit(node.value), self._index(node.slice)]
        made = self._site("item", "", node, arguments, inputs, targets)
        return self._or_plain(made, ast.Subscript(arguments[0], arguments[1], ast.Load()))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        text, targets = text_of(node.value), self._targets.get(id(node), ())
        node.value = self.visit(node.value)
        if isinstance(node.ctx, ast.Load) and node.attr in _VIEWS and not self._only:
            return self._site("attribute", node.attr, node, [node.value], (text,), targets)
        return node

    def _index(self, index: ast.expr) -> ast.expr:
        """An index as a value: slices by the builtin, inside tuples too."""
        if isinstance(index, ast.Slice):
            parts = [index.lower, index.upper, index.step]
            values = [self.visit(p) if p else ast.Constant(None) for p in parts]
            return place_at(ast.Call(ast.Constant(SLICE), values, []), index)
        if isinstance(index, ast.Tuple):
            return place_at(ast.Tuple([self._index(e) for e in index.elts], ast.Load()), index)
        made: ast.expr = self.visit(index)
        return made

    # ---- sites -------------------------------------------------------------------------------

    def _site(
        self,
        kind: str,
        op: str,
        node: ast.expr,
        arguments: Sequence[ast.expr],
        inputs: tuple[str, ...],
        targets: tuple[str, ...] = (),
    ) -> ast.Call:
        number = len(self.sites)
        scope = self._scope[:-1] if self._scope[-1:] == ["<locals>"] else self._scope
        self.sites.append(Site(kind, op, self.file, node.lineno, ".".join(scope), targets, inputs))
        call = ast.Call(ast.Constant(f"{MARK}{number}"), list(arguments), [])
        return place_at(call, node)

    def _or_plain(self, call: ast.Call, plain: ast.expr) -> ast.expr:
        """`plain if SITE is None else SITE(...)`: a hook that is taken off leaves the source as it
        was written, which the interpreter knows how to run fast. The two share their parts."""
        if not self._may_stand_twice(plain):
            return call
        test = self._is_off(call)
        return place_at(ast.IfExp(test, place_at(plain, call), call), call)

    def _statement_or_plain(
        self, call: ast.Call, hooked: ast.stmt, plain: ast.stmt, node: ast.stmt
    ) -> ast.stmt:
        """The same for a statement."""
        if not self._may_stand_twice(plain):
            return place_at(hooked, node)
        return place_at(
            ast.If(self._is_off(call), [place_at(plain, node)], [place_at(hooked, node)]), node
        )

    def _is_off(self, call: ast.Call) -> ast.expr:
        mark = call.func
        assert isinstance(mark, ast.Constant)
        self.doubled.add(int(str(mark.value).removeprefix(MARK)))
        return place_at(ast.Compare(mark, [ast.Is()], [ast.Constant(None)]), call)

    def _may_stand_twice(self, plain: ast.AST) -> bool:
        """Small, without code of its own; a slice is made by a call, which is slower as it stands."""
        nodes = list(itertools.islice(ast.walk(plain), _LARGEST_COPY + 1))
        return (
            tests_of_constants_stay()
            and len(nodes) <= _LARGEST_COPY
            and not any(
                isinstance(item, _CODE_OF_ITS_OWN)
                or (isinstance(item, ast.Constant) and item.value == SLICE)
                for item in nodes
            )
        )

    def _name_result(self, value: ast.expr, targets: Sequence[ast.expr]) -> None:
        names = next((found for target in targets if (found := names_of(target))), ())
        self._targets[id(value)] = names

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"_torchstone_value_{self._temporaries}"

    def _made_since(self, first: str) -> list[str]:
        start = int(first.rpartition("_")[2])
        return [f"_torchstone_value_{number}" for number in range(start, self._temporaries + 1)]
