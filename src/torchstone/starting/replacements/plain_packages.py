"""Plain implementations under the names of the packages, with modules below them."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType


def put_plain(package: str) -> None:
    """`import package`, `import package.part` and `from package.part import name` find it from now on."""
    module = importlib.import_module(f"torchstone.starting.plain.{package}")
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]  # what failed to load half way
    _put(package, module)


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
