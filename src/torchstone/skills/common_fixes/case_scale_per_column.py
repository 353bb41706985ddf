"""int8 with one scale for a tensor with outlier columns flushes nearly everything; a scale per column does not."""

import torch

torch.manual_seed(0)
X = torch.randn(256, 256)
X[:, :2] *= 1000


def _flushed(scale: torch.Tensor) -> float:
    stored = (X / scale).round().clamp(-127, 127)
    return float((stored == 0).double().mean())


def bad() -> float:
    return _flushed(X.abs().max() / 127)


def good() -> float:
    return _flushed(X.abs().amax(dim=0, keepdim=True) / 127)


if __name__ == "__main__":
    print(f"flushed to zero: one scale {bad():.0%}, a scale per column {good():.1%}")
