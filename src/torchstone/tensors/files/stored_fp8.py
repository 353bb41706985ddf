"""Matrices that a checkpoint stores in fp8: judged as what they are, beside their scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from torchstone.core.answer import Answer, Tile
from torchstone.core.evidence import Number
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.text import Message, Text
from torchstone.tensors.analysis.report import TOOL
from torchstone.tensors.files.stored import StoredTensor

LARGEST = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}
_SUFFIXES = ("_scale_inv", "_scale", ".scale", ".weight_scale", "_scales")
"""Behind the name of the matrix, or in place of its last word, as the common writers do it."""
_MOST_ZEROS = 0.01
"""A scale that brings the largest value to the end of the range leaves a normal distribution 1e-5 of
zeros in e4m3; a hundredth means that the scale was too small by octaves, or none was used."""
_MOST_AT_THE_END = 0.01
"""With a scale per tile one value of each tile is the largest there is; the smallest tile in use, 1 x 128,
has 0.8 %."""
_SHOWN = 5
"""Matrices on the first screen; all of them are findings below it."""
_PIECE = 1 << 22
"""Values that are looked at together: 16 MiB as float32."""
_EXACT = Text("every stored code was counted", "统计了全部存储编码")


@dataclass(frozen=True, slots=True)
class StoredFp8:
    """One fp8 matrix of a file: what its codes hold, and the scale that goes with it."""

    name: str
    zeros: float
    at_the_end: float
    """Share of the values that are the largest that the format has."""
    nans: int
    scale: str
    """The tensor with its scale; empty where none was found."""
    bad_scales: int
    """Scales that are zero, negative, NaN or infinite."""

    @property
    def is_sound(self) -> bool:
        spread = self.zeros <= _MOST_ZEROS and self.at_the_end <= _MOST_AT_THE_END
        return spread and not self.nans and not self.bad_scales


def is_stored_fp8(entry: StoredTensor) -> bool:
    return entry.dtype in LARGEST and len(entry.shape) > 1 and bool(entry.count)


def read_stored_fp8(entry: StoredTensor, entries: Sequence[StoredTensor]) -> StoredFp8:
    """Count the codes of one matrix, and find its scale among the tensors of the file."""
    zeros = ends = nans = 0
    for _, slab in entry.source().slabs(_PIECE):
        size = slab.float().abs()
        zeros += int((size == 0).sum())
        ends += int((size >= LARGEST[entry.dtype]).sum())
        nans += int(torch.isnan(size).sum())
    scale = _scale_of(entry.name, entries)
    return StoredFp8(
        entry.name,
        zeros / entry.count,
        ends / entry.count,
        nans,
        scale.name if scale is not None else "",
        _count_bad(scale) if scale is not None else 0,
    )


def _scale_of(name: str, entries: Sequence[StoredTensor]) -> StoredTensor | None:
    stem = name.rpartition(".")[0]
    wanted = {f"{base}{suffix}" for base in (name, stem) if base for suffix in _SUFFIXES}
    return next((one for one in entries if one.name in wanted and one.dtype not in LARGEST), None)


def _count_bad(scale: StoredTensor) -> int:
    source = scale.source()
    parts = (slab for _, slab in source.slabs(_PIECE)) if scale.shape else [source.sample_values(1)]
    return sum(int((~(torch.isfinite(part) & (part > 0))).sum()) for part in parts)


def describe_stored(answer: Answer, stored: Sequence[StoredFp8], is_bad: bool) -> Answer:
    """The first screen of a checkpoint that is in fp8 already: all right, or which matrices are not."""
    lost = sorted((one for one in stored if not one.is_sound), key=lambda one: -one.zeros)
    bare = sum(not one.scale for one in stored)
    tiles = (
        Tile(Text("stored in fp8", "以 fp8 存储"), str(len(stored))),
        Tile(Text("lost values", "丢失数值"), str(len(lost)), state="bad" if lost else "plain"),
        Tile(Text("without a scale", "没有缩放"), str(bare), state="warning" if bare else "plain"),
    )
    lines = tuple(
        Text(f"{one.name}: {_described(one).en}", f"{one.name}：{_described(one).zh}")
        for one in lost[:_SHOWN]
    )
    return replace(
        answer,
        headline=_headline(stored, len(lost), bare),
        state="bad" if is_bad else "good",
        tiles=tiles,
        lines=(*lines, *answer.lines),
    )


def _headline(stored: Sequence[StoredFp8], lost: int, bare: int) -> Text:
    sound = len(stored) - lost
    without = Text(f"; {bare} without a scale", f"；{bare} 个没有缩放") if bare else Text("", "")
    if lost:
        return Text(
            f"Damaged fp8 checkpoint: {lost} of {len(stored)} stored matrices lost values{without.en}",
            f"fp8 检查点受损：{len(stored)} 个已存储矩阵中有 {lost} 个丢失数值{without.zh}",
        )
    return Text(
        f"fp8 checkpoint: {sound} of {len(stored)} stored matrices use their range well{without.en}",
        f"fp8 检查点：{len(stored)} 个已存储矩阵中有 {sound} 个充分利用了数值范围{without.zh}",
    )


def stored_finding(one: StoredFp8) -> Finding | None:
    """What is wrong with a stored matrix; None when it is sound."""
    if one.is_sound:
        return None
    rule = "tensor-stored-fp8-lost-values"
    why, todo = _cause(one)
    return Finding(
        rule=rule,
        name=rule.removeprefix("tensor-"),
        severity=Severity.HIGH,
        confidence=Confidence.CERTAIN,
        what=Message(f"{rule}.what", _described(one)),
        why=Message(f"{rule}.why", why),
        remedy=Message(f"{rule}.remedy", todo),
        location=Location(tensor=one.name),
        evidence=(
            Number(Text("zeros", "零"), 100 * one.zeros, "%", _EXACT),
            Number(Text("at the largest value", "处于最大值"), 100 * one.at_the_end, "%", _EXACT),
            Number(Text("NaN codes", "NaN 编码"), one.nans, "", _EXACT),
        ),
        fingerprint=fingerprint(rule, one.name, ""),
        tool=TOOL,
    )


def _described(one: StoredFp8) -> Text:
    with_scale = Text(f"scale {one.scale}", f"缩放 {one.scale}")
    if not one.scale:
        with_scale = Text("no scale in the file", "文件中没有缩放")
    return Text(
        f"{one.zeros:.1%} of the stored values are zero, {one.at_the_end:.1%} are the largest that the format has, "
        f"{one.nans} NaN ({with_scale.en})",
        f"存储值中 {one.zeros:.1%} 为零，{one.at_the_end:.1%} 为该格式的最大值，NaN {one.nans} 个（{with_scale.zh}）",
    )


def _cause(one: StoredFp8) -> tuple[Text, Text]:
    again = Text(
        "convert the original again with a scale per row or per 128x128 block",
        "请以逐行或 128x128 分块的缩放从原始权重重新转换",
    )
    if one.nans or one.bad_scales:
        return Text(
            f"{one.nans} codes and {one.bad_scales} scales are not usable numbers",
            f"{one.nans} 个编码和 {one.bad_scales} 个缩放不是可用的数值",
        ), again
    if one.at_the_end > _MOST_AT_THE_END:
        return Text(
            "values were larger than the format holds after scaling, and were cut off",
            "缩放后的数值超出该格式的范围，被截断",
        ), again
    return Text(
        "values were too small for the format after scaling, and became zero",
        "缩放后的数值对该格式过小，变为零",
    ), again


__all__ = [
    "StoredFp8",
    "describe_stored",
    "is_stored_fp8",
    "read_stored_fp8",
    "stored_finding",
]
