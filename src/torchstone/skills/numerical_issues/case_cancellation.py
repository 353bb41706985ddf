"""exp(x) - 1 for small x: the subtraction keeps the rounding error and loses the value; expm1 does not."""

import torch

X = torch.linspace(1e-4, 1e-2, 1000, dtype=torch.float64)


def _error(value: torch.Tensor) -> float:
    return float(((value.double() - torch.expm1(X)).abs() / torch.expm1(X)).median())


def bad() -> float:
    x = X.half()
    return _error(torch.exp(x) - 1)


def good() -> float:
    return _error(torch.expm1(X.half()))


if __name__ == "__main__":
    print(f"median error: exp(x) - 1 {bad():.1%}, expm1(x) {good():.3%}")
