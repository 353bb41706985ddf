"""The run's own torch: "cuda" means the CPU, and autocast regions cast as they do on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from torchstone.observe.compat.tensors import set_mkldnn_enabled
from torchstone.runtime.on_meta.autocast import MetaAutocast

_CPU = torch.device("cpu")
_SUMS = ("add", "__add__", "__radd__", "add_", "__iadd__")
_MOST_CONSTANTS = 64


class RunMode(TorchFunctionMode):
    """Stays on for the whole run: accelerators become the CPU, regions of autocast cast."""

    def __init__(self) -> None:
        super().__init__()
        self.regions: list[MetaAutocast | None] = []
        """The innermost last; None for a region that is switched off."""
        self.dtypes: list[torch.dtype | None] = []
        self.asked = False
        """The script asked for an accelerator: its regions of autocast are those of one."""
        self.constants: list[torch.Tensor] = []
        """Scalars without a gradient that were added to scalars with one, since the last backward."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func is torch.device:  # scripts ask for its type; it becomes the CPU where it is used
            self.asked = self.asked or _on_cpu(func(*args, **named)) is _CPU
            return func(*args, **named)
        if getattr(func, "__name__", "") == "cuda":
            return args[0]
        args = tuple(_on_cpu(item) for item in args)
        if "device" in named or "map_location" in named:
            named = {key: _on_cpu(item) for key, item in named.items()}
        named.pop("pin_memory", None)
        if getattr(func, "__name__", "") in _SUMS and len(args) > 1 and torch.is_grad_enabled():
            self._note_constant(args[0], args[1])
        region = self.regions[-1] if self.regions else None
        if region is not None:
            return region.__torch_function__(func, types, args, named)
        return func(*args, **named)

    def _note_constant(self, one: Any, other: Any) -> None:
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
            if one.numel() == other.numel() == 1 and one.requires_grad != other.requires_grad:
                still = other if one.requires_grad else one
                if still.is_floating_point() and len(self.constants) < _MOST_CONSTANTS:
                    self.constants.append(still)

    @property
    def switched_off(self) -> bool:
        """Inside a region of autocast, but it is off here."""
        return (
            bool(self.regions)
            and self.regions[-1] is None
            and any(item is not None for item in self.regions)
        )

    @property
    def autocast(self) -> torch.dtype | None:
        return self.dtypes[-1] if self.dtypes else None


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.device):
        return _CPU if value.type not in ("cpu", "meta") else value
    if isinstance(value, str) and value.partition(":")[0] in ("cuda", "npu", "xpu", "mps"):
        return "cpu"
    return value


def emulate_autocast(mode: RunMode, tell: Callable[[torch.dtype], None]) -> None:
    """From now on every autocast region casts by the lists of CUDA, on whatever device."""
    kind: Any = torch.amp.autocast_mode.autocast
    before = kind.__init__, kind.__enter__, kind.__exit__

    def init(
        region: Any, device_type: str, dtype: torch.dtype | None = None, enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:  # fmt: skip
        before[0](region, "cpu", torch.bfloat16, False, cache_enabled)
        on_cpu = str(device_type).startswith("cpu") and not mode.asked
        low = torch.bfloat16 if on_cpu else torch.float16
        region.wanted = (dtype or low) if enabled and dtype != torch.float32 else None

    def enter(region: Any) -> Any:
        dtype = getattr(region, "wanted", None)
        if dtype is not None:
            tell(dtype)
        mode.regions.append(MetaAutocast(dtype) if dtype is not None else None)
        mode.dtypes.append(dtype)
        return before[1](region)

    def leave(region: Any, *error: Any) -> Any:
        mode.regions.pop()
        mode.dtypes.pop()
        return before[2](region, *error)

    kind.__init__, kind.__enter__, kind.__exit__ = init, enter, leave
    torch.is_autocast_enabled = lambda *_: mode.autocast is not None
    torch.get_autocast_dtype = lambda *_: mode.autocast or torch.float16
    torch.get_autocast_gpu_dtype = lambda *_: mode.autocast or torch.float16


def make_scalers_for_host(tell: Callable[[Any], None]) -> None:
    """Every GradScaler scales on the CPU, where it can be looked at; those that are enabled are handed on."""
    kind: Any = torch.amp.grad_scaler.GradScaler
    init = kind.__init__

    def made_for_the_host(scaler: Any, _: str = "cuda", *args: Any, **kwargs: Any) -> None:
        kwargs.pop("device", None)
        init(scaler, "cpu", *args, **kwargs)
        if scaler.is_enabled():
            tell(scaler)

    kind.__init__ = made_for_the_host
    old: Any = torch.cuda.amp.GradScaler
    old.__init__ = lambda scaler, *args, **kwargs: made_for_the_host(
        scaler, "cuda", *args, **kwargs
    )


class _AnyGenerator(torch.Generator):
    """A generator for whatever device lives on the CPU."""

    def __new__(cls, device: Any = None) -> _AnyGenerator:  # noqa: ARG004
        made: Any = super().__new__
        return made(cls, "cpu")  # type: ignore[no-any-return]


def answer_for_accelerators() -> None:
    """Calls of torch.cuda that would look for a device do nothing."""
    cuda: Any = torch.cuda
    torch.Generator = _AnyGenerator  # type: ignore[misc]
    for name in ("set_device", "synchronize", "empty_cache", "manual_seed", "manual_seed_all",
                 "reset_peak_memory_stats"):  # fmt: skip
        setattr(cuda, name, lambda *_, **__: None)
    for name in ("max_memory_allocated", "memory_allocated", "memory_reserved", "current_device"):
        setattr(cuda, name, lambda *_, **__: 0)
    cuda.is_bf16_supported = lambda *_, **__: True
    torch.nn.Module.cuda = lambda module, *_: module  # type: ignore[method-assign]
    set_mkldnn_enabled(False)  # its half products are not on every CPU
