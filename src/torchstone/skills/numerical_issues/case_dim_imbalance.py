"""Two coordinates of very different range in one sum: the small one disappears in half precision."""

import torch

torch.manual_seed(0)
LARGE = torch.rand(1000, dtype=torch.float64) * 2000 - 1000
SMALL = torch.rand(1000, dtype=torch.float64) * 2 - 1


def _lost(total: torch.Tensor) -> float:
    """Median share of the small coordinate that the sum lost."""
    error = (total.double() - (LARGE + SMALL)).abs() / SMALL.abs()
    return min(float(error.median()), 1.0)


def bad() -> float:
    boxes = torch.stack([LARGE, SMALL], dim=1).bfloat16()
    return _lost(boxes.sum(dim=1))


def good() -> float:
    boxes = torch.stack([LARGE, SMALL], dim=1).float()
    return _lost(boxes.sum(dim=1))


if __name__ == "__main__":
    print(f"bf16 sum loses {bad():.1%} of the small coordinate, fp32 sum {good():.4%}")
