"""Made files, put where a program will look for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torchstone.starting.files.makers import make_bytes
from torchstone.starting.supplies import MadeFile, Supply


def write_files(supplies: Sequence[Supply], root: Path) -> None:
    """Made files below the folder in which the program's own view of its files is kept."""
    for supply in supplies:
        if isinstance(supply, MadeFile):
            target = root / supply.path.lstrip("/")
            if ".." in target.parts:
                continue
            if supply.form == "folder":
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(make_bytes(supply.form, supply.content))
