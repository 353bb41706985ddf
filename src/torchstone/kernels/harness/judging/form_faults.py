"""The form of one output: its type, shape, dtype and strides."""

from __future__ import annotations

from typing import Protocol

import torch

from torchstone.kernels.harness.values import name_of
from torchstone.kernels.messages.facts import FormFault
from torchstone.kernels.messages.trees import Tree


class Right(Protocol):
    """An output of the reference."""

    @property
    def reference(self) -> torch.Tensor: ...
    @property
    def kind(self) -> str: ...
    @property
    def stride(self) -> tuple[int, ...]: ...


def form_faults(
    index: int, about: Tree, got: torch.Tensor | None, answer: Right
) -> list[FormFault]:
    """Type, shape, dtype and strides of one output."""

    def fault(what: str, given: object, want: object) -> FormFault:
        return FormFault(what, str(given), str(want), index)

    kind = "numpy" if about.kind == "scalar" else about.kind if about.is_array else "plain"
    if kind != answer.kind or got is None:
        return [fault("type", kind, answer.kind)]
    if tuple(got.shape) != tuple(answer.reference.shape):
        return [fault("shape", tuple(got.shape), tuple(answer.reference.shape))]
    if got.dtype != answer.reference.dtype:
        return [fault("dtype", name_of(got.dtype), name_of(answer.reference.dtype))]
    if about.is_array and got.numel() > 1:
        stride = tuple(about.stride)
        if stride not in (answer.stride, tuple(got.contiguous().stride())) and not _dense(
            got.shape, stride
        ):
            return [fault("stride", stride, tuple(got.contiguous().stride()))]
    return []


def _dense(shape: torch.Size, stride: tuple[int, ...]) -> bool:
    """Every element has a place of its own and no place is left out."""
    expected = 1
    for step, size in sorted((s, n) for n, s in zip(shape, stride, strict=True) if n > 1):
        if step != expected:
            return False
        expected *= size
    return True
