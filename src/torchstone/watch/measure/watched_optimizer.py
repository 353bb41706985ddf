"""One optimizer with the parameters it moves, in the order of their layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchstone.core.text import Text
from torchstone.runtime.number_formats import NumberFormat, format_of
from torchstone.watch.learn.baselines import SETTLED_AFTER, Baselines
from torchstone.watch.learn.channels import Limits
from torchstone.watch.measure.signal import PHASES_OF_STEPS, Phase, Signal, Values, learned
from torchstone.watch.measure.update import SETTINGS
from torchstone.watch.read.device_reader import DeviceReader
from torchstone.watch.read.fused import Pinned, load_fused
from torchstone.watch.read.host_reader import HostReader
from torchstone.watch.read.reading import WIDTH, Query, Reading

if TYPE_CHECKING:
    from torchstone.watch.measure.update import Update

_BIAS = 127
_FEWEST = 80  # steps from which what is normal can be told from what is learned
_LOOK_EVERY = 2
_REMEMBERED = 60  # steps after which momentum has forgotten what came before
_numel: Callable[[Any], int] = Tensor.numel


@dataclass(frozen=True, slots=True)
class Unwatched:
    """A parameter that is not read, and why."""

    name: str
    reason: Text


class Learner:
    """The learned signals of one phase: one column for the run, or one for every layer."""

    def __init__(
        self, phase: Phase, layers: tuple[str, ...], warmup: int, tightness: float
    ) -> None:
        self.layers = layers
        self.signals = (*learned(phase, "run"), *learned(phase, "layer"))
        self.spans: list[tuple[Signal, int, int]] = []
        limits: list[Limits] = []
        for signal in self.signals:
            assert signal.limits is not None
            width = 1 if signal.of == "run" else len(layers)
            self.spans.append((signal, len(limits), len(limits) + width))
            limits += [signal.limits.scaled(tightness)] * width
        self.of_run = [
            (signal.name, start) for signal, start, _ in self.spans if signal.of == "run"
        ]
        slow = phase == "sample"  # judged at every tenth update
        settled_after = SETTLED_AFTER if phase == "update" else 0
        self.baselines = Baselines(limits, max(warmup // 10, 8) if slow else warmup, settled_after)


class WatchedOptimizer:
    """The parameters of one optimizer: how they are read, and what is normal for them."""

    def __init__(
        self, name: str, optimizer: torch.optim.Optimizer, names: dict[int, str],
        warmup: int, tightness: float, device_every: int,
    ) -> None:  # fmt: skip
        self.name = name
        self.optimizer = optimizer
        everything = _named(optimizer, names)
        self.unwatched = [Unwatched(n, why) for n, p in everything if (why := _unreadable(p))]
        kept = [(n, p) for n, p in everything if not _unreadable(p)]
        kept = _by_owner(kept)
        self._owned = [p for group in optimizer.param_groups for p in group["params"]]
        self._lengths = [len(group["params"]) for group in optimizer.param_groups]
        self.names = tuple(n for n, _ in kept)
        self.parameters: tuple[Tensor, ...] = tuple(p for _, p in kept)
        groups = {id(p): g for g, o in enumerate(optimizer.param_groups) for p in o["params"]}
        self.group_of = np.array([groups[id(p)] for p in self.parameters], np.int64)
        self.ids = frozenset(id(p) for p in self.parameters)
        self._numels = list(map(_numel, self.parameters))
        self.starts, self.layers = _layers(self.names)
        self.reader: HostReader | DeviceReader
        on_host = all(_device(p) == "cpu" for p in self.parameters)
        self.reader = (
            HostReader(self.parameters) if on_host else DeviceReader(self.parameters, device_every)
        )
        found = load_fused()
        self._fused = None if isinstance(found, str) else found
        self._bounds = Pinned(np.append(self.starts, len(self.parameters)).astype(np.int64))
        self._memory = self._kinds_of_memory()
        self.sizes = self.reader.sizes
        self.sampled = np.minimum(self.sizes, WIDTH).astype(np.float64)
        self.weight = self.sizes / np.maximum(self.sampled, 1)
        self.layer_sizes = self.by_layer(self.sizes.astype(np.float64))
        self.layer_sampled = np.maximum(self.by_layer(self.sampled), 1)
        self.precision = np.array([torch.finfo(p.dtype).eps for p in self.parameters])
        """Distance between 1 and the next larger number, in the format of each parameter."""
        self.tightness = tightness
        self.clipping: tuple[float, Tensor] | None = None
        """The norm that gradients were cut down to after they had been read, and the one they had."""
        self._pushed: NDArray[np.float32] | None = None
        self._pushed_at = -1
        self._pushes = 0
        self._proportional = False
        self._oldest: Tensor | None = None
        self.memory: dict[str, object] = {}
        self.dtypes = frozenset(p.dtype for p in self.parameters)
        self.updates = 0
        self.reading: Reading | None = None
        self.ever_present = np.zeros(len(self.parameters), np.bool_)
        """Parameters that have had a gradient."""
        self.all_seen = False
        """All of them have."""
        self.update: Update | None = None
        """What is known of the step that is under way."""
        self.formats: dict[tuple[bool, torch.dtype | None], NumberFormat] = {}
        self.due = True
        """This update is read."""
        self.scale = 1.0
        self.scaled = False
        self.outside: NDArray[np.bool_] | None = None
        self.before: NDArray[np.float32] | None = None
        self.after: NDArray[np.float32] | None = None
        """Samples of the weights as the last step left them."""
        self.anchor: tuple[int, NDArray[np.float32] | None] = (0, None)
        """An update a few steps ago, and samples of the weights at it."""
        self.undone: NDArray[np.bool_] | None = None
        """Parameters that are where they were then; None where that was not looked at."""
        self.loaded = False
        """Something was loaded since the last step: the next look says whether it changed anything."""
        self.digest = 0
        self.norm = math.nan
        """Of the gradients that were read last."""
        self.last_norm = self.last_rate = math.nan
        """Of the update that was judged last."""
        self.skip = False
        """This step is to be left out."""
        self.values: dict[str, Values] = {}
        self.log_rate: float | None = None
        self.stretch = 0.0
        self._sparse: frozenset[int] = frozenset()
        self.learners: dict[Phase, Learner] = {
            phase: Learner(phase, self.layers, warmup, tightness) for phase in PHASES_OF_STEPS
        }
        self._query: tuple[object, Query] | None = None

    def by_layer(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Sums over the parameters of every layer."""
        if len(values) == 0:
            return values
        return np.asarray(np.add.reduceat(values, self.starts))

    def sum_rows(self, each: Sequence[NDArray[np.void]]) -> NDArray[np.float64]:
        """Sums over the parameters of every layer and step, in the order of `Fused.sum_rows`."""
        if self._fused is not None:
            return self._fused.sum_rows(self._bounds, each)
        return np.array([self._sum_rows(rows) for rows in each])

    def _sum_rows(self, rows: NDArray[np.void]) -> NDArray[np.float64]:
        table = [rows["sum_of_squares"], rows["zero"], *rows["below"].T]
        return self._by_layer([*table, rows["nan"] + rows["infinite"]])

    def sum_steps(self, each: Sequence[NDArray[np.void]]) -> NDArray[np.float64]:
        """Sums over the parameters of every layer and step, in the order of `Fused.sum_steps`."""
        if self._fused is not None:
            return self._fused.sum_steps(self._bounds, each)
        return np.array([self._sum_steps(steps) for steps in each])

    def _sum_steps(self, steps: NDArray[np.void]) -> NDArray[np.float64]:
        still = (steps["changed"] == 0) & (steps["pushed"] > 0) & (steps["not_finite"] == 0)
        names = ("update_squares", "weight_squares", "pushed", "absorbed", "not_finite")
        products = ("gradient_squares", "along", "again", "straight")
        return self._by_layer(
            [*(steps[name] for name in names), still, *(steps[name] for name in products)]
        )

    def _by_layer(self, table: list[NDArray[Any]]) -> NDArray[np.float64]:
        whole = np.array(table, np.float64)
        if not whole.shape[1]:
            return whole
        return np.asarray(np.add.reduceat(whole, self.starts, axis=1))

    def driven_by(
        self, gradients: NDArray[np.float32], weights: NDArray[np.float32]
    ) -> NDArray[np.float64] | None:
        """What SGD with momentum is about to do to each layer, from samples; None for others.

        The samples go through the same sums as the real values, so the step that follows is in
        proportion, whatever the gradients do. NaN until the sums reach back far enough.
        """
        if self.updates == 0:
            kinds = {name for state in self.optimizer.state.values() for name in state}
            self._proportional = kinds <= {"momentum_buffer"}
        if not self._proportional:
            return None
        group = self.optimizer.param_groups[0]
        push = gradients * np.float32(self._clipped() / self.scale)
        if decay := float(group.get("weight_decay") or 0.0):
            push += np.float32(decay) * weights
        if self._pushed is None or self._pushed_at != self.updates - 1:
            self._pushed, self._pushes = np.zeros_like(push), 0
        keep = np.float32(group.get("momentum") or 0.0)
        self._pushed = keep * self._pushed + push
        step = push + keep * self._pushed if group.get("nesterov") else self._pushed
        self._pushed_at, self._pushes = self.updates, self._pushes + 1
        if self._pushes != self.updates + 1 and self._pushes < _REMEMBERED:
            return np.full(len(self.layers), np.nan)
        return np.sqrt(self.by_layer((step.astype(np.float64) ** 2).sum(1)))

    def _clipped(self) -> float:
        """What the gradients were multiplied with; a norm on a device is not waited for."""
        if self.clipping is None or not self.clipping[1].is_cpu:
            return 1.0
        most, norm = float(self.clipping[0]), float(self.clipping[1])
        return min(1.0, most / norm) if norm > 0 else 1.0

    def end_warmup(self) -> None:
        """The calls of warm-up are over; with several of them for each step, fewer steps must do.

        For gradients only: what a step does to the weights settles later.
        """
        baselines = self.learners["gradient"].baselines
        if _FEWEST <= baselines.seen < baselines.warmup:
            baselines.warmup = baselines.seen

    @property
    def gradient_burst(self) -> float:
        """How far updates may be above their usual size because gradients come in bursts, as those
        of a classifier do when few samples are left to learn from."""
        learner = self.learners["gradient"]
        column = next((start for name, start in learner.of_run if name == "grad_norm"), None)
        return 0.0 if column is None else learner.baselines.burst(column)

    @property
    def base_rate(self) -> float:
        """The largest rate that a schedule of torch starts from; 0 without one."""
        known = [group.get("initial_lr") for group in self.optimizer.param_groups]
        numbers = [r for r in known if isinstance(r, (int, float))]
        numbers += [
            float(r) for r in known if isinstance(r, Tensor) and r.is_cpu and r.numel() == 1
        ]
        return max(numbers, default=0.0)

    def forget_momentum(self) -> None:
        """What was loaded brought a momentum of its own."""
        self._pushed = None

    def gradients(self) -> list[Tensor | None]:
        """The gradients as they stand now."""
        return [p.grad for p in self.parameters]

    def is_current(self) -> bool:
        """The optimizer still has the parameters it had: reading by address rests on it."""
        groups = self.optimizer.param_groups
        if [len(group["params"]) for group in groups] != self._lengths:
            return False
        # one in the place of another is rare, and one of another size lies in another place
        if self.updates % _LOOK_EVERY == 0 or self.reader.moved:
            owned = chain.from_iterable(group["params"] for group in groups)
            if not all(map(is_, owned, self._owned)):
                return False
            if list(map(_numel, self.parameters)) != self._numels:
                return False
        return not self.reader.moved or self._kinds_of_memory() == self._memory

    def _kinds_of_memory(self) -> list[tuple[torch.dtype, bool]]:
        """What can only have changed when the weights are in another place."""
        self.reader.moved = False
        return [(p.dtype, p.is_cpu) for p in self.parameters]

    def note_sparse(self, gradients: Sequence[Tensor | None]) -> list[str]:
        """Gradients that are sparse cannot be read; the names of those not known yet."""
        sparse = {i for i, g in enumerate(gradients) if g is not None and g.layout != torch.strided}
        new = sparse - self._sparse
        self._sparse = frozenset(sparse | self._sparse)
        return [self.names[i] for i in sorted(new)]

    def is_sparse(self, place: int) -> bool:
        """The gradient of this parameter is sparse, and is not read."""
        return place in self._sparse

    def without_sparse(self, gradients: list[Tensor | None]) -> list[Tensor | None]:
        """The gradients that can be read."""
        if not self._sparse:
            return gradients
        return [None if i in self._sparse else g for i, g in enumerate(gradients)]

    def query(self, number_format: NumberFormat, scale: float, histogram: bool) -> Query:
        """Counts for this format: flushed, subnormal, and what other formats would lose."""
        key = (number_format, scale, histogram)
        if self._query is not None and self._query[0] == key:
            return self._query[1]
        shift = round(math.log2(scale)) if scale > 0 else 0
        flush, normal = number_format.flush_exponent, number_format.normal_exponent
        wanted = [-126, flush, normal, *(exponent + shift for exponent in (-25, -17, -14, -10, -6))]
        levels = np.clip(np.array(wanted) + _BIAS, 1, 255).astype(np.uint8)
        limits = np.full(len(self.parameters), number_format.overflow_from)
        query = Query(levels, limits, histogram)
        if not histogram:
            self._query = (key, query)
        return query

    @property
    def rate(self) -> float:
        """The largest learning rate of the groups; a tensor on a device is not read."""
        return max((r for r in self.group_rates if not math.isnan(r)), default=0.0)

    @property
    def group_rates(self) -> list[float]:
        """The learning rate of every group; NaN where it is on a device, and is not read."""
        rates = [group.get("lr", 0.0) for group in self.optimizer.param_groups]
        return [
            float(rate) if not isinstance(rate, Tensor) or rate.is_cpu else math.nan
            for rate in rates
        ]

    @property
    def age(self) -> float:
        """Steps that the optimizer has counted; -1 without any state, 0 where it does not count."""
        states = self.optimizer.state
        if self._oldest is None:
            self._oldest = next((p for p in self.parameters if states.get(p)), None)
        state = states.get(self._oldest) if self._oldest is not None else None
        if not state:
            return -1.0
        step = state.get("step", 0)
        if isinstance(step, Tensor):
            return float(step) if step.is_cpu and step.numel() == 1 else 0.0
        return float(step) if isinstance(step, (int, float)) else 0.0

    @property
    def settings(self) -> list[tuple[object, ...]]:
        """What the groups say beside the learning rate."""
        return [tuple(map(group.get, SETTINGS)) for group in self.optimizer.param_groups]


def narrowest(dtypes: Sequence[torch.dtype]) -> NumberFormat:
    """The format with the fewest exponent bits, then the fewest mantissa bits."""
    return min(map(format_of, dtypes), key=lambda f: (f.exponent_bits, f.mantissa_bits))


def _named(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> list[tuple[str, Tensor]]:
    found: list[tuple[str, Tensor]] = []
    seen: set[int] = set()
    for g, group in enumerate(optimizer.param_groups):
        for i, parameter in enumerate(group["params"]):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                found.append((names.get(id(parameter), f"group{g}.{i}"), parameter))
    return found


def _by_owner(named: list[tuple[str, Tensor]]) -> list[tuple[str, Tensor]]:
    """Parameters of one layer side by side; layers in the order of their first parameter."""
    order: dict[str, int] = {}
    for name, _ in named:
        order.setdefault(owner(name), len(order))
    return sorted(named, key=lambda item: order[owner(item[0])])


def owner(name: str) -> str:
    """The module that holds a parameter."""
    return name.rpartition(".")[0] or name


def _layers(names: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    owners = [owner(name) for name in names]
    starts = [i for i, item in enumerate(owners) if i == 0 or item != owners[i - 1]]
    return np.array(starts, np.int64), tuple(owners[i] for i in starts)


def _device(parameter: Tensor) -> str:
    return parameter.device.type


def _unreadable(parameter: Tensor) -> Text | None:
    if parameter.is_meta:
        return Text("it is a meta tensor, without values", "它是 meta 张量，没有数值")
    if parameter.is_quantized:
        return Text("it is quantised, and has no gradient", "它是量化张量，没有梯度")
    if not (parameter.is_floating_point() or parameter.is_complex()):
        return Text(
            f"it is {parameter.dtype}, and has no gradient", f"它是 {parameter.dtype}，没有梯度"
        )
    if parameter.layout != torch.strided:
        return Text("it is sparse", "它是稀疏张量")
    return None
