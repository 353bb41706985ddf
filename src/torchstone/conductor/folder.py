"""The folder of one review: every phase leaves its output there, for people and for programs."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import InputError, TorchstoneError
from torchstone.core.files import read_regular, write_atomically
from torchstone.core.text import Text

T = TypeVar("T")
_MOST_BYTES = 512 << 20
HOME = Path(".torchstone") / "review"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where a review writes."""

    path: Path

    def write(self, name: str, text: str) -> Path:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, text)
        return target

    def keep(self, name: str, value: object) -> None:
        """A phase's output as JSON."""
        self.write(f"{name}.json", json.dumps(to_data(value), ensure_ascii=False, indent=1))

    def load(self, name: str, kind: type[T]) -> T | None:
        """A phase's output that was kept; None where it is missing or of another version."""
        try:
            data = json.loads(read_regular(self.path / f"{name}.json", _MOST_BYTES))
            return from_data(kind, data, name)
        except (OSError, ValueError, TorchstoneError):
            return None

    def has(self, name: str) -> bool:
        return (self.path / f"{name}.json").is_file()


def new_folder(given: str) -> RunFolder:
    """A folder of its own: the one that was named, or the next number beside the project."""
    if given:
        path = Path(given)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(
                f"--output {given}", "a file or a folder with something in it",
                Text("a new or empty folder", "新的或空的文件夹"),
                Text("name another folder", "请指定其他文件夹"),
            )  # fmt: skip
    else:
        path = HOME / time.strftime("%Y%m%d-%H%M%S")
        while path.exists():
            path = path.with_name(f"{path.name}-{os.urandom(2).hex()}")
    _make(path)
    if not given:
        write_atomically(HOME.parent / ".gitignore", "*\n")
    return RunFolder(path)


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            str(path), error.strerror or type(error).__name__,
            Text("a folder that can be written", "可写的文件夹"),
            Text("name another one with --output", "请用 --output 指定其他文件夹"),
        ) from None  # fmt: skip


def known_folder(given: str) -> RunFolder:
    """The folder of an earlier review; the newest one where none is named."""
    if not given:
        runs = sorted(HOME.glob("*/run.json"))
        given = str(runs[-1].parent) if runs else str(HOME)
    folder = RunFolder(Path(given))
    if not folder.has("run"):
        raise InputError(
            given, "no folder of a review",
            Text("a folder that `torchstone review` wrote", "由 `torchstone review` 生成的文件夹"),
            Text("run `torchstone review PATH` first", "请先运行 `torchstone review PATH`"),
        )  # fmt: skip
    return folder
