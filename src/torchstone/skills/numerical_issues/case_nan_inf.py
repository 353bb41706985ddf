"""An infinity made by a square in fp16 turns into NaN two operators later; bf16 keeps the range."""

import torch

VALUES = torch.linspace(-400, 400, 256)


def _broken(dtype: torch.dtype) -> float:
    """Share of results that are NaN or infinite."""
    x = VALUES.to(dtype)
    square = x * x  # 400² is beyond 65504
    normal = square / square.max()
    return float((~normal.isfinite()).double().mean())


def bad() -> float:
    return _broken(torch.float16)


def good() -> float:
    return _broken(torch.bfloat16)


if __name__ == "__main__":
    print(f"fp16: {bad():.0%} of the results are not finite; bf16: {good():.0%}")
