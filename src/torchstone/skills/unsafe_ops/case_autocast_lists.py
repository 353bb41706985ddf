"""What autocast on the CPU does: matrix products become bf16, losses stay fp32, sums keep their input's type."""

import torch
import torch.nn.functional as F


def _types() -> tuple[torch.dtype, torch.dtype, torch.dtype]:
    x = torch.randn(4, 4)
    with torch.autocast("cpu", torch.bfloat16):
        product = x @ x
        return product.dtype, F.mse_loss(product, x).dtype, product.sum().dtype


def bad() -> float:
    """Bits of the sum of a product under autocast: bf16, because the CPU list does not hold sum."""
    return 1.0 if _types()[2] == torch.bfloat16 else 0.0


def good() -> float:
    """The loss is computed in fp32 without being asked."""
    return 0.0 if _types()[1] == torch.float32 else 1.0


if __name__ == "__main__":
    print("product, loss, sum:", *(str(kind).removeprefix("torch.") for kind in _types()))
