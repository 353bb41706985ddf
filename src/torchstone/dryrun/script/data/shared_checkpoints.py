"""Checkpoints that one rank saves and others load: files in the scratch folder of the run.

Fake tensors are kept by shape and by the number of their value. The files are pickled, and only files
that this run has written are read.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from pathlib import Path
from typing import Any

import torch

from torchstone.dryrun.session import Session, is_fake


class SharedCheckpoints:
    """What any rank of this run has saved, by the path that the program named."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._folder = Path(session.settings.scratch) / "checkpoints"

    def put(self, path: str, obj: Any) -> None:
        """Keep a copy for the other ranks, where the object can be pickled at all."""
        data = io.BytesIO()
        try:
            _Pickler(data, self._session).dump(obj)
        except (pickle.PicklingError, TypeError, AttributeError):
            self._session.note(f"other ranks cannot load {path}: it holds what cannot be pickled")
            return
        file = self._file(path)
        self._folder.mkdir(exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(data.getvalue())
        part.replace(file)

    def holds(self, path: str) -> bool:
        return self._file(path).is_file()

    def get(self, path: str) -> Any:
        with self._file(path).open("rb") as file:
            return _Unpickler(file, self._session).load()

    def _file(self, path: str) -> Path:
        return self._folder / hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any, session: Session) -> None:
        super().__init__(file)
        self._session = session

    def persistent_id(self, obj: Any) -> Any:
        if not is_fake(obj):
            return None
        number = self._session.asks.number_of(obj)
        return tuple(obj.shape), tuple(obj.stride()), str(obj.dtype), number


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, session: Session) -> None:
        super().__init__(file)
        self._session = session

    def persistent_load(self, pid: Any) -> torch.Tensor:
        shape, stride, dtype, number = pid
        kind = getattr(torch, dtype.removeprefix("torch."))
        with self._session.mode:
            made = torch.empty_strided(shape, stride, dtype=kind)
        self._session.asks.give_number(made, number)
        return made
