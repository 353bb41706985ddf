"""Fake tensors that become numbers, lists, arrays and text."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from torchstone.core.text import Text
from torchstone.dryrun.script.fakes.answers import Answers, scalar_for
from torchstone.dryrun.script.fakes.calls import Calls
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import Session, is_fake
from torchstone.observe.compat.fakes import FakeTensor
from torchstone.observe.compat.modes import DisableTorchFunction, disable_modes

_CTC = ("log_probs", "targets", "input_lengths", "target_lengths")
_SPECIAL_DTYPES = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


def answer_conversions(session: Session, calls: Calls) -> None:
    """`.numpy()`, `.tolist()`, `format()`, `repr()` give the values that are known, else ones of the right shape
    and kind."""

    def known(tensor: torch.Tensor) -> torch.Tensor | None:
        with disable_modes(), DisableTorchFunction():
            return session.asks.value_of(tensor)

    def numpy(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        tensor = args[0]
        if not is_fake(tensor):
            return func(*args, **kwargs)
        _refuse_as_eager(tensor, kwargs.get("force", False))
        if (value := known(tensor)) is not None and tensor.dtype not in _SPECIAL_DTYPES:
            with disable_modes(), DisableTorchFunction():
                return value.numpy()
        session.assume(".numpy()", _ones(tensor))
        return np.ones(tuple(tensor.shape), dtype=_numpy_dtype(tensor.dtype))

    def array(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if not is_fake(args[0]):
            return func(*args, **kwargs)
        made = numpy(torch.Tensor.numpy, args[:1], {})
        wanted = args[1] if len(args) > 1 else kwargs.get("dtype")
        return made if wanted is None else made.astype(wanted)

    def tolist(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        tensor = args[0]
        if not is_fake(tensor):
            return func(*args, **kwargs)
        if (value := known(tensor)) is not None:
            with disable_modes(), DisableTorchFunction():
                return value.tolist()
        session.assume(".tolist()", _ones(tensor))
        return _nested(tuple(tensor.shape), scalar_for(tensor.dtype))

    def formatted(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        tensor = args[0]
        if not is_fake(tensor):
            return func(*args, **kwargs)
        if tensor.dim() == 0:
            session.assume("format()", "1.0")
            return format(scalar_for(tensor.dtype), args[1] if len(args) > 1 else "")
        return _described(tensor)

    def represented(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        return _described(args[0]) if is_fake(args[0]) else func(*args, **kwargs)

    def from_data(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if args and isinstance(args[0], (list, tuple)):
            with calls:
                args = (_plain_numbers(args[0]), *args[1:])
        return calls.call(func, args, kwargs)

    def ctc_loss(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        given = dict(zip(_CTC, args, strict=False)) | kwargs
        scores, targets = given["log_probs"], given["targets"]
        full = (scores.shape[0], targets.shape[-1] if targets.dim() > 1 else 1)
        for name, longest in zip(_CTC[2:], full, strict=False):
            given[name] = lengths(given[name], longest)
        return calls.call(func, (), given)

    def lengths(given: Any, longest: int) -> list[int]:
        """As numbers: torch would ask a tensor without values for them."""
        if not is_fake(given):
            return [int(length) for length in given]
        session.assume("ctc_loss", Text(f"all lengths are {longest}", f"长度均为 {longest}"))
        return [longest] * given.shape[0]

    plain_list = FakeTensor.tolist

    def listed(tensor: FakeTensor) -> Any:
        storage = tensor.untyped_storage()
        total = session.totals.get(StorageWeakRef(storage))
        if total is None or tensor.numel() * tensor.itemsize != storage.nbytes():
            return plain_list(tensor)
        session.assume(".tolist()", Text(f"{total} in equal shares", f"{total} 平均分配"))
        return _shares(total, tensor.numel())

    put(FakeTensor, "tolist", listed)
    calls.handlers[torch.nn.functional.ctc_loss] = ctc_loss
    calls.handlers[torch.tensor] = from_data
    calls.handlers[torch.as_tensor] = from_data
    calls.handlers[torch.Tensor.numpy] = numpy
    calls.handlers[torch.Tensor.__array__] = array
    calls.handlers[torch.Tensor.tolist] = tolist
    calls.handlers[torch.Tensor.__format__] = formatted
    calls.handlers[torch.Tensor.__repr__] = represented


def copy_stale_tensors(session: Session, calls: Calls, answers: Answers) -> None:
    """A deep copy of a real tensor whose value is no longer known is one, too."""

    def copy(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        tensor = args[0]
        if is_fake(tensor) or not answers.is_stale(tensor):
            return calls.call(func, args, kwargs)
        with disable_modes(), DisableTorchFunction():
            made = func(*args, **kwargs)
        answers.mark_stale(made)
        session.asks.give_number(made, session.asks.number_of(tensor))
        return made

    calls.handlers[torch.Tensor.__deepcopy__] = copy


def _ones(tensor: torch.Tensor) -> Text:
    shape = tuple(tensor.shape)
    return Text(f"ones of shape {shape}", f"形状为 {shape} 的全 1")


def _plain_numbers(data: Any) -> Any:
    """Lists in which fake tensors are numbers: torch reads them from memory, which those do not have."""
    if isinstance(data, (list, tuple)):
        return [_plain_numbers(item) for item in data] if _holds_fake(data) else data
    return data.tolist() if is_fake(data) else data


def _holds_fake(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_holds_fake(item) for item in data)
    return is_fake(data)


def _refuse_as_eager(tensor: torch.Tensor, force: bool) -> None:
    """What `.numpy()` refuses on real tensors it refuses here."""
    if force:
        return
    if tensor.requires_grad:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    if tensor.device.type not in ("cpu", "meta"):
        device = str(tensor.device).replace("pretend", "cuda")
        raise TypeError(
            f"can't convert {device} device type tensor to numpy. Use Tensor.cpu() to copy the "
            "tensor to host memory first."
        )
    if tensor.dtype in _SPECIAL_DTYPES:
        raise TypeError(f"Got unsupported ScalarType {str(tensor.dtype).removeprefix('torch.')}")


def _numpy_dtype(dtype: torch.dtype) -> Any:
    if dtype in _SPECIAL_DTYPES:
        return np.float32
    return torch.empty(0, dtype=dtype).numpy().dtype


def _shares(total: int, parts: int) -> list[int]:
    """Sizes as equal as they can be: `x.split(sizes)` takes them."""
    return [total // parts + (place < total % parts) for place in range(parts)]


def _nested(shape: tuple[int, ...], value: Any) -> Any:
    if not shape:
        return value
    return [_nested(shape[1:], value) for _ in range(shape[0])]


def _described(tensor: torch.Tensor) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"tensor(shape={tuple(tensor.shape)}, dtype={dtype}, no values in a dry run)"
