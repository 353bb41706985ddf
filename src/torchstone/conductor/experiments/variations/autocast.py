"""Autocast changes the digits of a gradient, not its direction.

The program runs twice up to its first update: once in float32, once with its regions of autocast casting as they do on a GPU.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import torch

from torchstone.conductor.experiments.against_one.comparing import first_difference
from torchstone.conductor.experiments.against_one.playing import Autocast, Player
from torchstone.conductor.experiments.against_one.tape import Tape, load_tape
from torchstone.conductor.experiments.recording.session import Start
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, FirstRun
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.processes import answers_of
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text

TURNED = ProbeRule(
    "EX123",
    "autocast-turns-gradients",
    Severity.MEDIUM,
    "wrong result",
    Text(
        "under autocast gradients point elsewhere than in float32",
        "autocast 下的梯度方向与 float32 不同",
    ),
    Text(
        "half precision loses more there than rounding: values overflow, vanish, or are sums of many small ones",
        "此处半精度的损失超出舍入误差：数值溢出、消失，或由许多小数累加而成",
    ),
    Text(
        "keep this part in float32: leave the region, or cast its inputs with .float()",
        "将该部分保持为 float32：移出该区域，或用 .float() 转换其输入",
    ),
)
RULES = (TURNED,)
_TURNED = 0.8
"""Cosine. Rounding to bfloat16 alone leaves 0.99 in ten layers and 0.95 in a hundred; a sign that flips, a value that vanishes less."""
_SMALL = 1e-3
"""Of the largest gradient's norm: smaller ones are sums that cancel out, and rounding decides them."""
_RETURN_TOLERANCE = 0.1
"""Relative: a result that is this far off has lost more than the digits of its format."""


def examine(start: Start, first: FirstRun) -> Examined:
    """Only where a region of autocast was switched on."""
    if not first.autocast:
        return NOTHING_TO_LOOK_AT
    with tempfile.TemporaryDirectory(prefix="autocast-") as name:
        paths = [Path(name, "wide.pt"), Path(name, "low.pt")]
        modes: tuple[Autocast, ...] = ("off", "as on a GPU")
        answers_of(
            [
                functools.partial(_write, start, mode, path)
                for mode, path in zip(modes, paths, strict=True)
            ]
        )
        if not all(path.is_file() for path in paths):
            return NOTHING_TO_LOOK_AT
        wide, low = map(load_tape, paths)
    return _compare(wide, low)


def _write(start: Start, mode: Autocast, path: Path) -> str:
    Player(start, steps=1, autocast=mode).play().save(path)
    return "ok"


def _compare(wide: Tape, low: Tape) -> Examined:
    # an update that was skipped because of the loss scale comes later, with other samples
    if not wide.gradients or not low.gradients or len(wide.losses) != len(low.losses):
        return NOTHING_TO_LOOK_AT
    if wide.names != low.names:
        return NOTHING_TO_LOOK_AT
    pairs = [
        (name, one, torch.zeros_like(one) if other is None else other)
        for name, one, other in zip(wide.names, wide.gradients[0], low.gradients[0], strict=True)
        if one is not None
    ]
    largest = max((float(one.norm()) for _, one, _ in pairs), default=0.0)
    cosines = {
        name: _cosine(one, other)
        for name, one, other in pairs
        if float(one.norm()) > _SMALL * largest
    }
    if not cosines:
        return NOTHING_TO_LOOK_AT
    turned = {name: value for name, value in cosines.items() if not value >= _TURNED}
    if not turned:
        return Examined(decided=True)
    worst = min(turned, key=lambda name: turned[name])
    place = first_difference(wide, [low], _RETURN_TOLERANCE) or Place(*low.step_at)
    shown = Shown(
        TURNED,
        place,
        Text(
            "under autocast {count} of {total} gradients point elsewhere than in float32, that of {name} most",
            "autocast 下 {total} 个梯度中有 {count} 个的方向与 float32 不同，其中 {name} 最明显",
        ),
        {"count": str(len(turned)), "total": str(len(cosines)), "name": worst},
        (number("its cosine to float32", "与 float32 的余弦", turned[worst], "", IN_THE_RUN),),
    )
    return Examined((shown,), decided=True)


def _cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    left, right = one.double().flatten(), other.double().flatten()
    size = float(left.norm() * right.norm())
    return float(left @ right) / size if size > 0 else 0.0
