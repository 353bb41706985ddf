"""The folder of one review: every phase leaves its output there, for people and for programs."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from torchstone.conductor.records.known_runs import last_run
from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import InputError, TorchstoneError, system_said
from torchstone.core.files import keep_out_of_git, read_regular, write_atomically
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
        if ".." in Path(name).parts or Path(name).is_absolute() or target.is_symlink():
            raise _not_ours(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.parent.resolve().is_relative_to(self.path.resolve()):
            raise _not_ours(name)
        write_atomically(target, text)
        return target

    def remove(self, name: str) -> None:
        """Take back a file that `write` wrote, if it is there."""
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise _not_ours(name)
        (self.path / name).unlink(missing_ok=True)

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
        for folder in (HOME.parent, HOME):
            if folder.is_symlink():
                raise InputError(
                    str(folder), "a link", Text("a folder of its own", "独立的文件夹"),
                    Text("name a folder with --output", "请用 --output 指定文件夹"),
                )  # fmt: skip
        path = HOME / time.strftime("%Y%m%d-%H%M%S")
        while path.exists():
            path = path.with_name(f"{path.name}-{os.urandom(2).hex()}")
    _make(path)
    if not given:
        keep_out_of_git(HOME.parent)
    return RunFolder(path)


def _not_ours(name: str) -> InputError:
    return InputError(
        f"run folder: {name}", "a path that leads out of the run folder",
        Text("a file of the run folder", "运行文件夹中的文件"),
        Text("start a new review", "请重新开始评审"),
    )  # fmt: skip


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            str(path), system_said(error),
            Text("a folder that can be written", "可写的文件夹"),
            Text("name another one with --output", "请用 --output 指定其他文件夹"),
        ) from None  # fmt: skip


def known_folder(given: str) -> RunFolder:
    """The folder of an earlier review; the newest one where none is named."""
    if not given:
        given = last_run() or str(HOME)
    folder = RunFolder(Path(given))
    if not folder.has("run"):
        raise InputError(
            given, "no folder of a review",
            Text("a folder that `torchstone review` wrote", "由 `torchstone review` 生成的文件夹"),
            Text("run `torchstone review PATH` first", "请先运行 `torchstone review PATH`"),
        )  # fmt: skip
    return folder
