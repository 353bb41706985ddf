"""`PipelineMigrator`: a plan applied to the running program, for as long as it is wanted."""

from __future__ import annotations

import logging
import statistics
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from torchstone.core.text import Text
from torchstone.dataflow.migration.catalogue import catalogue
from torchstone.dataflow.migration.contexts import ContextTracker, Placement, functions_in
from torchstone.dataflow.migration.deferred.loader import defer_in_loaders, is_loader_worker
from torchstone.dataflow.migration.export.ray_data import RayOptions, ray_dataset
from torchstone.dataflow.migration.fusing import Fuser
from torchstone.dataflow.migration.ledger import Fallback, Ledger
from torchstone.dataflow.migration.patching.injector import PatchInjector, Unpatched
from torchstone.dataflow.migration.processors import Processors
from torchstone.dataflow.migration.proof.certificates import Certificates
from torchstone.dataflow.migration.proof.sampling import RATE, Sampler
from torchstone.dataflow.migration.specification import OpSpec
from torchstone.dataflow.migration.targets import STAY, Target, find_target
from torchstone.dataflow.migration.wrapper import Migration
from torchstone.dataflow.plan import MigrationPlan, load_plan, plan_from_data
from torchstone.dataflow.spawning import Passenger, SpawnHook

logger = logging.getLogger("migration")

_FATES = ("migrated", "deferred", "fallback", "stayed", "unused")
_FIGURES = ("calls", *_FATES, "bytes_to_device", "bytes_to_host")


class PipelineMigrator:
    """Applies a plan: calls that it moves run on its devices, everything else as before.

    `device` runs the planned calls on another device than the plan names (`cpu` for torch's CPU
    kernels). `roots` are objects that hold functions and are not reachable from a module, such as
    a pipeline that is a local variable. With `defer`, samples of a DataLoader are computed in
    batches in the main process. One call in 1 / `verify_rate` is computed on both sides. Calls that
    are only within a tolerance of the original move with `allow_rounding`, or if the plan has it.
    Batches of a kind that comes again are compiled with `fuse`; None: where the device has Triton.
    `default_device` is for calls that the plan does not name. With `records_only` this process has
    no device: calls are recorded for another one.
    """

    def __init__(
        self,
        plan: MigrationPlan,
        default_device: str | None = None,
        *,
        device: str | None = None,
        verify_rate: float = RATE,
        seed: int | None = None,
        certificates: Path | None = None,
        roots: tuple[Any, ...] = (),
        defer: bool = True,
        allow_rounding: bool = False,
        fuse: bool | None = None,
        records_only: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        if default_device is not None:
            plan = replace(plan, default_device=default_device)
        self.plan = plan
        self._defer = defer
        self.session = ""
        """Names what computes recorded samples, while the plan is applied."""
        self.targets = _targets(plan, device)
        self._migration = Migration(
            Placement(plan),
            self.targets,
            ContextTracker(),
            ledger=ledger or Ledger(),
            certificates=Certificates(certificates),
            sampler=Sampler(verify_rate, seed),
            fuser=Fuser(fuse),
            allow_rounding=allow_rounding or plan.allow_rounding,
            is_worker=(lambda: True) if records_only else is_loader_worker,
        )
        self._roots = roots
        self._injector: PatchInjector | None = None
        self._unpatched: tuple[Unpatched, ...] = ()
        self._lock = threading.RLock()

    @classmethod
    def from_plan(
        cls, plan: Mapping[str, Any] | MigrationPlan | str | Path, **options: Any
    ) -> Self:
        """From what `get_migration_plan` returned, or from the file that holds it."""
        read = load_plan(plan) if isinstance(plan, str | Path) else plan_from_data(plan)
        return cls(read, **options)

    @property
    def context_device_map(self) -> Mapping[str, str]:
        return self.plan.context_device_map

    @property
    def default_device(self) -> str:
        return self.plan.default_device

    @property
    def registry(self) -> Mapping[str, OpSpec]:
        """The operators that can move, by name."""
        return catalogue()

    @property
    def processors(self) -> Processors:
        return self._migration.processors

    @property
    def context_tracker(self) -> ContextTracker:
        return self._migration.tracker

    def apply(self) -> dict[str, int]:
        """Replace the functions of the plan: how many were patched, failed, skipped."""
        with self._lock:
            if self._injector is not None:
                return {"patched": 0, "failed": 0, "skipped": 0}
            for note in self.notes():
                logger.warning("%s", note.en)
            functions = functions_in(self.context_device_map, STAY)
            if not functions:
                logger.warning("The plan moves nothing: none of its calls has a device.")
            injector = PatchInjector(functions, self.registry, self._migration, self._roots)
            stats = injector.apply_all()
            self._injector = injector
            self._migration.active = True
            if self._defer and self.targets:
                self._defer_in_loaders(injector)
            self._unpatched = tuple(injector.unpatched)
            return stats

    def _defer_in_loaders(self, injector: PatchInjector) -> None:
        """One device for what workers record: the one that most calls are planned for."""
        planned = [name for name in self.context_device_map.values() if name in self.targets]
        most = max(self.targets, key=planned.count)
        keep = any(item.keep_on_device for item in self.plan.operators)
        try:
            self.session = defer_in_loaders(
                injector, self._migration, self.targets[most], keep, self.session
            )
            if self.session and not _in_this_worker:
                folder = str(self._migration.ledger.tally.folder)
                hook = spawn_hook(WorkerPlan(self.plan, self.session, folder))
                injector.change(hook.install, hook.remove)
        except BaseException:
            self._injector = None
            injector.restore_all()
            raise

    def restore(self) -> int:
        """Put the originals back: how many."""
        with self._lock:
            if self._injector is None:
                return 0
            injector, self._injector = self._injector, None
            self._migration.active = False
            try:
                return injector.restore_all()
            finally:
                self._migration.tracker.reset()
                self._warn_of_no_match()

    def lines(self) -> dict[str, list[str]]:
        """Entry of the plan → the lines of the calls that it was matched with."""
        return self._migration.ledger.lines()

    def _warn_of_no_match(self) -> None:
        contexts = self.matched_contexts()
        seen = ", ".join(list(contexts.pop("", {}))[:3]) or "none"
        missing = [key for key, calls in contexts.items() if not calls]
        if missing:
            share = "no call" if len(missing) == len(contexts) else "only some calls"
            planned = ", ".join(missing[:3])
            logger.warning(
                "The plan matched %s: it names %s; calls that fit no entry: %s.",
                share,
                planned,
                seen,
            )

    def is_applied(self) -> bool:
        return self._injector is not None

    def __enter__(self) -> Self:
        self.apply()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.restore()

    def get_stats(self) -> dict[str, Any]:
        """Calls that moved, fell back or stayed, bytes, proofs; ready for `json.dump`.

        `calls_total` is the sum of migrated, deferred, fallback, stayed and unused calls."""
        ledger = self._migration.ledger
        total = ledger.total()
        return {
            "calls_total": total.calls,
            **{f"calls_{fate}": getattr(total, fate) for fate in _FATES},
            "bytes_moved": total.bytes_to_device + total.bytes_to_host,
            "bytes_to_device": total.bytes_to_device,
            "bytes_to_host": total.bytes_to_host,
            "calls_verified": total.verified,
            "proof_seconds": self._migration.certificates.seconds,
            "quarantined": self._migration.sampler.quarantined(),
            "fused": dict(self._migration.fuser.outcomes),
            "devices": {name: str(target.device) for name, target in self.targets.items()},
            "kept_on_device": list(
                dict.fromkeys(item.context for item in self.plan.operators if item.keep_on_device)
            ),
            "contexts": self.matched_contexts(),
            "functions": {
                name: {figure: getattr(count, figure) for figure in _FIGURES}
                for name, count in ledger.functions().items()
            },
            "fallbacks": [
                {**asdict(item), "reason": item.reason.en, "edit": item.edit.en}
                for item in self.fallbacks()
            ],
        }

    def matched_contexts(self) -> dict[str, dict[str, int]]:
        """Every entry of the plan that moves something → the contexts of the calls that it was
        matched with, and how many; under "" those of calls that no entry fits."""
        found = self._migration.ledger.contexts()
        moving = {key: found.get(key, {}) for key, device in self.context_device_map.items() if device != STAY}  # fmt: skip
        return {**moving, **({"": found[""]} if "" in found else {})}

    def fallbacks(self) -> tuple[Fallback, ...]:
        """Calls that stayed with the original: why, what the attempt cost, and what to edit."""
        return self._migration.ledger.fallbacks()

    def unpatched(self) -> tuple[Unpatched, ...]:
        """Functions of the plan that the last `apply` did not replace, and why."""
        return self._unpatched

    def notes(self) -> tuple[Text, ...]:
        """Devices of the plan that this machine does not have."""
        return tuple(target.note for target in self.targets.values() if target.note.en)

    def to_ray(self, function: Callable[[Any], Any], items: Any, **options: Any) -> Any:
        """A Ray Data pipeline of `function` over `items`: a CPU stage and a device stage.

        `items` is a sequence or a Ray dataset with a column `item`; the result is a Ray dataset
        with a column `result`. Needs the extra `ray`. Options: those of `RayOptions`.
        """
        return ray_dataset(type(self).from_plan, self.plan, function, items, RayOptions(**options))

    def speedups(self) -> dict[str, float]:
        """Function → times faster than the original, by the median of the calls that were computed
        on both sides; launches and transfers are in it."""
        return {
            name: 1 / statistics.median(ratios)
            for name, ratios in sorted(self._migration.ledger.ratios.items())
        }

    def verdicts(self) -> tuple[Text, ...]:
        """For every function that was verified: whether moving it pays, by the median of the same
        calls on both sides."""
        found = []
        for name, ratios in sorted(self._migration.ledger.ratios.items()):
            ratio, calls = statistics.median(ratios), len(ratios)
            if ratio > 1:
                found.append(
                    Text(
                        f"moving {name} does not pay: {ratio:.1f} × the original's time ({calls} calls)",
                        f"迁移 {name} 不划算：耗时是原函数的 {ratio:.1f} 倍（{calls} 次调用）",
                    )
                )
            else:
                found.append(
                    Text(
                        f"moving {name} pays: {1 / ratio:.1f} × faster ({calls} calls)",
                        f"迁移 {name} 有收益：快 {1 / ratio:.1f} 倍（{calls} 次调用）",
                    )
                )
        return tuple(found)


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What a spawned worker needs to record for the main process."""

    plan: MigrationPlan
    session: str
    folder: str
    """Where its counts go."""


def spawn_hook(given: WorkerPlan) -> SpawnHook:
    """Processes that are spawned from now on record what the plan moves."""
    return SpawnHook("_torchstone_plan", Passenger(record_in_worker, given))


_in_this_worker: list[PipelineMigrator] = []
"""Kept for as long as the worker lives."""


def record_in_worker(given: WorkerPlan) -> None:
    """In a spawned worker, before it begins its work."""
    try:
        ledger = Ledger.of_worker(given.folder)
        migrator = PipelineMigrator(given.plan, device=STAY, records_only=True, ledger=ledger)
        migrator.session = given.session
        _in_this_worker.append(migrator)
        migrator.apply()
    except Exception as error:  # the worker is the user's: it works with the originals
        logger.warning("Migration failed: %s. Falling back to CPU.", error)


def _targets(plan: MigrationPlan, instead: str | None) -> dict[str, Target]:
    named = {device for device in plan.context_device_map.values() if device != STAY}
    if plan.default_device != STAY:
        named.add(plan.default_device)
    return {name: find_target(name, instead) for name in sorted(named)}
