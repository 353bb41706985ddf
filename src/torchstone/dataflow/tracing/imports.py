"""Modules of the user's that are loaded while a program is traced are rewritten on the way."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from torchstone.dataflow.tracing.instrument import (
    Instrumentation,
    is_user_file,
    transparent_names,
)


class ImportHook:
    """Stands before `SourceFileLoader.get_code`: whoever loads a file by it (an import statement,
    `spec_from_file_location`) gets the rewritten code; bytecode is neither read nor written."""

    def __init__(self, instrumentation: Instrumentation) -> None:
        self._instrumentation = instrumentation
        self._installed: Any = None

    def install(self) -> None:
        original = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
            found = self._rewritten(loader, fullname)
            return original(loader, fullname) if found is None else found

        self._installed = get_code
        setattr(SourceFileLoader, "get_code", get_code)  # noqa: B010 - a method is replaced

    def _rewritten(self, loader: SourceFileLoader, fullname: str) -> CodeType | None:
        if type(loader) is not SourceFileLoader:  # a loader that makes code of its own
            return None
        path = loader.get_filename(fullname)
        if not is_user_file(path) and not transparent_names(path):
            return None
        file = self._instrumentation.file(path)
        return file.recording if file is not None else None

    def remove(self) -> None:
        if vars(SourceFileLoader).get("get_code") is self._installed is not None:
            del SourceFileLoader.get_code
