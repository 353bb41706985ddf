"""The user's program in a process of its own, which is gone when this returns."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.dryrun.ranks_record import RanksRecord
from torchstone.dryrun.record import Record
from torchstone.dryrun.script.settings import ScriptSettings
from torchstone.starting.applying import write_files
from torchstone.starting.interpreters import Interpreter
from torchstone.starting.supplies import Supply

GRACE_SECONDS = 10.0
"""The program ends itself at its limit; code that never comes back to Python is killed later."""
IMPORT_SECONDS = 30.0
"""Importing torch and transformers on a busy machine, before the limit counts."""
TAIL_BYTES = 64 * 1024
_MARK = "TORCHSTONE_DRYRUN"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a child process left."""

    records: tuple[Record, ...]
    ranks: RanksRecord | None
    exit_code: int = 0
    killed: bool = False
    output: str = ""
    """The end of what the program printed."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    supplies: tuple[Supply, ...] = ()
    """What was put in the place of what is missing."""


def launch(settings: ScriptSettings) -> Outcome:
    """Run the program and read what it leaves; processes it started are ended, files removed."""
    with _scratch() as folder:
        if not settings.allow_write:
            write_files(settings.supplies, Path(folder, "files"))
        return _run(replace(settings, scratch=folder))


@contextlib.contextmanager
def _scratch() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="torchstone-dryrun-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(settings: ScriptSettings) -> Outcome:
    mark = f"{_MARK}={uuid.uuid4().hex}"
    to_child, our_end = os.pipe()
    from_child, their_end = os.pipe()
    keyboard, terminal = _open_terminal()
    started = time.monotonic()
    before = os.times()
    child = subprocess.Popen(
        [*_command(settings.interpreter), str(to_child), str(their_end)],
        stdin=terminal if terminal is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(to_child, their_end),
        start_new_session=True,
        env=_environment(mark),
    )
    os.close(to_child)
    os.close(their_end)
    if terminal is not None:
        os.close(terminal)
    printed, written = bytearray(), bytearray()
    readers = [
        _reader(child.stdout.fileno() if child.stdout else -1, printed, TAIL_BYTES),
        _reader(from_child, written, 0),
    ]
    killed = False
    try:
        with contextlib.suppress(BrokenPipeError), os.fdopen(our_end, "wb") as pipe:
            pipe.write(json.dumps(to_data(settings)).encode())
        try:
            child.wait(_limit(settings))
        except subprocess.TimeoutExpired:
            killed = True
    finally:
        end_processes(child.pid, mark)
        child.wait()
        for reader in readers:
            reader.join(5.0)
        os.close(from_child)
        if keyboard is not None:
            os.close(keyboard)
        if child.stdout:
            child.stdout.close()
    after = os.times()
    cpu = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    outcome = outcome_of(bytes(written))
    return replace(
        outcome,
        exit_code=child.returncode,
        killed=killed,
        output=bytes(printed).decode("utf-8", "replace"),
        cpu_seconds=cpu,
        wall_seconds=time.monotonic() - started,
    )


_END_OF_INPUT = b"\x04" * 64
"""Who reads the terminal is told each time that nobody writes there."""


def _open_terminal() -> tuple[int | None, int | None]:
    """A terminal of 80 by 24 for programs that ask how wide theirs is; its keyboard has nobody."""
    try:
        keyboard, terminal = os.openpty()
    except OSError:  # a sandbox around us may have none
        return None, None
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.write(keyboard, _END_OF_INPUT)
    return keyboard, terminal


_PACKAGE_HOME = str(Path(__file__).resolve().parents[3])
_BOOT = (
    "import sys; sys.path.insert(0, {home!r}); "
    "from torchstone.dryrun.child import main; main(sys.argv[1:])"
)


def _command(interpreter: Interpreter) -> list[str]:
    """Another environment's packages, and what they run on their own, wait for the sandbox: -S."""
    if interpreter.executable:
        return [interpreter.executable, "-I", "-S", "-c", _BOOT.format(home=_PACKAGE_HOME)]
    return [sys.executable, "-P", "-m", "torchstone.dryrun.child"]


def outcome_of(written: bytes) -> Outcome:
    """What a child wrote, line by line: records of paths or of ranks, and what it did not reach."""
    records: list[Record] = []
    ranks: RanksRecord | None = None
    tried: tuple[str, ...] = ()
    for line in _lines(written):
        _raise_wrong(line)
        if "tried" in line:
            tried = tuple(map(str, line["tried"]))
        elif "world_size" in line:
            ranks = ranks or from_data(RanksRecord, line, "ranks")
        else:
            records.append(from_data(Record, line, "record"))
    if records:
        records[0] = _with_addresses(records[0], tried)
    if ranks is not None and ranks.record is not None:
        ranks = replace(ranks, record=_with_addresses(ranks.record, tried))
    return Outcome(tuple(records), ranks)


def _with_addresses(record: Record, tried: tuple[str, ...]) -> Record:
    return replace(record, addresses=tuple(dict.fromkeys((*record.addresses, *tried))))


def _raise_wrong(line: dict[str, Any]) -> None:
    """The child could not use what the user named: its error is raised here."""
    if "wrong" in line:
        where, given, expected, todo = line["wrong"]
        raise InputError(where, given, Text(**expected), Text(**todo))


def _limit(settings: ScriptSettings) -> float:
    """Seconds after which the process is killed."""
    passes = 3 if settings.play_ranks else 1  # ranks may be played again with other answers
    return passes * (settings.limit_seconds() + GRACE_SECONDS) + IMPORT_SECONDS


def _environment(mark: str) -> dict[str, str]:
    name, _, value = mark.partition("=")
    environment = {**os.environ, name: value, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.setdefault("HF_HUB_OFFLINE", "1")
    environment.setdefault("WANDB_MODE", "disabled")
    environment.setdefault("TQDM_DISABLE", "1")
    environment.setdefault("HYDRA_FULL_ERROR", "1")  # else it hides what the program raised
    return environment


def _reader(handle: int, into: bytearray, keep: int) -> threading.Thread:
    def read() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(handle, 1 << 16):
                into.extend(data)
                if keep and len(into) > 2 * keep:
                    del into[:-keep]

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _lines(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.splitlines():
        with contextlib.suppress(ValueError):
            yield json.loads(line.decode("utf-8", "surrogatepass"))


def end_processes(leader: int, mark: str) -> None:
    """End the session of the child and every process that carries its mark."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    wanted = mark.encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            if wanted in (entry / "environ").read_bytes() and int(entry.name) != os.getpid():
                os.kill(int(entry.name), signal.SIGKILL)
