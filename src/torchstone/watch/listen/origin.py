"""Where NaN or infinity came from: the step's batch once more, with the weights it was taken with."""

from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from torchstone.core.text import Text
from torchstone.observe.compat.compiler import uncompiled
from torchstone.observe.non_finite import FirstNonFinite, NonFinite
from torchstone.observe.operators import CallMode
from torchstone.observe.training import TRAINING, StepBegins
from torchstone.observe.where import PROGRAM
from torchstone.watch.listen.discover import tensors_in

_ROWS_SHOWN = 5
_AUTOCAST = ("cuda", "cpu")
MOST_CALLS = 8
"""Calls of the model in one step that are kept: as many micro-batches as are usual."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of the model in a training step, as it can be made again."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    autocast: tuple[str, torch.dtype] | None


@dataclass(frozen=True, slots=True)
class StepCall:
    """The call of a decorated training step."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def can_be_repeated(self) -> bool:
        """Its batch is an argument, and it takes nothing from an iterator: that would be the next batch."""
        plain = inspect.unwrap(self.function)
        code = getattr(plain, "__code__", None) or getattr(getattr(plain, "__func__", None), "__code__", None)  # fmt: skip
        return (
            code is not None
            and not {"next", "__next__"} & set(code.co_names)
            and any(True for _ in tensors_in((self.args, self.kwargs)))
        )


class _EndOfForward(BaseException):
    """Ends a repeated step: nobody catches it by accident."""


class _ForwardOnly(CallMode):
    """The step up to its backward pass: gradients and weights stay what they are."""

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func is torch.Tensor.backward:
            raise _EndOfForward
        return func(*args, **kwargs)


def note_call(model: nn.Module, args: Any, kwargs: Any) -> ModelCall:
    """What the model is given, untouched, with the number format that autocast asks for."""
    cast = next((kind for kind in _AUTOCAST if torch.is_autocast_enabled(kind)), None)
    return ModelCall(
        model, args, dict(kwargs), None if cast is None else (cast, torch.get_autocast_dtype(cast))
    )


def find_origin(
    calls: list[ModelCall], random_state: torch.Tensor | None, step: StepCall | None = None
) -> Text | None:
    """The first operator whose result is not finite, in words; None where nothing can be said."""
    if not calls or (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return None  # other ranks would not take part in what one rank runs again
    model = uncompiled(calls[0].model)
    if _is_bad(model.parameters()):
        return Text(
            "the weights already hold NaN or infinity, so this step cannot show the cause; "
            "Watch(budget=1.0) reads every step",
            "权重中已有 NaN 或无穷大，这一步无法显示原因；Watch(budget=1.0) 会读取每一步",
        )
    for number, call in enumerate(calls):
        if _is_bad(tensors_in((call.args, call.kwargs))):
            found = _repeat_step(model, step, random_state)
            return (
                _describe(found, 0, 1)
                if found is not None
                else _bad_input(call, number, len(calls))
            )
        if (seen := _run_again(model, call, random_state)) is not None:
            return _describe(seen, number, len(calls))
    if (found := _repeat_step(model, step, random_state)) is not None:
        return _describe(found, 0, 1)
    return Text(
        "run again, the model's outputs and gradients are finite for this batch: look at the loss, "
        "which is computed from them",
        "重新运行后，模型对该批次的输出和梯度都是有限的：请检查由其计算的损失",
    )


def _run_again(
    model: nn.Module, call: ModelCall, random_state: torch.Tensor | None
) -> NonFinite | None:
    found: list[NonFinite] = []
    cast = torch.autocast(*call.autocast) if call.autocast else contextlib.nullcontext()
    watched = FirstNonFinite(PROGRAM, found.append)
    with _kept_as_it_is(model, random_state), torch.enable_grad(), watched:
        with cast:
            output = model(*call.args, **call.kwargs)
        ends = [item for item in tensors_in(output) if item.requires_grad]
        starts = [item for item in model.parameters() if item.requires_grad]
        if not found and ends and starts:
            ones = [torch.ones_like(item) for item in ends]
            torch.autograd.grad(ends, starts, ones, allow_unused=True)
    return found[0] if found else None


def _repeat_step(
    model: nn.Module, step: StepCall | None, random_state: torch.Tensor | None
) -> NonFinite | None:
    """The step's own code up to its backward pass: what comes before the model, and the loss."""
    if step is None or not step.can_be_repeated:
        return None
    found: list[NonFinite] = []

    def seen(first: NonFinite) -> None:
        found.append(first)
        raise _EndOfForward

    def refuse(_: StepBegins) -> None:
        raise _EndOfForward

    gradients = [(item, item.grad) for item in model.parameters()]
    stepping = TRAINING.subscribe(refuse, StepBegins, before_others=True)
    try:
        with (
            _kept_as_it_is(model, random_state),
            contextlib.redirect_stdout(io.StringIO()),
            torch.enable_grad(),
            contextlib.suppress(_EndOfForward),
            FirstNonFinite(PROGRAM, seen),
            _ForwardOnly(),
        ):
            step.function(*step.args, **step.kwargs)
    finally:
        stepping.close()
        for parameter, gradient in gradients:
            parameter.grad = gradient
    return found[0] if found else None


@contextlib.contextmanager
def _kept_as_it_is(model: nn.Module, random_state: torch.Tensor | None) -> Iterator[None]:
    """Running statistics and random numbers are afterwards what they were."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.random.fork_rng(devices=()):
        if random_state is not None:
            torch.set_rng_state(random_state)
        try:
            yield
        finally:
            with torch.no_grad():
                for name, buffer in model.named_buffers():
                    if name in buffers:
                        buffer.copy_(buffers[name])


def _describe(seen: NonFinite, number: int, calls: int) -> Text:
    line = f"{seen.place.path}:{seen.place.line}" if seen.place else "torch"
    rows = ", ".join(map(str, seen.rows[:_ROWS_SHOWN]))
    more = len(seen.rows) - _ROWS_SHOWN
    inputs = "; ".join(seen.given)
    which, which_zh = (
        (f" (micro-batch {number + 1})", f"（第 {number + 1} 个微批次）") if calls > 1 else ("", "")
    )
    backward = seen.phase == "backward"
    return Text(
        f"first non-finite value: `{seen.operator}` at {line}{', in its backward pass' * backward}; "
        f"row {rows}{f' and {more} more' if more > 0 else ''} of {seen.shape[0] if seen.shape else 1}"
        f"{which}; inputs {inputs}",
        f"第一个非有限值：{line} 的 `{seen.operator}`{'（反向传播）' * backward}；第 {rows} 行"
        f"{f'等 {len(seen.rows)} 行' if more > 0 else ''}，共 {seen.shape[0] if seen.shape else 1} 行"
        f"{which_zh}；输入 {inputs}",
    )


def _bad_input(call: ModelCall, number: int, calls: int) -> Text:
    tensor = next(item for item in tensors_in((call.args, call.kwargs)) if _is_bad((item,)))
    bad = ~tensor.detach().isfinite()
    found = (bad.flatten(1).any(1) if bad.dim() > 1 else bad.flatten()).nonzero().flatten().tolist()
    rows = ", ".join(map(str, found[:_ROWS_SHOWN]))
    more = len(found) - _ROWS_SHOWN
    which, which_zh = (f" {number + 1}", f"第 {number + 1} 个") if calls > 1 else ("", "")
    return Text(
        f"the model's input{which} already holds NaN or infinity, in row {rows}{f' and {more} more' if more > 0 else ''} "
        f"of {len(tensor) if tensor.dim() else 1}: look at the data and at what is done to them before the model",
        f"{which_zh}模型输入已含 NaN 或无穷大：第 {rows} 行{f'等 {len(found)} 行' if more > 0 else ''}"
        f"（共 {len(tensor) if tensor.dim() else 1} 行），请检查数据以及进入模型前的处理",
    )


def _is_bad(tensors: Any) -> bool:
    return any(
        item.is_floating_point()
        and item.device.type != "meta"
        and not bool(item.detach().isfinite().all())
        for item in tensors
    )
