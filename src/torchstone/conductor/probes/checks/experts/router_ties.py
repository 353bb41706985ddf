"""The choice of experts is not left to ties."""

from __future__ import annotations

from collections.abc import Iterator

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR308", "router-ties", Severity.MEDIUM, "instability",
    Text("experts tie for the last place of a choice", "多个专家在最后一个名额上打平"),
    Text("which one is taken depends on the order of memory: it differs between devices and precisions, and the lower "
         "index gets all the load", "取哪一个取决于内存顺序：在不同设备和精度下不同，且索引较小者承担全部负载"),
    Text("compute the scores in float32, or break ties with noise in training", "以 float32 计算分数，或在训练时用噪声打破平局"),
)  # fmt: skip
_MOST_SHARE = 0.02
_MOST_EXPERTS = 512
"""More are a vocabulary: tokens are sampled, not routed."""


def check(run: Recording) -> Iterator[Shown]:
    for item in run.forward_operators():
        if item.name != "topk" or item.inputs[0].shape[-1] > _MOST_EXPERTS:
            continue
        scores, count = item.inputs[0], item.outputs[0].shape[-1]
        if count >= scores.shape[-1] or scores.dim() < 2 or not scores.is_floating_point():
            continue
        run.asks(RULE)
        ordered = scores.detach().float().sort(-1, descending=True).values
        share = float((ordered[..., count - 1] == ordered[..., count]).float().mean())
        if share > _MOST_SHARE:
            yield Shown(
                RULE, item.place,
                Text("for {share} of the tokens the last chosen expert ties with the next",
                     "{share} 的 token 的最后一个所选专家与下一个打平"),
                {"share": f"{share:.0%}"},
                (number("tokens with a tie", "打平的 token", 100 * share, "%", IN_THE_RUN),),
            )  # fmt: skip
            return
