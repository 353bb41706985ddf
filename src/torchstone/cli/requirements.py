"""What a command needs beside Torchstone itself: a missing package is one line, never a traceback."""

from __future__ import annotations

import importlib.util
from types import TracebackType

from torchstone.core.errors import UsageError
from torchstone.core.packages import OLDEST_TORCH, extra_for, installed_torch
from torchstone.core.text import Text

_EXTRAS = {"watch": "watch", "tensor": "tensors", "flow": "flow", "mcp": "mcp"}
"""Commands whose extra is not `torch`."""


class PackageError(UsageError):
    """A package that a command needs: one sentence with the command that brings it."""

    def __init__(self, command: str, needs: Text, todo: Text | str) -> None:
        self.needs = needs
        super().__init__(command, needs, needs, todo)

    def say(self, lang: str = "en") -> str:
        if lang == "zh":
            return f"{self.where} 需要{self.needs.zh}；{self.todo.zh}"
        return f"{self.where} needs {self.needs.en}; {self.todo.en}"


def needs_torch(command: str) -> None:
    """Raise the error that says how to get torch, when it is missing or too old."""
    wanted = ".".join(map(str, OLDEST_TORCH))
    if importlib.util.find_spec("torch") is None:
        needs = Text(
            f"torch {wanted} or newer, which is not installed",
            f" torch {wanted} 或更新版本，当前环境中没有安装",
        )
        raise PackageError(command, needs, f'pip install "torchstone[{_extra_of(command)}]"')
    found = installed_torch()
    if found is not None and found.numbers < OLDEST_TORCH:
        needs = Text(
            f"torch {wanted} or newer; {found.text} is installed",
            f" torch {wanted} 或更新版本，当前安装的是 {found.text}",
        )
        raise PackageError(command, needs, f'pip install "torch>={wanted}"')


def explain_failed_import(command: str, error: Exception) -> PackageError | None:
    """A package that is missing or cannot be loaded, in words; None when it is another error."""
    if _failed_in_torch(error.__traceback__):
        said = (str(error).splitlines() or [type(error).__name__])[0]
        needs = Text(f"torch, and importing it fails: {said}", f" torch，但导入 torch 失败：{said}")
        return PackageError(
            command, needs, Text("reinstall torch for this machine", "请为本机重新安装 torch")
        )
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    extra = extra_for(name, _extra_of(command))
    if not name or extra is None:
        return None
    needs = Text(f"{name}, which is not installed", f" {name}，当前环境中没有安装")
    return PackageError(command, needs, f'pip install "torchstone[{extra}]"')


def _extra_of(command: str) -> str:
    return _EXTRAS.get(command.partition(" ")[0], "torch")


def _failed_in_torch(trace: TracebackType | None) -> bool:
    """Was torch itself being imported when it happened?"""
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_globals.get("__name__") == "torch" and frame.f_code.co_name == "<module>":
            return True
        trace = trace.tb_next
    return False
