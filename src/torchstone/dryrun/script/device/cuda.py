"""A pretend accelerator that answers for CUDA: fake tensors "on cuda" abort a CPU build of torch.

Names of devices in arguments are mapped to torch's private-use backend on the way in, and back on
the way out. No kernel exists for it: every tensor on it is fake.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.nn.attention import flex_attention

from torchstone.dryrun.script.device.as_written import run_on_one_device
from torchstone.dryrun.script.device.cuda_module import answer_module
from torchstone.dryrun.script.device.legacy_types import answer_legacy_types
from torchstone.dryrun.script.device.names import PretendCuda
from torchstone.dryrun.script.device.recurrent import take_recurrent_apart
from torchstone.dryrun.script.fakes.calls import Calls
from torchstone.dryrun.script.fakes.lazy import is_pretend
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import Session, is_fake
from torchstone.observe.compat.backends import FAKE_DEVICE as NAME
from torchstone.observe.compat.fakes import FakeTensor
from torchstone.observe.where import HIDDEN, PROGRAM


def pretend_cuda(session: Session, calls: Calls) -> PretendCuda:
    """From now on CUDA is there, as far as the program can tell."""
    cuda = PretendCuda(session)
    calls.translate = cuda.translate
    _answer_tensors(session, calls, cuda)
    answer_module(session, cuda)
    answer_legacy_types(calls)
    _answer_defaults(cuda)
    run_on_one_device()
    put(flex_attention, "_validate_device", lambda *tensors: None)  # it knows devices by name
    take_recurrent_apart(calls)
    return cuda


def _answer_defaults(cuda: PretendCuda) -> None:
    """torch puts the default device into calls below all modes: it has to be the pretend one."""
    set_device, get_device = torch.set_default_device, torch.get_default_device
    put(torch, "set_default_device", lambda device: set_device(cuda.mapped(device)))
    put(torch, "get_default_device", lambda: cuda.shown(get_device()))


def _answer_tensors(session: Session, calls: Calls, cuda: PretendCuda) -> None:
    device_getter = torch.Tensor.device.__get__
    cuda_getter = torch.Tensor.is_cuda.__get__  # type: ignore[attr-defined]

    def device(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        return cuda.shown(func(*args, **kwargs))

    def is_cuda(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
        return is_pretend(device_getter(args[0]))

    def to_cuda(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        wanted = args[1] if len(args) > 1 else kwargs.get("device")
        index = wanted if type(wanted) is int else None
        target = cuda.mapped(f"cuda:{index}" if index is not None else wanted or "cuda")
        with calls:
            return args[0].to(target)

    def to(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if len(args) > 1 and type(args[1]) is int:
            args = (args[0], cuda.mapped(f"cuda:{args[1]}"), *args[2:])
        return calls.call(func, args, kwargs)

    inner = calls.handlers[torch.tensor]
    default_device = torch.get_default_device

    def from_data(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        target = cuda.mapped(kwargs.pop("device", None))
        if target is None and is_pretend(default := default_device()) and not is_fake(args[0]):
            target = default
        made = inner(func, args, kwargs if target is None else {**kwargs, "device": "cpu"})
        if target is None or target == made.device:
            return made
        with calls:
            wanted = made.requires_grad
            return made.detach().to(target).requires_grad_(wanted)

    def same(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        return args[0]

    def pinned(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
        return False

    def type_name(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if len(args) == 1 and not kwargs:
            name = str(func(*args))
            return name.replace(f"torch.{NAME}", "torch.cuda")
        return calls.call(func, args, kwargs)

    def indexed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if is_fake(args[0]):
            args = (args[0], _plain_index(args[1]), *args[2:])
        return calls.call(func, args, kwargs)

    handlers = calls.handlers
    handlers[torch.Tensor.__getitem__] = indexed
    handlers[torch.Tensor.__setitem__] = indexed
    handlers[device_getter] = device
    handlers[cuda_getter] = is_cuda
    handlers[torch.Tensor.cuda] = to_cuda
    handlers[torch.Tensor.to] = to
    handlers[torch.Tensor.pin_memory] = same
    handlers[torch.Tensor.is_pinned] = pinned
    handlers[torch.Tensor.type] = type_name
    handlers[torch.tensor] = from_data
    handlers[torch.as_tensor] = from_data
    handlers[torch.Tensor.record_stream] = lambda func, args, kwargs: None
    _show_device(cuda)
    _number_in_module_to()


def _show_device(cuda: PretendCuda) -> None:
    """Fake tensors have a `device` of their own, which no handler sees: whoever is not torch is told
    `cuda`; torch itself needs the device that its kernels are looked up by."""
    getter = FakeTensor.device.fget  # type: ignore[attr-defined]
    setter = FakeTensor.device.fset  # type: ignore[attr-defined]

    def device(tensor: Any) -> torch.device:
        found: torch.device = getter(tensor)
        if found.type != NAME or PROGRAM.kind_of(sys._getframe(1).f_code.co_filename) == HIDDEN:
            return found
        return cuda.shown(found)

    put(FakeTensor, "device", property(device, setter))


def _plain_index(key: Any) -> Any:
    """An index in which lists are tensors (torch would make them on the device), and a real mask is
    the places where it is true: their number is known, however fake the indexed tensor is."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(part, (list, range)) or _is_real_mask(part) for part in parts):
        return key
    plain: list[Any] = []
    for part in parts:
        if _is_real_mask(part):
            plain += part.nonzero(as_tuple=True)
        else:
            plain.append(_as_index(part))
    return tuple(plain) if isinstance(key, tuple) or len(plain) > 1 else plain[0]


def _is_real_mask(item: Any) -> bool:
    return (
        isinstance(item, torch.Tensor) and item.dtype == torch.bool and item.dim() > 0
        and not is_fake(item)
    )  # fmt: skip


def _as_index(item: Any) -> Any:
    """A list in an index as a tensor on the CPU, which every device takes."""
    if isinstance(item, range):
        item = list(item)
    if isinstance(item, list) and all(isinstance(part, (int, bool)) for part in item):
        return torch.tensor(item)
    return item


def _number_in_module_to() -> None:
    """`module.to(0)` means the first accelerator."""
    original = torch.nn.Module.to

    def to(module: Any, *args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is int:
            args = (f"cuda:{args[0]}", *args[1:])
        elif type(kwargs.get("device")) is int:
            kwargs = {**kwargs, "device": f"cuda:{kwargs['device']}"}
        return original(module, *args, **kwargs)

    put(torch.nn.Module, "to", to)
