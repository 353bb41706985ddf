"""Run an outside tool on paths: bounded in time, its output never trusted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from torchstone.core.finding import Location
from torchstone.core.gap import Gap
from torchstone.core.text import Message, Text

_SECONDS = 600


def program(name: str) -> list[str] | None:
    """How to call a tool: the one beside this Python first, then the one on the PATH."""
    beside = Path(sys.executable).parent / name
    if beside.exists():
        return [str(beside)]
    found = shutil.which(name)
    return [found] if found else None


def missing(name: str) -> Gap:
    """A tool that is not there leaves the exit code alone."""
    reason = Text(f"{name} is not installed", f"未安装 {name}")
    return Gap(name, Message("outside.missing", reason), f"pip install {name}", tool=name)


def failed(name: str, why: str, command: str) -> Gap:
    """A tool that was started and broke: part of the work failed."""
    reason = Text(f"{name} failed: {why}", f"{name} 运行失败：{why}")
    return Gap(name, Message("outside.failed", reason), command, Location(), failed=True, tool=name)


def run(command: list[str]) -> tuple[int, str, str]:
    """Exit code, stdout, stderr; a time-out is an exit code of -1."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, "", f"no answer within {_SECONDS} s"
    except OSError as error:
        return -1, "", error.strerror or str(error)
    return done.returncode, done.stdout, done.stderr
