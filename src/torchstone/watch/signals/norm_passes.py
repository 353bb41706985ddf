"""Batch norm that learns from something else than the batches of training."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "norm_passes",
    phase="call",
    of="run",
    title=Text("forward passes seen by batch norm", "batch norm 经历的前向次数"),
    why=Text(
        "every forward pass in training mode updates the running statistics: evaluation data in training mode, or a changed momentum, gives a model that evaluates badly although its training loss is fine",
        "训练模式下的每次前向都会更新运行统计量：以训练模式跑评估数据，或改变 momentum，会使训练损失正常的模型评估很差",
    ),
    remedy=Text(
        "call model.eval() for evaluation, and look for code that changes the momentum of batch norm",
        "评估时调用 model.eval()，并查找修改 batch norm momentum 的代码",
    ),
)

_LEARNING = 50  # calls in which extra passes are a habit, as of recomputed activations
_TIMES = 3
_FURTHER = 2.0
_SHARE = 0.05
_TINY = 1e-12


@SIGNAL.on_call
def passes(call: TrainingCall) -> Iterator[Alarm]:
    for name, (momentum, tracked) in call.backward.norms.items():
        before = call.memory.get(f"norm {name}")
        call.memory[f"norm {name}"] = (momentum, tracked)
        if not isinstance(before, tuple) or not call.backward.count:
            continue
        if before[0] != momentum:
            yield _alarm(name, f"momentum {before[0]} → {momentum}", f"momentum {before[0]} → {momentum}")  # fmt: skip
        extra = tracked - before[1] - call.backward.count
        further = _further(call, name, extra)
        habit = int(call.memory.get("norm_habit", 0))  # type: ignore[call-overload]
        if call.step <= _LEARNING:
            call.memory["norm_habit"] = max(habit, extra)
        elif extra > habit and further:
            times = int(call.memory.get("norm_times", 0)) + 1  # type: ignore[call-overload]
            call.memory["norm_times"] = times
            if times >= _TIMES:
                yield _alarm(name, f"{extra} forward pass(es) beside training", f"训练之外还有 {extra} 次前向")  # fmt: skip
        return  # what passes one passes the others


def _further(call: TrainingCall, name: str, extra: int) -> bool:
    """The statistics went further than data like the training data would have taken them."""
    now = np.array(call.backward.statistics.get(name, ()))
    last = call.memory.get(f"norm statistics {name}")
    usual = call.memory.get(f"norm steps {name}")
    call.memory[f"norm statistics {name}"] = now
    if not isinstance(last, np.ndarray) or last.shape != now.shape or not len(now):
        return False
    moved = np.abs(now - last)
    if not isinstance(usual, np.ndarray) or usual.shape != now.shape:
        call.memory[f"norm steps {name}"] = moved
        return False
    if extra <= 0:
        call.memory[f"norm steps {name}"] = usual + _SHARE * (moved - usual)
    return bool((moved / (usual + _TINY)).mean() > _FURTHER * math.sqrt(max(extra, 0) + 1))


def _alarm(name: str, en: str, zh: str) -> Alarm:
    return Alarm(
        SIGNAL.name, Text(f"norm_passes: '{name}': {en}", f"norm_passes：'{name}'：{zh}"), name
    )


def fault(toy: Any) -> None:
    """Other data run through the model after every step, without eval()."""

    def look(model: Any) -> None:
        with torch.no_grad():
            model(torch.randn(8, 16) * 3)

    toy.after_step = look
