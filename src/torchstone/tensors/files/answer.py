"""What the command `torchstone tensor FILE` answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torchstone.core.options import unknown
from torchstone.core.report import Report
from torchstone.tensors.analysis.analyze import analyze_source
from torchstone.tensors.files.open_file import open_tensors
from torchstone.tensors.files.stored import StoredTensor
from torchstone.tensors.files.survey import survey_checkpoint
from torchstone.tensors.formats import GRANULARITIES, find_formats
from torchstone.tensors.options import TensorOptions


def answer_for_file(
    options: TensorOptions, lang: str, progress: Callable[[int, int, str], None]
) -> Report:
    """One tensor in full, or all tensors of a checkpoint in a table."""
    entries = open_tensors(Path(options.file))
    if not options.name and len(entries) != 1:
        originals = open_tensors(Path(options.against)) if options.against else []
        return survey_checkpoint(entries, options.file, progress, originals)
    entry = _named(entries, options.name)
    found = analyze_source(
        entry.source(), entry.name, options.axis, find_formats(options.formats or None),
        options.granularity or GRANULARITIES, options.exact, lang,
    )  # fmt: skip
    return found.report


def _named(entries: list[StoredTensor], name: str) -> StoredTensor:
    """The tensor of this name, or the only one whose name holds it."""
    if len(entries) == 1 and not name:
        return entries[0]
    exact = [item for item in entries if item.name == name]
    close = exact or [item for item in entries if name in item.name]
    if len(close) != 1:
        raise unknown("--name", name, [item.name for item in close or entries])
    return close[0]
