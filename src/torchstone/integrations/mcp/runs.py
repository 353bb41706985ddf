"""Run ids for agents: short names of run folders below one place, and projects below one root."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from torchstone.conductor.records.folder import RunFolder
from torchstone.core.errors import InputError
from torchstone.core.text import Text

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


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
        if run_id and set(run_id) <= _LETTERS and (self.home / run_id).is_dir():
            return RunFolder(self.home / run_id)
        raise InputError(
            "run_id", repr(run_id[:60]), Text("the id that plan returned", "plan 返回的编号"),
            Text("call plan first", "请先调用 plan"),
        )  # fmt: skip

    def project(self, path: str) -> Path:
        """A folder below the root; links are followed before it is asked."""
        full = Path(os.path.realpath(self.root / path))
        if full.is_dir() and full.is_relative_to(os.path.realpath(self.root)):
            return full
        raise InputError(
            "path", repr(path[:120]), Text("a folder below the server's root", "服务器根目录之下的文件夹"),
            Text("start the server with --root, or name another folder", "请用 --root 启动服务器，或指定其他文件夹"),
        )  # fmt: skip

    def file(self, path: str) -> Path:
        full = Path(os.path.realpath(self.root / path))
        if full.is_file() and full.is_relative_to(os.path.realpath(self.root)):
            return full
        raise InputError(
            "path", repr(path[:120]), Text("a file below the server's root", "服务器根目录之下的文件"),
            Text("name another file", "请指定其他文件"),
        )  # fmt: skip
