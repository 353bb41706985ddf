"""Keeping one module in fp32: cast its input up and its output down, and the error is gone."""

import torch

torch.manual_seed(0)
X = torch.randn(64, 512, dtype=torch.float64) + 20


def _normalise(x: torch.Tensor) -> torch.Tensor:
    mean = (x.sum(dim=1) / x.shape[1]).unsqueeze(1)
    spread = (x * x).mean(dim=1, keepdim=True) - mean * mean
    return (x - mean) / torch.sqrt(spread.clamp(min=1e-3))


def _error(value: torch.Tensor) -> float:
    exact = _normalise(X)
    return float((value.double() - exact).norm() / exact.norm())


def bad() -> float:
    return _error(_normalise(X.bfloat16()))


def good() -> float:
    return _error(_normalise(X.bfloat16().float()).bfloat16())


if __name__ == "__main__":
    print(f"error: all in bf16 {bad():.0%}, this part in fp32 {good():.1%}")
