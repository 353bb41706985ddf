"""Fake tensors that become numbers, lists, arrays and text."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef

from torchstone.dryrun.script.answers import scalar_for
from torchstone.dryrun.script.calls import Calls
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.script.session import Session, is_fake

_SPECIAL_DTYPES = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


def answer_conversions(session: Session, calls: Calls) -> None:
    """`.numpy()`, `.tolist()`, `format()`, `repr()` give ones of the right shape and kind."""

    def numpy(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        tensor = args[0]
        if not is_fake(tensor):
            return func(*args, **kwargs)
        _refuse_as_eager(tensor, kwargs.get("force", False))
        session.assume(".numpy()", f"ones of shape {tuple(tensor.shape)}")
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
        session.assume(".tolist()", f"ones of shape {tuple(tensor.shape)}")
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

    plain_list = FakeTensor.tolist

    def listed(tensor: FakeTensor) -> Any:
        storage = tensor.untyped_storage()
        total = session.totals.get(StorageWeakRef(storage))
        if total is None or tensor.numel() * tensor.itemsize != storage.nbytes():
            return plain_list(tensor)
        session.assume(".tolist()", f"{total} in equal shares")
        return _shares(total, tensor.numel())

    put(FakeTensor, "tolist", listed)
    calls.handlers[torch.Tensor.numpy] = numpy
    calls.handlers[torch.Tensor.__array__] = array
    calls.handlers[torch.Tensor.tolist] = tolist
    calls.handlers[torch.Tensor.__format__] = formatted
    calls.handlers[torch.Tensor.__repr__] = represented


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
