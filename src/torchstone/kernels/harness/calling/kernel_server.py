"""Kernels alone in a process: launched with recorded arguments, with no Python around them."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.calling.launch_records import revived_argument
from torchstone.kernels.harness.calling.monitor import plain_deep
from torchstone.kernels.harness.kits import c_kit
from torchstone.kernels.harness.values import UnknownValueError, encode
from torchstone.kernels.messages.facts import RecordedLaunch
from torchstone.kernels.messages.to_candidate import Launched
from torchstone.kernels.messages.trees import Tree


@dataclass(slots=True)
class KernelServer:
    """The kernels of one candidate."""

    module: ModuleType
    library: c_kit.Library | None

    def launch(self, launch: RecordedLaunch, buffers: list[bytes]) -> tuple[Launched, list[bytes]]:
        """Launch once more; what the memory of the arguments holds then, and what came back."""
        memory: dict[int, torch.Tensor] = {}
        args = [revived_argument(item, buffers, memory) for item in launch.args]
        kwargs = {k: revived_argument(v, buffers, memory) for k, v in launch.kwargs.items()}
        kernel = self._kernel(launch.kernel)
        if launch.grid:
            grid = tuple(tuple(side) if isinstance(side, list) else side for side in launch.grid)
            kernel = kernel[grid]
        found = kernel(*args, **kwargs)
        data = [memory[number].numpy().tobytes() for number in sorted(memory)]
        own: list[bytes] = []
        try:
            tree = encode(plain_deep(found), own)
        except UnknownValueError:
            tree, own = Tree("plain"), []
        return Launched(sorted(memory), tree), data + own

    def _kernel(self, name: str) -> Any:
        if self.library is not None:
            return self.library.function(name)
        for item in vars(self.module).values():
            inner = getattr(item, "py_func", None) or getattr(item, "fn", None) or item
            while hasattr(inner, "fn"):  # autotuned and heuristic kernels hold the plain one
                inner = inner.fn
            is_kernel = inner is not item or isinstance(item, np.ufunc)
            if is_kernel and getattr(inner, "__name__", "") == name:
                while hasattr(getattr(item, "fn", None), "fn"):
                    item = item.fn  # what was recorded holds what a tuner chose
                return item
        raise LookupError(f"no kernel {name} at the top of the file")
