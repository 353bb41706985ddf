"""A plan applied to a running program: functions replaced, results proven equal, all put back."""

from __future__ import annotations

from torchstone.dataflow.migration.catalogue import catalogue, list_supported_functions
from torchstone.dataflow.migration.contexts import ContextTracker
from torchstone.dataflow.migration.migrator import PipelineMigrator
from torchstone.dataflow.migration.patching.injector import PatchInjector
from torchstone.dataflow.migration.specification import Case, OpSpec, Refusal
from torchstone.dataflow.migration.wrapper import UniversalWrapper

__all__ = [
    "Case",
    "ContextTracker",
    "OpSpec",
    "PatchInjector",
    "PipelineMigrator",
    "Refusal",
    "UniversalWrapper",
    "catalogue",
    "list_supported_functions",
]
