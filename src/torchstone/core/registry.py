"""Things found by their folder: put a file there and it is listed, with no list to edit."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType


def modules_in(package: str) -> Iterator[ModuleType]:
    """Every public module of a package, imported, in order of name."""
    home = importlib.import_module(package)
    for info in sorted(pkgutil.iter_modules(home.__path__), key=lambda info: info.name):
        if not info.name.startswith("_"):
            yield importlib.import_module(f"{package}.{info.name}")


def names_in(package: str) -> list[str]:
    """The names of a package's public modules, without importing them."""
    home = importlib.import_module(package)
    return sorted(i.name for i in pkgutil.iter_modules(home.__path__) if not i.name.startswith("_"))
