"""Sees every call of a torch function by the user's program: devices, history, refused calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from torchstone.core.place import Place
from torchstone.dryrun.record import OperatorError
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import EndOfRun, OutermostCall, Session
from torchstone.dryrun.shapes.history import (
    function_name,
    operands_of,
    plain_arguments,
    remember_result,
)
from torchstone.observe.where import OWN, PROGRAM

Handler = Callable[[Any, Any, dict[str, Any]], Any]
Translate = Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any]]]
Check = Callable[[Any, Any, dict[str, Any], Any], None]
Repair = Callable[[BaseException, Any, Any, dict[str, Any]], tuple[bool, Any]]


class Calls(TorchFunctionMode):
    """Outermost of all: what a function calls inside itself is not seen here."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.handlers: dict[Any, Handler] = {}
        """Functions that are answered instead of called."""
        self.handlers[torch.device] = _call_as_it_is
        self.translate: Translate | None = None
        """Maps the names of devices in arguments."""
        self.checks: list[Check] = []
        """Look at each call that went well."""
        self.check_values: Callable[[Any, Any, dict[str, Any]], None] = lambda *call: None
        """Raises what eager torch raises for values that are known."""
        self.repair: Repair | None = None
        """Tries other calls in the place of one that was refused."""
        self.writers: Callable[[str], tuple[Place, ...]] = lambda message: ()
        """Where the tensor that a backward refuses was written."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        handler = self.handlers.get(func)
        if handler is not None:
            return handler(func, args, kwargs)
        if func.__name__ == "__get__":
            return func(*args, **kwargs)
        return self.call(func, args, kwargs)

    def call(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Call a function with everything that stands around a call."""
        if self.translate is not None:
            args, kwargs = self.translate(args, kwargs)
        try:
            result = func(*args, **kwargs)
            self.session.raise_held_back()
            self.check_values(func, args, kwargs)
        except EndOfRun:
            raise
        except Exception as error:
            if raised_by_the_user(error):
                raise
            self._refused(error, func, args, kwargs)
            if self.repair is not None:
                repaired, result = self.repair(error, func, args, kwargs)
                if repaired:
                    return result
            raise
        remember_result(func, args, result)
        for check in self.checks:
            check(func, args, kwargs, result)
        return result

    def _refused(self, error: Exception, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        session = self.session
        if id(error) in session.errors:
            return
        inner = getattr(error, "_dryrun_inner", "")
        session.kept.append(error)
        session.errors[id(error)] = OperatorError(
            op=function_name(func),
            message=str(error).split("\n\n")[0][:600],
            place=PROGRAM.here(2),
            inside=PROGRAM.library(2),
            module=session.module_path(),
            module_text=session.module_text(),
            operands=operands_of(func, args, kwargs),
            arguments=plain_arguments(func, args, kwargs),
            inner_op=inner,
            batch=session.batch,
            written=self.writers(str(error)),
        )


def raised_by_the_user(error: BaseException) -> bool:
    """Was it raised by a line of the program that torch called: a hook, a backward of its own?"""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and PROGRAM.kind_of(last.tb_frame.f_code.co_filename) == OWN


def _call_as_it_is(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    return func(*args, **kwargs)


def follow_modules(session: Session) -> None:
    """From now on the stack of modules that run is known."""
    original = torch.nn.Module.__call__
    stack = session.modules
    counts = session.counts

    def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if not stack:
            graded = torch.is_grad_enabled()
            counts.add("training_forwards" if graded else "evaluation_forwards")
            session.report(OutermostCall(module, args, kwargs, graded))
        stack.append(module)
        counts.add("hooks", len(module._forward_hooks) + len(module._forward_pre_hooks))
        try:
            return original(module, *args, **kwargs)
        except Exception as error:
            of_torch = type(module).__module__.startswith("torch.nn.")
            if id(error) not in session.errors and of_torch and not raised_by_the_user(error):
                _refused_by_layer(session, error, module, args, kwargs)
            if not hasattr(error, "_dryrun_module"):
                error._dryrun_module = session.module_path()  # type: ignore[attr-defined]
            raise
        finally:
            stack.pop()

    put(torch.nn.Module, "__call__", call)


def _refused_by_layer(
    session: Session, error: Exception, module: torch.nn.Module, args: Any, kwargs: dict[str, Any]
) -> None:
    """A layer of torch looks at its inputs in Python and refuses them before any operator does."""
    session.kept.append(error)
    session.errors[id(error)] = OperatorError(
        op=f"nn.{type(module).__name__}",
        message=str(error).split("\n\n")[0][:600],
        place=PROGRAM.here(3),
        inside=PROGRAM.library(3),
        module=session.module_path(),
        module_text=session.module_text(),
        operands=operands_of(module.forward, args, kwargs),
        arguments=plain_arguments(module.forward, args, kwargs),
        batch=session.batch,
    )
