"""The user's program in a process of its own, which is gone when this returns."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import struct
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.dryrun.ranks_record import RanksRecord
from torchstone.dryrun.record import Record
from torchstone.dryrun.settings import WALL_FACTOR, ScriptSettings
from torchstone.sandbox.fork_server import Order
from torchstone.sandbox.forks import EXECUTE, PACKAGE_HOME
from torchstone.sandbox.forks import start as start_process
from torchstone.starting.files.writing import write_files
from torchstone.starting.supplies import Supply

GRACE_SECONDS = 10.0
"""The program ends itself at its limit; code that never comes back to Python is killed later."""
IMPORT_SECONDS = 30.0
"""Importing torch and transformers on a busy machine, before the limit counts."""
TAIL_BYTES = 64 * 1024


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
    to_child, our_end = os.pipe()
    from_child, their_end = os.pipe()
    spoken, speaker = os.pipe()
    keyboard, terminal = _open_terminal()
    started = time.monotonic()
    environment = _environment()
    running = start_process(
        _order(settings, environment), environment, terminal, speaker, (to_child, their_end)
    )  # fmt: skip
    for handle in (to_child, their_end, speaker, terminal):
        os.close(handle)
    printed, written = bytearray(), bytearray()
    readers = [_reader(spoken, printed, TAIL_BYTES), _reader(from_child, written, 0)]
    ended = None
    try:
        with contextlib.suppress(BrokenPipeError), os.fdopen(our_end, "wb") as pipe:
            pipe.write(json.dumps(to_data(settings)).encode())
        ended = running.wait(_limit(settings))
    finally:
        last = running.end()
        for reader in readers:
            reader.join(5.0)
        for handle in (from_child, spoken, keyboard):
            os.close(handle)
    return replace(
        outcome_of(bytes(written)),
        exit_code=last.code,
        killed=ended is None,
        output=bytes(printed).decode("utf-8", "replace"),
        cpu_seconds=last.cpu_seconds,
        wall_seconds=time.monotonic() - started,
    )


_END_OF_INPUT = b"\x04" * 64
"""Who reads the terminal is told each time that nobody writes there."""


def _open_terminal() -> tuple[int, int]:
    """A terminal of 80 by 24 for programs that ask how wide theirs is; its keyboard has nobody."""
    try:
        keyboard, terminal = os.openpty()
    except OSError:  # a sandbox around us may have none
        return os.open(os.devnull, os.O_RDWR), os.open(os.devnull, os.O_RDWR)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.write(keyboard, _END_OF_INPUT)
    return keyboard, terminal


_BOOT = (
    "import sys; sys.path.insert(0, {home!r}); "
    "from torchstone.dryrun.child import main; main(sys.argv[1:])"
)
_LOADED = ("torch._dynamo", "torchstone.dryrun.child", "torchstone.dryrun.world")
"""Fake tensors load torch._dynamo, whatever the program uses."""
_FOR_RANKS = ("torch.distributed", "torchstone.dryrun.ranks.tell")


def _order(settings: ScriptSettings, environment: dict[str, str]) -> Order:
    """Another environment's packages, and what they run on their own, wait for the sandbox: -S."""
    here = os.getcwd()
    executable = settings.interpreter.executable
    if executable:
        boot = _BOOT.format(home=str(PACKAGE_HOME))
        return Order(EXECUTE, (executable, "-I", "-S", "-c", boot), environment, here)
    loaded = (*_LOADED, *(_FOR_RANKS if settings.play_ranks else ()))
    return Order("torchstone.dryrun.child:main", (), environment, here, loaded)


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
    return passes * (WALL_FACTOR * settings.limit_seconds() + GRACE_SECONDS) + IMPORT_SECONDS


def _environment() -> dict[str, str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
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
