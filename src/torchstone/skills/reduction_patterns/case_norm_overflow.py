"""A norm by hand squares first: in fp16 it overflows at 256; torch.linalg.vector_norm does not."""

import torch

X = torch.full((16,), 300.0)
EXACT = 1200.0


def _error(value: torch.Tensor) -> float:
    found = float(value)
    return abs(found - EXACT) / EXACT if found == found and abs(found) != float("inf") else 1.0


def bad() -> float:
    x = X.half()
    return _error((x * x).sum().sqrt())


def good() -> float:
    return _error(torch.linalg.vector_norm(X.half(), dtype=torch.float32))


if __name__ == "__main__":
    print(f"error: by hand {bad():.0%} (infinite), vector_norm in fp32 {good():.3%}")
