"""Cross entropy over a large vocabulary in half precision: 100,000 small terms do not add up."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
LOGITS = torch.randn(4, 100_000, dtype=torch.float64)
TARGET = torch.tensor([1, 2, 3, 4])
EXACT = F.cross_entropy(LOGITS, TARGET)


def bad() -> float:
    """The sum of the exponentials in a bf16 accumulator, 100 terms at a time."""
    logits = LOGITS.bfloat16()
    total = torch.zeros(4, dtype=torch.bfloat16)
    for part in logits.exp().split(100, dim=1):
        total = total + part.sum(dim=1)
    loss = (total.log() - logits.gather(1, TARGET[:, None]).squeeze(1)).mean()
    return abs(float(loss) - float(EXACT)) / float(EXACT)


def good() -> float:
    """The same logits, the loss in fp32."""
    return abs(float(F.cross_entropy(LOGITS.bfloat16().float(), TARGET)) - float(EXACT)) / float(
        EXACT
    )


if __name__ == "__main__":
    print(f"error of the loss: bf16 accumulator {bad():.2%}, logits.float() {good():.3%}")
