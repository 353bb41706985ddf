"""Gives stand-ins for packages that were named, to code of the project alone."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import Any

from torchstone.starting.stand_ins.values import StandIn

Note = Callable[[str, str], None]


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Is asked last: a package that is installed is imported as usual."""

    def __init__(
        self,
        packages: Sequence[str],
        is_own: Callable[[str], bool],
        note: Note,
        everywhere: Sequence[str] = (),
    ) -> None:
        self._packages = frozenset(packages)
        self._everywhere = frozenset(everywhere)
        self._is_own = is_own
        self._note = note

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        top = fullname.partition(".")[0]
        known = top in sys.modules and isinstance(sys.modules[top], StandInModule)
        known = known or top in self._everywhere
        if top not in self._packages or not (known or self._is_imported_by_project()):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return StandInModule(spec.name, self._note)

    def exec_module(self, module: ModuleType) -> None:
        self._note(module.__name__.partition(".")[0], f"import {module.__name__}")

    def _is_imported_by_project(self) -> bool:
        """Installed libraries ask whether a package is there and change their ways: they get none."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
            frame = frame.f_back
        return frame is not None and self._is_own(frame.f_code.co_filename)


class StandInModule(ModuleType):
    """A module in which every name is a stand-in."""

    def __init__(self, name: str, note: Note) -> None:
        super().__init__(name)
        self.__dict__.update(_note=note, __path__=[], __version__="99.0", __all__=[])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        package = self.__name__.partition(".")[0]
        if name.endswith(("Error", "Exception", "Warning")):
            return type(name, (Exception,), {})
        made = StandIn(package, f"{self.__name__}.{name}", self.__dict__["_note"])
        setattr(self, name, made)
        return made


def put_stand_in(module: str, name: str, note: Note) -> None:
    """A stand-in for one name of an installed package, or for a module of it."""
    package = module.partition(".")[0]
    try:
        holder = importlib.import_module(module)
    except ModuleNotFoundError:  # the module itself is gone
        holder = sys.modules[module] = StandInModule(module, note)
    setattr(holder, name, StandIn(package, f"{module}.{name}", note))
    sys.modules.setdefault(f"{module}.{name}", StandInModule(f"{module}.{name}", note))
