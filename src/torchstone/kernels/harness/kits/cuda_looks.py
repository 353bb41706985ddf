"""A device that looks like CUDA to a candidate and is the host: for kernels that an interpreter runs.

Code for a GPU asks whether its tensors are there, makes tensors there and asks a driver what it has. All of
that is answered as on a device; the memory is the host's.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch

from torchstone.observe.operators import CallMode

DEVICE = torch.device("cuda", 0)
_HOST = torch.device("cpu")
_PROPERTIES = {
    "max_shared_mem": 232448, "max_num_regs": 65536, "multiprocessor_count": 132, "warpSize": 32,
    "sm_clock_rate": 1980000, "mem_clock_rate": 2619000, "mem_bus_width": 5120,
}  # fmt: skip
"""Of an H100, for which kernels are compiled, too: blocks and stages are chosen by them."""
CAPABILITY = (9, 0)


def _answer_as_on_device(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """Tensors say that they are on the device, and are made there on the host."""
    if func == _IS_CUDA:
        return True
    if func == _DEVICE:
        return DEVICE
    if func in (torch.Tensor.cuda, torch.Tensor.cpu):
        return args[0]
    if func == torch.Tensor.get_device:
        return 0
    args = tuple(map(_on_host, args))
    return func(*args, **{name: _on_host(value, name) for name, value in kwargs.items()})


_HOME: Any = torch.Tensor
_IS_CUDA, _DEVICE = _HOME.is_cuda.__get__, _HOME.device.__get__


def _on_host(value: object, name: str = "") -> object:
    """The host for every way to name the device."""
    if isinstance(value, torch.device):
        return _HOST if value.type == "cuda" else value
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return "cpu" if name == "device" and type(value) is int else value


@dataclass(frozen=True, slots=True)
class Compiled:
    """What compiling a kernel ahead of its launch gives: figures of a small kernel, and a way to launch it."""

    kernel: Any
    n_regs: int = 32
    n_spills: int = 0
    metadata: object = field(default_factory=lambda: SimpleNamespace(shared=4096, num_warps=4))

    def _init_handles(self) -> None:
        """It is loaded."""

    def __getitem__(self, grid: object) -> object:
        return self.kernel[grid]


class _Driver:
    """What Triton asks a driver for."""

    def __init__(self) -> None:
        target: Any = importlib.import_module("triton.backends.compiler").GPUTarget
        self._target = target("cuda", 10 * CAPABILITY[0] + CAPABILITY[1], 32)
        self.utils = SimpleNamespace(get_device_properties=lambda _=0: dict(_PROPERTIES))

    def get_active_torch_device(self) -> torch.device:
        return DEVICE

    def get_current_target(self) -> object:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _: int = 0) -> int:
        return 0

    def get_device_interface(self) -> object:
        return torch.cuda

    def set_current_device(self, _: int) -> None:
        """There is one."""


def install() -> None:
    """Answer questions about devices from now on; tensors only look so inside of `looking`."""
    runtime = importlib.import_module("triton.runtime")
    runtime.driver.set_active(_Driver())
    tuner: Any = importlib.import_module("triton.runtime.autotuner").Autotuner
    tuner._bench = lambda *_, **__: [0.0, 0.0, 0.0]  # no time of an interpreter says anything
    interpreted: Any = importlib.import_module("triton.runtime.interpreter").InterpretedFunction
    interpreted.warmup = lambda kernel, *_, **__: Compiled(kernel)
    home: object = torch.cuda
    properties = SimpleNamespace(
        name="NVIDIA H100", major=CAPABILITY[0], minor=CAPABILITY[1], total_memory=80 << 30,
        multi_processor_count=_PROPERTIES["multiprocessor_count"], warp_size=32,
    )  # fmt: skip
    answers: dict[str, object] = {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0,
        "synchronize": lambda *_: None, "empty_cache": lambda: None, "set_device": lambda _: None,
        "get_device_capability": lambda *_: CAPABILITY, "get_device_name": lambda *_: properties.name,
        "get_device_properties": lambda *_: properties, "device": _same_place, "stream": _same_place,
        "current_stream": lambda *_: SimpleNamespace(cuda_stream=0, synchronize=lambda: None),
        "set_stream": lambda *_: None,
    }  # fmt: skip
    for name, answer in answers.items():
        setattr(home, name, answer)


@contextlib.contextmanager
def _same_place(*_: object) -> Iterator[None]:
    yield


@contextlib.contextmanager
def looking() -> Iterator[None]:
    """Code of a candidate sees the device."""
    with CallMode(_answer_as_on_device):
        yield
