"""The process that runs the user's program. `main([READ, WRITE])`.

It reads its settings from one pipe and writes one record per path to the other, then leaves
without the interpreter's farewell: a pretend backend cannot be unloaded.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import TorchstoneError
from torchstone.dryrun.record import Record
from torchstone.dryrun.script.walls.confine import confine
from torchstone.dryrun.settings import ScriptSettings
from torchstone.observe.where import PROGRAM
from torchstone.sandbox.network import Network, close_network
from torchstone.starting.interpreters import use_packages

if TYPE_CHECKING:
    from torchstone.dryrun.script.forks import Sink


def main(words: list[str]) -> None:
    read, write = int(words[0]), int(words[1])
    with os.fdopen(read, "rb") as source:
        settings = from_data(ScriptSettings, json.loads(source.read()), "settings")
    os.set_inheritable(write, False)
    if settings.script:  # the program may be started in another folder
        settings = replace(settings, script=os.path.abspath(settings.script))
    PROGRAM.start_in(os.getcwd())
    network = close_network(settings.scratch, lambda tried: put_tried(write, tried))
    confined = bool(settings.scratch) and confine(
        settings.scratch, settings.allow_write, refuse_tcp=network is Network.OPEN
    )
    if settings.scratch:
        use_own_temporary_folder(settings.scratch)
    use_packages(settings.interpreter)  # of the project's environment: only from here on
    try:
        run(replace(settings, network=network.name, confined=confined), write)
    except TorchstoneError as error:  # what the user named cannot be used: the parent says so
        line = json.dumps(
            {"wrong": [error.where, error.given, to_data(error.expected), to_data(error.todo)]}
        )
        os.write(write, line.encode("utf-8", "surrogatepass") + b"\n")
    leave(0)


def use_own_temporary_folder(scratch: str) -> None:
    folder = os.path.join(scratch, "tmp")
    os.makedirs(folder, exist_ok=True)
    os.environ["TMPDIR"] = folder
    tempfile.tempdir = folder


def put_tried(write: int, tried: tuple[str, ...]) -> None:
    """Addresses that the program, or a process that it started, did not reach."""
    os.write(write, json.dumps({"tried": tried}).encode() + b"\n")


def run(settings: ScriptSettings, write: int) -> None:
    """Whatever the settings ask for."""
    from torchstone.observe.compat.autograd_engine import start_engine

    start_engine()
    if settings.play_ranks:
        from torchstone.dryrun.ranks.tell import play_and_report

        play_and_report(settings, run_script, write)
        return
    from torchstone.dryrun.script.forks import PipeSink
    from torchstone.dryrun.world import run_program

    sink = PipeSink(write)
    if settings.target:
        from torchstone.dryrun.model_run import run_model

        if settings.symbolic:
            find_and_put(settings, sink)
        else:
            run_program(settings, lambda world: run_model(settings, world), sink)
    else:
        run_program(settings, lambda _: run_script(settings), sink)


def find_and_put(settings: ScriptSettings, sink: Sink) -> None:
    """A symbolic run: its constraints, or the error that it met."""
    from torchstone.dryrun.script.endings import failed
    from torchstone.dryrun.script.fakes.lazy import make_mode
    from torchstone.dryrun.session import Session
    from torchstone.dryrun.symbolic import find_constraints
    from torchstone.dryrun.world import quiet_torch

    quiet_torch()
    try:
        proven, found = find_constraints(settings)
        sink.put(Record(constraints=found, notes=("proven",) if proven else ()))
    except TorchstoneError:
        raise
    except Exception as error:
        sink.put(failed(Session(settings, make_mode()), error))


def run_script(settings: ScriptSettings) -> None:
    """The script as `python SCRIPT ARGS` would run it, or `python -m` where its imports need that."""
    from torchstone.starting.arguments import add_arguments
    from torchstone.starting.documents import start_program

    sys.argv = [settings.script, *add_arguments(settings.arguments, settings.supplies)]
    start_program(settings.script)


def leave(code: int) -> None:
    """End at once, with what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
