"""What a watch says, through `logging`: shown on stderr even when no logging was set up."""

from __future__ import annotations

import logging
import sys

LOGGER = logging.getLogger("torchstone.watch")


class _Shown(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes bare lines to the stderr of the moment, so that a captured stderr sees them too."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if logging.getLogger().handlers:
            return  # the user has set up logging since, and shows it
        self.stream = sys.stderr
        super().emit(record)


def show_log_lines() -> None:
    """Attach the tool's own handler once, unless the user has set up logging for it."""
    if LOGGER.level == logging.NOTSET:
        LOGGER.setLevel(logging.INFO)
    if not LOGGER.handlers and not logging.getLogger().handlers:
        LOGGER.addHandler(_Shown())


def log_line(line: str, level: int = logging.INFO) -> None:
    """One line of the monitor."""
    LOGGER.log(level, "%s", line)
