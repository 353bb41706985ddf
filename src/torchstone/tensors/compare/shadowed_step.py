"""One step in low precision with its shadow: what it measured, and who is suspected."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchstone.core.errors import InputError, TorchstoneError
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.observe.compat.autograd import current_node
from torchstone.tensors.compare.as_found import same_randomness
from torchstone.tensors.compare.judge import (
    absorbed,
    flushed,
    growth_of_error,
    operator_errors,
    suspects_in_order,
)
from torchstone.tensors.compare.limits import CURED, Limits
from torchstone.tensors.compare.low_model import Original, in_low_precision
from torchstone.tensors.compare.notes import notes_on_run, reason_for_no_backward
from torchstone.tensors.compare.results.outcome import FirstBad, PrecisionReport
from torchstone.tensors.compare.settings import Settings
from torchstone.tensors.compare.shadow.places import Places
from torchstone.tensors.compare.shadow.shadow_mode import Line, ShadowMode
from torchstone.tensors.compare.step import (
    Batch,
    copy_of_input,
    floating_outputs,
    has_recurrent_layers,
    loss_of,
)

_ABSORBED = 0.5
"""Share of a statistic's update that is lost: half of it and more means that it no longer follows."""


@dataclass(frozen=True)
class ShadowedStep:
    """One shadowed step: what it measured, who is suspected, and how bad the results are."""

    found: PrecisionReport
    suspects: tuple[FirstBad, ...]
    lost_statistic: FirstBad | None
    lost_loss: FirstBad | None
    """Where the loss became zero."""
    harms: tuple[float, ...]
    """Errors of the outputs, of the worst gradient, of what goes from layer to layer, and of a loss that became
    zero."""

    def is_cured_by(self, again: ShadowedStep, least: float) -> bool:
        """Did an error that matters fall to half or less?"""
        pairs = zip(self.harms, again.harms, strict=True)
        return any(
            before >= least and after < before and after <= CURED * before
            for before, after in pairs
        )  # infinity is not half of infinity


def run_with_shadow(
    model: nn.Module, batch: Batch, settings: Settings, repair: Collection[Line] = ()
) -> ShadowedStep:
    """The shadowed step; with `repair`, the results of those lines are made exact."""
    places = Places(model)
    low = None if settings.autocast else settings.low
    with same_randomness(model, settings.seed), in_low_precision(model, low) as (originals, guard):
        mode = ShadowMode(
            settings.low, settings.high, places, settings.simulate, _wanted(places, settings.layers),
            repair, _block_of(model) if settings.per_layer else None, guard.before_write,
        )  # fmt: skip
        return _run(model, batch, settings, places, mode, originals)


def _run(
    model: nn.Module, batch: Batch, settings: Settings, places: Places, mode: ShadowMode,
    originals: list[Original],
) -> ShadowedStep:  # fmt: skip
    for item in originals:
        if item.values.is_floating_point() and item.tensor.data is not item.values:
            mode.memory.remember_original(item.tensor, item.values, item.is_buffer)
    given = batch.mapped(lambda tensor: _low_input(tensor, settings, mode))
    before = {item.name: item.tensor.detach().clone() for item in originals if _is_statistic(item)}
    try:
        with _environment(model, places, settings), mode:
            out = model(*given.args, **given.kwargs)
            final = loss_of(out, settings.loss, places.nowhere())
            unwanted = reason_for_no_backward(model, settings, final)
            if unwanted is None and final is not None:
                (final * settings.loss_scale if settings.loss_scale != 1 else final).backward()
    except TorchstoneError:
        raise
    except Exception as error:  # of the model's own code
        raise _cannot_run(model, settings, error, places) from error
    notes = [*notes_on_run(settings, mode.ledger), *([unwanted] if unwanted else [])]
    return _measured(settings, places, mode, out, final, originals, before, notes)


@contextlib.contextmanager
def _environment(model: nn.Module, places: Places, settings: Settings) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(places.following_modules())
        if has_recurrent_layers(model):  # oneDNN runs an LSTM as one operator without an fp64 form
            stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        if settings.autocast:
            device = next(model.parameters(), torch.zeros(0)).device.type
            stack.enter_context(torch.autocast(device, settings.low))
        yield


def _wanted(places: Places, layers: tuple[str, ...]) -> Any:
    if not layers:
        return lambda: True

    def inside() -> bool:
        node = current_node()
        if node is not None:
            place = places.forward_place(node)
            return place is not None and _within(place.module, layers)
        return bool(places.stack) and _within(places.stack[-1], layers)

    return inside


def _within(module: str, layers: tuple[str, ...]) -> bool:
    return any(module == layer or module.startswith(layer + ".") for layer in layers)


def _block_of(model: nn.Module) -> Callable[[str], str]:
    """The layer that a module belongs to: an entry of a module list, else a child of the model."""
    blocks = [
        f"{name}.{child}" if name else child
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList | nn.Sequential) or not name
        for child, _ in module.named_children()
    ]
    blocks.sort(key=len)  # the outermost layer wins, but a list is no layer
    layers = [name for name in blocks if not isinstance(model.get_submodule(name), nn.ModuleList)]

    @functools.cache
    def block_of(module: str) -> str:
        return next((name for name in layers if _within(module, (name,))), "")

    return block_of


def _low_input(tensor: torch.Tensor, settings: Settings, mode: ShadowMode) -> torch.Tensor:
    if not tensor.is_floating_point() or settings.autocast:
        return copy_of_input(tensor)
    low = tensor.detach().to(settings.low, copy=True)
    if low.dtype != tensor.dtype:
        mode.memory.remember_original(low, tensor.detach().contiguous(), False)
        mode.keep_alive(low)
    return low.requires_grad_(tensor.requires_grad)


def _is_statistic(item: Original) -> bool:
    return item.is_buffer and item.values.is_floating_point() and item.values.numel() > 0


def _measured(
    settings: Settings, places: Places, mode: ShadowMode, out: Any, final: torch.Tensor | None,
    originals: list[Original], before: dict[str, torch.Tensor], notes: list[Text],
) -> ShadowedStep:  # fmt: skip
    memory, ledger = mode.memory, mode.ledger
    pairs = [(item, memory.value(item)) for item in floating_outputs(out)]
    output_error = _together(pairs, bool(ledger.broken))
    gradients = {
        item.name: (item.tensor.grad, memory.value(item.tensor.grad))
        for item in originals
        if item.tensor.grad is not None
    }
    whole = math.sqrt(sum(_square(high) for _, high in gradients.values()))
    errors = {
        name: math.sqrt(_square(low.to(high.dtype) - high)) / whole if whole else 0.0
        for name, (low, high) in gradients.items()
    }
    for item in originals:
        if item.tensor.grad is not None and (shadow := memory.find(item.tensor.grad)) is not None:
            mode.left(shadow, errors[item.name])
    for output in floating_outputs(out):
        if (shadow := memory.find(output)) is not None:
            mode.left(shadow)
    limits = Limits.of(settings.low)
    statistic = _lost_statistic(originals, before, mode)
    gradient = max((_worst(value) for value in errors.values()), default=0.0)
    loss_low = None if final is None else float(final.detach())
    loss_high = None if final is None else float(memory.value(final.detach()))
    zero = _lost_loss(final, loss_low, loss_high, mode)
    harms = (_worst(output_error), gradient, mode.boundary_error, 0.0 if zero is None else 1.0)
    lost = None if statistic is None else absorbed(places.all[statistic[0]], statistic[1])
    flips = sum(op.flips for site in ledger.sites.values() for op in site.operators.values())
    found = PrecisionReport(
        low=str(settings.low).removeprefix("torch."),
        high=str(settings.high).removeprefix("torch."),
        output_error=output_error,
        loss_low=loss_low,
        loss_high=loss_high,
        gradient_errors=errors,
        operators=operator_errors(ledger, places.all, limits.unit),
        growth=growth_of_error(ledger, places.all),
        first_bad=None,
        plan=None,
        simulated=settings.simulate,
        flips=flips,
        notes=tuple(notes),
        report=Report("precision"),
    )
    suspects = tuple(suspects_in_order(ledger, places.all, limits))
    return ShadowedStep(found, suspects, lost, zero, harms)


def _lost_loss(
    final: torch.Tensor | None, low: float | None, high: float | None, mode: ShadowMode
) -> FirstBad | None:
    """Where a loss became zero that is not zero in the reference."""
    if final is None or low != 0 or not high:
        return None
    shadow = mode.memory.find(final)
    if shadow is None or shadow.origin < 0 or not mode.places.all[shadow.origin]:
        return None  # a sum of our own, where the model has no loss, may be zero by chance
    mode.left(shadow)
    made = mode.ledger.site(shadow.origin).operators.values()
    operator = max(made, key=lambda item: item.total).operator if made else "mul"
    return flushed(mode.places.all[shadow.origin], operator)


def _worst(error: float) -> float:
    """NaN is as bad as an error can be."""
    return math.inf if math.isnan(error) else error


def _together(pairs: list[tuple[torch.Tensor, torch.Tensor]], broke: bool) -> float:
    """The error of several tensors as one; infinite where a number broke.

    A number that the program reads (`.item()`) is that of the low run: where one `broke`, the shadow may be NaN too.
    """
    signal = sum(_square(high) for _, high in pairs)
    noise = sum(_square(low.detach().to(high.dtype) - high) for low, high in pairs)
    if not math.isfinite(noise):
        broken = any(
            bool((high.isfinite() & ~low.detach().isfinite()).any())
            or (broke and bool(low.detach().isnan().any()))
            for low, high in pairs
        )
        return math.inf if broken else 0.0
    return math.sqrt(noise / signal) if signal > 0 else 0.0


def _square(tensor: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor.detach())) ** 2


def _lost_statistic(
    originals: list[Original], before: dict[str, torch.Tensor], mode: ShadowMode
) -> tuple[int, float] | None:
    """The place that wrote a buffer whose update was rounded away, and how much of it."""
    for item in originals:
        if item.name not in before:
            continue
        shadow = mode.memory.find(item.tensor)
        if shadow is None or shadow.site < 0:
            continue
        start = item.values.to(mode.high)
        high = mode.memory.value(item.tensor) - start
        low = item.tensor.detach().to(mode.high) - before[item.name].to(mode.high)
        size = math.sqrt(_square(high))
        lost = math.sqrt(_square(low - high)) / size if size > 0 else 0.0
        if lost > _ABSORBED:
            return shadow.site, lost
    return None


def _cannot_run(
    model: nn.Module, settings: Settings, error: Exception, places: Places
) -> InputError:
    said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    where = places.stack[-1] if places.stack else type(model).__name__
    return InputError(
        f"compare_precision: {where}", said,
        Text(f"a model that runs in {settings.low}", f"能以 {settings.low} 运行的模型"),
        Text("pass autocast=True if it casts by itself, or low=torch.float32 to see whether it runs at all",
             "若模型自行转换类型请传入 autocast=True，或用 low=torch.float32 确认其能否运行"),
    )  # fmt: skip
