"""An update smaller than half a unit in the last place changes nothing: bf16 weights stop learning."""

import torch

STEPS, RATE = 1000, 1e-3


def _share_missing(dtype: torch.dtype) -> float:
    """How much of 1000 equal updates a weight of 1.0 did not take."""
    weight = torch.ones(16, dtype=dtype)
    for _ in range(STEPS):
        weight -= RATE * 0.1
    moved = 1 - weight.double().mean()
    return 1 - float(moved) / (STEPS * RATE * 0.1)


def bad() -> float:
    return _share_missing(torch.bfloat16)


def good() -> float:
    """A master copy in fp32, cast for the forward."""
    return abs(_share_missing(torch.float32))


if __name__ == "__main__":
    print(f"updates lost: bf16 weights {bad():.0%}, fp32 master weights {good():.2%}")
