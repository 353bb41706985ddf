"""A mean as sum over count overflows in fp16 where the mean itself is small."""

import torch

X = torch.full((100_000,), 2.0)


def _error(value: torch.Tensor) -> float:
    found = float(value)
    return abs(found - 2.0) / 2.0 if abs(found) != float("inf") else 1.0


def bad() -> float:
    x = X.half()
    return _error(x.sum() / x.numel())


def good() -> float:
    return _error(X.half().mean(dtype=torch.float32))


if __name__ == "__main__":
    print(f"error: sum / count in fp16 {bad():.0%}, mean(dtype=torch.float32) {good():.3%}")
