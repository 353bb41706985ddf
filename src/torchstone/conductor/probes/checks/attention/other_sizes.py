"""A model takes other batch sizes than the one of the script."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.harvest.operators import Operator, OperatorTrace, Producers
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.replay.copies import cases
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text
from torchstone.observe.where import Where

RULE = ProbeRule(
    "PR220", "fixed-batch-size", Severity.HIGH, "wrong result",
    Text("a model works for one batch size only", "模型只能用于一种批大小"),
    Text("an axis is missing or a size is fixed, and broadcasting pairs the batch with something else of the same size: "
         "nothing fails, and samples are mixed up",
         "缺少一个维度或尺寸被写死，广播使批维度与另一个同样大小的维度配对：不报错，但样本被混淆"),
    Text("give the smaller tensor its missing axis", "为维度较少的张量补上缺失的维度"),
)  # fmt: skip


def check(run: Recording) -> Iterator[Shown]:
    for case in cases(run, top=True):
        sizes = {item.shape[0] for item in case.tensors if item.dim() > 1}
        batch = sizes.pop() if len(sizes) == 1 else 0
        if batch < 3:
            continue
        run.asks(RULE)
        smaller = case.changed(functools.partial(_without_last, batch=batch))
        trace = OperatorTrace(Where(run.root))
        try:
            with trace:
                smaller.result()
        except RuntimeError as error:
            place = _missing_axis(run, trace.operators, error)
            if place:
                yield Shown(
                    RULE, place,
                    Text("with {less} samples instead of {batch}, {kind} fails: {error}",
                         "样本数由 {batch} 变为 {less} 时 {kind} 出错：{error}"),
                    {"less": str(batch - 1), "batch": str(batch), "kind": type(case.module).__name__,
                     "error": str(error).splitlines()[0][:120]},
                    (number("batch size that works", "可用的批大小", batch, "", ON_A_COPY),
                     number("batch size that fails", "出错的批大小", batch - 1, "", ON_A_COPY)),
                )  # fmt: skip
                return


def _without_last(item: Any, batch: int) -> Any:
    is_batch = isinstance(item, torch.Tensor) and item.dim() > 0 and item.shape[0] == batch
    return item[:-1] if is_batch else item


def _missing_axis(run: Recording, operators: list[Operator], error: RuntimeError) -> Place:
    """Where the tensor with fewer axes was made, of the two that do not fit at the line that failed."""
    failed = Where(run.root).last_raised(error)
    last = [item for item in operators if item.place == failed]
    if not last or "must match the size" not in str(error):
        return failed
    producers = Producers(operators)
    made = last[-1]
    for _ in range(_STEPS):
        maker = producers.maker(made.inputs[0]) if made.name in _UNARY and made.inputs else None
        if maker is None:
            break
        made = maker
    return made.place


_UNARY = ("bitwise_not", "logical_not", "_to_copy", "neg", "eq", "ne", "bool")
_STEPS = 6
