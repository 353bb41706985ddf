"""mindspore, where it is installed: its tensors become arrays, and arrays its tensors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_tensor(value: object) -> bool:
    """A tensor of mindspore, told without loading it."""
    module = sys.modules.get("mindspore")
    return module is not None and isinstance(value, module.Tensor)


def is_cell(value: object) -> bool:
    """A network of mindspore."""
    module = sys.modules.get("mindspore")
    return module is not None and isinstance(value, module.nn.Cell)


def array_of(value: Any) -> np.ndarray[Any, Any]:
    """A tensor of mindspore as an array."""
    found: np.ndarray[Any, Any] = value.asnumpy()
    return found


def tensor(array: object) -> object:
    """An array as a tensor of mindspore."""
    return sys.modules["mindspore"].Tensor(np.array(array))


def weights(cell: Any) -> dict[str, Any]:
    """The weights of a network by name, as arrays."""
    return {name: value.asnumpy() for name, value in cell.parameters_dict().items()}


def put_weights(cell: Any, values: dict[str, Any]) -> None:
    """Give a network other weights."""
    for name, parameter in cell.parameters_dict().items():
        parameter.set_data(tensor(values[name]))


def seed(number: int) -> None:
    """Start mindspore's own chance anew, where it is loaded."""
    module = sys.modules.get("mindspore")
    if module is not None:
        module.set_seed(number)
