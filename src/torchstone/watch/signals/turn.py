"""How far each step turns away from the one before it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.angles import angles_of
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.updates import Updates

SIGNAL = Signal(
    "turn",
    phase="update",
    of="run",
    title=Text("angle between consecutive updates", "相邻两次更新的夹角"),
    why=Text(
        "momentum makes the direction of updates change slowly and evenly; straighter or more erratic updates mean that the optimizer state, its decay or the gradients changed",
        "动量使更新方向缓慢而均匀地变化；方向变直或变得杂乱，说明优化器状态、其衰减系数或梯度发生了变化",
    ),
    remedy=Text(
        "check betas or momentum, the learning rate, and what is done to gradients before step()",
        "检查 betas 或 momentum、学习率，以及 step() 之前对梯度的处理",
    ),
    limits=Limits(
        spike=(NEVER, NEVER),
        shift=(NEVER, NEVER),
        ramp=(NEVER, NEVER),
        change=(1.25, 1.15),
        change_sigmas=(12.0, 8.0),
        floor=1.0,
    ),
    unit="°",
)


@SIGNAL.measure
def angles(updates: Updates) -> NDArray[np.float64]:
    """Of all sampled weights at once: 0° straight on, 90° a step that forgets the last one."""
    squares = updates.moved[:, 0].sum(axis=1)
    both = squares * updates.earlier("step_squares", squares)
    cosines = updates.moved[:, 9].sum(axis=1) / np.sqrt(np.where(both > 0, both, np.nan))
    return updates.directed * angles_of(cosines)


def fault(toy: Any) -> None:
    """The optimizer forgets half of its momentum at every step."""

    def forget(*_: Any) -> None:
        for state in toy.optimizer.state.values():
            state["exp_avg"].mul_(0.5)

    toy.optimizer.register_step_post_hook(forget)
