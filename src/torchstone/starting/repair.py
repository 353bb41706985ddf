"""From an obstacle to what is supplied in its place, or nothing where that would be a guess."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from torchstone.core.files import read_regular
from torchstone.starting.files.forms import forms_of
from torchstone.starting.obstacles import (
    EmptyData,
    MissingDataset,
    MissingFile,
    MissingPackage,
    MissingPretrained,
    Obstacle,
    OtherVersion,
)
from torchstone.starting.old_names import successor_of
from torchstone.starting.project import Imports, is_importable, read_imports
from torchstone.starting.replacements.datasets import SHAPES
from torchstone.starting.supplies import (
    MadeDataset,
    MadeFile,
    MadePretrained,
    OldName,
    SearchPath,
    StandIn,
    Supply,
)

_BYTES = 1 << 20
_NEVER = frozenset(("torch", "numpy"))
"""Nothing is computed without these: a stand-in for them would only hide what is missing."""


class Repair:
    """Knows one project; answers one obstacle after the other."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @functools.cached_property
    def _imports(self) -> Imports:
        return read_imports(self._root)

    def supply_for(
        self, obstacle: Obstacle, stack: Sequence[str], given: Sequence[Supply]
    ) -> tuple[Supply, ...]:
        """New supplies; none where the same was supplied before and did not help. `stack` are the
        project's files that the exception went through."""
        found: tuple[Supply, ...] = ()
        if isinstance(obstacle, MissingPackage):
            found = self._package(obstacle.name)
        elif isinstance(obstacle, OtherVersion):
            successor = successor_of(obstacle.package, obstacle.name)
            found = (OldName(obstacle.package, obstacle.name, successor),) if successor else ()
        elif isinstance(obstacle, MissingDataset):
            found = (MadeDataset(obstacle.name),) if obstacle.name in SHAPES else ()
        elif isinstance(obstacle, MissingPretrained):
            found = (MadePretrained(obstacle.name),)
        elif isinstance(obstacle, MissingFile):
            found = self._files(obstacle.path, obstacle.is_folder, stack)
        elif isinstance(obstacle, EmptyData):
            for path in obstacle.paths:
                found = found or self._files(path, not Path(path).suffix, stack)
        return tuple(item for item in found if item not in given)

    def _package(self, name: str) -> tuple[Supply, ...]:
        own = self._imports.modules.get(name)
        if own is not None:
            return (SearchPath(own, name),)
        if name in _NEVER:
            return ()
        missing = [
            item
            for item in sorted(self._imports.needed - _NEVER)
            if item not in self._imports.modules and not is_importable(item)
        ]
        return tuple(StandIn(item) for item in dict.fromkeys((name, *missing)))

    def _files(self, path: str, is_folder: bool, stack: Sequence[str]) -> tuple[MadeFile, ...]:
        whole = str((Path.cwd() / path).absolute())
        sources = [text for name in dict.fromkeys(stack) if (text := self._source(name))]
        return forms_of(whole, is_folder, sources)

    def _source(self, name: str) -> str:
        path = Path(name)
        try:
            if not path.resolve().is_relative_to(self._root):
                return ""
            return read_regular(path, _BYTES).decode("utf-8", "replace")
        except OSError:
            return ""
