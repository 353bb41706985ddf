"""Where each tensor was made, line by line back to the inputs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from torchstone.core.place import Place
from torchstone.dryrun.record import Made, Operand
from torchstone.observe.compat.backends import FAKE_DEVICE
from torchstone.observe.compat.operators import is_tensor_class
from torchstone.observe.where import PROGRAM

LONGEST = 12
"""Steps shown of one tensor's history: a screen; what lies before is seldom the cause."""
LOADER = "DataLoader ("
"""What a loader gives begins its history with this, and the kind of the batch."""
_KEY = "_dryrun_step"


class Step(NamedTuple):
    """One call in the history of a tensor, as cheap as it can be kept for every operator."""

    op: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    spot: Place
    before: Step | None

    def __reduce__(self) -> tuple[Any, ...]:
        """Code objects cannot be pickled: a tensor that travels leaves its history behind."""
        return (_forget, ())


def _forget() -> None:
    """In the place of a step that was pickled."""


def function_name(func: Any) -> str:
    """The name under which a user knows a function: `F.linear`, `Tensor.view`, `torch.cat`."""
    name = getattr(func, "__name__", str(func))
    owner = getattr(func, "__objclass__", None)
    if owner is not None and is_tensor_class(owner):
        return f"Tensor.{name}"
    home = getattr(func, "__module__", "") or ""
    if name in _FUNCTIONAL or home == "torch.nn.functional":
        return f"F.{name}"
    if home.startswith("torch._tensor"):
        return f"Tensor.{name}"
    if home.startswith("torch.") and home not in ("torch.functional", "torch._C"):
        return f"{home}.{name}".replace("torch._C._nn.", "F.")
    return f"torch.{name}"


_FUNCTIONAL = frozenset(
    "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d batch_norm "
    "layer_norm group_norm embedding scaled_dot_product_attention max_pool2d avg_pool2d "
    "cross_entropy nll_loss mse_loss".split()
)


def step_of(tensor: torch.Tensor) -> Step | None:
    return tensor.__dict__.get(_KEY)


def remember(tensor: torch.Tensor, op: str, spot: Place, before: Step | None) -> None:
    """Keep how a tensor was made, on the tensor itself."""
    tensor.__dict__[_KEY] = Step(op, tuple(tensor.shape), tensor.dtype, spot, before)


def remember_result(func: Any, args: Any, result: Any) -> None:
    """Every tensor in a result gets its step; the history continues with the first argument."""
    if isinstance(result, torch.Tensor):
        remember(result, function_name(func), PROGRAM.here(3), _first_step(args))
    elif isinstance(result, (tuple, list)):
        for item in result:
            if isinstance(item, torch.Tensor):
                remember(item, function_name(func), PROGRAM.here(3), _first_step(args))


def _first_step(args: Any) -> Step | None:
    """The history goes on with the first argument that is no parameter."""
    for item in args:
        if isinstance(item, torch.Tensor) and not isinstance(item, torch.nn.Parameter):
            return step_of(item)
        if isinstance(item, (tuple, list)) and item:
            return _first_step(item)
    return None


def history_of(tensor: torch.Tensor) -> tuple[Made, ...]:
    """The latest step first."""
    found: list[Made] = []
    step = step_of(tensor)
    while step is not None and len(found) < LONGEST:
        name = str(step.dtype).removeprefix("torch.")
        found.append(Made(step.op, step.shape, name, step.spot))
        step = step.before
    return tuple(found)


def operand(name: str, tensor: torch.Tensor) -> Operand:
    """A tensor as data."""
    device = str(tensor.device).replace(FAKE_DEVICE, "cuda")
    return Operand(
        name,
        tuple(int(size) for size in tensor.shape),
        str(tensor.dtype).removeprefix("torch."),
        device,
        isinstance(tensor, torch.nn.Parameter),
        history_of(tensor),
    )


def operands_of(func: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Operand, ...]:
    """All tensors of a call, by the names of its parameters where they are known."""
    found: list[Operand] = []
    for name, value in named_arguments(func, args, kwargs):
        if isinstance(value, torch.Tensor):
            found.append(operand(name, value))
        elif isinstance(value, (tuple, list)):
            found += (
                operand(f"{name}[{index}]", item)
                for index, item in enumerate(value)
                if isinstance(item, torch.Tensor)
            )
    return tuple(found)


def plain_arguments(func: Any, args: Any, kwargs: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """What else the call was given: sizes, axes, flags."""
    return tuple(
        (name, repr(value)[:80])
        for name, value in named_arguments(func, args, kwargs)
        if _is_plain(value)
    )


_PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    type(None),
    torch.dtype,
    torch.device,
    torch.layout,
    slice,
)
"""What can be written down: objects of the program may be half made, and refuse."""


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_is_plain(item) for item in value)
    return isinstance(value, (*_PLAIN, torch.memory_format))


def named_arguments(func: Any, args: Any, kwargs: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    names = _parameter_names(func)
    for index, value in enumerate(args):
        yield (names[index] if index < len(names) else f"argument {index}"), value
    yield from kwargs.items()


def _parameter_names(func: Any) -> list[str]:
    try:
        return list(inspect.signature(func).parameters)
    except (TypeError, ValueError):
        return list(_NATIVE_NAMES.get(getattr(func, "__name__", ""), ()))


_CONV = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
_NATIVE_NAMES: dict[str, tuple[str, ...]] = {
    "linear": ("input", "weight", "bias"),
    "conv1d": _CONV,
    "conv2d": _CONV,
    "conv3d": _CONV,
    "matmul": ("input", "other"),
    "mm": ("input", "mat2"),
    "bmm": ("input", "mat2"),
    "addmm": ("input", "mat1", "mat2"),
    "add": ("input", "other"),
    "sub": ("input", "other"),
    "mul": ("input", "other"),
    "div": ("input", "other"),
    "cat": ("tensors", "dim"),
    "stack": ("tensors", "dim"),
    "view": ("input",),
    "reshape": ("input",),
    "scaled_dot_product_attention": ("query", "key", "value"),
}
