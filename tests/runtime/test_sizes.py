"""Sizes and number formats as people write them."""

from __future__ import annotations

import pytest
import torch

from torchstone.core.errors import UsageError
from torchstone.runtime.sizes import LARGEST, dtype_names, parse_dtype, parse_size, parse_sizes


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("512", 512), ("8k", 8192), ("8K", 8192), (" 1m ", 1 << 20), ("2g", 2 << 30),
     ("1.5k", 1536), ("0.5k", 512), ("1.0", 1), (str(LARGEST), LARGEST)],
)  # fmt: skip
def test_size(text: str, value: int) -> None:
    assert parse_size(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "0", "-1", "k", "1.3k", "1e3", "0x10", "1 k", "8kb", "٣", "9" * 30, "9999999999g",
     str(LARGEST + 1), "1.5", "nan", "1_000"],
)  # fmt: skip
def test_wrong_size(text: str) -> None:
    with pytest.raises(UsageError, match="whole number"):
        parse_size(text)


def test_sizes() -> None:
    assert parse_sizes("1k,8k,128k") == (1024, 8192, 131072)
    with pytest.raises(UsageError):
        parse_sizes("1k,,8k")


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("bf16", torch.bfloat16), ("bfloat16", torch.bfloat16), ("torch.float16", torch.float16),
     ("FP32", torch.float32), ("int8", torch.int8), ("i64", torch.int64), ("bool", torch.bool),
     ("e4m3", torch.float8_e4m3fn)],
)  # fmt: skip
def test_dtype(text: str, dtype: torch.dtype) -> None:
    assert parse_dtype(text) is dtype


def test_every_name_of_a_number_format_is_one() -> None:
    assert all(isinstance(parse_dtype(name), torch.dtype) for name in dtype_names())


@pytest.mark.parametrize("text", ["bf17", "", "nn", "save", "bfloat_16"])
def test_wrong_dtype(text: str) -> None:
    with pytest.raises(UsageError, match="known name"):
        parse_dtype(text)
