"""float16 parameters are not updated directly."""

from __future__ import annotations

from collections.abc import Iterator

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import OptimizerStep, Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR113", "float16-parameters-updated", Severity.HIGH, "wrong result",
    Text("an optimizer updates float16 parameters directly", "优化器直接更新 float16 参数"),
    Text("an update below 0.05 % of a weight is rounded away, and Adam's second moment underflows",
         "小于权重 0.05% 的更新会被舍入掉，Adam 的二阶矩会下溢"),
    Text("keep the parameters in float32 and use autocast, or keep master weights",
         "参数保持 float32 并使用 autocast，或保留主权重"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    for step in run.of(OptimizerStep):
        run.asks(RULE)
        if step.halves:
            place = run.optimizer_places.get(step.optimizer) or step.place
            yield Shown(
                RULE, place,
                Text("{count} float16 parameters are updated without float32 master weights",
                     "{count} 个 float16 参数在没有 float32 主权重的情况下被更新"),
                {"count": str(step.halves)},
                (number("float16 parameters", "float16 参数", step.halves, "", IN_THE_RUN),),
            )  # fmt: skip
            return
