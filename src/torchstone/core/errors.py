"""Errors that state four facts: where, what was given, what was expected, what to do.

TorchstoneError            the user's mistake or a broken input: no traceback, exit 2
├── UsageError             wrong flags or arguments
├── ConfigError            a configuration file that cannot be used
└── InputError             a path, file or document that cannot be used
"""

from __future__ import annotations

import errno

from torchstone.core.text import Text


class TorchstoneError(Exception):
    """A mistake that the user can fix; shown as one line, never as a traceback."""

    def __init__(
        self, where: str, given: Text | str, expected: Text | str, todo: Text | str
    ) -> None:
        self.where = where
        self.given = given.en if isinstance(given, Text) else given
        self.given_zh = given.zh if isinstance(given, Text) else given
        self.expected = expected if isinstance(expected, Text) else Text(expected, expected)
        self.todo = todo if isinstance(todo, Text) else Text(todo, todo)
        super().__init__(self.say("en"))

    def say(self, lang: str = "en") -> str:
        if not self.expected.en:  # what was given says it all: "unknown name 'x'"
            if lang == "zh":
                return f"{self.where}：{self.given_zh}；{self.todo.zh}"
            return f"{self.where}: {self.given}; {self.todo.en}"
        if lang == "zh":
            given, expected = _apart(self.given_zh), _apart(self.expected.zh)
            return f"{self.where}：得到{given}，应为{expected}；{self.todo.zh}"
        return f"{self.where}: got {self.given}, expected {self.expected.en}; {self.todo.en}"


def _apart(text: str) -> str:
    """What follows Chinese: other letters stand apart, Chinese ones do not."""
    return text if text[:1] > "\u2e7f" else f" {text}"


_SYSTEM = {
    errno.ENOENT: "文件或文件夹不存在",
    errno.EACCES: "没有权限",
    errno.EPERM: "不允许该操作",
    errno.EISDIR: "这是文件夹",
    errno.ENOTDIR: "路径中有一部分不是文件夹",
    errno.EEXIST: "已经存在",
    errno.ENOSPC: "磁盘空间不足",
    errno.EROFS: "文件系统只读",
    errno.EFBIG: "文件过大",
    errno.ENAMETOOLONG: "名称过长",
    errno.ELOOP: "符号链接层数过多",
}


def system_said(error: OSError) -> Text:
    """What the system said of a file, in both languages."""
    said = error.strerror or type(error).__name__
    return Text(said, _SYSTEM.get(error.errno or 0, said))


class UsageError(TorchstoneError):
    """Wrong flags or arguments on the command line or in a call."""


class ConfigError(TorchstoneError):
    """A configuration file that cannot be used."""


class InputError(TorchstoneError):
    """A path, file or document that cannot be used."""
