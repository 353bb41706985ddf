"""Results of jobs by content: an unchanged project is not looked at twice."""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from pathlib import Path
from typing import TypeVar

from torchstone._version import __version__
from torchstone.conductor.jobs.job import Job
from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import TorchstoneError
from torchstone.core.files import cache_folder, read_regular, write_atomically
from torchstone.core.report import Report

T = TypeVar("T")
_MOST_BYTES = 256 << 20
_PACKAGE = Path(__file__).resolve().parents[2]


def key_of(job: Job, digest: str, version: str) -> str:
    """Everything that a job's result hangs on."""
    basis = [to_data(job), digest, version, __version__, sys.version, _own_stamp()]
    return hashlib.sha256(json.dumps(basis, sort_keys=True).encode()).hexdigest()


@functools.cache
def _own_stamp() -> str:
    """A change of this package is a change of every result."""
    newest = max(path.stat().st_mtime_ns for path in _PACKAGE.rglob("*.py"))
    return str(newest)


def _path(key: str) -> Path:
    return cache_folder() / "review" / key[:2] / f"{key}.json"


def stored(key: str) -> Report | None:
    """The report of a job that was done before."""
    try:
        return Report.from_json(read_regular(_path(key), _MOST_BYTES))
    except (OSError, TorchstoneError):
        return None


def load(key: str, kind: type[T]) -> T | None:
    """Another kind of result."""
    try:
        return from_data(kind, json.loads(read_regular(_path(key), _MOST_BYTES)), "cache")
    except (OSError, ValueError, TorchstoneError):
        return None


def store(key: str, report: Report) -> None:
    _write(key, report.to_json(indent=None))


def keep(key: str, value: object) -> None:
    _write(key, json.dumps(to_data(value)))


def _write(key: str, text: str) -> None:
    path = _path(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    except (OSError, TorchstoneError):
        return  # a cache that cannot be written makes the next review slower, nothing else
