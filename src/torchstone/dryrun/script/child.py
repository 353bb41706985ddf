"""The process that runs the user's program. `python -m torchstone.dryrun.script.child READ WRITE`.

It reads its settings from one pipe and writes one record per path to the other, then leaves
without the interpreter's farewell: a pretend backend cannot be unloaded.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

from torchstone.core.codec import from_data, to_data
from torchstone.dryrun.record import Record
from torchstone.dryrun.script.settings import ScriptSettings


def main(words: list[str]) -> None:
    read, write = int(words[0]), int(words[1])
    with os.fdopen(read, "rb") as source:
        settings = from_data(ScriptSettings, json.loads(source.read()), "settings")
    os.set_inheritable(write, False)
    from torchstone.dryrun.script.world import run_program

    record = run_program(settings, lambda: run_script(settings), Writer(write))
    Writer(write).put(record)
    leave(0)


class Writer:
    """Puts records on a pipe, a line each."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def put(self, record: Record) -> None:
        line = json.dumps(to_data(record), ensure_ascii=False, allow_nan=False)
        data = line.encode("utf-8", "surrogatepass") + b"\n"
        while data:
            data = data[os.write(self._handle, data) :]


def run_script(settings: ScriptSettings) -> None:
    """The script as `python SCRIPT ARGS` would run it."""
    path = Path(settings.script)
    sys.argv = [settings.script, *settings.arguments]
    sys.path[0] = str(path.resolve().parent)
    runpy.run_path(settings.script, run_name="__main__")


def leave(code: int) -> None:
    """End at once, with what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with _quiet():
            stream.flush()
    os._exit(code)


def _quiet() -> Any:
    import contextlib

    return contextlib.suppress(Exception)


if __name__ == "__main__":
    main(sys.argv[1:])
