"""`@watch_training`: one line above a training step, nothing else to configure."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.watch.monitor import Watch
from torchstone.watch.settings import OnAlert, Settings

Step = TypeVar("Step", bound=Callable[..., Any])


@overload
def watch_training(function: Step, /) -> Step: ...


@overload
def watch_training(
    *,
    warmup_steps: int = 100,
    alert_window: int = 50,
    false_alarms_per_10k: float = 2.0,
    on_alert: OnAlert = None,
    model: Any = None,
    optimizer: Any = None,
    scaler: Any = None,
    scheduler: Any = None,
    **options: Any,
) -> Callable[[Step], Step]: ...


def watch_training(
    function: Any = None,
    /,
    warmup_steps: int = 100,
    alert_window: int = 50,
    *,
    model: Any = None,
    optimizer: Any = None,
    scaler: Any = None,
    scheduler: Any = None,
    **options: Any,
) -> Any:
    """Monitor every call of a training step, and report when a signal leaves its usual range.

    Model, optimizers, scaler, scheduler and loss are found in the call (arguments, the object of
    a method, closure, globals, the value returned); each can be named instead. The step's result
    and its exceptions pass through unchanged. `function.watch` is the underlying `Watch`.
    """
    if isinstance(function, int):
        warmup_steps, function = function, None  # watch_training(100), by position
    found = {"warmup_steps": warmup_steps, "alert_window": alert_window, **options}

    def decorate(step: Any) -> Any:
        _refuse(step)
        watch = Watch(model, optimizer, scaler=scaler, scheduler=scheduler, **found)

        busy = threading.Lock()

        @functools.wraps(step)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if not busy.acquire(blocking=False):
                return step(*args, **kwargs)  # within itself, or from another thread: one at a time
            try:
                watch.prepare(step, args, kwargs)
                watch.begin((args, kwargs))
                try:
                    result = step(*args, **kwargs)
                except BaseException:
                    watch.abandon()
                    raise
                watch.end(result)
                return result
            finally:
                busy.release()

        watched.watch = watch  # type: ignore[attr-defined]
        return watched

    return decorate if function is None else decorate(function)


def _refuse(step: Any) -> None:
    """A step must be a plain call from begin to end."""
    function = getattr(step, "func", step)
    odd = inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function)
    if odd or isinstance(step, (classmethod, staticmethod)) or not callable(step):
        raise UsageError(
            "watch_training", type(step).__name__ if not odd else "a coroutine or a generator",
            Text("a plain function or method", "普通函数或方法"),
            Text("put @watch_training below @classmethod or @staticmethod; for other loops use Watch",
                 "把 @watch_training 放在 @classmethod 或 @staticmethod 之下；其他循环请用 Watch"),
        )  # fmt: skip


__all__ = ["Settings", "watch_training"]
