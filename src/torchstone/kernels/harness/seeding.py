"""One seed gives the same weights to the reference and to the candidate, and never plain ones.

Layers that start with ones and zeros would hide a kernel that forgets a scale or a shift, so from
the second seed on constant parameters get noise that depends on their order and shape only.
"""

from __future__ import annotations

import contextlib
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch

from torchstone.kernels.harness.kits import mindspore_kit

_NOISE = 0.25


def seed_everything(seed: int) -> None:
    """Python, numpy and torch start from the same seed."""
    random.seed(seed)
    np.random.seed(seed)
    mindspore_kit.seed(seed)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed also asks every device


@contextlib.contextmanager
def weights_of(seed: int) -> Iterator[None]:
    """Inside, modules are made with the weights of this seed; seed 0 leaves them as written."""
    seed_everything(1234 + seed)
    if seed == 0:
        yield
        return
    seen: Counter[tuple[object, ...]] = Counter()

    def shake(tensor: torch.Tensor, *place: object, only_constant: bool = False) -> None:
        # Counted before it is decided: memory that is not yet written may look constant.
        key = (*place, tuple(tensor.shape))
        seen[key] += 1
        if not tensor.is_floating_point() or not tensor.numel():
            return
        if only_constant and not bool((tensor == tensor.reshape(-1)[0]).all()):
            return
        generator = torch.Generator().manual_seed(_number(seed, *key, seen[key]))
        noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            tensor += ((noise - 0.5) * 2 * _NOISE).to(tensor.dtype)

    def shaken(name: str, original: Callable[..., object]) -> Callable[..., object]:
        def init(tensor: torch.Tensor, *args: object, **kwargs: object) -> object:
            result = original(tensor, *args, **kwargs)
            shake(tensor, name)
            return result

        return init

    register = torch.nn.Module.register_parameter

    def register_parameter(module: Any, name: str, parameter: Any) -> None:
        if parameter is not None:
            shake(parameter, "parameter", only_constant=True)
        register(module, name, parameter)

    with contextlib.ExitStack() as stack:
        for name in ("ones_", "zeros_", "constant_"):
            original = getattr(torch.nn.init, name)
            stack.enter_context(mock.patch.object(torch.nn.init, name, shaken(name, original)))
        stack.enter_context(
            mock.patch.object(torch.nn.Module, "register_parameter", register_parameter)
        )
        yield


def _number(*parts: object) -> int:
    return zlib.crc32(repr(parts).encode())
