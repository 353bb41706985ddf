"""Writes what torchao makes of the samples of tests/tensors/formats/test_quantize.py to tests/data/torchao.npz.

Run it in an environment beside the main one, because importing torchao changes what transformers prints:

    $(python scripts/side_environment.py .venv-torchao --no-deps torchao) scripts/store_torchao_values.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy
import torch
from torchao.prototype.mx_formats.mx_tensor import MXTensor, ScaleCalculationMode
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from tests.tensors.formats.test_quantize import TORCHAO_ELEMENTS, TORCHAO_VALUES, sample  # noqa: E402

MODES = {"floor": ScaleCalculationMode.FLOOR, "rceil": ScaleCalculationMode.RCEIL}


def values() -> dict[str, numpy.ndarray]:
    x = sample()
    made = {
        f"{name}-{mode}": MXTensor.to_mx(x, element, 32, scaling).dequantize(torch.float32).numpy()
        for name, element in TORCHAO_ELEMENTS.items()
        for mode, scaling in MODES.items()
    }
    y = sample(seed=1)
    outer = per_tensor_amax_to_scale(y.abs().max())
    made["nvfp4"] = (
        NVFP4Tensor.to_nvfp4(y, per_tensor_scale=outer).dequantize(torch.float32).numpy()
    )
    return {"sample": x.numpy(), **made}


if __name__ == "__main__":
    numpy.savez_compressed(TORCHAO_VALUES, **values())
