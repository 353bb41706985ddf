"""`compare_runs`: two implementations or two checkpoints on one batch, layer by layer."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from torchstone.core.errors import InputError, TorchstoneError, UsageError
from torchstone.core.report import Report
from torchstone.core.text import Text, locale_lang
from torchstone.observe.compat.autograd import is_functorch_wrapped_tensor
from torchstone.tensors.compare.as_found import (
    WriteGuardMode,
    model_as_found,
    same_randomness,
)
from torchstone.tensors.compare.results.runs_outcome import LayerDifference, RunsReport
from torchstone.tensors.compare.results.runs_report import TOOL, runs_report
from torchstone.tensors.compare.settings import check_number, check_seed, check_weights
from torchstone.tensors.compare.step import (
    Batch,
    LossFunction,
    as_batch,
    copy_of_input,
    floating_outputs,
    loss_of,
)

_TOLERANCE = 1e-5
"""Relative difference of fp32 results that another order of summation explains."""
_RATIO = 8
"""A layer diverges by itself when what comes out differs so many times more than what went in."""
_MEMORY_LIMIT = 1 << 30
"""Bytes held at once by default: 1 GiB, small beside any model for which the limit matters."""
_Call = tuple[str, int]
"""The name of a layer, and which of its calls."""


def compare_runs(
    model_a: nn.Module,
    model_b: nn.Module,
    batch: Any,
    *,
    loss: LossFunction | None = None,
    tolerance: float = _TOLERANCE,
    memory_limit: int = _MEMORY_LIMIT,
    seed: int = 0,
    lang: str = "",
) -> RunsReport:
    """The first layer whose outputs differ in two models although its inputs agree.

    Modules are matched by name and call. What the first model gave at a layer is held until the second
    has reached it, at most `memory_limit` bytes at a time: where the layers of the model take more, both
    models run again for the rest.
    """
    for name, model in (("model_a", model_a), ("model_b", model_b)):
        if not isinstance(model, nn.Module):
            raise UsageError(
                f"compare_runs: {name}", Text(f"a {type(model).__name__}", type(model).__name__), Text("a torch module", "torch 模块"),
                Text("pass the nn.Module itself", "请传入 nn.Module 本身"),
            )  # fmt: skip
        check_weights(f"compare_runs: {name}", model)
    check_number("compare_runs: tolerance", tolerance)
    check_number("compare_runs: memory_limit", memory_limit)
    check_seed("compare_runs: seed", seed)
    given = as_batch(batch)
    first_pass = _Pass(0, memory_limit)
    grads_a, out_a = _step(model_a, given, loss, seed, first_pass.of_a)
    grads_b, out_b = _step(model_b, given, loss, seed, first_pass.of_b)
    gradients = {
        name: _distance([grads_a[name]], [grads_b[name]])[0] for name in grads_a if name in grads_b
    }
    rows = first_pass.rows + _further_rows(first_pass, model_a, model_b, given, seed)
    layers = tuple(replace(row, order=order) for order, row in enumerate(rows))
    names_a, names_b = (dict(model.named_modules()) for model in (model_a, model_b))
    found = RunsReport(
        type(model_a).__name__, type(model_b).__name__, tolerance, layers, next((row for row in layers if _diverges(row, tolerance)), None),
        _distance(out_a, out_b)[0], _weights(model_a, model_b), gradients,
        tuple(sorted(set(names_a) - set(names_b))), tuple(sorted(set(names_b) - set(names_a))),
        Report(TOOL), lang or locale_lang(),
    )  # fmt: skip
    return replace(found, report=runs_report(found))


def _further_rows(
    done: _Pass, model_a: nn.Module, model_b: nn.Module, batch: Batch, seed: int
) -> list[LayerDifference]:
    """The layers that the first pass had no memory for, without a backward pass."""
    rows: list[LayerDifference] = []
    with torch.no_grad():
        while done.next_call < done.calls:
            done = _Pass(done.next_call, done.limit)
            _step(model_a, batch, None, seed, done.of_a)
            _step(model_b, batch, None, seed, done.of_b)
            rows += done.rows
    return rows


class _Pass:
    """One run of both models: the calls of layers from a first one on, while the memory lasts."""

    def __init__(self, first_call: int, limit: int) -> None:
        self.next_call = first_call
        self.limit = limit
        self.calls = 0
        self.rows: list[LayerDifference] = []
        self._held: dict[_Call, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
        self._bytes = 0

    @property
    def of_a(self) -> _Listener:
        return _Listener(self._is_held_next, self._keep)

    @property
    def of_b(self) -> _Listener:
        return _Listener(lambda call: call in self._held, self._compare)

    def _is_held_next(self, _: _Call) -> bool:
        """Calls are held in the order in which they begin, at least one in a pass."""
        wanted = self.calls == self.next_call and (not self._held or self._bytes < self.limit)
        self.calls += 1
        self.next_call += wanted
        return wanted

    def _keep(self, call: _Call, ins: list[torch.Tensor], outs: list[torch.Tensor]) -> None:
        self._held[call] = ins, [item.detach().clone() for item in outs]
        self._bytes += sum(item.nbytes for held in self._held[call] for item in held)

    def _compare(self, call: _Call, ins: list[torch.Tensor], outs: list[torch.Tensor]) -> None:
        ins_a, outs_a = self._held.pop(call)
        entering, _ = _distance(ins_a, ins)
        leaving, shapes = _distance(outs_a, outs)
        self.rows.append(LayerDifference(call[0], len(self.rows), entering, leaving, shapes))


@dataclass(frozen=True, slots=True)
class _Listener:
    """Which calls of layers are of interest, and what is done with what went in and came out."""

    wants: Callable[[_Call], bool]
    note: Callable[[_Call, list[torch.Tensor], list[torch.Tensor]], None]


def _step(
    model: nn.Module, batch: Batch, loss: LossFunction | None, seed: int, listener: _Listener
) -> tuple[dict[str, torch.Tensor], list[torch.Tensor]]:
    """One step with the listener told of every layer; the model is left as it was."""
    with (
        same_randomness(model, seed),
        model_as_found(model) as guard,
        WriteGuardMode(guard),
        _listening(model, listener),
    ):
        try:
            given = batch.mapped(copy_of_input)
            out = model(*given.args, **given.kwargs)
            final = loss_of(out, loss)
            if final is not None and final.requires_grad:
                final.backward()
        except TorchstoneError:
            raise
        except Exception as error:  # of the model's own code
            said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            raise InputError(
                f"compare_runs: {type(model).__name__}", said,
                Text("a model that takes this batch", "能接受该批数据的模型"),
                Text("pass the inputs of forward as a tuple or a dict", "请以元组或字典传入 forward 的输入"),
            ) from error  # fmt: skip
        grads = {
            name: item.grad.detach()
            for name, item in model.named_parameters()
            if item.grad is not None
        }
        return grads, [item.detach() for item in floating_outputs(out)]


@contextmanager
def _listening(model: nn.Module, listener: _Listener) -> Iterator[None]:
    calls: dict[str, int] = defaultdict(int)
    waiting: dict[str, list[tuple[_Call, list[torch.Tensor]] | None]] = defaultdict(list)
    handles = []

    def listen(name: str, module: nn.Module) -> None:
        def before(_: nn.Module, args: Any, kwargs: Any) -> None:
            if any(map(is_functorch_wrapped_tensor, floating_outputs((args, kwargs)))):
                waiting[name].append(None)  # inside vmap a tensor has no values that can be read
                return
            call = name, calls[name]
            calls[name] += 1
            wanted = listener.wants(call)
            # Cloned: the layer may write into its inputs.
            tensors = floating_outputs((args, kwargs)) if wanted else []
            waiting[name].append((call, [t.detach().clone() for t in tensors]) if wanted else None)

        def after(_: nn.Module, __: Any, ___: Any, out: Any) -> None:
            began = waiting[name].pop()
            if began is not None:
                listener.note(*began, floating_outputs(out))

        handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
        handles.append(module.register_forward_hook(after, with_kwargs=True))

    for name, module in model.named_modules():
        if not any(True for _ in module.children()):
            listen(name, module)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _distance(a: list[torch.Tensor], b: list[torch.Tensor]) -> tuple[float, str]:
    """Relative difference of two lists of tensors, and their shapes where they do not agree."""
    if [item.shape for item in a] != [item.shape for item in b]:
        return math.inf, f"{[tuple(i.shape) for i in a]} / {[tuple(i.shape) for i in b]}"
    signal = noise = 0.0
    for one, two in zip(a, b, strict=True):
        x, y = one.detach().double(), two.detach().double()
        same = (x == y) | (x.isnan() & y.isnan())
        difference = torch.where(same, 0.0, x - y)
        signal += float(torch.where(x.isfinite(), x, 0.0).norm()) ** 2
        noise += float(difference.norm()) ** 2
    if not math.isfinite(noise):
        return math.inf, ""
    return (math.sqrt(noise / signal) if signal > 0 else math.sqrt(noise)), ""


def _diverges(row: LayerDifference, tolerance: float) -> bool:
    return row.leaving > tolerance and row.leaving > _RATIO * row.entering


def _weights(model_a: nn.Module, model_b: nn.Module) -> dict[str, float]:
    mine, other = (
        {**dict(m.named_parameters()), **dict(m.named_buffers())} for m in (model_a, model_b)
    )
    found = {
        name: _distance([mine[name].detach()], [other[name].detach()])[0]
        for name in mine
        if name in other
    }
    return {name: value for name, value in found.items() if value > 0}
