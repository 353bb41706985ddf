"""`torchstone undo [PATH]`: take back what `review --apply` changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchstone.cli.common import CommonOptions
from torchstone.core.options import option
from torchstone.core.text import Text

HELP = Text(en="take back what review --apply changed", zh="撤销 review --apply 的修改")
READS_CONFIG = False


@dataclass(frozen=True, slots=True)
class UndoOptions:
    """Which project is restored."""

    path: str = option(
        ".", "the project that was reviewed", "当时评审的项目", positional=True, config=False,
        metavar="PATH",
    )  # fmt: skip


OPTIONS = UndoOptions


def run(options: UndoOptions, common: CommonOptions) -> int:
    from torchstone.conductor.records.state import undo

    for path in undo(Path(options.path)):
        if not common.quiet:
            print(("已恢复 " if common.lang == "zh" else "restored ") + path)
    return 0
