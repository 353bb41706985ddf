"""`torch.cuda` and `torch.accelerator` as a program asks them: devices, memory, streams, random states."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import torch

from torchstone.dryrun.script.device.names import PretendCuda
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import Session
from torchstone.observe.compat.backends import native


class _Nothing:
    """A stream, an event, a graph pool: does nothing, takes part in `with`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.device = torch.device("cuda", 0)
        self.cuda_stream = 0

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def elapsed_time(self, other: Any) -> float:
        return 1.0

    def query(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def answer_module(session: Session, cuda: PretendCuda) -> None:
    """`torch.cuda.*` and `torch.accelerator.*`."""
    settings = session.settings
    properties = SimpleNamespace(
        name=settings.device_name,
        total_memory=settings.device_memory_bytes,
        major=9,
        minor=0,
        multi_processor_count=132,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        gcnArchName="",
        is_integrated=0,
        is_multi_gpu_board=0,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        L2_cache_size=50 << 20,
    )

    def index_of(device: Any) -> int:
        if device is None:
            return cuda.current
        if type(device) is int:
            return device
        return torch.device(device).index or 0

    def set_device(device: Any) -> None:
        cuda.choose(cuda.numbered(index_of(device)).index or 0)

    @contextlib.contextmanager
    def device_context(device: Any = None) -> Any:
        before = cuda.current
        cuda.choose(max(0, index_of(device)))
        try:
            yield
        finally:
            cuda.choose(before)

    values: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_is_compiled": lambda: True,
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "device_count": lambda: cuda.count,
        "current_device": lambda: cuda.current,
        "set_device": set_device,
        "device": device_context,
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
        "ipc_collect": lambda: None,
        "memory_allocated": lambda device=None: session.asks.live_bytes(),
        "max_memory_allocated": lambda device=None: session.asks.peak_bytes(),
        "memory_reserved": lambda device=None: session.asks.live_bytes(),
        "max_memory_reserved": lambda device=None: session.asks.peak_bytes(),
        "memory_stats": lambda device=None: dict.fromkeys(_MEMORY_KEYS, 0),
        "memory_summary": lambda *args, **kwargs: "no memory is used in a dry run",
        "reset_peak_memory_stats": lambda device=None: None,
        "reset_max_memory_allocated": lambda device=None: None,
        "mem_get_info": lambda device=None: (properties.total_memory, properties.total_memory),
        "set_per_process_memory_fraction": lambda *args, **kwargs: None,
        "get_device_name": lambda device=None: properties.name,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: (9, 0),
        "is_bf16_supported": lambda *args, **kwargs: True,
        "get_arch_list": lambda: ["sm_90"],
        "can_device_access_peer": lambda *args: True,
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "seed_all": lambda: None,
        "get_rng_state": lambda device=None: torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": lambda state, device=None: None,
        "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8)] * cuda.count,
        "set_rng_state_all": lambda states: None,
        "utilization": lambda device=None: 0,
        "current_stream": lambda device=None: _Nothing(),
        "default_stream": lambda device=None: _Nothing(),
        "stream": lambda stream: _Nothing(),
        "set_stream": lambda stream: None,
        "Stream": _Nothing,
        "Event": _Nothing,
        "is_current_stream_capturing": lambda: False,
        "CUDAGraph": _Nothing,
        "graph": _Nothing,
        "make_graphed_callables": lambda callables, *args, **kwargs: callables,
        "cudart": _Nothing,
    }
    for name, value in values.items():
        put(torch.cuda, name, value)
    if torch.version.cuda is None:  # libraries ask which CUDA torch was built with
        put(torch.version, "cuda", "12.8")
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        put(torch.cuda.nvtx, name, lambda *args, **kwargs: 0)
    for name in ("start", "stop", "init"):
        put(torch.cuda.profiler, name, lambda *args, **kwargs: None)
    _answer_accelerator(cuda, values)
    if not hasattr(native, "_cuda_getDevice"):  # a build without CUDA has none of these
        put(native, "__getattr__", _answer_native)
        put(torch.cuda, "default_generators", tuple(torch.Generator() for _ in range(cuda.count)))
    put(torch, "Generator", _generator())
    put(torch.amp.GradScaler, "_maybe_opt_step", _always_step)


def _answer_native(name: str) -> Any:
    """What is below the functions of `torch.cuda` that nothing here answers for."""
    if name.startswith("_cuda_"):
        return lambda *_, **__: 0
    raise AttributeError(
        f"module '{native.__name__}' has no attribute '{name}'", name=name, obj=native
    )


def _always_step(_: Any, optimizer: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
    """The gradients of a dry run hold no infinities: the scaler never skips a step."""
    return optimizer.step(*args, **kwargs)


_MEMORY_KEYS = (
    "allocated_bytes.all.current",
    "allocated_bytes.all.peak",
    "reserved_bytes.all.current",
    "reserved_bytes.all.peak",
    "active_bytes.all.peak",
    "num_alloc_retries",
    "num_ooms",
)


def _answer_accelerator(cuda: PretendCuda, values: dict[str, Any]) -> None:
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:
        return
    put(accelerator, "is_available", lambda: True)
    put(accelerator, "device_count", lambda: cuda.count)
    put(accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda"))
    put(accelerator, "current_device_index", lambda: cuda.current)
    put(accelerator, "set_device_index", values["set_device"])
    put(accelerator, "synchronize", lambda device=None: None)
    put(accelerator, "current_stream", values["current_stream"])
    put(accelerator, "set_stream", values["set_stream"])


def _generator() -> type:
    """Random numbers of the pretend device come from the CPU's generator."""
    original: Any = torch.Generator

    class Generator(original):  # type: ignore[misc]
        def __new__(cls, device: Any = "cpu") -> Any:
            return original.__new__(cls, "cpu")

        def __init__(self, device: Any = "cpu") -> None:
            pass

    return Generator
