"""Scales and granularities against torchao and torch's own fake quantisation."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import torch

from torchstone.tensors.formats import all_formats, quantize

FORMATS = all_formats()
TORCHAO_VALUES = Path(__file__).parents[2] / "data" / "torchao.npz"
"""Written by scripts/store_torchao_values.py: torchao has an environment of its own."""
TORCHAO_ELEMENTS = {
    "mxfp8": torch.float8_e4m3fn,
    "mxfp8-e5m2": torch.float8_e5m2,
    "mxfp4": torch.float4_e2m1fn_x2,
}


def sample(rows: int = 64, columns: int = 256, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    spread = torch.exp2(torch.randint(-20, 20, (rows, columns // 32), generator=generator).float())
    return torch.randn(rows, columns, generator=generator) * spread.repeat_interleave(32, dim=1)


def stored(name: str) -> torch.Tensor:
    """What torchao made of the sample; the sample itself must still be the same."""
    with numpy.load(TORCHAO_VALUES) as values:
        assert numpy.array_equal(values["sample"], sample().numpy())
        return torch.from_numpy(values[name])


@pytest.mark.parametrize("mode", ["floor", "rceil"])
@pytest.mark.parametrize("name", list(TORCHAO_ELEMENTS))
def test_mx_equals_torchao(name: str, mode: str) -> None:
    x = sample()
    wanted = stored(f"{name}-{mode}")
    assert torch.equal(quantize(x, FORMATS[name], scale=mode).values, wanted)


def test_nvfp4_equals_torchao() -> None:
    x = sample(seed=1)
    wanted = stored("nvfp4")
    found = quantize(x, FORMATS["nvfp4"]).values
    assert torch.allclose(found, wanted, rtol=1e-6, atol=0)


@pytest.mark.parametrize("granularity", ["tensor", "row", "column"])
def test_int8_equals_fake_quantize(granularity: str) -> None:
    x = sample(seed=2)
    found = quantize(x, FORMATS["int8"], granularity).values
    if granularity == "tensor":
        scale = float(x.abs().max() / 127)
        wanted = torch.fake_quantize_per_tensor_affine(x, scale, 0, -127, 127)
    else:
        axis = 0 if granularity == "row" else 1
        scales = x.abs().amax(dim=1 - axis) / 127
        zeros = torch.zeros_like(scales, dtype=torch.int32)
        wanted = torch.fake_quantize_per_channel_affine(x, scales, zeros, axis, -127, 127)
    assert torch.allclose(found, wanted, rtol=1e-6, atol=0)


@pytest.mark.parametrize("granularity", ["row", "column", "128x128", "1x128", "block32", "block16"])
def test_a_tile_knows_only_itself(granularity: str) -> None:
    """Values outside a tile do not change what the tile becomes; sizes need not divide."""
    x = sample(200, 320, seed=3)[:, :300]
    whole = quantize(x, FORMATS["int8"], granularity).values
    changed = x.clone()
    changed[-1, -1] = 1e9  # in the last tile of every granularity
    other = quantize(changed, FORMATS["int8"], granularity).values
    assert torch.equal(whole[0, :128], other[0, :128])
    assert not torch.equal(whole[-1], other[-1])


def test_a_nan_takes_its_block_with_it_and_an_infinity_does_not() -> None:
    x = torch.ones(1, 64)
    x[0, 3], x[0, 40] = torch.nan, torch.inf
    found = quantize(x, FORMATS["mxfp8"]).values
    assert found[0, :32].isnan().all()
    assert found[0, 40].isinf()
    assert found[0, 32:40].isfinite().all()


@pytest.mark.parametrize("name", list(FORMATS))
def test_empty_zero_and_tiny_inputs(name: str) -> None:
    for x in (torch.zeros(0, 1), torch.zeros(3, 5), torch.full((2, 40), 1e-42)):
        found = quantize(x, FORMATS[name]).values
        assert found.shape == x.shape
        assert found.isfinite().all()
