"""Is this fp8 checkpoint all right? Stored codes are judged as what they are, beside their scales."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from torchstone.cli.main import run

E4M3 = torch.float8_e4m3fn


def matrix() -> torch.Tensor:
    return torch.randn(256, 256, generator=torch.Generator().manual_seed(0)) * 0.02


def quantised(scale: torch.Tensor) -> torch.Tensor:
    return (matrix() / scale).clamp(-448, 448).to(E4M3)


def scale_of(kind: str) -> torch.Tensor:
    wide = matrix().abs()
    if kind == "row":
        return wide.amax(1, keepdim=True) / 448
    return wide.max() / 448


@pytest.mark.parametrize(
    ("lang", "says"),
    [
        ("en", "2 of 2 stored matrices use their range well"),
        ("zh", "2 个已存储矩阵中有 2 个充分利用"),
    ],
)
def test_a_sound_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lang: str, says: str
) -> None:
    held = {}
    for kind in ("tensor", "row"):
        held[f"{kind}.weight"] = quantised(scale_of(kind))
        held[f"{kind}.weight_scale"] = scale_of(kind).float()
    torch.save(held, tmp_path / "model.pt")
    assert run(["tensor", str(tmp_path / "model.pt"), "--lang", lang]) == 0
    said = capsys.readouterr().out
    assert says in said.splitlines()[0]
    assert "Ready for fp8" not in said


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("unscaled", "of the stored values are zero"),
        ("clipped", "cut off"),
        ("nan", "1 NaN"),
        ("bad scale", "1 scales are not usable"),
    ],
)
def test_a_damaged_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str, says: str
) -> None:
    scale = scale_of("tensor")
    codes = quantised(scale)
    if damage == "unscaled":
        codes, scale = (matrix() / 100).to(E4M3), torch.tensor(1.0)
    elif damage == "clipped":
        codes = quantised(scale / 16)
    elif damage == "nan":
        codes.view(torch.uint8)[3, 3] = 0x7F
    else:
        scale = torch.zeros(1)
    torch.save({"a.weight": codes, "a.weight_scale_inv": scale}, tmp_path / "model.pt")
    assert run(["tensor", str(tmp_path / "model.pt"), "--lang", "en", "-v"]) == 1
    said = capsys.readouterr().out
    assert "Damaged fp8 checkpoint: 1 of 1 stored matrices lost values" in said.splitlines()[0]
    assert says in said


def test_a_matrix_without_a_scale_is_said_to_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = {name: quantised(scale_of("tensor")) for name in ("a.weight", "b.weight")}
    torch.save({**held, "b.weight_scale": scale_of("tensor")}, tmp_path / "model.pt")
    assert run(["tensor", str(tmp_path / "model.pt"), "--lang", "en"]) == 0
    assert "1 without a scale" in capsys.readouterr().out.splitlines()[0]
