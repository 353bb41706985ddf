"""A pretend accelerator that answers for CUDA: fake tensors "on cuda" abort a CPU build of torch.

Names of devices in arguments are mapped to torch's private-use backend on the way in, and back on
the way out. No kernel exists for it: every tensor on it is fake.
"""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.attention import flex_attention
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from torchstone.dryrun.script.as_written import run_on_one_device
from torchstone.dryrun.script.calls import Calls
from torchstone.dryrun.script.lazy import PRETEND as NAME
from torchstone.dryrun.script.lazy import is_pretend
from torchstone.dryrun.script.legacy_types import answer_legacy_types
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.script.places import HIDDEN, kind_of
from torchstone.dryrun.script.recurrent import take_recurrent_apart
from torchstone.dryrun.script.session import Session, is_fake


def register_backend() -> None:
    """Once per process, before anything is forked.

    The first backward of a process starts a thread for every device that is registered by then,
    and a process with such threads cannot be copied. So the first one is done before.
    """
    torch.ones(1, requires_grad=True).sum().backward()
    torch.autograd.set_multithreading_enabled(False)
    _setup_privateuseone_for_python_backend(NAME)


class PretendCuda:
    """Which device is current, and how names are mapped."""

    def __init__(self, session: Session) -> None:
        self._settings = session.settings
        self._session = session
        given = session.settings
        self.count = given.local_ranks() if given.play_ranks else max(1, given.devices)
        self.current = 0

    def mapped(self, value: Any) -> Any:
        """`cuda` in any spelling as the pretend device; all else as it is."""
        named: Any = value
        if isinstance(value, str):
            if not value.startswith("cuda"):
                return value
            named = torch.device(value)
        if isinstance(named, torch.device) and named.type == "cuda":
            index: int | None = named.index
            return self._numbered(self.current if index is None else index)
        return value

    def _numbered(self, index: int) -> torch.device:
        if index >= self.count:
            raise RuntimeError(
                f"CUDA error: invalid device ordinal (cuda:{index}; the job has {self.count} "
                "device(s) on a node)"
            )
        return torch.device("cpu") if self._settings.play_ranks else torch.device(NAME, index)

    def translate(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        for value in args:
            if type(value) is str or type(value) is torch.device:
                args = tuple(self.mapped(item) for item in args)
                break
        if kwargs and "device" in kwargs:
            device = kwargs["device"]
            mapped = self._numbered(device) if type(device) is int else self.mapped(device)
            kwargs = {**kwargs, "device": mapped}
        return args, kwargs

    def shown(self, device: torch.device) -> torch.device:
        return torch.device("cuda", device.index or 0) if device.type == NAME else device


def pretend_cuda(session: Session, calls: Calls) -> PretendCuda:
    """From now on CUDA is there, as far as the program can tell."""
    cuda = PretendCuda(session)
    calls.translate = cuda.translate
    _answer_tensors(session, calls, cuda)
    _answer_module(session, cuda)
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
        if found.type != NAME or kind_of(sys._getframe(1).f_code) == HIDDEN:
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


def _answer_module(session: Session, cuda: PretendCuda) -> None:
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
        cuda.current = cuda._numbered(index_of(device)).index or 0

    @contextlib.contextmanager
    def device_context(device: Any = None) -> Any:
        before, cuda.current = cuda.current, max(0, index_of(device))
        try:
            yield
        finally:
            cuda.current = before

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
        "memory_allocated": lambda device=None: session.live_bytes(),
        "max_memory_allocated": lambda device=None: session.peak_bytes(),
        "memory_reserved": lambda device=None: session.live_bytes(),
        "max_memory_reserved": lambda device=None: session.peak_bytes(),
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
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        put(torch.cuda.nvtx, name, lambda *args, **kwargs: 0)
    for name in ("start", "stop", "init"):
        put(torch.cuda.profiler, name, lambda *args, **kwargs: None)
    _answer_accelerator(cuda, values)
    put(torch, "Generator", _generator())
    put(torch.amp.GradScaler, "_maybe_opt_step", _always_step)


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
