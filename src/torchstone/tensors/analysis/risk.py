"""How risky a tensor is in 16 bits, and what to say about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.tensors.analysis.errors.axes import dim_ratio
from torchstone.tensors.analysis.errors.figures import Figures
from torchstone.tensors.analysis.errors.imbalance import AlongAxis, Pair
from torchstone.tensors.analysis.remedies import (
    HIGH,
    MEDIUM,
    Remedy,
    flush_remedy,
    imbalance_remedies,
)
from torchstone.tensors.analysis.values.distribution import Distribution

_FLUSHED = 0.01
"""Shares of flushed values below 1 % were healthy in published fp8 training (Ling 2.0)."""


@dataclass(frozen=True, slots=True)
class Risk:
    """One reason why a tensor is risky."""

    rule: str
    severity: Severity
    what: Text
    why: Text
    remedy: Text


def judge_tensor(
    distribution: Distribution, formats: tuple[Figures, ...], axes: AlongAxis
) -> tuple[list[Risk], tuple[Remedy, ...]]:
    """The risks of a tensor in 16 bits, of any tensor anywhere, and what helps against them."""
    loss_scale = flush_remedy(distribution)
    risks = _judge_contents(distribution, formats, loss_scale)
    remedies: tuple[Remedy, ...] = (loss_scale,) if loss_scale else ()
    if axes.pair is not None:
        balancing = imbalance_remedies(axes.pair.large_values, axes.pair.small_values)
        unbalanced = _judge_imbalance(axes.pair, dim_ratio(axes.stats), balancing)
        risks += [unbalanced] if unbalanced else []
        remedies += balancing
    return risks, remedies


def risk_level(risks: Sequence[Risk]) -> str:
    """HIGH, MEDIUM or LOW: that of the worst."""
    worst = min(risks, key=lambda risk: risk.severity.rank, default=None)
    return worst.severity.value if worst else "LOW"


def _judge_imbalance(pair: Pair, ratio: float, remedies: tuple[Remedy, ...]) -> Risk | None:
    """The small index of an axis is eaten by the large one in a 16-bit reduction."""
    lost, axis = pair.lost, pair.axis
    if lost < MEDIUM:
        return None
    best = next((item for item in remedies if item.lost < MEDIUM), None)
    share = f"{lost:.0%}" if lost < 0.995 else "all"
    share_zh = f"{lost:.0%}" if lost < 0.995 else "全部"
    advice = best.action if best else Text("keep it in FP32", "保持 FP32")
    after = f" (then {_share(best.lost)} is lost)" if best else ""
    after_zh = f"（此后损失{_share(best.lost).replace('under ', '不足 ')}）" if best else ""
    return Risk(
        "tensor-unbalanced-axis",
        Severity.HIGH if lost >= HIGH else Severity.MEDIUM,
        Text(
            f"ranges along axis {axis} differ by {times(ratio)} ×: a 16-bit reduction over it loses {share} of "
            f"dimension {pair.small} beside dimension {pair.large}",
            f"第 {axis} 轴上数值范围相差 {times(ratio)} 倍：在该轴上以 16 位做 reduce 时，"
            f"维度{pair.small}（相对维度{pair.large}）会损失{share_zh}",
        ),
        Text(
            "bf16 keeps 8 bits and fp16 11 bits of the larger number; what lies below is rounded away",
            "bf16 只保留较大数的 8 位有效位，fp16 保留 11 位；更低的位被舍去",
        ),
        Text(
            f"dimension {pair.small} has a small range: {advice.en}{after}",
            f"维度{pair.small}数值范围小，{advice.zh}{after_zh}",
        ),
    )


def times(ratio: float) -> str:
    """A ratio in four digits, written out where that is short."""
    rounded = float(f"{ratio:.4g}")
    return f"{rounded:,.0f}" if 1000 <= rounded < 1e9 else f"{rounded:.4g}"


def _share(lost: float) -> str:
    return "under 0.1%" if 0 < lost < 0.001 else f"{lost:.1%}"


def _judge_contents(
    distribution: Distribution, formats: tuple[Figures, ...], loss_scale: Remedy | None
) -> list[Risk]:
    """Values that are no numbers, that overflow, or that vanish in fp16."""
    found = []
    if broken := distribution.nans + distribution.infinities:
        found.append(_nonfinite(broken, distribution.total))
    half = next((item for item in formats if item.format == "fp16"), None)
    if half and half.overflow > 0:
        found.append(_overflow(distribution.largest, half.overflow))
    if half and half.flushed > _FLUSHED:
        found.append(_flushed(half.flushed, loss_scale))
    return found


def _nonfinite(broken: int, total: int) -> Risk:
    share = f"{broken:,} of {total:,}"
    return Risk(
        "tensor-nonfinite", Severity.HIGH,
        Text(f"{share} values are NaN or infinite", f"{total:,} 个数值中有 {broken:,} 个为 NaN 或无穷"),
        Text("one of them makes every sum it enters useless", "其中任何一个都会使其参与的求和失效"),
        Text("find the first operator that makes one: torchstone explain numerical_issues",
             "找出最先产生它的算子：torchstone explain numerical_issues"),
    )  # fmt: skip


def _overflow(largest: float, share: float) -> Risk:
    return Risk(
        "tensor-overflow", Severity.MEDIUM,
        Text(f"fp16 overflows: the largest magnitude is {largest:.4g}, fp16 ends at 65504 "
             f"({share:.2%} of the values)",
             f"fp16 会上溢：最大绝对值为 {largest:.4g}，fp16 上限为 65504（占 {share:.2%}）"),
        Text("a cast makes them infinite", "转换后会变为无穷"),
        Text("use bf16, or scale the tensor down by a power of two",
             "使用 bf16，或除以 2 的幂"),
    )  # fmt: skip


def _flushed(share: float, loss_scale: Remedy | None) -> Risk:
    advice = loss_scale.action if loss_scale else Text("use bf16", "使用 bf16")
    after = loss_scale.lost if loss_scale else 0.0
    return Risk(
        "tensor-flushed", Severity.MEDIUM,
        Text(f"fp16 flushes {share:.2%} of the values to zero", f"fp16 会将 {share:.2%} 的数值下溢为零"),
        Text("values up to 2^-25 become zero in fp16", "fp16 中不超过 2^-25 的数值会变为零"),
        Text(f"{advice.en}: {after:.2%} is then flushed; or use bf16",
             f"{advice.zh}：此后下溢 {after:.2%}；或使用 bf16"),
    )  # fmt: skip


RISK_NAMES = {"HIGH": Text("HIGH", "高"), "MEDIUM": Text("MEDIUM", "中"), "LOW": Text("LOW", "低")}
HARMLESS = Text(
    "nothing to do: 16-bit formats keep what matters", "无需处理：16 位格式足以保留有效信息"
)
