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


def nibbles(codes: torch.Tensor) -> torch.Tensor:
    """Two codes in a byte, the low half first."""
    pairs = codes.reshape(*codes.shape[:-1], -1, 2)
    return (pairs[..., 0] | (pairs[..., 1] << 4)).to(torch.uint8)


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def e2m1(values: torch.Tensor) -> torch.Tensor:
    nearest = (values.abs().unsqueeze(-1) - E2M1).abs().argmin(-1)
    return (nearest + 8 * (values < 0)).to(torch.uint8)


def in_groups(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    groups = matrix().reshape(-1, size)
    return groups, groups.abs().amax(1, keepdim=True)


def stored(kind: str) -> dict[str, torch.Tensor]:
    """The same matrix as each of the common writers stores it."""
    if kind == "int8":
        scale = matrix().abs().amax(1, keepdim=True) / 127
        return {"a.weight": (matrix() / scale).round().to(torch.int8), "a.weight_scale": scale}
    if kind == "bitsandbytes int8":
        largest = matrix().abs().amax(1)
        codes = (matrix() / largest[:, None] * 127).round().to(torch.int8)
        return {"a.weight": codes, "a.SCB": largest}
    if kind == "fp8 blocks":
        tiles = matrix().reshape(2, 128, 2, 128)
        scale = tiles.abs().amax((1, 3)) / 448
        return {"a.weight": (tiles / scale[:, None, :, None]).reshape(256, 256).to(E4M3), "a.weight_scale_inv": scale}  # fmt: skip
    if kind == "mxfp4":
        groups, largest = in_groups(32)
        exponent = torch.floor(torch.log2(largest)) - 2
        codes = nibbles(e2m1(groups / torch.exp2(exponent)))
        return {"a.weight_blocks": codes.reshape(256, 128), "a.weight_scales": (exponent + 127).to(torch.uint8).reshape(256, 8)}  # fmt: skip
    if kind == "nvfp4":
        groups, largest = in_groups(16)
        outer = largest.max() / 6 / 448
        inner = (largest / 6 / outer).to(E4M3)
        codes = nibbles(e2m1(groups / (inner.float() * outer)))
        return {"a.weight": codes.reshape(256, 128), "a.weight_scale": inner.reshape(256, 16), "a.weight_scale_2": outer}  # fmt: skip
    assert kind in ("gptq", "awq")
    weight = matrix().T.reshape(2, 128, 256)  # groups of inputs, outputs
    low, high = weight.amin(1, keepdim=True), weight.amax(1, keepdim=True)
    scale = (high - low) / 15
    zero = (-low / scale).round()
    codes = ((weight / scale).round() + zero).clamp(0, 15).reshape(256, 256).int()
    order = (0, 2, 4, 6, 1, 3, 5, 7) if kind == "awq" else tuple(range(8))

    def words(values: torch.Tensor, axis: int) -> torch.Tensor:
        parts = values.int().unflatten(axis, (-1, 8)).unbind(axis + 1)
        return sum(part << (4 * order.index(place)) for place, part in enumerate(parts))

    stored_zero = zero[:, 0] - int(kind == "gptq")
    made = {"a.qweight": words(codes, 1 if kind == "awq" else 0), "a.qzeros": words(stored_zero, 1), "a.scales": scale[:, 0].half()}  # fmt: skip
    return {**made, "a.g_idx": torch.arange(256) // 128} if kind == "gptq" else made


KINDS = ("int8", "bitsandbytes int8", "fp8 blocks", "mxfp4", "nvfp4", "gptq", "awq")


@pytest.mark.parametrize("kind", KINDS)
def test_codes_are_paired_with_their_scales_and_compared(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"a.weight": matrix(), "other": torch.ones(3)}, tmp_path / "before.pt")
    torch.save({**stored(kind), "other": torch.ones(3)}, tmp_path / "model.pt")
    words = ["tensor", str(tmp_path / "model.pt"), "--against", str(tmp_path / "before.pt")]
    assert run([*words, "--lang", "en"]) == 0
    said = capsys.readouterr().out
    assert "1 of 1 stored matrices use their range well" in said.splitlines()[0]
    [line] = [line for line in said.splitlines() if "the worst of 1" in line]
    found = float(line.split("original")[1].split()[0])
    assert found > (28 if kind in KINDS[:3] else 15)


@pytest.mark.parametrize("kind", KINDS)
def test_other_weights_than_the_original(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"a.weight": matrix().flip(0), "other": torch.ones(3)}, tmp_path / "before.pt")
    torch.save({**stored(kind), "other": torch.ones(3)}, tmp_path / "model.pt")
    words = ["tensor", str(tmp_path / "model.pt"), "--against", str(tmp_path / "before.pt")]
    assert run([*words, "--lang", "en", "-v"]) == 1
    said = capsys.readouterr().out
    assert "1 of 1 stored matrices lost values" in said.splitlines()[0]
    assert "more than the format explains" in said


def test_blocks_of_a_gguf_file_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(str(tmp_path / "model.gguf"), "llama")
    kind = gguf.GGMLQuantizationType.Q8_0
    for name in ("a.weight", "b.weight"):
        codes = gguf.quants.quantize(matrix().numpy() * (name == "a.weight"), kind)
        writer.add_tensor(name, codes, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    torch.save({"a.weight": matrix(), "b.weight": matrix()}, tmp_path / "before.pt")
    words = ["tensor", str(tmp_path / "model.gguf"), "--against", str(tmp_path / "before.pt")]
    assert run([*words, "--lang", "en"]) == 1
    said = capsys.readouterr().out
    assert "Damaged Q8_0 checkpoint: 1 of 2 stored matrices lost values" in said.splitlines()[0]
    assert "b.weight: 100.0% of the stored values are zero" in said
