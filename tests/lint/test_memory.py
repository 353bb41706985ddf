"""Files are let go of without the collector, which is off while they are read."""

from __future__ import annotations

import ast
import gc
import re
from pathlib import Path

import pytest

from torchstone import lint, sources
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions
from torchstone.sources import kept
from torchstone.sources.scene import Scene

_FILES = 40
_TRAINING = """\
import torch
from part_{before} import fit as before

def fit(model, loader, optimizer, rank):
    losses = []
    for x, y in loader:
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if rank == 0:
        before(model, loader, optimizer, rank)
        torch.distributed.barrier()
"""


def _functions() -> int:
    """How many functions of syntax trees are in memory."""
    return sum(type(item) is ast.FunctionDef for item in gc.get_objects())


def test_files_that_are_no_longer_kept_are_freed_without_the_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(_FILES):
        text = _TRAINING.format(before=max(number - 1, 0))
        (tmp_path / f"part_{number}.py").write_text(text)
    gc.collect()
    at_first, most, made = _functions(), 0, 0
    start = Scene.__init__

    def counted(self: Scene, *args: object) -> None:
        nonlocal most, made
        start(self, *args)  # type: ignore[arg-type]
        for function in self.all(ast.FunctionDef):
            self.inside(function)
        made += 1
        if made % 8 == 0:  # to count takes long beside much else in memory
            most = max(most, _functions() - at_first)

    monkeypatch.setattr(Scene, "__init__", counted)
    for limit in ("_ASKED_FOR", "_ONLY_READ"):
        monkeypatch.setattr(kept, limit, len(_TRAINING) * 3)
    gc.disable()
    try:
        report = check(CheckOptions(paths=(str(tmp_path),), no_cache=True))
        left = _functions() - at_first
    finally:
        gc.enable()
    assert report.findings
    assert most < _FILES / 2, "trees that are no longer kept live on"
    assert left == 0, "trees outlive the check"


_KEY = re.compile(r'cache(?:\.get\(|\.setdefault\(|\[)\(?"([^"]+)"')


def test_no_two_modules_keep_answers_under_one_name() -> None:
    homes: dict[str, set[str]] = {}
    for folder in (Path(lint.__file__).parent, Path(sources.__file__).parent):
        for file in folder.rglob("*.py"):
            for key in _KEY.findall(file.read_text("utf-8")):
                homes.setdefault(key, set()).add(file.name)
    assert len(homes) > 50
    assert {key: files for key, files in homes.items() if len(files) > 1} == {}
