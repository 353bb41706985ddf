"""The process that runs the user's program. `python -m torchstone.dryrun.child READ WRITE`.

It reads its settings from one pipe and writes one record per path to the other, then leaves
without the interpreter's farewell: a pretend backend cannot be unloaded.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import sys
from pathlib import Path

from torchstone.core.codec import from_data
from torchstone.dryrun.script.settings import ScriptSettings


def main(words: list[str]) -> None:
    read, write = int(words[0]), int(words[1])
    with os.fdopen(read, "rb") as source:
        settings = from_data(ScriptSettings, json.loads(source.read()), "settings")
    os.set_inheritable(write, False)
    if settings.play_ranks:
        from torchstone.dryrun.ranks.tell import play_and_report

        play_and_report(settings, run_script, write)
        leave(0)
    from torchstone.dryrun.script.forks import PipeSink
    from torchstone.dryrun.script.world import run_program

    run_program(settings, lambda: run_script(settings), PipeSink(write))
    leave(0)


def run_script(settings: ScriptSettings) -> None:
    """The script as `python SCRIPT ARGS` would run it."""
    path = Path(settings.script)
    sys.argv = [settings.script, *settings.arguments]
    sys.path.insert(0, str(path.resolve().parent))
    runpy.run_path(settings.script, run_name="__main__")


def leave(code: int) -> None:
    """End at once, with what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
