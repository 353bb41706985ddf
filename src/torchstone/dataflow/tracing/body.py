"""The statements of a `with` block that are already running, run rewritten in their place.

A running frame keeps its code. So the block's statements are compiled anew with their sites and
run when the block is entered; then the block itself is left at its first line by an exception
that only the context manager sees.
"""

from __future__ import annotations

import ast
import ctypes
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

from torchstone.core.text import Text
from torchstone.dataflow.tracing.instrument import Instrumentation, source_of

_NO_SOURCE = Text("its source is not at hand", "没有其源代码")
_NAME = "with_block"
_SINK = "_torchstone_names"
_LEAVING = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_SCOPING = (ast.Global, ast.Nonlocal, ast.Delete, ast.Import, ast.ImportFrom)
_MAKING = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class BodyDone(BaseException):
    """The block has been run already."""


class Block:
    """The statements of one `with` block, ready to be run for the frame that entered it."""

    def __init__(self, frame: FrameType, code: CodeType, target: str) -> None:
        self._frame = frame
        self._code = code
        self._target = target

    def run(self, entered: object) -> BaseException | None:
        """Run the statements on the frame's variables; the exception they raised, if any."""
        frame = self._frame
        names = dict(frame.f_locals) if frame.f_locals is not frame.f_globals else {}
        if self._target:
            names[self._target] = entered
        if frame.f_locals is frame.f_globals:
            frame.f_globals.update(names)
            return _attempt(lambda: exec(self._code, frame.f_globals))
        after: dict[str, Any] = {}
        namespace: dict[str, Any] = {}
        exec(self._code, frame.f_globals, namespace)
        known = [name for name in _parameters(namespace[_NAME]) if name in names]
        values = {name: names[name] for name in known}
        error = _attempt(lambda: namespace[_NAME](after.update, **values))
        _write_back(frame, after)
        return error

    def leave_at_first_line(self, error: BaseException | None) -> None:
        """The next line event of the frame raises what the block raised, or `BodyDone`."""
        frame = self._frame
        raised = BodyDone() if error is None else error
        context = raised.__context__

        def leave(inner: FrameType, event: str, _: object) -> object:
            if inner is frame and event == "line":
                sys.settrace(None)
                frame.f_trace = None
                try:
                    raise raised
                finally:
                    raised.__context__ = context
            return leave

        frame.f_trace = leave
        sys.settrace(_look_at_no_other_frame)


def _look_at_no_other_frame(_: FrameType, __: str, ___: object) -> None:
    return None


def block_of(frame: FrameType, instrumentation: Instrumentation) -> Block | Text:
    """The block that the frame is about to enter, or why it cannot be run rewritten."""
    if sys.gettrace() is not None:
        return Text("a debugger or a coverage tool is tracing", "有调试器或覆盖率工具正在追踪")
    name = frame.f_code.co_filename
    try:
        tree = ast.parse(source_of(name), name)
    except (SyntaxError, ValueError):
        return _NO_SOURCE
    statement = _enclosing_with(tree, frame)
    if statement is None:
        return _NO_SOURCE
    if statement.body[0].lineno <= statement.items[-1].context_expr.end_lineno:  # type: ignore[operator]
        return Text("it stands on the line of its `with`", "它与 `with` 写在同一行")
    if len(statement.items) > 1 and not _is_entered_last(statement):
        return Text(
            "its `with` enters something after the trace", "其 `with` 在追踪之后还进入了别的上下文"
        )
    reason = _obstacle(statement, is_module=frame.f_locals is frame.f_globals)
    if reason is not None:
        return reason
    target = statement.items[-1].optional_vars
    bound = target.id if isinstance(target, ast.Name) else ""
    if target is not None and not bound:
        return Text("`as` binds more than a name", "`as` 绑定的不止一个名字")
    is_module = frame.f_locals is frame.f_globals
    if is_module:
        tree = ast.Module(statement.body, [])
    else:
        names = [*(n for n in frame.f_locals if n.isidentifier()), *([bound] if bound else [])]
        tree = _as_function(statement, list(dict.fromkeys(names)))
    code = instrumentation.block(name, tree, as_function=not is_module)
    return Block(frame, code, bound)


def _enclosing_with(tree: ast.Module, frame: FrameType) -> ast.With | None:
    """The `with` whose header holds the frame's line, in the function of the frame."""
    line = frame.f_lineno
    best: ast.With | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.With) and node.lineno <= line < max(
            node.body[0].lineno, node.lineno + 1
        ):
            best = node
    return best


def _is_entered_last(statement: ast.With) -> bool:
    """Is the trace the last of the contexts, and no other one of them a trace?"""
    made = [
        isinstance(item.context_expr, ast.Call)
        and isinstance(item.context_expr.func, ast.Attribute)
        and item.context_expr.func.attr == "tracing_context"
        for item in statement.items
    ]
    return made[-1] and not any(made[:-1])


def _obstacle(statement: ast.With, *, is_module: bool) -> Text | None:
    for node in _inside(statement.body):
        if isinstance(node, _LEAVING):
            return Text("it returns, yields or awaits", "其中有 return、yield 或 await")
        if isinstance(node, (ast.Break, ast.Continue)) and not _in_loop(statement, node):
            return Text("it leaves a loop around it", "其中跳出了外层循环")
        if not is_module and isinstance(node, (*_SCOPING, *_MAKING)):
            return Text(
                "it binds names in a way that only its own function can",
                "其中的名字绑定只能由所在函数完成",
            )
        if isinstance(node, ast.Name) and node.id in ("super", "locals", "__class__"):
            return Text(f"it uses {node.id}", f"其中用到 {node.id}")
    return None


def _inside(body: list[ast.stmt]) -> list[ast.AST]:
    """All nodes of the block but those of functions defined in it."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, _MAKING):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def _in_loop(statement: ast.With, leaving: ast.AST) -> bool:
    loops = [n for n in _inside(statement.body) if isinstance(n, (ast.For, ast.While))]
    return any(leaving in list(ast.walk(loop)) for loop in loops)


def _as_function(statement: ast.With, names: list[str]) -> ast.Module:
    """A function of the frame's variables that hands them back whatever happens."""
    sink = ast.Call(
        ast.Name(_SINK, ast.Load()),
        [ast.Call(ast.Name("locals", ast.Load()), [], [])],
        [],
    )
    body: list[ast.stmt] = [ast.Try(statement.body, [], [], [ast.Expr(sink)])]
    arguments = ast.arguments(
        posonlyargs=[ast.arg(_SINK)],
        args=[],
        kwonlyargs=[ast.arg(name) for name in names],
        kw_defaults=[ast.Constant(None) for _ in names],
        defaults=[],
    )
    function = ast.FunctionDef(_NAME, arguments, body, [], None)
    ast.copy_location(function, statement)
    if sys.version_info >= (3, 12):
        function.type_params = []
    module = ast.Module([function], [])
    return ast.fix_missing_locations(module)


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    code: CodeType = function.__code__
    return code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]


def _attempt(run: Callable[[], object]) -> BaseException | None:
    try:
        run()
    except BaseException as error:  # handed on by the context manager, unchanged
        return error
    return None


def _write_back(frame: FrameType, after: Mapping[str, Any]) -> None:
    """The block's variables become the frame's."""
    own = {name: value for name, value in after.items() if name != _SINK}
    known = (*frame.f_code.co_varnames, *frame.f_code.co_cellvars, *frame.f_code.co_freevars)
    frame.f_locals.update({name: value for name, value in own.items() if name in known})
    if sys.version_info < (3, 13):  # from 3.13 on f_locals writes through
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
