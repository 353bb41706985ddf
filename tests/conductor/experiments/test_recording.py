"""How a recorded run ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_RECORD = """
import sys
from pathlib import Path
from torchstone.conductor.experiments.recording.session import Start, record
run, _ = record(Start(Path(sys.argv[1]).resolve(), "train.py"), 0.2)
print(type(run.obstacle).__name__, "|", run.ended, "|", run.autocast)
"""
_NO_STEP = "while True:\n    pass\n"
_AUTOCAST = """
import torch
from torch.amp import autocast
with autocast(device_type="cpu", cache_enabled=False, enabled=False):
    pass
"""
_SWITCHED_ON = _AUTOCAST.replace("enabled=False):", "enabled=True):")
_OURS = "from torchstone.observe.where import kind_of_file\nkind_of_file(None)\n"
"""As a hook of ours would fail that gets what it does not expect."""


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (_NO_STEP, "NoTime | time | False"),
        (_AUTOCAST, "NoneType |  | False"),
        (_SWITCHED_ON, "NoneType |  | True"),
    ],
    ids=["no step in time", "autocast off", "autocast on"],
)
def test_how_it_ended(source: str, said: str, tmp_path: Path) -> None:
    assert ending_of(source, tmp_path) == said


def test_a_fault_of_ours_is_called_so(tmp_path: Path) -> None:
    assert "a fault of Torchstone, not of the script: AttributeError" in ending_of(_OURS, tmp_path)


def ending_of(source: str, folder: Path) -> str:
    (folder / "train.py").write_text(source)
    command = [sys.executable, "-c", _RECORD, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()
