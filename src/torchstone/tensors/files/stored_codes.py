"""Matrices that a checkpoint stores in few bits: judged as what they are, beside their scales."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from torchstone.core.answer import Answer, Tile
from torchstone.core.evidence import Number
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.pictures import Table
from torchstone.core.text import NOTHING, Message, Text
from torchstone.tensors.analysis.report import TOOL
from torchstone.tensors.files.code_kinds import FLOAT8, CodeKind, count_codes
from torchstone.tensors.files.gguf import PackedBlocks
from torchstone.tensors.files.pairing import StoredPair
from torchstone.tensors.files.stored import WHOLE, StoredTensor
from torchstone.tensors.files.unpacking import unpack_values

RULE = "tensor-stored-values-lost"
_MOST_SCALES_APART = 1e4
"""Largest scale over the median: 13 bits. In a group with such an outlier nothing else is left."""
_MOST_ZEROS_IN_BLOCKS = 0.5
"""Of GGUF types, whose codes are of two to eight bits: half of Q2_K is zero at times."""
_LEAST_DB_IN_BLOCKS = 6.0
"""Of GGUF types: Q2_K of a normal distribution has 12 dB."""
_SHOWN = 5
"""Matrices on the first screen; all of them are findings below it."""
_PIECE = 1 << 22
_EXACT = Text("every stored code was counted", "统计了全部存储编码")


@dataclass(frozen=True, slots=True)
class StoredMatrix:
    """One matrix of a file: what its codes hold, and the scales that go with it."""

    name: str
    kind: str
    zeros: float
    at_the_end: float
    """Share of the values that are the largest that the format has."""
    nans: int
    used: float
    """Share of the codes of the format that occur."""
    scale: str
    """The tensor with its scales; empty where none was found."""
    bad_scales: int = 0
    """Scales that are zero, negative, NaN or infinite."""
    scales_apart: float = 1.0
    """The largest scale over the median one."""
    most_zeros: float = 1.0
    most_at_the_end: float = 1.0
    least_db: float = 0.0
    decibels: float | None = None
    """Signal to noise beside the original, where one was given."""
    has_own_scales: bool = False
    """The blocks carry their scales themselves (GGUF)."""

    @property
    def is_sound(self) -> bool:
        spread = self.zeros <= self.most_zeros and self.at_the_end <= self.most_at_the_end
        near = self.decibels is None or self.decibels >= self.least_db
        usable = not self.nans and not self.bad_scales and self.scales_apart < _MOST_SCALES_APART
        return spread and near and usable

    @property
    def lacks_scale(self) -> bool:
        return not self.scale and not self.has_own_scales


def read_matrix(pair: StoredPair, original: StoredTensor | None = None) -> StoredMatrix:
    """Count the codes of one matrix, look at its scales, and compare it with the original."""
    kind = pair.kind
    counts = _counted(pair.codes, kind)
    whole = max(int(counts.sum()), 1)
    zeros = counts.max() if kind.has_zero_point else counts[kind.zero_codes].sum()
    bad, apart = _look_at_scales(pair.scales) if pair.scales is not None else (0, 1.0)
    return StoredMatrix(
        pair.codes.name,
        f"{kind.name} ({pair.layout})" if pair.layout else kind.name,
        float(zeros) / whole,
        float(counts[kind.end_codes].sum()) / whole,
        int(counts[np.isnan(kind.values)].sum()),
        float((counts > 0).mean()),
        pair.scales.name if pair.scales is not None else "",
        bad,
        apart,
        kind.most_zeros,
        kind.most_at_the_end,
        kind.least_db,
        _decibels(unpack_values(pair), original) if original is not None else None,
    )


def _counted(codes: StoredTensor, kind: CodeKind) -> np.ndarray:
    if codes.stride is not None:
        return count_codes(codes.load().contiguous().view(torch.uint8).numpy().tobytes(), kind.bits)
    found = np.zeros(1 << kind.bits, np.int64)
    for start in range(0, codes.nbytes, _PIECE):
        found += count_codes(codes.bytes.read(start, min(_PIECE, codes.nbytes - start)), kind.bits)
    return found


def _look_at_scales(scales: StoredTensor) -> tuple[int, float]:
    """How many cannot be used, and how far the largest is from the median."""
    stored = scales.load()
    if stored.dtype is torch.uint8:  # exponents (E8M0), of which 255 is NaN
        values, broken = torch.exp2(stored.double() - 127), stored == 255
    else:
        values = stored.double()
        broken = ~(torch.isfinite(values) & (values > 0))
        if stored.dtype in FLOAT8:  # a block of zeros has the scale zero
            broken &= values != 0
    good = values[~broken & (values > 0)]
    apart = float(good.max() / good.median()) if good.numel() else 1.0
    return int(broken.sum()), apart


def is_packed_block(entry: StoredTensor) -> bool:
    return isinstance(entry.bytes, PackedBlocks) and bool(entry.count)


def read_blocks(entry: StoredTensor, original: StoredTensor | None = None) -> StoredMatrix:
    """A GGUF tensor by its values: each block carries its own scale."""
    zeros = broken = 0
    for start in range(0, entry.count, _PIECE):
        values = entry.values(start, min(_PIECE, entry.count - start))
        zeros += int((values == 0).sum())
        broken += int((~torch.isfinite(values)).sum())
    decibels = _decibels(entry.load(), original) if original is not None and entry.nbytes <= WHOLE else None  # fmt: skip
    return StoredMatrix(
        entry.name, entry.stored_as, zeros / entry.count, 0.0, broken, 1.0, "",
        most_zeros=_MOST_ZEROS_IN_BLOCKS, least_db=_LEAST_DB_IN_BLOCKS, decibels=decibels,
        has_own_scales=True,
    )  # fmt: skip


def _decibels(values: torch.Tensor | None, original: StoredTensor) -> float | None:
    """Signal to noise; None where the two cannot be compared."""
    if values is None or values.numel() != original.count or original.nbytes > WHOLE:
        return None
    before = original.load().float().reshape(-1)
    noise = float((values.reshape(-1).double() - before.double()).square().sum())
    signal = float(before.double().square().sum())
    if not math.isfinite(noise) or not signal:
        return -math.inf if not math.isfinite(noise) else None
    return 10 * math.log10(signal / noise) if noise else math.inf


def describe_stored(answer: Answer, stored: Sequence[StoredMatrix], is_bad: bool) -> Answer:
    """The first screen of a checkpoint that is quantised already: all right, or what is not."""
    lost = sorted((one for one in stored if not one.is_sound), key=lambda one: -one.zeros)
    bare = sum(one.lacks_scale for one in stored)
    tiles = [
        Tile(Text("stored in few bits", "低位存储"), str(len(stored)), _kinds(stored)),
        Tile(Text("lost values", "丢失数值"), str(len(lost)), state="bad" if lost else "plain"),
        Tile(Text("without a scale", "没有缩放"), str(bare), state="warning" if bare else "plain"),
    ]
    compared = [one.decibels for one in stored if one.decibels is not None]
    if compared:
        tiles.append(Tile(Text("beside the original", "与原始权重相比"), f"{min(compared):.1f} dB",
                          Text(f"the worst of {len(compared)}", f"{len(compared)} 个中最差")))  # fmt: skip
    lines = tuple(
        Text(f"{one.name}: {_described(one).en}", f"{one.name}：{_described(one).zh}")
        for one in lost[:_SHOWN]
    )
    return replace(
        answer,
        headline=_headline(stored, len(lost), bare),
        state="bad" if is_bad else "good",
        tiles=tuple(tiles),
        lines=(*lines, *answer.lines),
        pictures=(_table(stored), *answer.pictures[1:]),
    )


def _kinds(stored: Sequence[StoredMatrix]) -> str:
    counts = Counter(one.kind for one in stored)
    return ", ".join(f"{kind} {count}" for kind, count in counts.most_common(3))


def _headline(stored: Sequence[StoredMatrix], lost: int, bare: int) -> Text:
    sound = len(stored) - lost
    kind = Counter(one.kind for one in stored).most_common(1)[0][0].partition(" ")[0]
    without = Text(f"; {bare} without a scale", f"；{bare} 个没有缩放") if bare else NOTHING
    if lost:
        return Text(
            f"Damaged {kind} checkpoint: {lost} of {len(stored)} stored matrices lost values{without.en}",
            f"{kind} 检查点受损：{len(stored)} 个已存储矩阵中有 {lost} 个丢失数值{without.zh}",
        )
    return Text(
        f"{kind} checkpoint: {sound} of {len(stored)} stored matrices use their range well{without.en}",
        f"{kind} 检查点：{len(stored)} 个已存储矩阵中有 {sound} 个充分利用了数值范围{without.zh}",
    )


def _table(stored: Sequence[StoredMatrix]) -> Table:
    ranked = sorted(stored, key=lambda one: (one.is_sound, -one.zeros))
    return Table(
        Text("Stored matrices", "已存储的矩阵"),
        (
            Text("matrix", "矩阵"), Text("format", "格式"), Text("zeros", "零"),
            Text("at the largest value", "处于最大值"), Text("codes in use", "已用编码"),
            Text("scale", "缩放"), Text("largest / median scale", "最大/中位缩放"),
            Text("beside the original", "与原始相比"),
        ),
        tuple(
            (one.name, one.kind, 100 * one.zeros, 100 * one.at_the_end, 100 * one.used,
             one.scale or ("–" if one.lacks_scale else Text("in its blocks", "在块内")), one.scales_apart,
             "–" if one.decibels is None else f"{one.decibels:.1f} dB")
            for one in ranked
        ),
        _EXACT,
        ("", "", "%", "%", "%", "", "", ""),
    )  # fmt: skip


def stored_finding(one: StoredMatrix) -> Finding | None:
    """What is wrong with a stored matrix; None when it is sound."""
    if one.is_sound:
        return None
    why, todo = _cause(one)
    return Finding(
        rule=RULE,
        name=RULE.removeprefix("tensor-"),
        severity=Severity.HIGH,
        confidence=Confidence.CERTAIN,
        what=Message(f"{RULE}.what", _described(one)),
        why=Message(f"{RULE}.why", why),
        remedy=Message(f"{RULE}.remedy", todo),
        location=Location(tensor=one.name),
        evidence=(
            Number(Text("zeros", "零"), 100 * one.zeros, "%", _EXACT),
            Number(Text("at the largest value", "处于最大值"), 100 * one.at_the_end, "%", _EXACT),
            Number(Text("NaN codes", "NaN 编码"), one.nans, "", _EXACT),
        ),
        fingerprint=fingerprint(RULE, one.name, ""),
        tool=TOOL,
    )


def _described(one: StoredMatrix) -> Text:
    scale = Text(f"scale {one.scale}", f"缩放 {one.scale}")
    if one.has_own_scales:
        scale = Text("scales in its blocks", "缩放在块内")
    elif not one.scale:
        scale = Text("no scale in the file", "文件中没有缩放")
    beside = NOTHING
    if one.decibels is not None:
        beside = Text(
            f", {one.decibels:.1f} dB beside the original", f"，与原始相比 {one.decibels:.1f} dB"
        )
    return Text(
        f"{one.zeros:.1%} of the stored values are zero, {one.at_the_end:.1%} are the largest that {one.kind} has, "
        f"{one.nans} NaN ({scale.en}){beside.en}",
        f"存储值中 {one.zeros:.1%} 为零，{one.at_the_end:.1%} 为 {one.kind} 的最大值，NaN {one.nans} 个（{scale.zh}）{beside.zh}",
    )


def _cause(one: StoredMatrix) -> tuple[Text, Text]:
    again = Text(
        "convert the original again with a scale per row or per block",
        "请以逐行或分块的缩放从原始权重重新转换",
    )
    if one.nans or one.bad_scales:
        return Text(
            f"{one.nans} codes and {one.bad_scales} scales are not usable numbers",
            f"{one.nans} 个编码和 {one.bad_scales} 个缩放不是可用的数值",
        ), again
    if one.at_the_end > one.most_at_the_end:
        return Text(
            "values were larger than the format holds after scaling, and were cut off",
            "缩放后的数值超出该格式的范围，被截断",
        ), again
    if one.zeros > one.most_zeros:
        return Text(
            "values were too small for the format after scaling, and became zero",
            "缩放后的数值对该格式过小，变为零",
        ), again
    if one.scales_apart >= _MOST_SCALES_APART:
        return Text(
            f"one group has a scale {one.scales_apart:.0f} times the usual: beside its outlier the other values are lost",
            f"有一组的缩放是通常的 {one.scales_apart:.0f} 倍：该组中除离群值外的数值都已丢失",
        ), again
    return Text(
        "it differs from the original by more than the format explains: other scales, or another matrix",
        "与原始权重的差异超出该格式所能解释的程度：缩放不符，或不是同一个矩阵",
    ), again
