"""Modules of the user's that are imported while a program is traced are rewritten on the way."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from torchstone.dataflow.tracing.instrument import Instrumentation, is_user_file


class _Loader(SourceFileLoader):
    """Loads the rewritten source; neither reads nor writes bytecode."""

    instrumentation: Instrumentation

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        file = self.instrumentation.file(path)
        return file.recording if file is not None else super().get_code(fullname)


class ImportHook(MetaPathFinder):
    """Stands first among the finders while a program is traced."""

    def __init__(self, instrumentation: Instrumentation) -> None:
        self._instrumentation = instrumentation

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader:
            return None
        if not is_user_file(spec.origin or ""):
            return None
        loader = _Loader(fullname, spec.origin or "")
        loader.instrumentation = self._instrumentation
        spec.loader = loader
        return spec

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
