"""Sizes and number formats as people write them: `8k`, `1k,8k,128k`, `bf16`."""

from __future__ import annotations

import re

import torch

from torchstone.core.errors import UsageError
from torchstone.core.options import unknown
from torchstone.core.text import Text

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
"""1k is 1024, as sequence lengths are counted."""
LARGEST = (1 << 63) - 1
"""What a size in torch can hold."""

_SIZE = re.compile(r"([0-9]{1,20})(\.[0-9]{1,9})?([kmg]?)", re.ASCII)
_SHORT = {
    "fp64": torch.float64,
    "f64": torch.float64,
    "fp32": torch.float32,
    "f32": torch.float32,
    "fp16": torch.float16,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8": torch.float8_e4m3fn,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "c64": torch.complex64,
    "c128": torch.complex128,
}
_LONG = (
    "float64", "double", "float32", "float", "float16", "half", "bfloat16", "float8_e4m3fn",
    "float8_e5m2", "int64", "long", "int32", "int", "int16", "short", "int8", "uint8", "bool",
    "complex64", "complex128",
)  # fmt: skip


def parse_size(text: str, where: str = "size", largest: int = LARGEST) -> int:
    """A whole number of at least 1, perhaps with a unit: `parse_size("8k")` is 8192."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise _wrong_size(text, where, largest)
    whole, part, unit = str(match[1]), str(match[2] or ""), UNITS[match[3]]
    # Whole numbers only: 1.5k is 1536, and 1.3k would be 1331.2.
    scaled = int(whole + part[1:]) * unit
    value, rest = divmod(scaled, int("1" + "0" * len(part[1:])))
    if rest or not 1 <= value <= largest:
        raise _wrong_size(text, where, largest)
    return value


def parse_sizes(text: str, where: str = "size", largest: int = LARGEST) -> tuple[int, ...]:
    """Sizes with commas between them: `1k,8k,128k`."""
    return tuple(parse_size(part, where, largest) for part in text.split(","))


def parse_dtype(text: str, where: str = "dtype") -> torch.dtype:
    """A number format by its short or its long name."""
    name = text.strip().lower().removeprefix("torch.")
    found = _SHORT.get(name)
    if found is None and name in _LONG:
        found = getattr(torch, name)
    if found is None:
        raise unknown(where, text, dtype_names())
    return found


def dtype_names() -> list[str]:
    """Every name of a number format that is understood."""
    return [*_SHORT, *_LONG]


def _wrong_size(text: str, where: str, largest: int) -> UsageError:
    return UsageError(
        where,
        repr(text[:60]),
        Text(
            f"a whole number from 1 to {largest}, such as 512, 8k (8192) or 1m",
            f"1 到 {largest} 之间的整数，例如 512、8k（8192）或 1m",
        ),
        Text("write it in digits, with k, m or g", "请用数字书写，可带 k、m 或 g"),
    )
