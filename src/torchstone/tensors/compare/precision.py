"""`compare_precision`: one step in low precision with a shadow in high precision, operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from torchstone.core.errors import InputError
from torchstone.core.place import Place
from torchstone.core.text import Text, locale_lang
from torchstone.tensors.compare.limits import Limits
from torchstone.tensors.compare.plan import find_plan
from torchstone.tensors.compare.results.outcome import FirstBad, PrecisionReport
from torchstone.tensors.compare.results.precision_report import precision_report
from torchstone.tensors.compare.settings import Settings, check_number, checked_settings
from torchstone.tensors.compare.shadow.shadow_mode import Line
from torchstone.tensors.compare.shadowed_step import ShadowedStep, run_with_shadow
from torchstone.tensors.compare.step import (
    Batch,
    LossFunction,
    as_batch,
)

_MOST_SUSPECTS = 6
_BOUND_UNITS = 8
"""The plan brings the output error under so many units of rounding, unless told otherwise."""


def compare_precision(
    model: nn.Module,
    batch: Any,
    low: torch.dtype = torch.bfloat16,
    high: torch.dtype | None = None,
    *,
    loss: LossFunction | None = None,
    layers: str | Sequence[str] | None = None,
    backward: bool | None = None,
    autocast: bool = False,
    scaler: Any = None,
    per_layer: bool = False,
    simulate: bool | None = None,
    bound: float | None = None,
    plan: bool = True,
    seed: int = 0,
    lang: str = "",
) -> PrecisionReport:
    """Where a step of the model loses precision, and what to keep in high precision.

    `batch` is a tensor, a tuple of arguments or a dict of keywords. `high` is fp32 where `low` has 16
    bits, else fp64. `layers` limits the comparison to parts of the network. With `autocast` the model
    stays as it is and runs under autocast. With `per_layer` only one layer's shadow is held at a time.
    `simulate` runs operators in fp32 and rounds their results; by default only where this machine has no
    kernels for `low`. `bound` is the output error that the plan must reach.
    """
    settings = checked_settings(
        model, low, high, loss, layers, backward, autocast, scaler, per_layer, simulate, seed
    )
    if bound is not None:
        check_number("compare_precision: bound", bound)
    given, limits = as_batch(batch), Limits.of(low)
    first, settings = _run_first(model, given, settings)
    found = replace(first.found, first_bad=_to_blame(model, given, settings, first))
    wanted = bound if bound is not None else _BOUND_UNITS * limits.unit
    above = not found.output_error <= wanted  # NaN is above every bound
    if plan and not layers and not per_layer and (found.first_bad or above):
        found = replace(found, plan=find_plan(model, given, settings, found, wanted))
    harmed = above or found.loss_flushed or not found.gradient_error <= limits.backward
    found = replace(found, unexplained=harmed and found.first_bad is None)
    return precision_report(
        replace(found, lang=lang or locale_lang()), type(model).__name__, limits.unit
    )


def _run_first(model: nn.Module, batch: Batch, settings: Settings) -> tuple[ShadowedStep, Settings]:
    """The shadowed step; under autocast where the model's own code does not run when it is cast."""
    try:
        return run_with_shadow(model, batch, settings), settings
    except InputError as error:
        if settings.autocast or settings.low.itemsize > 2:
            raise
        instead = replace(settings, autocast=True)
        try:
            step = run_with_shadow(model, batch, instead)
        except InputError:
            raise error from None
        said = error.given
        note = Text(
            f"the model does not run when it is cast to {settings.low} ({said}): it ran under autocast",
            f"模型整体转换为 {settings.low} 后无法运行（{said}），因此改在 autocast 下运行",
        )
        return replace(step, found=replace(step.found, notes=(*step.found.notes, note))), instead


def _to_blame(
    model: nn.Module, batch: Batch, settings: Settings, first: ShadowedStep
) -> FirstBad | None:
    """The first suspect without whose error the step comes out well; shown by running it again.

    Values that should be exactly zero have any relative error, and what is damped later harms nobody:
    making them exact changes nothing, so they are not blamed.
    """
    least = Limits.of(settings.low).harm
    if max(first.harms) >= least:
        for suspect in first.suspects[:_MOST_SUSPECTS]:
            if suspect.kind == "nonfinite":
                return suspect
            again = run_with_shadow(model, batch, settings, _lines_to_repair(suspect.place))
            if first.is_cured_by(again, least):
                return suspect
    return first.lost_loss or first.lost_statistic


def _lines_to_repair(place: Place) -> list[Line]:
    """A line as it runs forward, and its gradients with it; for what a backward did, that alone."""
    phases = ("forward", "backward") if place.phase == "forward" else ("backward",)
    return [(place.path, place.line, phase) for phase in phases]
