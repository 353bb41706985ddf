"""Puts supplies in place, inside the process that runs the program."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torchstone.observe.where import Where
from torchstone.starting.arguments import watch_parsers
from torchstone.starting.cuts.replacing import put_cuts
from torchstone.starting.files.writing import write_files
from torchstone.starting.lookups import Lookups, watch_lookups
from torchstone.starting.replacements.batches import limit_batches
from torchstone.starting.replacements.checkpoints import replace_downloads
from torchstone.starting.replacements.dataclass_fields import accept_changeable_defaults
from torchstone.starting.replacements.datasets import replace_dataset
from torchstone.starting.replacements.keywords import drop_keyword
from torchstone.starting.replacements.loaders import replace_loaders
from torchstone.starting.replacements.older_torch import put_back
from torchstone.starting.replacements.operators import declare_operators
from torchstone.starting.replacements.plain_packages import put_plain
from torchstone.starting.replacements.pretrained import replace_pretrained
from torchstone.starting.replacements.resources import replace_resource
from torchstone.starting.replacements.workers import fork_workers
from torchstone.starting.stand_ins.finder import Note, StandInFinder, put_stand_in
from torchstone.starting.supplies import (
    DeclaredOperators,
    DroppedKeyword,
    MadeDataset,
    MadeFile,
    MadePretrained,
    MadeResource,
    MadeValues,
    MadeVersion,
    MadeWeights,
    NameStandIn,
    OlderDataclasses,
    OlderTorchBehaviour,
    OldName,
    PlainPackage,
    PretendedVersion,
    SearchPath,
    SmallBatches,
    StandIn,
    Supply,
    WorkFolder,
)


def apply_supplies(
    supplies: Sequence[Supply],
    is_own: Callable[[str], bool],
    note: Note,
    map_path: Callable[[Any], Any] = lambda path: path,
) -> None:
    """Packages and names, before the first line of the program. `map_path` says where a path is read."""
    watch_parsers()
    for supply in supplies:
        if isinstance(supply, DeclaredOperators):
            declare_operators(supply.package)
        elif isinstance(supply, SearchPath):
            sys.path.insert(0 if supply.comes_first else len(sys.path), supply.folder)
        elif isinstance(supply, OldName):
            _put_name(supply)
        elif isinstance(supply, MadeVersion):
            _put_version(supply.module)
        elif isinstance(supply, PretendedVersion):
            setattr(importlib.import_module(supply.package), "__version__", supply.version)  # noqa: B010
        elif isinstance(supply, OlderTorchBehaviour):
            put_back(supply.what)
        elif isinstance(supply, OlderDataclasses):
            accept_changeable_defaults()
        elif isinstance(supply, PlainPackage):
            put_plain(supply.package)
        elif isinstance(supply, DroppedKeyword):
            drop_keyword(supply.module, supply.function, supply.keyword)
        elif isinstance(supply, MadeResource):
            replace_resource(supply.package, supply.columns)
        elif isinstance(supply, NameStandIn):
            put_stand_in(supply.module, supply.name, note)
        elif isinstance(supply, WorkFolder):
            os.chdir(supply.folder)
        elif isinstance(supply, SmallBatches):
            limit_batches(supply.count)
        elif isinstance(supply, MadeWeights):
            replace_downloads()
        elif isinstance(supply, MadeDataset):
            replace_dataset(supply.name, supply.as_many)
        elif isinstance(supply, MadePretrained):
            replace_pretrained(note)
    if supplies:
        fork_workers()
    put_cuts([item for item in supplies if isinstance(item, MadeValues)])
    made = {item.path: item.form for item in supplies if isinstance(item, MadeFile)}
    replace_loaders(made, map_path)
    stood_in = [item for item in supplies if isinstance(item, StandIn)]
    if stood_in:
        packages = [item.package for item in stood_in]
        everywhere = [item.package for item in stood_in if item.for_libraries]
        sys.meta_path.append(StandInFinder(packages, is_own, note, everywhere))
        broken = [item.package for item in stood_in if item.is_broken]
        sys.meta_path.insert(0, StandInFinder(broken, is_own, note, broken))


def _put_version(name: str) -> None:
    """A module in which every name is the text of a version."""
    module = type(sys)(name)
    module.__getattr__ = lambda asked: _version(asked)  # type: ignore[method-assign]
    sys.modules[name] = module


def _version(asked: str) -> str:
    if asked in ("__path__", "__file__", "__spec__", "__all__"):
        raise AttributeError(asked)
    return "0.0.0"


def _put_name(supply: OldName) -> None:
    home, _, name = supply.successor.partition(":")
    value = importlib.import_module(home)
    value = getattr(value, name) if name else value
    try:
        holder = importlib.import_module(supply.module)
    except ModuleNotFoundError:  # a module that is gone as a whole
        holder = type(sys)(supply.module)
        sys.modules[supply.module] = holder
    setattr(holder, supply.name, value)
    if name == "":
        sys.modules[f"{supply.module}.{supply.name}"] = value


def put_in_copy(supplies: Sequence[Supply], root: Path, where: Where) -> Lookups:
    """Everything, for a program that runs in a copy of its project: made files are written where it
    looks for them, but only into the copy. What it looks for in vain from now on is noted."""
    inside = tuple(
        item
        for item in supplies
        if isinstance(item, MadeFile) and Path(item.path).resolve().is_relative_to(root.resolve())
    )
    write_files(inside, Path("/"))
    apply_supplies(supplies, where.is_own, lambda *_: None)
    return watch_lookups(where)
