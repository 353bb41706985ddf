"""The pickle inside a `.pt` file, read with inert stand-ins: no class or function of it is ever called.

The unpickler asks `find_class` for everything that it could call; here it gets records of our own, or
an error. What the file says about tensors is kept, their bytes are not touched.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, ClassVar

import torch

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.tensors.files.stored import damaged
from torchstone.tensors.files.torch_records import (
    StorageRecord,
    TensorRecord,
    UnreadableRecord,
    first_argument,
    layout_name,
    rebuild_from_numpy,
    rebuild_from_type,
    rebuild_meta,
    rebuild_nested,
    rebuild_quantised,
    rebuild_sparse,
    rebuild_tensor,
    rebuild_wrapper,
    whole_numbers,
)

_STORAGES = {
    "FloatStorage": torch.float32, "DoubleStorage": torch.float64, "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16, "LongStorage": torch.int64, "IntStorage": torch.int32,
    "ShortStorage": torch.int16, "CharStorage": torch.int8, "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool, "UntypedStorage": torch.uint8, "ComplexFloatStorage": torch.complex64,
    "ComplexDoubleStorage": torch.complex128, "QInt8Storage": torch.qint8,
    "QUInt8Storage": torch.quint8, "QInt32Storage": torch.qint32, "QUInt4x2Storage": torch.quint4x2,
    "QUInt2x4Storage": torch.quint2x4,
}  # fmt: skip
_HARMLESS = frozenset({
    "argparse.Namespace", "builtins.set", "builtins.complex", "builtins.slice", "builtins.bytearray",
    "collections.defaultdict", "collections.Counter", "collections.deque", "copyreg._reconstructor",
    "builtins.object", "numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar",
    "numpy.dtype", "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct",
    "numpy.ndarray", "pathlib.PosixPath", "pathlib.WindowsPath", "datetime.datetime", "_codecs.encode",
    "torch.device",
})  # fmt: skip
"""Data that checkpoints carry beside weights: replaced by an empty record."""

_DEEPEST = 32
"""Levels of containers in which tensors are looked for; checkpoints have about five."""


class Inert:
    """Takes the place of anything that is no tensor; it can be called and filled, and does nothing."""

    def __init__(self, *given: object, **named: object) -> None: ...
    def __call__(self, *_: object, **__: object) -> Inert:
        return self

    def append(self, item: object) -> None: ...
    def extend(self, items: object) -> None: ...
    def __setitem__(self, key: object, value: object) -> None: ...


class OrderedTable(dict[Any, Any]):
    """An OrderedDict; attributes such as `_metadata` are dropped."""


_KNOWN: dict[str, Callable[..., object]] = {
    "collections.OrderedDict": OrderedTable,
    "torch._utils._rebuild_tensor": rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": rebuild_tensor,
    "torch._utils._rebuild_qtensor": rebuild_quantised,
    "torch._utils._rebuild_sparse_tensor": rebuild_sparse,
    "torch._utils._rebuild_nested_tensor": rebuild_nested,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta,
    "torch._utils._rebuild_wrapper_subclass": rebuild_wrapper,
    "torch._utils._rebuild_device_tensor_from_numpy": rebuild_from_numpy,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": first_argument,
    "torch._utils._rebuild_parameter": first_argument,
    "torch._utils._rebuild_parameter_with_state": first_argument,
    "torch._tensor._rebuild_from_type_v2": rebuild_from_type,
    "torch.serialization._get_layout": layout_name,
    "torch.Size": lambda values=(): whole_numbers(values),
    "torch.nn.parameter.Parameter": first_argument,
}


def _drop_state(unpickler: Any) -> None:
    """BUILD: no record takes a state from the file, nor does a function of ours."""
    unpickler.stack.pop()


class InertUnpickler(pickle._Unpickler):
    """Reads a pickle into records; what it does not know is refused by name.

    The unpickler in Python: the one in C makes a list as long as the largest memo number in the file,
    so that ten bytes take 64 GB.
    """

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = {
        **pickle._Unpickler.dispatch,
        pickle.BUILD[0]: _drop_state,
    }

    def __init__(self, file: IO[bytes], path: Path) -> None:
        super().__init__(file, encoding="utf-8")
        self._path = path

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in _KNOWN:
            return _KNOWN[full]
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _STORAGES[name]
        if module == "torch" and isinstance(
            getattr(torch, name, None), torch.dtype | torch.qscheme
        ):
            return getattr(torch, name)
        if full in _HARMLESS:
            return Inert
        raise InputError(
            str(self._path), Text(f"a pickle that asks for {full}", f"要求加载 {full} 的 pickle"),
            Text("weights only: nothing in the file was run", "仅含权重的文件：其中没有任何代码被执行"),
            Text("save model.state_dict(), or convert the file to .safetensors where you trust it",
                 "请保存 model.state_dict()，或在可信环境中转换为 .safetensors"),
        )  # fmt: skip

    def persistent_load(self, pid: Any) -> object:
        if not (isinstance(pid, tuple) and len(pid) >= 5 and pid[0] == "storage"):
            raise pickle.UnpicklingError(f"persistent id {pid!r}"[:120])
        _, kind, key, _, count = pid[:5]
        if not isinstance(kind, torch.dtype) or type(count) is not int or count < 0:
            raise pickle.UnpicklingError(f"storage {pid!r}"[:120])
        return StorageRecord(str(key), kind, count)


def read_pickle(file: IO[bytes], path: Path) -> object:
    """One pickle as records."""
    try:
        return InertUnpickler(file, path).load()
    except InputError:
        raise
    except Exception as error:  # a pickle can be wrong in any way; it ran nothing of its own
        said = f"{type(error).__name__}: {error}".splitlines()[0][:160]
        raise damaged(
            path, Text(f"a pickle that cannot be read ({said})", f"无法读取的 pickle（{said}）")
        ) from None


def tensors_in(
    value: object, name: str = "", depth: int = 0, seen: set[int] | None = None
) -> Iterator[tuple[str, TensorRecord | UnreadableRecord]]:
    """Every tensor in nested dicts, lists and tuples, with its dotted name.

    A container is entered once: one that holds itself, or another twice at every level, has no end.
    """
    seen = set() if seen is None else seen
    if isinstance(value, TensorRecord | UnreadableRecord):
        yield name or "tensor", value
    elif isinstance(value, dict | list | tuple) and depth < _DEEPEST and id(value) not in seen:
        seen.add(id(value))
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from tensors_in(item, f"{name}.{key}" if name else f"{key}", depth + 1, seen)
