"""Values of stored codes: every code with its scale, for a comparison with the original."""

from __future__ import annotations

import torch

from torchstone.tensors.files.code_kinds import MXFP4, NF4, NVFP4, UINT4
from torchstone.tensors.files.pairing import StoredPair
from torchstone.tensors.files.stored import StoredTensor

_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""Of the eight codes in a word: the column that each stands for."""


def unpack_values(pair: StoredPair) -> torch.Tensor | None:
    """The matrix as float32; None where its layout is not known well enough."""
    if pair.scales is None:
        return None
    if pair.layout:
        return _grouped(pair) if pair.kind is UINT4 else None
    if pair.kind in (MXFP4, NVFP4):
        return _in_blocks(pair, pair.scales)
    if pair.kind is NF4:
        return _absmax(pair, pair.scales)
    return _scaled(pair.codes.load().float(), pair.scales)


def _scaled(values: torch.Tensor, scales: StoredTensor) -> torch.Tensor | None:
    """One scale for all, one for each row, or one for each tile of equal size."""
    scale = _scale_values(scales)
    if scale.numel() == 1:
        return values * scale.reshape(())
    rows = values.shape[0]
    if scale.numel() == rows:
        factor = scale.reshape(rows, *([1] * (values.dim() - 1)))
        if scales.name.endswith(".SCB"):  # bitsandbytes keeps the largest value of the row
            factor = factor / 127
        return values * factor
    if values.dim() != 2 or scale.dim() != 2:
        return None
    tall, wide = (-(-size // parts) for size, parts in zip(values.shape, scale.shape, strict=True))
    spread = scale.repeat_interleave(tall, 0).repeat_interleave(wide, 1)
    return values * spread[: values.shape[0], : values.shape[1]]


def _scale_values(scales: StoredTensor) -> torch.Tensor:
    """Floating scales as they are; bytes are exponents (E8M0)."""
    stored = scales.load()
    if stored.dtype is torch.uint8:
        return torch.exp2(stored.float() - 127)
    return stored.float()


def _nibbles(codes: torch.Tensor) -> torch.Tensor:
    """Two codes of every byte, the low half first, along the last axis."""
    return torch.stack((codes & 15, codes >> 4), -1).flatten(-2)


def _in_blocks(pair: StoredPair, scales: StoredTensor) -> torch.Tensor | None:
    table = torch.from_numpy(pair.kind.values).float()
    values = table[_nibbles(pair.codes.load()).long()]
    scale = _scale_values(scales)
    if values.numel() % max(scale.numel(), 1):
        return None
    made = values.reshape(scale.numel(), -1) * scale.reshape(-1, 1)
    if pair.outer is not None:
        outer = pair.outer.load().float().reshape(())
        # compressed-tensors divides by its global scale, modelopt multiplies with its second one
        made = made / outer if pair.outer.name.endswith("global_scale") else made * outer
    return made.reshape(values.shape)


def _absmax(pair: StoredPair, scales: StoredTensor) -> torch.Tensor | None:
    """bitsandbytes: the high half of a byte comes first; absmax in bytes is quantised once more."""
    if not scales.dtype.is_floating_point:
        return None
    codes = pair.codes.load().reshape(-1)
    table = torch.from_numpy(pair.kind.values).float()
    values = table[torch.stack((codes >> 4, codes & 15), -1).reshape(-1).long()]
    scale = scales.load().float().reshape(-1, 1)
    if values.numel() % max(scale.numel(), 1):
        return None
    return (values.reshape(scale.numel(), -1) * scale).reshape(-1)


def _grouped(pair: StoredPair) -> torch.Tensor | None:
    """GPTQ and AWQ of four bits, as (outputs, inputs) like the weight they were made from."""
    if pair.zeros is None or pair.scales is None:
        return None
    is_awq = pair.layout == "awq"
    scale = pair.scales.load().float()
    codes, zeros = _words(pair.codes.load(), is_awq, 1 if is_awq else 0), _words(pair.zeros.load(), is_awq, 1)  # fmt: skip
    if not is_awq:
        zeros = zeros + 1  # GPTQ stores one less
    inputs, outputs = codes.shape
    if scale.shape[1] != outputs or zeros.shape != scale.shape or inputs % scale.shape[0]:
        return None
    each = inputs // scale.shape[0]
    values = (codes - zeros.repeat_interleave(each, 0)) * scale.repeat_interleave(each, 0)
    return values.T.contiguous()


def _words(packed: torch.Tensor, is_awq: bool, axis: int) -> torch.Tensor:
    """Eight codes of every 32-bit word, along the axis."""
    order = _AWQ_ORDER if is_awq else tuple(range(8))
    parts = [(packed >> (4 * order.index(place))) & 15 for place in range(8)]
    return torch.stack(parts, axis + 1).flatten(axis, axis + 1).float()
