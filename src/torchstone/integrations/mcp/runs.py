"""Run ids for agents: short names of run folders below one place, and projects below one root."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from torchstone.conductor.records.folder import RunFolder
from torchstone.conductor.run import RunInfo
from torchstone.core.errors import InputError
from torchstone.core.text import Text

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_MOST_PATH = 4096
"""Characters: the limit of the system for a path; longer ones are refused before it is asked."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Where runs are kept, and which projects may be named."""

    root: Path
    """Agents name projects below this folder only."""
    home: Path

    def new(self) -> RunFolder:
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        path = self.home / name
        path.mkdir(parents=True)
        return RunFolder(path)

    def folder(self, run_id: str) -> RunFolder:
        """The folder of a run; refused unless the project that it reviews is below this root, now."""
        if run_id and set(run_id) <= _LETTERS and (self.home / run_id).is_dir():
            folder = RunFolder(self.home / run_id)
            info = folder.load("run", RunInfo)
            if info is not None and self._contains(Path(info.root)):
                return folder
        raise InputError(
            "run_id",
            repr(run_id[:60]),
            Text("the id that plan returned", "plan 返回的编号"),
            Text("call plan first", "请先调用 plan"),
        )

    def _contains(self, path: Path) -> bool:
        """Links are followed at every call: a project may be replaced by one after it was planned."""
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root))

    def _below(self, path: str) -> Path | None:
        """A path that an agent named; None where it leads out of the root or is not a path at all."""
        if len(path) > _MOST_PATH or not path.isprintable():
            return None
        full = Path(os.path.realpath(self.root / path))
        return full if self._contains(full) else None

    def project(self, path: str) -> Path:
        """A folder below the root."""
        full = self._below(path)
        if full is not None and full.is_dir():
            return full
        raise InputError(
            "path",
            repr(path[:120]),
            Text("a folder below the server's root", "服务器根目录之下的文件夹"),
            Text(
                "start the server with --root, or name another folder",
                "请用 --root 启动服务器，或指定其他文件夹",
            ),
        )

    def file(self, path: str) -> Path:
        """A file below the root."""
        full = self._below(path)
        if full is not None and full.is_file():
            return full
        raise InputError(
            "path",
            repr(path[:120]),
            Text("a file below the server's root", "服务器根目录之下的文件"),
            Text("name another file", "请指定其他文件"),
        )
