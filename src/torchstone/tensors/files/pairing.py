"""Stored codes and the scales that belong to them, found by the names that writers give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from torchstone.tensors.files.code_kinds import (
    BY_BITS,
    FLOAT8,
    INT8,
    MXFP4,
    NF4,
    NVFP4,
    CodeKind,
)
from torchstone.tensors.files.stored import StoredTensor

_SUFFIXES = ("_scale_inv", "_scale", ".scale", ".weight_scale", "_scales", ".scales", ".SCB")
"""Behind the name of the matrix, or in place of its last word, as the common writers do it."""


@dataclass(frozen=True, slots=True)
class StoredPair:
    """One matrix that a file holds as codes."""

    codes: StoredTensor
    kind: CodeKind
    scales: StoredTensor | None = None
    zeros: StoredTensor | None = None
    """Zero points of GPTQ and AWQ."""
    outer: StoredTensor | None = None
    """A second scale over the first (NVFP4)."""
    layout: str = ""
    """`gptq` or `awq`, where codes lie otherwise than row by row."""

    @property
    def original_name(self) -> str:
        """What the matrix was called before it was stored as codes."""
        name = self.codes.name
        for ending, plain in (
            (".qweight", ".weight"),
            (".weight_packed", ".weight"),
            ("_blocks", ""),
        ):
            if name.endswith(ending):
                return name.removesuffix(ending) + plain
        return name


def pair_codes(entries: Sequence[StoredTensor]) -> list[StoredPair]:
    """Every matrix of codes among the tensors of a file."""
    by_name = {entry.name: entry for entry in entries}
    made = (_pair(entry, by_name) for entry in entries if entry.count)
    pairs = [pair for pair in made if pair is not None]
    scales = {pair.scales.name for pair in pairs if pair.scales is not None}
    return [pair for pair in pairs if pair.codes.name not in scales]


def _pair(entry: StoredTensor, known: Mapping[str, StoredTensor]) -> StoredPair | None:
    if len(entry.shape) < 2 and f"{entry.name}.absmax" not in known:
        return None
    if entry.dtype in FLOAT8:
        return StoredPair(entry, FLOAT8[entry.dtype], _scale_of(entry, known))
    if entry.dtype is torch.int8 and (scale := _scale_of(entry, known)) is not None:
        return StoredPair(entry, INT8, scale)
    if entry.dtype is torch.int32 and entry.name.endswith(".qweight"):
        return _grouped(entry, known)
    if entry.dtype is torch.uint8:
        return _four_bits(entry, known)
    return None


def _scale_of(entry: StoredTensor, known: Mapping[str, StoredTensor]) -> StoredTensor | None:
    stem = entry.name.rpartition(".")[0]
    for base in (entry.name, stem):
        for suffix in _SUFFIXES if base else ():
            found = known.get(f"{base}{suffix}")
            if found is not None and found.dtype not in FLOAT8:
                return found
    return None


def _grouped(entry: StoredTensor, known: Mapping[str, StoredTensor]) -> StoredPair | None:
    """GPTQ packs along the inputs, AWQ along the outputs; the scales have a column for each output."""
    stem = entry.name.removesuffix(".qweight")
    scales, zeros = known.get(f"{stem}.scales"), known.get(f"{stem}.qzeros")
    if scales is None or len(scales.shape) != 2 or len(entry.shape) != 2:
        return None
    rows, columns = entry.shape
    outputs = scales.shape[1]
    order = known.get(f"{stem}.g_idx")
    if columns == outputs:  # (inputs * bits / 32, outputs)
        inputs = order.count if order is not None else rows * 8
        kind = BY_BITS.get(32 * rows // max(inputs, 1))
        return StoredPair(entry, kind, scales, zeros, layout="gptq") if kind else None
    kind = BY_BITS.get(32 * columns // max(outputs, 1))
    return StoredPair(entry, kind, scales, zeros, layout="awq") if kind else None


def _four_bits(entry: StoredTensor, known: Mapping[str, StoredTensor]) -> StoredPair | None:
    """Two codes in a byte: bitsandbytes, MX and NVFP4."""
    name = entry.name
    if (absmax := known.get(f"{name}.absmax")) is not None:
        return StoredPair(entry, NF4, absmax)
    if name.endswith("_blocks") and (found := known.get(name.removesuffix("_blocks") + "_scales")):
        return StoredPair(entry, MXFP4, found)
    stem = name.removesuffix("_packed") if name.endswith("_packed") else name
    scale = known.get(f"{stem}_scale")
    if scale is None:
        return None
    outer = known.get(f"{stem}_scale_2") or known.get(f"{stem}_global_scale")
    if scale.dtype in FLOAT8:
        return StoredPair(entry, NVFP4, scale, outer=outer)
    return StoredPair(entry, MXFP4, scale) if scale.dtype is torch.uint8 else None
