"""An eps below 2^-25 is zero in fp16, and 0 / 0 is NaN; 1e-4 is a number there."""

import torch

X = torch.zeros(8, dtype=torch.float16)


def _broken(eps: float) -> float:
    normal = X / (X.abs().max() + eps)
    return float(normal.isnan().double().mean())


def bad() -> float:
    return _broken(1e-8)


def good() -> float:
    return _broken(1e-4)


if __name__ == "__main__":
    print(f"NaN: eps=1e-8 {bad():.0%}, eps=1e-4 {good():.0%}")
