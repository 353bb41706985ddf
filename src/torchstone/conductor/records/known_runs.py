"""Which run folders this user made, and where: a folder that lies in a project may be forged."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from torchstone.core.files import read_regular, write_atomically

_MOST_BYTES = 1 << 20
_MOST_RUNS = 200


def state_folder() -> Path:
    """Where this platform keeps what programs remember for a user."""
    if home := os.environ.get("XDG_STATE_HOME"):
        return Path(home) / "torchstone"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "torchstone"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "torchstone" / "state"
    return Path.home() / ".local" / "state" / "torchstone"


def _list() -> Path:
    return state_folder() / "review" / "runs.txt"


def _known() -> list[str]:
    try:
        return read_regular(_list(), _MOST_BYTES).decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []


def note_run(folder: Path) -> None:
    """Remember a folder of this user's own."""
    path = str(folder.resolve())
    rows = [row for row in _known() if row != path][-_MOST_RUNS:]
    _list().parent.mkdir(parents=True, exist_ok=True)
    write_atomically(_list(), ("\n".join([*rows, path]) + "\n").encode("utf-8", "surrogateescape"))


def last_run() -> str:
    """The newest run folder below the current folder; empty where there is none."""
    here = str(Path.cwd().resolve())
    found = [
        row for row in _known() if row.startswith(here + os.sep) and Path(row, "run.json").is_file()
    ]
    return os.path.relpath(found[-1]) if found else ""
