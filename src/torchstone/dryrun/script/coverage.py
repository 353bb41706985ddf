"""Which parts of a training program its source has, and which of them were run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from torchstone.dryrun.session import Counts
from torchstone.observe.where import PROGRAM

_SIGNS = {
    "evaluation": re.compile(r"\.eval\(\)|no_grad\(|inference_mode\("),
    "saving": re.compile(r"torch\.save\(|\.save_pretrained\(|\.save_state\(|save_checkpoint\("),
}
"""What a program with such a part calls somewhere."""
_LARGEST = 1 << 20
"""Bytes of a source file that is looked at: nobody writes a longer one by hand."""


def unreached_parts(script: str, counts: Counts) -> tuple[str, ...]:
    """Parts that stand in the program's own files and were not run when it was stopped."""
    missing = {
        name
        for name, count in (("evaluation", counts.evaluation_forwards), ("saving", counts.saves))
        if not count
    }
    text = "".join(_own_sources(script)) if missing else ""
    return tuple(name for name, sign in _SIGNS.items() if name in missing and sign.search(text))


def _own_sources(script: str) -> list[str]:
    loaded = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    files = {script, *(file for file in loaded if isinstance(file, str) and PROGRAM.is_own(file))}
    found = []
    for file in sorted(files):
        path = Path(file)
        try:
            if path.suffix == ".py" and path.stat().st_size <= _LARGEST:
                found.append(path.read_text("utf-8", "replace"))
        except OSError:  # it may be gone by now
            continue
    return found
