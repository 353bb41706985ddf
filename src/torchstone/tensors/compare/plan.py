"""The smallest set of modules to keep in high precision, found by search and proven by running it."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import Any

import torch
from torch import nn

from torchstone.tensors.compare.as_found import WriteGuardMode, same_randomness
from torchstone.tensors.compare.low_model import in_low_precision, kept_in_high
from torchstone.tensors.compare.results.outcome import Plan, PrecisionReport
from torchstone.tensors.compare.settings import Settings
from torchstone.tensors.compare.shadow.rounded_mode import RoundedMode
from torchstone.tensors.compare.step import Batch, floating_outputs

_CANDIDATES = 8
_MOST_RUNS = 40
_HELPS = 0.5  # less than half of the error is left: worth doing, though it is not enough
_CLOSE = 1.1


def find_plan(
    model: nn.Module, batch: Batch, settings: Settings, found: PrecisionReport, bound: float
) -> Plan:
    """Modules are tried by the error they make, one, then two, then three at a time, then greedily.

    A set of modules that the model cannot be run with is as bad as can be.
    """
    reference = _try_run(model, batch, settings, frozenset({""}))
    if isinstance(reference, str):
        return Plan((), bound, found.output_error, found.output_error, 1, False, reference)
    exact: list[torch.Tensor] = reference
    tried: dict[frozenset[str], float] = {}

    def error_of(chosen: frozenset[str]) -> float:
        keep = outermost(chosen)
        if keep not in tried:
            out = _try_run(model, batch, settings, keep)
            tried[keep] = math.inf if isinstance(out, str) else _distance(out, exact)
        return tried[keep]

    before = error_of(frozenset())
    names = _candidates(model, found)
    best = _smallest(names, error_of, bound, tried)
    if error_of(best) > bound:
        best = _most_helpful(tried)
    best, after = outermost(best), error_of(best)
    return Plan(tuple(sorted(best)), bound, before, after, len(tried), after <= bound)


def outermost(names: frozenset[str]) -> frozenset[str]:
    """Without modules inside of others of the set: those are kept with them."""
    return frozenset(
        name for name in names if not any(name.startswith(f"{other}.") for other in names)
    )


def _candidates(model: nn.Module, found: PrecisionReport) -> list[str]:
    """Modules that compute by themselves, the largest makers of error first."""
    known = {name for name, _ in model.named_modules() if name}
    makers: dict[str, float] = {}
    for item in found.operators:
        if item.place.phase == "forward" and item.place.module in known:
            grown = max(item.total - item.inherited / max(item.amplification, 1.0), 0.0)
            makers[item.place.module] = makers.get(item.place.module, 0.0) + grown
    ranked = sorted(makers, key=lambda name: -makers[name])
    first = [found.first_bad.layer] if found.first_bad and found.first_bad.layer in known else []
    return list(dict.fromkeys(first + ranked))


def _smallest(
    names: list[str], error_of: Any, bound: float, tried: dict[frozenset[str], float]
) -> frozenset[str]:
    if error_of(frozenset()) <= bound:
        return frozenset()
    for size in (1, 2, 3):
        for chosen in itertools.combinations(names[:_CANDIDATES], size):
            if len(tried) > _MOST_RUNS:
                break
            if error_of(frozenset(chosen)) <= bound:
                return frozenset(chosen)
    kept: frozenset[str] = frozenset()
    for name in names:  # more than three: add by rank, then take out what is not needed
        kept |= {name}
        if error_of(kept) <= bound:
            break
    for name in sorted(kept):
        if len(kept) > 1 and error_of(kept - {name}) <= bound:
            kept -= {name}
    return kept


def _most_helpful(tried: dict[frozenset[str], float]) -> frozenset[str]:
    """Where no set reaches the bound: the smallest that comes close to the best; none where none helps."""
    least = min(tried.values())
    if not least < _HELPS * tried[frozenset()]:
        return frozenset()
    close = [keep for keep, error in tried.items() if error <= _CLOSE * least]
    return min(close, key=lambda keep: (len(keep), tried[keep]))


def _try_run(
    model: nn.Module, batch: Batch, settings: Settings, keep: frozenset[str]
) -> list[torch.Tensor] | str:
    """The outputs, or what the model's code said when it could not be run so."""
    try:
        return _run(model, batch, settings, keep)
    except Exception as error:  # of the model's own code, which did not expect two types
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _run(
    model: nn.Module, batch: Batch, settings: Settings, keep: frozenset[str]
) -> list[torch.Tensor]:
    """The outputs with these modules in high precision; `""` keeps all of them."""
    whole = "" in keep
    low = settings.high if whole else settings.low
    with (
        same_randomness(model, settings.seed),
        torch.no_grad(),
        in_low_precision(
            model,
            None if settings.autocast and not whole else low,
            keep if not whole else frozenset(),
        ) as (_, guard),
        WriteGuardMode(guard),
        contextlib.ExitStack() as stack,
    ):
        if not whole:
            stack.enter_context(kept_in_high(model, keep, torch.float32, settings.low))
            stack.enter_context(_low_side(model, settings))
        given = batch.mapped(
            lambda tensor: tensor.to(low if tensor.is_floating_point() else tensor.dtype, copy=True)
        )
        out = model(*given.args, **given.kwargs)
    return [item.detach().double() for item in floating_outputs(out)]


def _low_side(model: nn.Module, settings: Settings) -> Any:
    if settings.autocast:
        device = next(model.parameters(), torch.zeros(0)).device.type
        return torch.autocast(device, settings.low)
    return RoundedMode(settings.low) if settings.simulate else contextlib.nullcontext()


def _distance(low: list[torch.Tensor], high: list[torch.Tensor]) -> float:
    if len(low) != len(high):
        return math.inf  # another branch was taken
    noise = sum(float((a - b).norm()) ** 2 for a, b in zip(low, high, strict=True))
    signal = sum(float(b.norm()) ** 2 for b in high)
    if not math.isfinite(noise):
        return math.inf
    return math.sqrt(noise / signal) if signal > 0 else 0.0
