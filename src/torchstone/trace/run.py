"""A recorded run, read back: its journal and the texts it names, each checked against its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from torchstone.core.errors import InputError, system_said
from torchstone.core.files import read_regular
from torchstone.core.text import Text
from torchstone.trace.journal import NAME, Read, read_journal
from torchstone.trace.record import Kept, Record

_MOST_TEXT = 64 << 20


@dataclass(frozen=True)
class Run:
    """The records of one folder, of one task or of all."""

    folder: Path
    records: tuple[Record, ...]
    damaged: tuple[int, ...] = ()
    torn: int = 0

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.task for item in self.records))

    def text(self, record: Record, name: str) -> str | None:
        """A text of a record; None when there is none, it is gone, or it was changed."""
        kept = record.texts.get(name)
        data = self._data(kept) if kept else None
        return None if data is None else data.decode("utf-8", "replace")

    def _data(self, kept: Kept) -> bytes | None:
        if not kept.file:
            data = kept.text.encode("utf-8", "backslashreplace")
            return data if hashlib.sha256(data).hexdigest() == kept.sha256 else None
        place = PurePosixPath(kept.file)
        if place.is_absolute() or ".." in place.parts:
            return None  # a journal from a stranger must not name files elsewhere
        try:
            data = read_regular(self.folder / place, _MOST_TEXT)
        except (OSError, ValueError):  # a name that no file can have, such as one with a zero byte
            return None
        return data if hashlib.sha256(data).hexdigest() == kept.sha256 else None

    def missing(self, records: Sequence[Record]) -> tuple[str, ...]:
        """Files that these records name and that are gone or changed."""
        return tuple(
            kept.file
            for record in records
            for kept in record.texts.values()
            if self._data(kept) is None
        )


def load(path: Path | str, task: str = "") -> Run:
    """A run from its folder or its journal."""
    place = Path(path)
    journal = place if place.is_file() else place / NAME
    try:
        read: Read = read_journal(journal)
    except OSError as error:
        raise InputError(
            str(journal),
            system_said(error),
            Text("the folder of a recorded operator", "已记录算子的文件夹"),
            Text(
                f"pass LOG_DIR/OP_NAME, which holds {NAME}", f"请传入含有 {NAME} 的 LOG_DIR/OP_NAME"
            ),
        ) from None
    run = Run(journal.parent, read.records, read.damaged, read.torn)
    if task and task not in run.tasks:
        known = ", ".join(run.tasks) or "–"
        raise InputError(
            f"{journal}: --task",
            repr(task),
            Text("a task of this run", "该运行中的任务"),
            Text(f"known: {known}", f"可用：{known}"),
        )
    return Run(run.folder, _of(run.records, task), run.damaged, run.torn) if task else run


def _of(records: Sequence[Record], task: str) -> tuple[Record, ...]:
    return tuple(item for item in records if item.task == task)
