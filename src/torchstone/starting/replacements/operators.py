"""Operators of a native library that cannot be loaded, by name, so that their package can be imported."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

from torchstone.core.files import read_regular

_BYTES = 1 << 20


def declare_operators(package: str) -> None:
    """Every operator of its namespace that a file of the package names as a text; calling one fails."""
    spec = importlib.util.find_spec(package)
    torch = importlib.import_module("torch")
    named = re.compile(rf"[\"']{re.escape(package)}::(\w+)[\"']")
    for home in (spec.submodule_search_locations or ()) if spec else ():
        for file in sorted(Path(home).glob("*.py")):
            text = read_regular(file, _BYTES).decode("utf-8", "replace")
            for name in dict.fromkeys(named.findall(text)):
                if not hasattr(getattr(torch.ops, package), name):
                    torch.library.define(f"{package}::{name}", "(...) -> (...)")
