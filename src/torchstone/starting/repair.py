"""From an obstacle to what is supplied in its place, or nothing where that would be a guess."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torchstone.core.files import read_regular
from torchstone.core.place import Place
from torchstone.starting.cuts.deciding import decide
from torchstone.starting.cuts.refining import refine_values
from torchstone.starting.cuts.scopes import find_cuts
from torchstone.starting.files.forms import forms_of
from torchstone.starting.files.reading import read_code
from torchstone.starting.files.refining import refine_files
from torchstone.starting.obstacles import (
    BrokenPackage,
    EmptyData,
    Misfit,
    MissingArguments,
    MissingDataset,
    MissingFile,
    MissingOperators,
    MissingPackage,
    MissingPretrained,
    MissingResource,
    MissingWeights,
    NoTime,
    Obstacle,
    OlderPython,
    OlderTorch,
    OpenValues,
    OtherKeyword,
    OtherModule,
    OtherVersion,
    StatedVersion,
)
from torchstone.starting.old_names import successor_of
from torchstone.starting.plain import PLAIN
from torchstone.starting.project import Imports, is_importable, read_imports
from torchstone.starting.supplies import (
    Arguments,
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

_BYTES = 1 << 20
_SMALL = 4
"""Samples: enough for batch statistics and for pairs, and two of them on each of two ranks."""
_VERSION = re.compile(r"\._{0,2}version(_info)?_{0,2}$|\.build_info$")
"""Modules that are written when a project is installed."""
_NEVER = frozenset(("torch", "numpy"))
"""Nothing is computed without these: a stand-in for them would only hide what is missing."""


class Repair:
    """Knows one project; answers one obstacle after the other."""

    def __init__(self, root: Path, script: Path, packages: Sequence[str] = ()) -> None:
        self._root = root.resolve()
        self._script = script.absolute()
        self._packages = packages

    @functools.cached_property
    def _imports(self) -> Imports:
        return read_imports(self._root)

    def supply_for(
        self, obstacle: Obstacle, stack: Sequence[Place], given: Sequence[Supply]
    ) -> tuple[Supply, ...]:
        """New supplies; none where the same was supplied before and did not help. `stack` are the
        project's lines that the exception went through."""
        if isinstance(obstacle, OpenValues):
            return decide(obstacle, given)
        found = self._data_for(obstacle, stack, given) or self._code_for(obstacle, stack, given)
        new = tuple(item for item in found if item not in given)
        return new or self._cut(stack, given)

    def _cut(self, stack: Sequence[Place], given: Sequence[Supply]) -> tuple[Supply, ...]:
        """Made values in the place of the code that cannot do without what is missing."""
        known = {(item.path, item.scope) for item in given if isinstance(item, MadeValues)}
        for cut in find_cuts(stack, self._source):
            if (cut.path, cut.scope) not in known:
                return (MadeValues(cut.path, cut.scope, cut.is_dataset, cut.leaves),)
        return ()

    def _code_for(
        self, obstacle: Obstacle, stack: Sequence[Place], given: Sequence[Supply]
    ) -> tuple[Supply, ...]:
        """For packages, versions and arguments."""
        match obstacle:
            case MissingPackage(name, part) if _VERSION.search(part) and self._is_own(name):
                return (MadeVersion(part),)
            case MissingPackage(name) if StandIn(name) in given:
                return _for_libraries(name)
            case MissingPackage(name):
                return self._package(name)
            case BrokenPackage(name) if self._is_own(name):
                return ()  # the program's own module: what it raises is its own
            case BrokenPackage(name):
                return (PlainPackage(name) if name in PLAIN else StandIn(name, is_broken=True),)
            case OtherVersion():
                return _name(obstacle)
            case OlderPython(what) if what.startswith("mutable default"):
                return (OlderDataclasses(),)
            case OlderTorch(what):
                return (OlderTorchBehaviour(what),)
            case StatedVersion(package, version):
                return (PretendedVersion(package, version),)
            case OtherKeyword(package, name, keyword):
                return (DroppedKeyword(package, name, keyword),)
            case MissingOperators(package):
                return (DeclaredOperators(package),)
            case MissingArguments(_, needed):
                return (Arguments(needed),) if needed else ()
            case OtherModule(module, _, folder):
                return (SearchPath(folder, module, comes_first=True),)
            case NoTime():
                return (SmallBatches(_SMALL),)
            case MissingResource(package):
                return (MadeResource(package, self._columns(stack)),)
        return ()

    def _data_for(
        self, obstacle: Obstacle, stack: Sequence[Place], given: Sequence[Supply]
    ) -> tuple[Supply, ...]:
        """For files, datasets and weights."""
        match obstacle:
            case MissingDataset(name):
                return (MadeDataset(name),)
            case MissingPretrained(name):
                return (MadePretrained(name),)
            case MissingWeights():
                return (MadeWeights(),)
            case Misfit("count"):
                made = (item for item in given if isinstance(item, MadeDataset))
                return tuple(replace(item, as_many=True) for item in made)
            case Misfit():
                return refine_files(given, obstacle) or refine_values(given, obstacle)
            case MissingFile(path) if home := self._home_of(path, given):
                return (WorkFolder(home, path),)
            case MissingFile(path) if _are_many(path, given) and (cut := self._cut(stack, given)):
                return cut
            case MissingFile(path, is_folder):
                return self._files(os.path.join(_work_folder(given), path), is_folder, stack)
            case EmptyData():
                return self._next_part(obstacle, stack, given)
        return ()

    def _next_part(
        self, obstacle: EmptyData, stack: Sequence[Place], given: Sequence[Supply]
    ) -> tuple[Supply, ...]:
        """The first path that was looked for and can be made, read as the line that looked for it does."""
        for place, path in enumerate(obstacle.paths):
            asked = tuple(filter(None, obstacle.places[place : place + 1]))
            made = self._files(path, not Path(path).suffix, asked or stack)
            if new := tuple(item for item in made if item not in given):
                return new
        return ()

    def _package(self, name: str) -> tuple[Supply, ...]:
        own = self._imports.modules.get(name)
        if own is not None:
            return (SearchPath(own, name),)
        if name in _NEVER:
            return ()
        missing = [
            item
            for item in sorted(self._imports.needed - _NEVER)
            if item not in self._imports.modules and not is_importable(item, self._packages)
        ]
        return tuple(
            PlainPackage(item) if item in PLAIN else StandIn(item)
            for item in dict.fromkeys((name, *missing))
        )

    def _is_own(self, name: str) -> bool:
        return name in self._imports.modules

    def _columns(self, stack: Sequence[Place]) -> tuple[str, ...]:
        """Names by which the code near by subscripts something."""
        sources = [(place, text) for place in stack if (text := self._source(place.path))]
        return read_code(sources).subscripts()

    def _home_of(self, path: str, given: Sequence[Supply]) -> str:
        """A folder of the project from which a relative path leads to what is there: to the file itself, else
        to its folder; none where that is so from the folder that the program was started in."""
        moved = any(isinstance(item, WorkFolder) for item in given)
        if moved or os.path.isabs(path) or not path:
            return ""
        here = Path.cwd().resolve()
        homes = [
            (folder, target)
            for folder in (self._script.parent, self._root, *self._script.parents[1:3])
            if folder.resolve() != here
            and (target := Path(os.path.normpath(folder / path))).is_relative_to(self._root)
        ]
        above = os.path.dirname(os.path.normpath(path))
        for folder, target in homes:
            if target.exists():
                return str(folder)
        for folder, target in homes:
            if above and not os.path.isdir(above) and target.parent.is_dir():
                return str(folder)
        return ""

    def _files(self, path: str, is_folder: bool, stack: Sequence[Place]) -> tuple[MadeFile, ...]:
        whole = os.path.abspath(path)
        sources = [(place, text) for place in stack if (text := self._source(place.path))]
        return forms_of(whole, is_folder, read_code(sources))

    def _source(self, name: str) -> str:
        path = Path(name).absolute()
        try:
            if not path.resolve().is_relative_to(self._root):
                return ""
            return read_regular(path, _BYTES).decode("utf-8", "replace")
        except OSError:
            return ""


def _name(obstacle: OtherVersion) -> tuple[Supply, ...]:
    """The successor of a name, else a stand-in for it; Python's own names have none."""
    successor = successor_of(obstacle.package, obstacle.name)
    if successor:
        return (OldName(obstacle.package, obstacle.name, successor),)
    top = obstacle.package.partition(".")[0]
    is_class = obstacle.package.rpartition(".")[2][:1].isupper()
    if is_class or top in _NEVER or top in sys.stdlib_module_names or top == "python":
        return ()
    return (NameStandIn(obstacle.package, obstacle.name),)


_FEW = 2
"""Made files of one kind in one folder: a list names more of them, and each would cost a run."""


def _are_many(path: str, given: Sequence[Supply]) -> bool:
    """Whether files like this one were made before."""
    folder, suffix = os.path.split(os.path.abspath(path))[0], os.path.splitext(path)[1]
    like = [
        item
        for item in given
        if isinstance(item, MadeFile)
        and os.path.dirname(item.path) == folder
        and os.path.splitext(item.path)[1] == suffix
    ]
    return bool(suffix) and len(like) >= _FEW


def _work_folder(given: Sequence[Supply]) -> str:
    """Where the program is started, if that is not where we are."""
    return next((item.folder for item in given if isinstance(item, WorkFolder)), "")


def _for_libraries(name: str) -> tuple[Supply, ...]:
    """For a package that a library needs, which the stand-in of the program does not reach."""
    if name == "tensorboard":  # torch asks for its version: the writer as a whole is stood in for
        return (NameStandIn("torch.utils", "tensorboard"),)
    return (StandIn(name, True),)
