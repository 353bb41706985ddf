"""Launches as data: what a kernel was given, so that another process can launch it again.

Arrays go as the memory that they reach, with shape and strides; the same memory given twice is the
same memory there, too. What cannot be told as data makes the launch one that cannot be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from torchstone.kernels.harness.calling.monitor import plain
from torchstone.kernels.harness.values import (
    UnknownValueError,
    decode,
    dtype_of,
    encode,
    from_raw,
    name_of,
    plain_place,
)
from torchstone.kernels.messages.facts import RecordedLaunch
from torchstone.kernels.messages.trees import Tree

MOST_BYTES = 32 << 20
"""Memory that is recorded for one call; more is not recorded at all."""
MOST_LAUNCHES = 256


@dataclass(slots=True)
class LaunchRecorder:
    """The launches of one call, kept only while it is on."""

    on: bool = False
    launches: list[RecordedLaunch] = field(default_factory=list)
    buffers: list[bytes] = field(default_factory=list)
    trouble: str = ""
    """Why the launches of this call cannot be repeated."""

    def begin(self) -> None:
        self.on, self.launches, self.buffers, self.trouble = True, [], [], ""

    def note(
        self,
        kernel: str,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        grid: Sequence[int | Sequence[int]] = (),
    ) -> None:
        """A launch is about to run."""
        if not self.on or self.trouble:
            return
        if len(self.launches) == MOST_LAUNCHES:
            self.trouble = f"more than {MOST_LAUNCHES} launches"
            return
        known: dict[tuple[int, int], int] = {}
        try:
            given = [told_argument(item, self.buffers, known) for item in args]
            named = {k: told_argument(item, self.buffers, known) for k, item in kwargs.items()}
        except UnknownValueError as error:
            self.trouble = f"{kernel} is given {error}"
            return
        if sum(map(len, self.buffers)) > MOST_BYTES:
            self.trouble, self.buffers = f"more than {MOST_BYTES >> 20} MiB of arguments", []
            return
        self.launches.append(
            RecordedLaunch(
                kernel, given, named, [n if isinstance(n, int) else list(n) for n in grid]
            )
        )


def told_argument(value: object, buffers: list[bytes], known: dict[tuple[int, int], int]) -> Tree:
    """One argument as data; `known` holds the memory that is told already."""
    kind = "torch"
    if isinstance(value, np.ndarray):
        kind, value = "numpy", torch.from_numpy(plain(value))
    if not isinstance(value, torch.Tensor):
        return encode(value, buffers)
    shape, stride = tuple(value.shape), tuple(value.stride())
    reach = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    key = (value.data_ptr(), reach * value.element_size())
    _refuse_part_of_known(key, known)
    if key not in known:
        flat = value.detach().as_strided((reach,), (1,)).contiguous()
        buffers.append(flat.view(torch.uint8).numpy().tobytes() if reach else b"")
        known[key] = len(buffers) - 1
    return Tree(
        kind, name_of(value.dtype), list(shape), list(stride), memory=known[key], reach=reach
    )


def _refuse_part_of_known(key: tuple[int, int], known: Mapping[tuple[int, int], int]) -> None:
    for start, size in known:
        if (start, size) != key and key[0] < start + size and start < key[0] + key[1]:
            raise UnknownValueError("two arrays that share part of their memory")


def revived_argument(
    tree: Tree, buffers: Sequence[bytes], memory: dict[int, torch.Tensor]
) -> object:
    """The argument again; `memory` holds what has been revived already."""
    if tree.memory < 0:
        return decode(tree, buffers, plain_place)
    if tree.memory not in memory:
        data = buffers[tree.memory]
        memory[tree.memory] = from_raw(data, "uint8", [len(data)])
    if not tree.reach:
        made = torch.empty(tree.shape, dtype=dtype_of(tree.dtype))
    else:
        made = memory[tree.memory].view(dtype_of(tree.dtype)).as_strided(tree.shape, tree.stride)
    return made.numpy() if tree.kind == "numpy" else made
