"""`compare_precision`: one step in low precision with a shadow in high precision, operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from torchstone.core.text import locale_lang
from torchstone.runtime.number_formats import format_of
from torchstone.tensors.compare.judge import (
    HARM_UNITS,
)
from torchstone.tensors.compare.plan import find_plan
from torchstone.tensors.compare.results.outcome import FirstBad, PrecisionReport
from torchstone.tensors.compare.results.precision_report import precision_report
from torchstone.tensors.compare.settings import Settings, check_number, checked_settings
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
    given = as_batch(batch)
    unit = format_of(low).rounding_unit
    first = run_with_shadow(model, given, settings)
    found = replace(first.found, first_bad=_to_blame(model, given, settings, first, unit))
    wanted = bound if bound is not None else _BOUND_UNITS * unit
    if plan and not layers and not per_layer and (found.first_bad or found.output_error > wanted):
        found = replace(found, plan=find_plan(model, given, settings, found, wanted))
    return precision_report(replace(found, lang=lang or locale_lang()), type(model).__name__, unit)


def _to_blame(
    model: nn.Module, batch: Batch, settings: Settings, first: ShadowedStep, unit: float
) -> FirstBad | None:
    """The first suspect without whose error the step comes out well; shown by running it again.

    Values that should be exactly zero have any relative error, and what is damped later harms nobody:
    making them exact changes nothing, so they are not blamed.
    """
    least = HARM_UNITS * unit
    if max(first.harms) >= least:
        for suspect in first.suspects[:_MOST_SUSPECTS]:
            if suspect.kind == "nonfinite":
                return suspect
            again = run_with_shadow(model, batch, settings, suspect.place)
            if first.is_cured_by(again, least):
                return suspect
    return first.lost_statistic
