"""One file as text: decoded, with its notebook cells if it has any."""

from __future__ import annotations

import bisect
import codecs
import errno
import re
from dataclasses import dataclass
from pathlib import Path

from torchstone.core.files import read_regular
from torchstone.core.finding import Location
from torchstone.core.gap import Gap
from torchstone.core.lines import split_lines
from torchstone.core.text import Message, Text

MAX_BYTES = 16 * 1024 * 1024

_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


@dataclass(frozen=True)
class Source:
    """The text of a file under the name that reports use."""

    path: str
    text: str
    cell_starts: tuple[int, ...] = ()
    """First line (in `text`) of each code cell of a notebook."""
    cell_numbers: tuple[int, ...] = ()
    """The place of each of these cells among all cells of the notebook, from 1."""

    def place(self, line: int) -> tuple[int, int]:
        """(cell, line within the cell); (0, line) outside notebooks."""
        if not self.cell_starts:
            return 0, line
        index = max(bisect.bisect_right(self.cell_starts, line) - 1, 0)
        return self.cell_numbers[index], line - self.cell_starts[index] + 1

    def lines(self) -> list[str]:
        return [line.rstrip("\r\n") for line in split_lines(self.text)]


def gap(path: str, id: str, en: str, zh: str, close: str, line: int = 0, cell: int = 0) -> Gap:
    """A file, or a part of one, that could not be read: started work that failed."""
    return Gap(path, Message(id, Text(en, zh)), close, Location(path, line, cell=cell), failed=True)


def read_bytes(path: Path, name: str) -> bytes | Gap:
    """The bytes of a file, or why they cannot be had."""
    try:
        return read_regular(path, MAX_BYTES)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        close = "split the file, or leave it out with --exclude"
        large = error.errno == errno.EFBIG
        return gap(
            name,
            "source.too-large" if large else "source.unreadable",
            f"cannot be read: {reason}",
            f"无法读取：{reason}",
            close if large else f"ls -l {name}",
        )


def decode(data: bytes, name: str) -> str | Gap:
    """The text of Python source by its own declared encoding (UTF-8 without one)."""
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        return gap(
            name,
            "source.null-bytes",
            f"line {line} holds a null byte: no Python source",
            f"第 {line} 行含有空字节：不是 Python 源码",
            f"file {name}",
            line=line,
        )
    try:
        if data.startswith(codecs.BOM_UTF8) or any(map(_CODING.match, data.split(b"\n", 2)[:2])):
            import io  # few files declare an encoding
            import tokenize

            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            return data.decode(encoding)
        return data.decode("utf-8")
    except (SyntaxError, LookupError) as error:
        reason = str(error)
    except UnicodeDecodeError as error:
        reason = f"byte {error.object[error.start]:#04x} at offset {error.start}"
    except UnicodeError as error:
        reason = str(error)
    return gap(
        name,
        "source.encoding",
        f"not in the encoding it declares ({reason})",
        f"与其声明的编码不符（{reason}）",
        f"iconv -t utf-8 {name}",
    )
