"""A parameter with a gradient and a learning rate that a step leaves as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.signal import Alarm, Signal
from torchstone.watch.measure.update import Update

SIGNAL = Signal(
    "unchanged_parameter",
    phase="update",
    of="layer",
    title=Text("parameter not changed by updates", "更新后未变化的参数"),
    why=Text(
        "the parameter is in the optimizer, has a gradient and a learning rate above zero, and still does not change: it is not trained",
        "该参数在优化器中、有梯度且学习率大于零，却没有变化：它没有被训练",
    ),
    remedy=Text(
        "check whether the optimizer holds a copy of the parameter, whether updates are lost to rounding, and whether something restores the old value",
        "检查优化器持有的是否为参数的副本、更新是否被舍入掉，以及是否有代码恢复了旧值",
    ),
    severity=Severity.HIGH,
)


_IN_A_ROW = 3
_NOTED_EVERY = 4
_KEPT = 0.7  # of what steps were is still expected when they have become smaller
_ULPS = 2.0  # of the weights: steps are as good as lost before all of them are


@SIGNAL.on_update
def unchanged(update: Update) -> Iterator[Alarm]:
    if update.steps is None or update.rate <= 0:
        return
    if torch.float64 in update.watched.dtypes:
        return  # sampled as fp32, which does not show small steps
    _note_usual_steps(update)
    undone = update.undone is not None and bool(update.undone.any())
    if not update.moved[5].any() and not undone and "unchanged" not in update.memory:
        return
    pushed = (update.steps["pushed"] > 0) & (update.steps["not_finite"] == 0)
    still = (update.steps["changed"] == 0) & pushed
    if still.any() or undone:
        pushed &= update.moving & update.matters
        still &= pushed & ~_is_lost_in_rounding(update)
    runs = update.memory.setdefault("unchanged", np.zeros(len(still), np.int64))
    assert isinstance(runs, np.ndarray)
    runs[:] = np.where(still, runs + 1, 0)
    if undone:  # a step that is taken back moves nothing either
        runs[update.undone & pushed] = _IN_A_ROW
    stuck = np.flatnonzero(runs >= _IN_A_ROW)
    if len(stuck):
        name = update.watched.names[int(stuck[0])]
        yield Alarm(
            SIGNAL.name,
            Text(
                f"unchanged_parameter: {len(stuck)} parameter(s) did not move in {_IN_A_ROW} steps "
                f"though lr is {update.rate:.3g}, first '{name}'",
                f"unchanged_parameter：{len(stuck)} 个参数在 {_IN_A_ROW} 步内未变"
                f"（lr = {update.rate:.3g}），首个为 '{name}'",
            ),
            name,
            float(len(stuck)),
        )


def _note_usual_steps(update: Update) -> None:
    """How far a step moves each parameter for its learning rate, in root mean square."""
    if (
        update.number % _NOTED_EVERY > 1 or update.steps is None
    ):  # of thinned steps two in a row are read
        return
    with np.errstate(all="ignore"):
        moved = np.sqrt(update.steps["update_squares"] / update.watched.sampled) / update.rates
    usual = update.memory.get("usual_steps")
    if isinstance(usual, np.ndarray):
        moved = np.fmax(moved, _KEPT * usual)
    update.memory["usual_steps"] = moved


def _is_lost_in_rounding(update: Update) -> NDArray[np.bool_]:
    """Parameters of which such a step is below the precision of their weights.

    That is how a decay to zero ends, and a loss that has converged: no fault.
    """
    usual = update.memory.get("usual_steps")
    assert isinstance(usual, np.ndarray)
    assert update.steps is not None
    size = np.sqrt(update.steps["weight_squares"] / np.maximum(update.watched.sampled, 1))
    with np.errstate(all="ignore"):
        return np.asarray(usual * update.rates <= _ULPS * update.watched.precision * size)


def fault(toy: Any) -> None:
    """Every step is undone for one layer."""
    kept = toy.model[0].weight.detach().clone()
    toy.model[0].weight.register_hook(lambda gradient: gradient)
    toy.optimizer.register_step_post_hook(
        lambda *_: toy.model[0].weight.data.copy_(kept),
    )
