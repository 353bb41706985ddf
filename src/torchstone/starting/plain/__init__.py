"""Plain implementations of packages that programs compute with and that are not to be had: a file each, with
the name of the package."""

from __future__ import annotations

from pathlib import Path

PLAIN = frozenset(
    path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__"
)
"""Names of the packages; their modules `a.b` are classes or files of the same names."""
