"""The form of one output: its type, shape, dtype and strides."""

from __future__ import annotations

from typing import Any

import torch

from torchstone.kernels.harness.values import name_of


def form_faults(
    index: int, about: dict[str, Any], got: torch.Tensor | None, answer: Any
) -> list[dict[str, Any]]:
    """Type, shape, dtype and strides of one output."""

    def fault(what: str, given: object, want: object) -> dict[str, Any]:
        return {"what": what, "output": index, "got": str(given), "want": str(want)}

    kind = "numpy" if about.get("array") in ("numpy", "scalar") else about.get("array", "plain")
    if kind != answer.kind or got is None:
        return [fault("type", kind, answer.kind)]
    if tuple(got.shape) != tuple(answer.reference.shape):
        return [fault("shape", tuple(got.shape), tuple(answer.reference.shape))]
    if got.dtype != answer.reference.dtype:
        return [fault("dtype", name_of(got.dtype), name_of(answer.reference.dtype))]
    if "stride" in about and got.numel() > 1:
        stride = tuple(about["stride"])
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
