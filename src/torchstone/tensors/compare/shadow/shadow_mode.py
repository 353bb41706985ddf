"""The run itself: every operator three times, in low precision, on the shadows, and on the low inputs.

low - high = (low - local) + (local - high): what the operator added, and what it made of the errors that
came in. `local` is the operator in high precision on the low inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import torch

from torchstone.observe.compat.operators import OpOverload
from torchstone.observe.operators import OperatorMode
from torchstone.tensors.compare.limits import Limits
from torchstone.tensors.compare.shadow.arguments import (
    as_returned,
    flat,
    mapped,
    padded,
    tensors_of,
    written_tensors,
)
from torchstone.tensors.compare.shadow.ledger import Broken, Ledger
from torchstone.tensors.compare.shadow.memory import Shadow, ShadowMemory
from torchstone.tensors.compare.shadow.operators import (
    CARRIERS,
    DIVISIONS,
    Operator,
    operator_facts,
)
from torchstone.tensors.compare.shadow.places import Places
from torchstone.tensors.compare.shadow.simulate import ResultTypes

_ZERO_GRADIENT = 0.1
"""A gradient whose exact value is zero (a bias before a batch norm, a key bias) has any relative error:
in the backward pass errors are taken relative to at least this share of the largest input's norm."""

Line = tuple[str, int, str]
"""A path, a line of it and a phase: what a reader can change, whatever module runs it and in whatever round."""


class ShadowMode(OperatorMode):
    """Shadows every operator that is called while it is open."""

    def __init__(
        self, low: torch.dtype, high: torch.dtype, places: Places, simulate: bool,
        wanted: Callable[[], bool] = lambda: True, repair: Collection[Line] = (),
        block_of: Callable[[str], str] | None = None,
        before_write: Callable[[list[torch.Tensor]], None] = lambda _: None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.low, self.high = low, high
        self.memory = ShadowMemory(high)
        self.ledger = Ledger(Limits.of(low))
        self.places = places
        self.simulate = simulate
        self._wanted = wanted
        self._block_of = block_of
        """Names the layer of a module where only one layer's shadows are held at a time."""
        self._block = ""
        self._before_write = before_write
        """Told of tensors that the low run is about to write to."""
        self.boundary_error = 0.0
        """The largest error that went from one layer into another."""
        self._repair = repair
        """Lines whose results are made exact, to see what they do to the rest."""
        self._repaired: dict[int, bool] = {}
        self._types = ResultTypes()
        # 16-bit kernels accumulate in fp32: that is exact enough to measure their rounding
        self._local = torch.float32 if low.itemsize <= 2 else torch.float64
        self._operands: list[torch.Tensor] = []
        self._entered = 0.0
        """The largest error that the running operator has from other places."""
        self._written: list[torch.Tensor] = []
        """What it writes to: the local run writes to copies."""
        self._alive: list[torch.Tensor] = []

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not isinstance(func, OpOverload):  # such as flex_attention: it has no schema
            self.ledger.unsupported.setdefault(str(func), "a higher-order operator")
            return func(*args, **kwargs)
        facts = operator_facts(func)
        if facts.view:
            self.places.note_view()
            return func(*args, **kwargs)
        if not self._wanted():
            return self._unseen(func, facts, args, kwargs)
        self.ledger.count += 1
        return self._seen(func, facts, args, kwargs)

    def keep_alive(self, tensor: torch.Tensor) -> None:
        """Inputs live as long as the run, because their exact values are known by their storage."""
        self._alive.append(tensor)

    # -- operators outside the layers that were asked for

    def _unseen(self, func: Any, facts: Operator, args: Any, kwargs: dict[str, Any]) -> Any:
        written = written_tensors(facts, args, kwargs)
        self._before_write(written)
        for tensor in written:
            self.memory.drop(tensor)
        return self.run_low(func, facts, args, kwargs, None)

    # -- operators that are shadowed

    def _seen(self, func: Any, facts: Operator, args: Any, kwargs: dict[str, Any]) -> Any:
        site = self.places.now()
        inputs = [item for item in tensors_of(args, kwargs) if _is_wide(item)]
        shadows = [found for item in inputs if (found := self.memory.find(item)) is not None]
        entering, self._entered = self._consume(shadows, site)
        if self._block_of is not None and self._left_block(self._block_of, site, entering):
            shadows, entering, self._entered = [], 0.0, 0.0
        self._operands = inputs
        written = written_tensors(facts, args, kwargs)
        self._before_write(written)
        low_involved = any(item.dtype == self.low for item in inputs)
        local = None
        if low_involved or self.low.itemsize > 2:
            local = self._run_local(func, facts, args, kwargs)
        high = self._run_high(func, facts, args, kwargs, site)
        out = self.run_low(func, facts, args, kwargs, local)
        if facts.random:
            high = self._follow_random(facts, args, out)
        if written:
            self._measure_written(facts, written, local, site, entering, shadows)
        self._measure_results(facts, out, local, high, written, site, entering, shadows, args)
        return out

    def _left_block(self, block_of: Callable[[str], str], site: int, entering: float) -> bool:
        """In another layer than before: its inputs count as exact, and older shadows are dropped."""
        block = block_of(self.places.all[site].module)
        if block == self._block:
            return False
        self._block = block
        self.boundary_error = max(self.boundary_error, entering)
        self.memory.clear()
        return True

    def _is_repaired(self, site: int) -> bool:
        known = self._repaired.get(site)
        if known is None:
            place = self.places.all[site]
            line = (place.path, place.line)
            known = self._repaired[site] = (*line, place.phase) in self._repair
        return known

    def _consume(self, shadows: list[Shadow], site: int) -> tuple[float, float]:
        """The largest error among the inputs, and the largest that comes from other places."""
        largest = entered = 0.0
        for shadow in shadows:
            largest = max(largest, shadow.error)
            if shadow.site == site:
                entered = max(entered, shadow.entered)
            else:
                entered = max(entered, shadow.error)
                self.left(shadow)
        return largest, entered

    def left(self, shadow: Shadow, most: float = math.inf) -> None:
        """A value is used by another place than made it; `most` where its error counts for less there."""
        if shadow.site >= 0:
            phase = self.places.all[shadow.site].phase
            self.ledger.leave(shadow.site, phase, shadow.entered, min(shadow.error, most))

    def _run_local(self, func: Any, facts: Operator, args: Any, kwargs: dict[str, Any]) -> Any:
        """In high precision on copies of the low inputs; gives the results, then what was written."""
        if facts.random:
            return None
        self._written = written_tensors(facts, args, kwargs)
        local_args = mapped(args, self._local_copy)
        local_kwargs = {key: mapped(value, self._local_copy) for key, value in kwargs.items()}
        try:
            out = func(*local_args, **local_kwargs)
        except (
            Exception
        ):  # without a local run the whole error counts as inherited; the low run decides
            return None
        return flat(out), written_tensors(facts, local_args, local_kwargs)

    def _local_copy(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.dtype == self.low:
                return value.to(self._local)
            written = any(value is item for item in self._written)
            return value.clone() if written or value.is_floating_point() else value
        return self._local if value == self.low and isinstance(value, torch.dtype) else value

    def _run_high(
        self, func: Any, facts: Operator, args: Any, kwargs: dict[str, Any], site: int
    ) -> Any:
        """On the shadows; what is written is written into the shadow memory."""
        if facts.random:
            return None
        targets = {id(item) for item in written_tensors(facts, args, kwargs)}

        def shadow(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                if id(value) in targets:
                    return self.memory.writable(value, site)
                return self.memory.value(value)
            is_type = isinstance(value, torch.dtype)
            return self.memory.wide(value) if is_type and value.is_floating_point else value

        try:
            return flat(
                func(*mapped(args, shadow), **{k: mapped(v, shadow) for k, v in kwargs.items()})
            )
        except (
            Exception
        ) as error:  # of the shadow alone, such as an index that flipped: it is noted
            said = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            self.ledger.unsupported.setdefault(facts.name, said)
            for tensor in written_tensors(facts, args, kwargs):
                self.memory.drop(tensor)
            return None

    def run_low(
        self, func: Any, facts: Operator, args: Any, kwargs: dict[str, Any], local: Any
    ) -> Any:
        if not self.simulate or facts.random:
            try:
                return func(*args, **kwargs)
            except (RuntimeError, NotImplementedError) as error:
                if "not implemented for" not in str(error) or facts.random:
                    raise
                self.ledger.simulated[facts.name] = str(error).splitlines()[0][:120]
        if local is None:
            if not any(item.dtype == self.low for item in tensors_of(args, kwargs)):
                return func(*args, **kwargs)
            local = self._run_local(func, facts, args, kwargs)
            if local is None:
                return func(*args, **kwargs)
        results, written = local
        targets = written_tensors(facts, args, kwargs)
        kinds = self._types.of(func, args, kwargs, self.low)
        for target, value in zip(targets, written, strict=True):
            target.copy_(value)
        if targets and len(results) <= len(targets) and not facts.name.startswith("native_batch"):
            return (
                targets[0]
                if len(targets) == 1 and len(results) == 1
                else as_returned(func, targets)
            )
        made = [
            item.to(kind) if isinstance(item, torch.Tensor) and kind is not None else item
            for item, kind in zip(results, padded(kinds, len(results)), strict=True)
        ]
        return as_returned(func, made)

    # -- errors

    def _follow_random(self, facts: Operator, args: Any, out: Any) -> Any:
        """The same mask: a dropout's shadow is the shadow of its input times the low run's mask."""
        results = flat(out)
        if facts.name != "native_dropout" or not args[2]:
            return [
                item.to(self.memory.wide(item.dtype)) if isinstance(item, torch.Tensor) else item
                for item in results
            ]
        kept = self.memory.value(args[0]) * results[1] / (1.0 - args[1] if args[1] < 1 else 1.0)
        return [kept, results[1]]

    def _measure_written(
        self, facts: Operator, written: list[torch.Tensor], local: Any, site: int, entering: float,
        shadows: list[Shadow],
    ) -> None:  # fmt: skip
        copies = local[1] if local is not None else [None] * len(written)
        for target, copy in zip(written, copies, strict=True):
            if not _is_wide(target):
                continue
            if facts.random:
                self.memory.drop(target)
                continue
            value = self.memory.value(target)
            if self._is_repaired(site):
                target.copy_(value)
            error, norm = self._errors(facts, target, copy, value, site, entering, shadows)
            found = self.memory.find(target)
            if found is not None:
                found.error, found.norm, found.site = error, norm, site
                found.entered = self._entered

    def _measure_results(
        self, facts: Operator, out: Any, local: Any, high: Any, written: list[torch.Tensor],
        site: int, entering: float, shadows: list[Shadow], args: Any,
    ) -> None:  # fmt: skip
        if high is None:
            return
        known = {item.untyped_storage()._cdata for item in written}
        given = {item.untyped_storage()._cdata for item in tensors_of(args, {})}
        locals_ = local[0] if local is not None else [None] * len(high)
        first = -1.0
        for low_item, high_item, local_item in zip(
            flat(out), high, padded(locals_, len(high)), strict=False
        ):
            if not isinstance(low_item, torch.Tensor) or not isinstance(high_item, torch.Tensor):
                continue
            key = low_item.untyped_storage()._cdata
            if key in known or key in given:
                continue  # another look at an argument: its shadow is in place
            if low_item.shape != high_item.shape:
                self.ledger.followed[facts.name] = self.ledger.followed.get(facts.name, 0) + 1
                continue
            if not _is_wide(low_item):
                self._flips(facts, low_item, high_item, site)
                continue
            if facts.random and facts.name != "native_dropout":
                self.memory.set(
                    low_item, high_item, 0.0, 0.0, site
                )  # the same numbers on both sides
                continue
            if self._is_repaired(site):
                low_item.copy_(high_item)
            if facts.auxiliary and first >= 0:
                self.memory.set(low_item, high_item, first, _norm(high_item), site)
                continue
            error, norm = self._errors(
                facts, low_item, local_item, high_item, site, entering, shadows
            )
            first = error
            origin = self._origin_of_zeros(low_item) if facts.name in CARRIERS else None
            origin = site if origin is None else origin
            self.memory.set(low_item, high_item, error, norm, site, origin, self._entered)

    def _flips(self, facts: Operator, low: torch.Tensor, high: torch.Tensor, site: int) -> None:
        """Integers and masks are shadowed only where they differ."""
        if low.dtype != high.dtype:
            high = high.to(low.dtype)
        count = int((low != high).sum()) if low.numel() else 0
        if count:
            self.memory.set(low, high, 0.0, 0.0, site)
            self.ledger.operator(site, facts.name).flips += count

    def _errors(
        self, facts: Operator, low: torch.Tensor, local: torch.Tensor | None, high: torch.Tensor,
        site: int, entering: float, shadows: list[Shadow],
    ) -> tuple[float, float]:  # fmt: skip
        """Measures one result and writes it down; gives its error and norm."""
        if not low.numel():
            return 0.0, 0.0
        wide = low.to(high.dtype)
        norm, total = _norm(high), _norm(wide - high)
        if not math.isfinite(total):
            norm, total = self._nonfinite(facts, wide, high, site)
        least = 0.0
        if self.places.all[site].phase == "backward":
            least = _ZERO_GRADIENT * max((item.norm for item in shadows), default=0.0)
        scale = max(norm, least)
        if scale <= 0:
            return 0.0, norm
        record = self.ledger.operator(site, facts.name)
        record.calls += 1
        error = total / scale
        made, passed = 0.0, error
        if local is not None and low.dtype == self.low and local.shape == low.shape:
            made = _finite(_norm(low.to(local.dtype) - local)) / scale
            passed = _norm(local.to(high.dtype) - high) / scale if entering else 0.0
            passed = passed if math.isfinite(passed) else error  # the inputs were broken already
        record.local = max(record.local, made)
        record.inherited = max(record.inherited, passed)
        record.total = max(record.total, error)
        if entering > 0:
            record.amplification = max(record.amplification, passed / entering)
        if facts.kink:  # flips are counted, not blamed: as if the error had come from outside
            self._entered = max(self._entered, error)
        return error, norm

    def _origin_of_zeros(self, low: torch.Tensor) -> int | None:
        """The place that made zeros which the operator only passed on; None where it made them itself."""
        return self._flushed_operand() if bool((low == 0).any()) else None

    def _flushed_operand(self) -> int | None:
        """The place that made an operand zero which is not zero in the reference."""
        for item in self._operands:
            shadow = self.memory.find(item)
            if shadow is not None and bool(((item == 0) & (self.memory.value(item) != 0)).any()):
                return shadow.origin
        return None

    def _nonfinite(
        self, facts: Operator, wide: torch.Tensor, high: torch.Tensor, site: int
    ) -> tuple[float, float]:
        """Errors of the places that are finite in both; a number that broke here is written down."""
        good_high = high.isfinite()
        good = good_high & wide.isfinite()
        if bool((good_high & ~good).any()):
            because = self._flushed_operand() if facts.name in DIVISIONS else None
            self.ledger.broken.append(
                Broken(site, facts.name, self.ledger.count, site if because is None else because)
            )
        zero = torch.zeros((), dtype=high.dtype, device=high.device)
        return _norm(torch.where(good, high, zero)), _norm(torch.where(good, wide - high, zero))


def _norm(tensor: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor))


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _is_wide(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
