"""Files that would take hours or fill the memory are refused before they are looked at."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from torchstone.core.errors import InputError
from torchstone.tensors.files import npz, stored
from torchstone.tensors.files.open_file import open_tensors


def test_a_member_that_was_packed_a_hundred_times_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npz, "_UNPACKED", 1 << 16)
    np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros(1 << 18, np.float32))
    with pytest.raises(InputError, match="packed into"):
        open_tensors(tmp_path / "bomb.npz")
    np.savez_compressed(tmp_path / "plain.npz", a=np.arange(1 << 15, dtype=np.float32))
    assert len(open_tensors(tmp_path / "plain.npz")) == 1


def test_tensors_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_MOST_TENSORS", 20)
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"t{place}": empty for place in range(21)}).encode()
    path = tmp_path / "many.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(InputError, match="21 tensors, expected at most 20"):
        open_tensors(path)
    torch.save({f"t{place}": torch.zeros(0) for place in range(21)}, tmp_path / "many.pt")
    with pytest.raises(InputError, match="21 tensors"):
        open_tensors(tmp_path / "many.pt")
