"""An answer goes to the terminal or to a file, in the reader's language and format."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from torchstone.cli.common import ENDINGS, CommonOptions
from torchstone.core.files import write_atomically
from torchstone.core.options import unknown
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.render import render

LONG = 30
_WITH_COMMAND = ("html", "json", "text")
"""Formats that are kept, and so say how they were made."""
CHECKING = Text("checking", "检查中")


def use_colour(choice: str) -> bool:
    """NO_COLOR and FORCE_COLOR are honoured; a pipe gets none."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def terminal_width(options: CommonOptions) -> int:
    """Columns to stay within: COLUMNS where it is set, else the terminal's; 0 for a file or a pipe,
    whose readers break lines themselves."""
    if options.output:
        return 0
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) >= _NARROWEST:
        return int(asked)
    return os.get_terminal_size().columns if sys.stdout.isatty() else 0


_NARROWEST = 20
"""Columns below which no line could be broken sensibly."""


def only(options: CommonOptions, *formats: str) -> None:
    """Refuse a format that a command does not have, rather than answer in another."""
    wanted = options.format or {".html": "html", ".sarif": "sarif"}.get(Path(options.output).suffix)
    if wanted and wanted not in formats:
        raise unknown("--format", wanted, list(formats))


def format_for(report: Report, options: CommonOptions) -> str:
    """The format asked for; else by the file's ending, else text, shortened when it is long."""
    if options.format:
        return options.format
    ending = Path(options.output).suffix
    if ending in ENDINGS:
        return ENDINGS[ending]
    return "concise" if len(report.findings) > LONG else "text"


def show(report: Report, options: CommonOptions) -> None:
    """Print the report, or write it whole to the file that was named."""
    form = format_for(report, options)
    if form in _WITH_COMMAND:
        report = replace(report, command=options.command, date=options.date)
    text = render(
        report,
        form,
        lang=options.lang,
        colour=not options.output and use_colour(options.colour),
        width=terminal_width(options),
        detail=0 if options.quiet else 2 if options.verbose else 1,
        budget=options.budget,
        folder=os.getcwd() if form == "html" else "",
    )
    put(text, options)


def put(text: str, options: CommonOptions) -> None:
    if options.output:
        write_atomically(Path(options.output), text)
        if not options.quiet:
            word = "已写入" if options.lang == "zh" else "wrote"
            print(f"{word} {options.output}", file=sys.stderr)
        return
    stream = sys.stdout
    try:
        stream.write(text)
    except UnicodeEncodeError:
        stream.flush()
        stream.buffer.write(text.encode(stream.encoding or "ascii", "backslashreplace"))
    stream.flush()


class Progress:
    """A line on stderr, only on a terminal, only after a second."""

    def __init__(self, lang: str, quiet: bool, word: Text = CHECKING) -> None:
        self._word = word.get(lang)
        self._on = sys.stderr.isatty() and not quiet
        self._start = time.monotonic()
        self._last = 0.0
        self._shown = False

    def __call__(self, done: int, total: int, name: str) -> None:
        if not self._on:
            return
        now = time.monotonic()
        if now - self._start < 1 or now - self._last < 0.1:
            return
        self._last, self._shown = now, True
        line = f"{self._word} {done}/{total} {name}"
        sys.stderr.write("\r\x1b[K" + (line if len(line) < 78 else line[:77] + "…"))
        sys.stderr.flush()

    def end(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
