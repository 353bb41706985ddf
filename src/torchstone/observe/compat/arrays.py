"""Names of numpy that moved between its versions 1 and 2."""

from __future__ import annotations

try:
    from numpy.lib.array_utils import byte_bounds
except ImportError:  # numpy 1
    from numpy import byte_bounds  # type: ignore[attr-defined,no-redef]

__all__ = ["byte_bounds"]
