"""Low precision without low-precision kernels: an operator in fp32, its result rounded.

Also the question whether this machine's own kernels can be used: asked once, in a process of its own,
because a missing instruction kills the process.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import subprocess
import sys
from typing import Any

import torch

from torchstone.core.files import cache_folder, write_atomically

_PROBE = """
import torch
a = torch.ones(64, 64, dtype=torch.{0}, requires_grad=True)
b = torch.nn.functional.layer_norm(torch.nn.functional.gelu(a @ a).softmax(-1), (64,))
b.sum().backward()
assert torch.isfinite(a.grad.float()).all()
"""
_SECONDS = 120


@functools.cache
def kernels_work(dtype: torch.dtype) -> bool:
    """Can this machine multiply and normalise in this type? The answer is kept in the cache."""
    if dtype in (torch.float32, torch.float64):
        return True
    name = str(dtype).removeprefix("torch.")
    about = f"{platform.node()} {platform.processor()} {torch.__version__} {name}"
    key = hashlib.sha256(about.encode()).hexdigest()[:16]
    path = cache_folder() / f"kernels-{key}"
    try:
        return path.read_text("ascii") == "yes"
    except (OSError, UnicodeDecodeError):
        pass
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE.format(name)], capture_output=True, timeout=_SECONDS,
            check=False,
        )  # fmt: skip
        works = done.returncode == 0
    except (OSError, subprocess.SubprocessError):
        works = False
    write_atomically(path, "yes" if works else "no")
    return works


class ResultTypes:
    """The types of an operator's results, asked of the meta device once for each kind of call."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[torch.dtype | None, ...]] = {}

    def of(
        self, func: Any, args: Any, kwargs: Any, low: torch.dtype
    ) -> tuple[torch.dtype | None, ...]:
        key = (func, _types(args), _types(tuple(kwargs.values())))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _asked(func, args, kwargs, low)
        return found


def _types(values: Any) -> tuple[object, ...]:
    return tuple(
        item.dtype
        if isinstance(item, torch.Tensor)
        else _types(item)
        if isinstance(item, list | tuple)
        else item
        if isinstance(item, torch.dtype)
        else type(item)
        for item in values
    )


def _on_meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, list | tuple):
        return type(value)(_on_meta(item) for item in value)
    return torch.device("meta") if isinstance(value, torch.device) else value


def _asked(func: Any, args: Any, kwargs: Any, low: torch.dtype) -> tuple[torch.dtype | None, ...]:
    """From the meta kernel; where there is none, results have the low type."""
    try:
        given = {key: _on_meta(value) for key, value in kwargs.items()}
        out = func(*_on_meta(tuple(args)), **given)
    except Exception:  # any kind of failure of a meta kernel only means that it cannot be asked
        return (low,)
    results = out if isinstance(out, list | tuple) else (out,)
    return tuple(item.dtype if isinstance(item, torch.Tensor) else None for item in results)
