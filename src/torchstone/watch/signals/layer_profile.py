"""Most layers change their part in the gradient at once, each by little."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.text import Text
from torchstone.watch.measure.signal import Alarm, Signal, Together
from torchstone.watch.measure.update import Update

SIGNAL = Signal(
    "layer_profile",
    phase="gradient",
    of="run",
    title=Text("distribution of the gradient over the layers", "梯度在各层间的分布"),
    why=Text(
        "this distribution changes slowly; when most layers move at once, the network, the loss or the data changed, although no single layer looks wrong",
        "该分布变化缓慢；多数层同时变动，说明网络、损失或数据发生了变化，尽管单看每一层都正常",
    ),
    remedy=Text(
        "compare the forward code, the loss and the batches with those before this step",
        "与此步之前比较前向代码、损失和批次",
    ),
)

_EVERY = 8
_SIGMAS = 3.2
_EFFECT = 0.25
_FEWEST = 4


@SIGNAL.on_layers
def moved(update: Update, together: Together) -> Iterator[Alarm]:
    if update.number % _EVERY or not update.warm:
        return
    jump = together("layer_consistency")
    if jump is None or jump.layers < _FEWEST:
        return
    wider = jump.tightness
    if jump.sigmas < _SIGMAS * wider or jump.effect < _EFFECT * wider + update.stretch:
        return
    yield Alarm(
        SIGNAL.name,
        Text(
            f"layer_profile: the shares of {jump.layers} layers moved together, by "
            f"{jump.effect:.0%} ({jump.sigmas:.1f}σ each)",
            f"layer_profile：{jump.layers} 层的梯度占比同时变动 {jump.effect:.0%}（各 {jump.sigmas:.1f}σ）",
        ),
        value=jump.effect,
    )


def fault(toy: Any) -> None:
    """Gradients are multiplied on their way through the middle of the network."""
    toy.model[4].register_forward_hook(lambda _, __, x: 4 * x - 3 * x.detach())
