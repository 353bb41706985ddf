"""Angles of positions are computed in float32."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number, significant_bits
from torchstone.core.finding import Severity
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR117", "angles-in-half", Severity.HIGH, "wrong result",
    Text("the angles of positions are computed in half precision", "位置角度以半精度计算"),
    Text("bfloat16 holds integers up to 256 and float16 up to 2048: beyond, positions share one angle, and large angles are "
         "off by whole radians",
         "bfloat16 只能精确表示到 256 的整数，float16 到 2048：超出后不同位置共享同一角度，较大的角度误差可达数弧度"),
    Text("compute positions times frequencies, cos and sin in float32, and cast the result", "以 float32 计算位置与频率之积及其 cos、sin，再转换结果"),
)  # fmt: skip
_HALVES = (torch.float16, torch.bfloat16)


def check(run: Recording) -> Iterator[Shown]:
    producers = run.producers()
    for item in producers.operators:
        if item.name not in ("cos", "sin"):
            continue
        run.asks(RULE)
        if item.inputs[0].dtype not in _HALVES:
            continue
        made = producers.maker(item.inputs[0])
        place = (
            made.place
            if made is not None and made.name in ("mul", "bmm", "mm", "_to_copy")
            else item.place
        )
        largest = float(item.inputs[0].float().abs().max())
        bits = 11 if item.inputs[0].dtype is torch.float16 else 8
        yield Shown(
            RULE, place,
            Text("angles up to {largest} are held with {bits} significant bits", "最大为 {largest} 的角度只有 {bits} 位有效位"),
            {"largest": f"{largest:.3g}", "bits": str(bits)},
            (significant_bits(bits, IN_THE_RUN),
             number("error of the largest angle", "最大角度的误差", largest * 2.0**-bits, "rad", IN_THE_RUN)),
        )  # fmt: skip
        return
