"""Exponents of the gradients of a run, and what a cast to another format would lose."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchstone.core.measure import Measure
from torchstone.core.pictures import Plot, Series, Table
from torchstone.core.text import Text
from torchstone.runtime.number_formats import FORMATS, NumberFormat
from torchstone.watch.after.titles import measure
from torchstone.watch.after.what_if import best_scale, gradient_counts, what_if
from torchstone.watch.record.runfile import Run

_EXPONENTS = Text(
    "exact exponent counts of the gradients, every 50th step", "每 50 步对梯度指数的精确计数"
)


def asked_first(run: Run, asked: tuple[NumberFormat, int | None] | None) -> list[Measure]:
    """What was asked for comes first."""
    names, counts = gradient_counts(run)
    if asked is None or not counts.any():
        return []
    shift = best_scale(names, counts, asked[0]).shift if asked[1] is None else asked[1]
    loss = what_if(names, counts, asked[0], shift)
    return [measure(
        "what_if_flushed", 100 * loss.flushed, "%",
        Text(f"gradients that {loss.format} at a loss scale of 2^{shift} would flush to zero",
             f"损失缩放 2^{shift} 下 {loss.format} 会刷零的梯度"),
        (_what_if_table(names, counts, asked),), _EXPONENTS,
    )]  # fmt: skip


def exponents(run: Run) -> list[Measure]:
    """How the gradients are spread over powers of two, and what casts would lose of them."""
    names, counts = gradient_counts(run)
    whole = counts.sum(axis=0)[1:255]  # without zeros, subnormals, Inf and NaN
    used = np.flatnonzero(whole)
    if not len(used):
        return []
    low, high = int(used[0]), int(used[-1]) + 1
    share = whole[low:high] / max(whole.sum(), 1)
    x = tuple(float(e) for e in np.arange(low, high) + 1 - 127)
    how = _EXPONENTS
    bars = Plot(
        Text("Exponents of the gradients", "梯度的指数分布"),
        (Series(Text("share", "占比"), x, tuple(share.tolist()), "", how, "exponent"),),
        "log2 |g|", "", bars=True,
    )  # fmt: skip
    middle = float((np.array(x) * share).sum())
    label = Text("mean exponent of the gradients (log2)", "梯度指数的均值（log2）")
    pictures = (bars, _what_if_table(names, counts, None))
    return [measure("mean_exponent", middle, "", label, pictures, how)]


def _what_if_table(
    names: tuple[str, ...], counts: NDArray[np.int64],
    asked: tuple[NumberFormat, int | None] | None,
) -> Table:  # fmt: skip
    rows = []
    formats = [asked[0]] if asked else [FORMATS[n] for n in ("fp16", "bf16", "e5m2", "e4m3")]
    for item in formats:
        best = best_scale(names, counts, item)
        shifts = [asked[1]] if asked and asked[1] is not None else [0, best.shift]
        for shift in dict.fromkeys(shifts):
            loss = what_if(names, counts, item, shift)
            rows.append((
                loss.format, f"2^{shift}", 100 * loss.flushed, 100 * loss.subnormal,
                100 * loss.overflow, loss.worst_layer, 100 * loss.worst_flushed,
                Text("least is lost here", "此处损失最小") if shift == best.shift else None,
            ))  # fmt: skip
    return Table(
        Text("What if the gradients were cast", "如果把梯度转换为"),
        (Text("format", "格式"), Text("loss scale", "损失缩放"), Text("flushed to zero %", "刷零 %"),
         Text("subnormal %", "次正规 %"), Text("overflow %", "上溢 %"),
         Text("worst layer", "最差的层"), Text("flushed there %", "该层刷零 %"), ""),
        tuple(rows), Text("from stored exponent counts", "由存储的指数计数得出"),
    )  # fmt: skip
