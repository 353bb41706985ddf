"""Rules by which arguments become tensors on a device, and results what the caller had.

Inside, an image is (N, C, H, W) and an array has its own shape. Outside, dtype, layout and type are
those of the original's result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchstone.dataflow.migration.device_array import DeviceArray

Output = str | tuple[str, ...]
NUMPY_TO_TORCH = {
    np.dtype(name): getattr(torch, name)
    for name in "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
}


@dataclass(slots=True)
class Transfer:
    """What one call moves."""

    device: torch.device
    keep: bool = False
    """Results stay on the device, as arrays that come back when somebody looks at them."""
    to_device: int = 0
    to_host: int = 0
    picture: Any = None
    """The first picture among the arguments: what is made of it inherits its `info`."""


class Processors:
    """The rules by name."""

    def __init__(self) -> None:
        self._inputs: dict[str, Callable[[Any, Transfer], Any]] = {
            "image": _image_in,
            "images": lambda value, transfer: [_image_in(item, transfer) for item in value],
            "array": _array_in,
            "arrays": lambda value, transfer: [_array_in(item, transfer) for item in value],
            "picture": _picture_in,
            "tensors": _tensors_in,
        }
        self._outputs: dict[str, Callable[[Any, Transfer], Any]] = {
            "image": _image_out,
            "images": lambda value, transfer: tuple(_image_out(item, transfer) for item in value),
            "array": _array_out,
            "array_as": _array_as_out,
            "picture": _picture_out,
            "tensors": _tensors_out,
            "value": lambda value, _: value,
        }

    def get_input_processor(self, rule: str) -> Callable[[Any, Transfer], Any] | None:
        return self._inputs.get(rule)

    def get_output_processor(self, rule: Output) -> Callable[[Any, Transfer], Any]:
        if isinstance(rule, tuple):
            rules = [self._outputs[name] for name in rule]
            return lambda value, transfer: tuple(
                process(item, transfer) for process, item in zip(rules, value, strict=True)
            )
        return self._outputs[rule]


def _to_device(array: np.ndarray, transfer: Transfer) -> torch.Tensor:
    if any(stride < 0 for stride in array.strides) or not array.flags.writeable:
        array = array.copy()  # torch takes neither negative strides nor memory it may not write
    if not array.dtype.isnative:
        raise TypeError(f"torch has no {array.dtype} in this byte order")
    tensor = torch.from_numpy(array)
    if transfer.device.type == "cpu":
        return tensor
    transfer.to_device += tensor.numel() * tensor.element_size()
    return tensor.to(transfer.device)


def _to_host(tensor: torch.Tensor, transfer: Transfer) -> np.ndarray:
    if tensor.device.type != "cpu":
        transfer.to_host += tensor.numel() * tensor.element_size()
    return np.ascontiguousarray(tensor.detach().cpu().resolve_conj().numpy())


def _array_in(value: Any, transfer: Transfer) -> Any:
    if isinstance(value, DeviceArray):
        return value.tensor.to(transfer.device)
    return _to_device(value, transfer) if isinstance(value, np.ndarray) else value


def _image_in(value: Any, transfer: Transfer) -> Any:
    if isinstance(value, np.ndarray | DeviceArray):
        tensor = _array_in(value, transfer)
        planes = tensor[:, :, None] if tensor.ndim == 2 else tensor
        return planes.permute(2, 0, 1)[None]
    return value


def _image_out(value: torch.Tensor, transfer: Transfer) -> Any:
    plane = value[0].permute(1, 2, 0)
    if plane.shape[2] == 1:
        plane = plane[:, :, 0]  # cv2 drops the axis of a single channel
    return _array_out(plane, transfer)


def _array_out(value: Any, transfer: Transfer) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_array_out(item, transfer) for item in value)
    if not isinstance(value, torch.Tensor):
        return value
    if transfer.keep:
        return DeviceArray(value.contiguous())
    array = _to_host(value, transfer).reshape(tuple(value.shape))
    return array if value.ndim else array[()]


def _array_as_out(value: tuple[torch.Tensor, np.dtype[Any]], transfer: Transfer) -> Any:
    """A tensor and the dtype of numpy's result, which torch may not have."""
    tensor, dtype = value
    if tensor.dtype == NUMPY_TO_TORCH.get(dtype):
        return _array_out(tensor, transfer)
    array = _to_host(tensor, transfer).reshape(tuple(tensor.shape)).astype(dtype)
    return array if tensor.ndim else array[()]


def _picture_in(value: Any, transfer: Transfer) -> Any:
    array = np.asarray(value)
    transfer.picture = transfer.picture or value
    return _image_in(array, transfer)


def _picture_out(value: tuple[torch.Tensor, str], transfer: Transfer) -> Any:
    """A tensor and the mode of the picture."""
    from PIL import Image

    tensor, mode = value
    plane = tensor[0].permute(1, 2, 0)
    array = _to_host(plane[:, :, 0] if plane.shape[2] == 1 else plane, transfer)
    size = (array.shape[1], array.shape[0])
    made = Image.frombytes(mode, size, array.tobytes())
    made.info = dict(transfer.picture.info)
    return made


def _tensors_in(value: Any, transfer: Transfer) -> Any:
    if isinstance(value, torch.Tensor):
        if value.device != transfer.device:
            transfer.to_device += value.numel() * value.element_size()
        return value.to(transfer.device)
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)(_tensors_in(item, transfer) for item in value)
    if type(value) is dict:
        return {key: _tensors_in(item, transfer) for key, item in value.items()}
    return value


def _tensors_out(value: Any, transfer: Transfer) -> Any:
    if isinstance(value, torch.Tensor):
        if transfer.keep or value.device.type == "cpu":
            return value
        transfer.to_host += value.numel() * value.element_size()
        return value.cpu()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_tensors_out(item, transfer) for item in value))
    if type(value) in (tuple, list):
        return type(value)(_tensors_out(item, transfer) for item in value)
    return value
