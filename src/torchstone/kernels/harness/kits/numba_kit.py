"""numba: compiled functions counted and stood in for, simulated CUDA blocks in any order."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from torchstone.kernels.harness.calling.launches import Launches
from torchstone.kernels.harness.calling.monitor import Foreign, Pause, note, plain

_THREAD_WORK = 4


def install(launches: Launches, outside: Callable[[], object]) -> None:
    """Count and check what numba runs; `outside` lifts the patches of numpy while it compiles."""
    for kind in _kinds():
        _follow(kind, launches, outside)
    Foreign.launched = _compiled_ufunc(launches)
    _follow_cuda(launches, outside)
    _take_turns(launches)


def record(launches: Launches) -> None:
    """Nothing is counted or checked; launches are told where somebody asks for them."""
    for kind in _kinds():
        _tell(kind, launches)


def _tell(kind: Any, launches: Launches) -> None:
    call = kind.__call__

    def run(self: object, *args: object, **kwargs: object) -> object:
        if launches.recorder.on:
            launches.recorder.note(_name(self), args, kwargs)
        return call(self, *args, **kwargs)

    kind.__call__ = run


def _kinds() -> tuple[object, ...]:
    """What numba makes of a function and Python calls."""
    return (
        importlib.import_module("numba.core.registry").CPUDispatcher,
        importlib.import_module("numba.np.ufunc.dufunc").DUFunc,
        importlib.import_module("numba.np.ufunc.gufunc").GUFunc,
        importlib.import_module("numba.stencils.stencil").StencilFunc,
    )


def _follow(kind: Any, launches: Launches, outside: Callable[[], Any]) -> None:
    call = kind.__call__

    def run(self: object, *args: object, **kwargs: object) -> object:
        launches.launches += 1
        if launches.ghost:
            return None
        with outside(), Pause():
            launches.recorder.note(_name(self), args, kwargs)
            found = call(self, *map(plain, args), **kwargs)
        if _interpreted(self):
            note("numba in object mode")
        return found

    kind.__call__ = run


def _interpreted(kernel: object) -> bool:
    """Whether numba gave up compiling and runs the Python of a kernel."""
    compiled = getattr(getattr(kernel, "_dispatcher", kernel), "overloads", {})
    return any(getattr(item, "objectmode", False) for item in compiled.values())


def _name(kernel: object) -> str:
    function = getattr(kernel, "py_func", None) or getattr(kernel, "fn", None) or kernel
    return str(getattr(function, "__name__", ""))


def _compiled_ufunc(launches: Launches) -> Callable[..., Any]:
    """A ufunc compiled for given types is one of numpy's objects, but a kernel."""

    def run(ufunc: object, method: str, inputs: Any, kwargs: Any) -> object:
        launches.launches += 1
        if launches.ghost:
            return None
        out = kwargs.pop("out", None)
        given = {**kwargs, **({"out": tuple(map(plain, out))} if out else {})}
        with Pause():
            launches.recorder.note(_name(ufunc), inputs, given)
            return getattr(ufunc, method)(*map(plain, inputs), **given)

    return run


def _follow_cuda(launches: Launches, outside: Callable[[], Any]) -> None:
    kernel: Any = importlib.import_module("numba.cuda.simulator.kernel")
    simulated: Any = kernel.FakeCUDAKernel
    call = simulated.__call__

    def run(self: Any, *args: Any) -> object:
        if not self._device:
            launches.launches += 1
            if launches.ghost:
                return None
        if not self._device:
            # A simulated thread is a thread: it costs more than an interpreted operation.
            blocks, threads = (int(np.prod(side)) for side in (self.grid_dim, self.block_dim))
            launches.work += blocks * threads * _THREAD_WORK
            grid = (tuple(self.grid_dim), tuple(self.block_dim))
            launches.recorder.note(self.fn.__name__, args, {}, grid)
        with outside(), Pause():
            return call(self, *map(plain, args))

    simulated.__call__ = run
    points = np.ndindex

    class Order:
        """numpy as the simulator sees it: blocks come in the order that is asked for."""

        def __getattr__(self, name: str) -> object:
            return getattr(np, name)

        def ndindex(self, *shape: int) -> Any:
            every = list(points(*shape))
            launches.programs += len(every)
            launches.work += len(every)
            return [every[i] for i in launches.permutation(len(every))]

    kernel.np = Order()
    arrays = importlib.import_module("numba.cuda.simulator.cudadrv.devicearray")
    _refuse_negative(arrays, launches)


def _take_turns(launches: Launches) -> None:
    """Threads of a block run one at a time, from barrier to barrier, in the order asked for.

    The simulator lets them run at once, which makes its own bookkeeping a race.
    """
    kernel: Any = importlib.import_module("numba.cuda.simulator.kernel")

    class Turn(kernel.BlockThread):  # type: ignore[misc]
        """A simulated thread that waits for its turn."""

        def __init__(self, *args: object) -> None:
            super().__init__(*args)
            self.go = threading.Semaphore(0)
            self.back = threading.Semaphore(0)
            self.done = False

        def run(self) -> None:
            self.go.acquire()
            if not self.abort:
                super().run()
            self.done = True
            self.back.release()

        def syncthreads(self) -> None:
            self.back.release()
            self.go.acquire()
            if self.abort:
                raise RuntimeError("another thread of the block failed")

        def step(self) -> None:
            """Run to the next barrier or to the end."""
            self.go.release()
            self.back.acquire()

    def run(self: Any, grid_point: Any, *args: object) -> None:
        places = list(np.ndindex(*self._block_dim))
        live = [
            Turn(lambda: self._f(*args), self, grid_point, places[i], self._debug)
            for i in launches.permutation(len(places))
        ]
        for thread in live:
            thread.start()
        failed = None
        while live:
            for thread in live:
                thread.abort = failed is not None
                thread.step()
                failed = failed or thread.exception
            live = [thread for thread in live if not thread.done]
        if failed:
            raise failed[0].with_traceback(failed[1])

    kernel.BlockManager.run = run


def _refuse_negative(devicearray: Any, launches: Launches) -> None:
    """A device does not count from the end: a negative place is out of bounds."""
    fake = devicearray.FakeCUDAArray

    def checked(original: Callable[..., object], kind: str) -> Callable[..., object]:
        def access(self: object, place: object, *rest: object) -> object:
            parts = place if isinstance(place, tuple) else (place,)
            if any(isinstance(part, int | np.integer) and part < 0 for part in parts):
                launches.fault(f"out-of-bounds {kind}", "negative index", 1)
            try:
                return original(self, place, *rest)
            except IndexError:
                launches.fault(f"out-of-bounds {kind}", "index past the end", 1)
                raise

        return access

    fake.__getitem__ = checked(fake.__getitem__, "read")
    fake.__setitem__ = checked(fake.__setitem__, "write")


def without_compiler(launches: Launches) -> None:
    """Compiled functions run as plain Python, and `prange` in the order that is asked for."""
    numba: Any = importlib.import_module("numba")
    numba.config.DISABLE_JIT = True

    class Shuffled:
        """A range whose turns come in another order."""

        def __new__(cls, *bounds: int) -> Any:
            turns = list(range(*bounds))
            return iter([turns[i] for i in launches.permutation(len(turns))])

    numba.prange = Shuffled
