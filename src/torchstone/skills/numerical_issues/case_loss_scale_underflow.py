"""Gradients below 2^-25 are flushed to zero in fp16; a loss scale moves them into the range."""

import torch

torch.manual_seed(0)
GRADIENTS = torch.exp(2 * torch.randn(100_000)) * 1e-8


def _flushed(scale: float) -> float:
    stored = (GRADIENTS * scale).half()
    return float((stored == 0).double().mean())


def bad() -> float:
    return _flushed(1.0)


def good() -> float:
    return _flushed(2.0**16)


if __name__ == "__main__":
    print(f"flushed to zero: without a scale {bad():.0%}, with 2^16 {good():.2%}")
