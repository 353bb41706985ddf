"""Plain implementations under the names of the packages, with modules below them."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any


def put_plain(package: str) -> None:
    """`import package`, `import package.part` and `from package.part import name` find it from now on."""
    module = importlib.import_module(f"torchstone.starting.plain.{package}")
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]  # what failed to load half way
    _put(package, module)
    sys.meta_path.insert(0, _Parts(package))


def _put(name: str, holder: object) -> None:
    made = ModuleType(name)
    made.__path__ = []
    for key in vars(holder):
        if not key.startswith("__") or key == "__version__":
            setattr(made, key, getattr(holder, key))
    sys.modules[name] = made
    for key, value in list(vars(holder).items()):
        if isinstance(value, type) and key.islower() and not key.startswith("_"):
            _put(f"{name}.{key}", value)
            setattr(made, key, sys.modules[f"{name}.{key}"])


class _Parts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules that the implementation does not have, where a name of theirs is often its parent's:
    `gym.spaces.box` has the names of `gym.spaces`."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if not fullname.startswith(f"{self._package}."):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        parent = sys.modules[module.__name__.rpartition(".")[0]]
        for key, value in vars(parent).items():
            if not key.startswith("__"):
                setattr(module, key, value)
