"""What stands in for a function while a plan is applied: it decides, computes, proves, or falls back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MethodType
from typing import Any

import numpy as np
import torch

from torchstone.core.text import Text
from torchstone.dataflow.migration.contexts import CallSite, ContextTracker, Placement
from torchstone.dataflow.migration.device_array import call_on_host
from torchstone.dataflow.migration.fusing import Fuser
from torchstone.dataflow.migration.ledger import Ledger
from torchstone.dataflow.migration.nested import hashable, map_leaves
from torchstone.dataflow.migration.object_paths import resolve_object_path
from torchstone.dataflow.migration.processors import Processors, Transfer
from torchstone.dataflow.migration.proof.certificates import Certificates
from torchstone.dataflow.migration.proof.comparison import difference
from torchstone.dataflow.migration.proof.sampling import Sampler
from torchstone.dataflow.migration.refusals import (
    IN_WORKER,
    LAYOUT,
    LEAVE_IT,
    RAISING,
    SUBCLASS,
    first_line,
    not_certified,
    quarantined,
    within_tolerance,
)
from torchstone.dataflow.migration.specification import Arguments, Call, Case, OpSpec, Refusal
from torchstone.dataflow.migration.steps import can_record
from torchstone.dataflow.migration.targets import STAY, Target

logger = logging.getLogger("migration")
INSTANCES = 64
"""Instances of a FactoryOp that are kept per function: a pipeline has few configurations."""


@dataclass(slots=True)
class Migration:
    """What all wrappers of one migrator share."""

    placement: Placement
    targets: Mapping[str, Target]
    tracker: ContextTracker = field(default_factory=ContextTracker)
    processors: Processors = field(default_factory=Processors)
    ledger: Ledger = field(default_factory=Ledger)
    certificates: Certificates = field(default_factory=Certificates)
    sampler: Sampler = field(default_factory=Sampler)
    fuser: Fuser = field(default_factory=Fuser)
    defer: Callable[[UniversalWrapper, Arguments, Call, str], Any] | None = None
    """In a loader's worker: records the call instead of computing it."""
    active: bool = False
    """Whether the plan is applied. A wrapper that the program still holds afterwards calls the
    original."""
    allow_rounding: bool = False
    """Calls that are only within a tolerance of the original move, too."""
    is_worker: Callable[[], bool] = lambda: False
    """Whether this process is a loader's worker. What cannot be recorded there is computed by the
    original: a forked worker cannot use an accelerator, and not every spawned one shall open it."""


class UniversalWrapper:
    """Stands in for one function. It looks, compares and pickles as the original does."""

    def __init__(
        self, original_func: Callable[..., Any], func_path: str, spec: OpSpec, migration: Migration
    ) -> None:
        self.original_func = original_func
        self.func_path = func_path
        self.spec = spec
        self.migration = migration
        self._instances: dict[Any, Callable[..., Any]] = {}
        self._needs_user_caller = func_path.startswith(("numpy.", "torch.", "scipy."))
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            if hasattr(original_func, name):
                setattr(self, name, getattr(original_func, name))
        self.__wrapped__ = original_func

    # -- the call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tracker = self.migration.tracker
        if tracker.depth:  # inside another replaced function: its result is what is proven
            return self.original_func(*args, **kwargs)
        if not self.migration.active:
            return self._by_original(args, kwargs)
        tracker.enter(self.func_path)
        try:
            ledger = self.migration.ledger
            ledger.add(self.func_path, "calls")
            site = tracker.call_site()
            said = self.migration.placement.find(site, self.func_path)
            ledger.note_context(said.key, said.context, str(site))
            if self._should_migrate(said.device, site):
                target = self.migration.targets[said.device]
                moved, result = self._try_migrated(args, kwargs, target, said.keep, site)
                if moved:
                    return result
            else:
                ledger.add(self.func_path, "stayed")
            return self._by_original(args, kwargs)
        finally:
            tracker.exit()

    def _by_original(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """With real arrays; what it writes to those of the device goes back there."""
        return call_on_host(
            self.original_func, _without_handles(args), {k: _without_handles(v) for k, v in kwargs.items()}
        )  # fmt: skip

    def _should_migrate(self, named: str, site: CallSite) -> bool:
        """Libraries call numpy and torch for their own ends; those calls are not the pipeline's."""
        if named == STAY or named not in self.migration.targets:
            return False
        return site.from_user or not self._needs_user_caller

    def _try_migrated(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        target: Target,
        keep: bool,
        site: CallSite,
    ) -> tuple[bool, Any]:
        """Whether the call was moved, and its result."""
        start = time.perf_counter()
        call = Call(args, kwargs)
        try:
            bound = self.spec.bind(args, kwargs)
            case = self._refusal_of_numpy((*args, *kwargs.values())) or self.spec.judge(bound)
            if isinstance(case, Case) and self.migration.defer is not None:
                recorded = self.migration.defer(self, bound, call, str(site))
                if recorded is not None:  # certified where it is computed, which may not be here
                    return True, recorded
            verdict = case if isinstance(case, Refusal) else self._certified_here(case, target)
            if isinstance(verdict, Refusal):
                return self._fall_back(verdict.reason, verdict.edit, site, start)
            bound = plain_handles(bound)
            transfer = Transfer(target.device, keep)
            began = time.perf_counter()  # a probe before is paid once, not by this call
            result = self.compute(bound, transfer)
            spent = time.perf_counter() - began
            if self._is_wanted_twice(verdict, keep, bound):
                wrong = self._difference(result, call, verdict, spent)
                if wrong is not None:
                    return self._fall_back(wrong.reason, wrong.edit, site, start)
        except Exception as error:
            return self._fall_back(first_line(error), LEAVE_IT, site, start, logging.WARNING)
        self._count(transfer, spent)
        return True, result

    def _certified_here(self, case: Case, target: Target) -> Case | Refusal:
        if self.migration.is_worker() and target.device.type != "cpu":
            return IN_WORKER
        return self.certified(case, target)

    def _is_wanted_twice(self, case: Case, keep: bool, bound: Arguments) -> bool:
        if keep or bound.get("dst") is not None:
            return False
        return self.migration.sampler.wants(self.func_path, case)

    def _refusal_of_numpy(self, values: tuple[Any, ...]) -> Refusal | None:
        """numpy asks subclasses of arrays what its functions mean, may raise where torch goes on, and
        lays its results out as its arguments are."""
        if not self.func_path.startswith(("numpy.", "scipy.")):
            return None
        arrays = [item for value in values for item in _plain_arrays(value)]
        if any(type(item) is not np.ndarray for item in arrays):
            return SUBCLASS
        if not self.migration.allow_rounding and not all(map(_is_row_major, arrays)):
            return LAYOUT
        if any(action in ("raise", "call") for action in np.geterr().values()):
            return RAISING
        return None

    def certified(self, case: Case, target: Target) -> Case | Refusal:
        """The case if it is certified on the device, else why its calls stay."""
        shared = self.migration
        if not case.exact and not shared.allow_rounding:
            return within_tolerance(case)
        if reason := shared.sampler.reason(self.func_path, case):
            return quarantined(case, reason)
        known = shared.certificates.find(self.spec, case, target.device)
        if known is None:
            known = shared.certificates.prove(
                self.spec, case, target.device, self._original_of, self._moved_of(target)
            )
        if not known.passed:
            return not_certified(case, known)
        return case

    def _original_of(self, call: Call) -> Any:
        return self.original_func(*call.args, **call.kwargs)

    def _moved_of(self, target: Target) -> Callable[[Call], Any]:
        def moved(call: Call) -> Any:
            return self.compute(self.spec.bind(call.args, call.kwargs), Transfer(target.device))

        return moved

    def _fall_back(
        self, reason: Text, edit: Text, site: CallSite, start: float, level: int = logging.INFO
    ) -> tuple[bool, None]:
        """Said once for each line and reason: a loop of a million calls says it once, too."""
        spent = time.perf_counter() - start
        if self.migration.ledger.fall_back(self.func_path, reason, edit, str(site), spent):
            logger.log(
                level, "Migration failed: %s (%s at %s). Falling back to CPU.", reason.en, self.func_path, site
            )  # fmt: skip
        return False, None

    def _count(self, transfer: Transfer, seconds: float) -> None:
        ledger = self.migration.ledger
        ledger.add(self.func_path, "migrated")
        ledger.add(self.func_path, "migrated_seconds", seconds)
        if transfer.to_device or transfer.to_host:
            ledger.add(self.func_path, "bytes_to_device", transfer.to_device)
            ledger.add(self.func_path, "bytes_to_host", transfer.to_host)

    def _difference(self, result: Any, call: Call, case: Case, spent: float) -> Refusal | None:
        """Why the moved result cannot stand, by the original on the same arguments."""
        start = time.perf_counter()
        expected = self.original_func(*plain(call.args), **plain(call.kwargs))
        ratio = spent / max(time.perf_counter() - start, 1e-9)
        self.migration.ledger.add_ratio(self.func_path, ratio)
        wrong = difference(expected, result, case)
        if not wrong:
            return None
        self.migration.sampler.quarantine(self.func_path, case, wrong)
        logger.warning(
            "%s (%s) gave another result than the original (%s): quarantined, its calls run "
            "on the CPU from now on.", self.func_path, case.name, wrong,
        )  # fmt: skip
        return quarantined(case, wrong)

    # -- computing

    def compute(self, bound: Arguments, transfer: Transfer) -> Any:
        """The result for these arguments, computed on the device."""
        with torch.no_grad():
            if self.spec.strategy == "MoveOnly":
                return self._execute_move_only(bound, transfer)
            dst = bound.get("dst")
            if self.spec.strategy == "FactoryOp":
                result = self._execute_factory_op(bound, transfer)
            else:
                result = self._execute_standard_op(bound, transfer)
        return result if dst is None else _into(dst, result)

    def _execute_move_only(self, bound: Arguments, transfer: Transfer) -> Any:
        """The function itself, with its tensors on the device."""
        moved = self.migration.processors.get_input_processor("tensors")
        back = self.migration.processors.get_output_processor("tensors")
        assert moved is not None
        args = moved(tuple(bound.get("args", ())), transfer)
        kwargs = moved(dict(bound.get("kwargs", {})), transfer)
        return back(self.original_func(*args, **kwargs), transfer)

    def _execute_standard_op(self, bound: Arguments, transfer: Transfer) -> Any:
        arguments = self._transform_args(bound, transfer)  # 1
        arguments = self._apply_value_maps(arguments)  # 2
        arguments = self._apply_renames(arguments)  # 3
        arguments = self._inject_kwargs(arguments)  # 4
        arguments = self._apply_structural_ops(arguments)  # 5
        backend = self._get_backend()  # 6
        result = self._run(backend, arguments)  # 7
        return self._process_output(result, transfer)  # 8

    def _run(self, backend: Callable[..., Any], arguments: Arguments) -> Any:
        """Calls of a kind that comes again are compiled where the device can."""
        data = self.spec.data[0] if can_record(self.spec) else ""
        image = arguments.get(data)
        if not isinstance(image, torch.Tensor) or not self.migration.fuser.compiles(image.device):
            return backend(**arguments)
        rest = {name: value for name, value in arguments.items() if name != data}
        try:
            kind = hashable(rest)
            hash(kind)
        except TypeError:  # arguments that cannot be compared are no kind
            return backend(**arguments)
        steps = (self.func_path, kind)
        return self.migration.fuser.run(
            lambda part: backend(**rest, **{data: part}), image, steps, self.func_path
        )

    def _execute_factory_op(self, bound: Arguments, transfer: Transfer) -> Any:
        """Data apart from configuration; the instance for a configuration is made once."""
        arguments = self._transform_args(bound, transfer)
        data = {name: arguments.pop(name) for name in self.spec.data}
        arguments = self._inject_kwargs(self._apply_renames(self._apply_value_maps(arguments)))
        instance = self._get_instance(arguments, transfer.device)
        return self._process_output(instance(**data), transfer)

    def _get_instance(self, config: Arguments, device: torch.device) -> Callable[..., Any]:
        key = (device, hashable(config))
        if key not in self._instances:
            if len(self._instances) >= INSTANCES:
                self._instances.pop(next(iter(self._instances)))
            self._instances[key] = self._get_backend()(**config, device=device)
        return self._instances[key]

    def _transform_args(self, bound: Arguments, transfer: Transfer) -> Arguments:
        arguments = {name: value for name, value in bound.items() if name != "dst"}
        for name, rule in self.spec.args_trans.items():
            processor = self.migration.processors.get_input_processor(rule)
            if processor is not None and name in arguments:
                arguments[name] = processor(arguments[name], transfer)
        return arguments

    def _apply_value_maps(self, arguments: Arguments) -> Arguments:
        maps = self.spec.value_maps
        return {
            name: maps[name].get(value, value) if name in maps else value
            for name, value in arguments.items()
        }

    def _apply_renames(self, arguments: Arguments) -> Arguments:
        return {self.spec.renames.get(name, name): value for name, value in arguments.items()}

    def _inject_kwargs(self, arguments: Arguments) -> Arguments:
        return {**self.spec.inject, **arguments}

    def _apply_structural_ops(self, arguments: Arguments) -> Arguments:
        return self.spec.structure(arguments) if self.spec.structure else arguments

    def _get_backend(self) -> Callable[..., Any]:
        assert self.spec.backend is not None
        return self.spec.backend

    def _process_output(self, result: Any, transfer: Transfer) -> Any:
        return self.migration.processors.get_output_processor(self.spec.output)(result, transfer)

    # -- looking like the original

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if not self.spec.method or instance is None:
            return self
        return MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name in ("original_func", "spec", "migration"):  # not yet set while unpickling
            raise AttributeError(name)
        return getattr(self.original_func, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """`isinstance(np.add, np.ufunc)` stays true."""
        return type(self.original_func)

    def __reduce__(self) -> Any:
        """Pickled by name, as the original is."""
        return _resolved, (self.func_path,)

    def __repr__(self) -> str:
        return repr(self.original_func)

    def __eq__(self, other: Any) -> bool:
        return other is self or other is self.original_func

    def __hash__(self) -> int:
        return hash(self.original_func)


def plain(value: Any) -> Any:
    """The same arguments with arrays brought back from the device."""
    return map_leaves(
        lambda item: item.torchstone_materialise() if hasattr(item, "torchstone_materialise") else item, value
    )  # fmt: skip


def _without_handles(value: Any) -> Any:
    return map_leaves(lambda item: plain(item) if _is_handle(item) else item, value)


def plain_handles(bound: Arguments) -> Arguments:
    """Arguments that were recorded by a loader's worker are computed; device arrays stay."""
    return {name: plain(value) if _is_handle(value) else value for name, value in bound.items()}


def _plain_arrays(value: Any) -> list[np.ndarray]:
    """The array, or those of a list; without arrays of ours. Masked arrays, matrices and memory maps
    are among them."""
    items = value if type(value) in (list, tuple) else (value,)
    return [
        item
        for item in items
        if isinstance(item, np.ndarray) and not hasattr(item, "torchstone_materialise")
    ]


def _is_row_major(array: np.ndarray) -> bool:
    """Whether numpy lays out what it makes of it row by row: contiguous arrays and parts of them."""
    if array.flags.c_contiguous:
        return True
    steps = [abs(step) for step, size in zip(array.strides, array.shape, strict=True) if size > 1]
    return steps == sorted(steps, reverse=True)


def _is_handle(value: Any) -> bool:
    return hasattr(value, "torchstone_materialise") and not hasattr(value, "tensor")


def _resolved(path: str) -> Any:
    holder, name = resolve_object_path(path)
    return getattr(holder, name)


def _into(dst: Any, result: Any) -> Any:
    """cv2 writes into `dst` if it fits and returns it."""
    if not isinstance(dst, np.ndarray) or dst.shape != result.shape or dst.dtype != result.dtype:
        return result
    np.copyto(dst, result)
    return dst
