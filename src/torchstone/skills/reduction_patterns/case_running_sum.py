"""A running sum in half precision stops growing; torch.sum accumulates in fp32 and does not."""

import torch

VALUES = torch.full((10_000,), 0.1, dtype=torch.float64)
EXACT = float(VALUES.sum())


def bad() -> float:
    total = torch.zeros((), dtype=torch.float16)
    for value in VALUES.half():
        total = total + value
    return abs(float(total) - EXACT) / EXACT


def good() -> float:
    return abs(float(VALUES.half().sum(dtype=torch.float32)) - EXACT) / EXACT


if __name__ == "__main__":
    print(f"error: running sum in fp16 {bad():.0%}, sum(dtype=torch.float32) {good():.3%}")
