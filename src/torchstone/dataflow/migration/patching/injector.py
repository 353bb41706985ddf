"""Replaces the functions that a plan names, everywhere the program holds them, and puts them back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torchstone.core.text import Text
from torchstone.dataflow.migration.object_paths import resolve_object_path
from torchstone.dataflow.migration.patching.bindings import attribute_change, find_changes
from torchstone.dataflow.migration.specification import OpSpec
from torchstone.dataflow.migration.wrapper import Migration, UniversalWrapper
from torchstone.observe.undo import Undo

logger = logging.getLogger("migration")


@dataclass(frozen=True, slots=True)
class Unpatched:
    """A function of the plan that was not replaced."""

    function: str
    reason: Text
    failed: bool
    """False where there was nothing to replace: the function is known and stays by choice."""


class PatchInjector:
    """Applies a plan to the running process; `restore_all` leaves it as it was found."""

    def __init__(
        self,
        functions: Iterable[str],
        registry: Mapping[str, OpSpec],
        migration: Migration,
        roots: tuple[Any, ...] = (),
    ) -> None:
        self._functions = tuple(functions)
        self._registry = registry
        self._migration = migration
        self._roots = roots
        self._undo = Undo()
        self._wrappers: dict[int, UniversalWrapper] = {}
        self.unpatched: list[Unpatched] = []

    @property
    def wrappers(self) -> tuple[UniversalWrapper, ...]:
        return tuple(self._wrappers.values())

    def apply_all(self) -> dict[str, int]:
        """Replace everything; an interrupt in the middle takes back what was done."""
        try:
            patched = sum(map(self._patch, self._functions))
            self._replace_bindings()
        except BaseException:
            self.restore_all()
            raise
        failed = sum(item.failed for item in self.unpatched)
        return {"patched": patched, "failed": failed, "skipped": len(self.unpatched) - failed}

    def restore_all(self) -> int:
        """How many functions are themselves again."""
        count = len(self._wrappers)
        try:
            self._undo.close()
        finally:
            self._wrappers.clear()
        return count

    def change(self, make: Callable[[], object], take_back: Callable[[], object]) -> None:
        """A change that `restore_all` takes back; the way back is noted first."""
        self._undo.later(take_back)
        make()

    def _patch(self, function: str) -> int:
        specs = _entries(function, self._registry)
        if not specs:
            self._skip(function, _UNKNOWN, failed=not _is_operator(function))
        return sum(map(self._patch_one, specs))

    def _patch_one(self, spec: OpSpec) -> int:
        try:
            holder, name = resolve_object_path(spec.name)
            original = vars(holder)[name] if isinstance(holder, type) else getattr(holder, name)
        except (ImportError, AttributeError, KeyError) as error:
            text = f"{type(error).__name__}: {error}"
            self._skip(spec.name, Text(text, text), failed=True)
            return 0
        if type(original) is UniversalWrapper:
            self._skip(spec.name, _TWICE, failed=original.migration is not self._migration)
            return 0
        wrapper = UniversalWrapper(original, spec.name, spec, self._migration)
        self._wrappers[id(original)] = wrapper
        same = [other for other, value in vars(holder).items() if value is original]
        for other in same or [name]:  # numpy.abs is numpy.absolute
            self.change(*attribute_change(holder, other, wrapper))
        return 1

    def _replace_bindings(self) -> None:
        def replace(value: Any) -> Any:
            wrapper = self._wrappers.get(id(value))
            return wrapper if wrapper is not None and wrapper.original_func is value else value

        found = list(find_changes(replace, *self._roots))
        names = ", ".join(wrapper.func_path for wrapper in self.wrappers)
        logger.debug("replaced: %s; held by the program in %d more places", names, len(found))
        for make, take_back in found:
            self.change(make, take_back)

    def _skip(self, function: str, reason: Text, failed: bool) -> None:
        self.unpatched.append(Unpatched(function, reason, failed))
        logger.info("%s is not replaced: %s", function, reason.en)


_UNKNOWN = Text(
    "the catalogue has no such function: it stays on the CPU", "目录中没有该函数：保留在 CPU 上"
)
_TWICE = Text(
    "another migrator has replaced it already: restore that one first",
    "已被另一个迁移器替换：请先对其执行 restore",
)


def _entries(function: str, registry: Mapping[str, OpSpec]) -> list[OpSpec]:
    """By full name, or every entry of a bare name."""
    if function in registry:
        return [registry[function]]
    if "." in function:
        return []
    return [spec for name, spec in registry.items() if name.rpartition(".")[2] == function]


def _is_operator(function: str) -> bool:
    """Operators and methods of arrays cannot be replaced; they follow their operands."""
    return function.startswith(("operator.", "numpy.ndarray.", "torch.Tensor.", "builtins."))
