"""Run a command on a folder so that it can change nothing else, see no secrets, reach nobody."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from torchstone.sandbox import fork_server
from torchstone.sandbox.cell import NOBODY, available, is_system_root
from torchstone.sandbox.forks import Ended, Running
from torchstone.sandbox.forks import start as start_process
from torchstone.sandbox.launcher import Order
from torchstone.sandbox.namespaces import process_namespaces

_LAUNCH = "torchstone.sandbox.launcher:main"
_SETTINGS = {
    "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1",
    "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1", "WANDB_MODE": "disabled", "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false", "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip
"""Of every command, also while its libraries are loaded."""
_OUTPUT_BYTES = 256 * 1024
"""The end of what a command printed: a test run of some thousand tests fits."""
_DISK_BYTES = 8 << 30
"""All files of a command together: copies of a project, checkpoints of small models."""
_LOOK_SECONDS = 2.0
_MEMORY_BYTES = 64 << 30
"""Address space, of which torch reserves far more than it uses."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended."""

    exit_code: int
    late: bool
    """It was ended because its time was up."""
    output: str
    """The end of what it printed."""
    seconds: float
    cpu_seconds: float

    @property
    def well(self) -> bool:
        return self.exit_code == 0 and not self.late


def walls() -> dict[str, str]:
    """What holds a command on this system, by wall; "none" where nothing does."""
    own = bool(process_namespaces())
    found = available()
    return {
        "files": found["files"],
        "calls": found["calls"],
        "network": "own network namespace" if own else _network_without_namespace(found["calls"]),
    }


def _network_without_namespace(calls: str) -> str:
    return "no sockets (seccomp)" if calls != "none" else "none"


@functools.cache
def is_confined() -> bool:
    """Whether every wall holds here."""
    return all(wall != "none" for wall in walls().values())


@dataclass(frozen=True, slots=True)
class Call:
    """A function of ours in the place of a program: its libraries are loaded once for many calls."""

    main: str
    """`package.module:function`, which is given the words."""
    words: tuple[str, ...]
    preload: tuple[str, ...] = ()


def run_confined(
    command: Sequence[str] | Call,
    folder: Path,
    *,
    start: Path | None = None,
    seconds: float,
    readable: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Run a command in `folder`, the one place that it may change, until it ends or time is up.

    It reads the system, Python, installed packages, `folder` and `readable`. Processes that it
    leaves behind are ended.
    """
    is_call = isinstance(command, Call)
    words = (command.main, *command.words) if isinstance(command, Call) else tuple(command)
    order = Order(
        words, is_call, str(folder), str(start or folder), tuple(map(str, readable)),
        clean_environment(folder) | dict(environment or {}), seconds, _MEMORY_BYTES,
        bool(process_namespaces()),
    )  # fmt: skip
    preload = command.preload if isinstance(command, Call) else ()
    with tempfile.TemporaryFile() as printed, open(os.devnull, "rb") as nothing:
        started = time.monotonic()
        running = start_process(
            fork_server.Order(_LAUNCH, (json.dumps(asdict(order)),), {}, str(folder), preload),
            _SETTINGS,
            nothing.fileno(),
            printed.fileno(),
        )
        _RUNNING.add(running)
        try:
            ended, late = _wait(running, folder, printed.fileno(), seconds)
        finally:
            running.end()
            _RUNNING.discard(running)
        size = printed.seek(0, os.SEEK_END)
        printed.seek(max(0, size - _OUTPUT_BYTES))
        output = printed.read().decode("utf-8", "replace")
    return Finished(ended.code, late, output, time.monotonic() - started, ended.cpu_seconds)


def _wait(running: Running, folder: Path, out: int, seconds: float) -> tuple[Ended, bool]:
    """Until it ends, its time is up, or it has filled the disk."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        ended = running.wait(min(left, _LOOK_SECONDS))
        if ended is not None:
            return ended, False
        if _used_bytes(folder) > _DISK_BYTES:
            os.write(out, b"\nended: it wrote more than it may\n")
            return replace(running.end(), code=-signal.SIGXFSZ), False
    return replace(running.end(), code=-signal.SIGKILL), True


def _used_bytes(folder: Path) -> int:
    """All files below a folder; links are not followed."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
    return total


_RUNNING: set[Running] = set()


def end_all() -> None:
    """End every command that is running: an interrupt does not wait for them."""
    for running in tuple(_RUNNING):
        running.end()


def clean_environment(folder: Path) -> dict[str, str]:
    """Nothing of the user's: no keys, no settings; nothing asks for the network."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    give_to_nobody(home, temporary)
    return _SETTINGS | {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home), "USER": "nobody", "TMPDIR": str(temporary),
    }  # fmt: skip


def give_to_nobody(*folders: Path) -> None:
    """Where root starts a command it runs as nobody: these folders become that user's."""
    if not is_system_root():
        return
    for folder in folders:
        os.chown(folder, NOBODY, NOBODY, follow_symlinks=False)
        for place, names, files in os.walk(folder):
            for name in (*names, *files):
                os.chown(os.path.join(place, name), NOBODY, NOBODY, follow_symlinks=False)
