"""A loss of another dtype than the output: the target was rounded, so the loss has a floor."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
TARGET = torch.rand(4096, dtype=torch.float64) + 1


def _loss(prediction: torch.Tensor, target: torch.Tensor) -> float:
    return float(F.mse_loss(prediction, target))


def bad() -> float:
    """A perfect prediction in fp32 against a target that went through bf16."""
    return _loss(TARGET.float(), TARGET.bfloat16().float())


def good() -> float:
    """Both in fp32."""
    return _loss(TARGET.float(), TARGET.float())


if __name__ == "__main__":
    print(
        f"loss of a perfect prediction: target through bf16 {bad():.2e}, both in fp32 {good():.2e}"
    )
