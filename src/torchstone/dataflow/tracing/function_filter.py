"""Which functions become nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from torchstone.core.options import unknown

_KEYS = ("include_modules", "exclude_modules", "include_functions", "exclude_functions")


class FunctionFilter:
    """Patterns of names, as the shell has them (`cv2.*`). Without a configuration everything that
    meets data is traced."""

    def __init__(self, filter_config: Mapping[str, Sequence[str]] | None = None) -> None:
        config = dict(filter_config or {})
        for key in config:
            if key not in _KEYS:
                raise unknown("FunctionFilter", key, _KEYS)
        self._patterns = {key: _listed(config.get(key, ())) for key in _KEYS}

    def should_trace(self, func_name: str, module: str = "") -> bool:
        return self._allowed("modules", module) and self._allowed("functions", func_name)

    def _allowed(self, what: str, name: str) -> bool:
        included = self._patterns[f"include_{what}"]
        excluded = self._patterns[f"exclude_{what}"]
        if any(_matches(name, pattern) for pattern in excluded):
            return False
        return not included or any(_matches(name, pattern) for pattern in included)


def _listed(given: Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _matches(name: str, pattern: str) -> bool:
    """A pattern without wild cards also stands for everything inside it."""
    return fnmatchcase(name, pattern) or name.startswith(pattern + ".")
