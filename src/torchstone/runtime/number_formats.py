"""Number formats by their bits: where a value overflows, becomes subnormal or is flushed to zero."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from torchstone.core.errors import UsageError
from torchstone.core.text import Text


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A binary floating format; all limits are of the value that is cast, not of the result."""

    name: str
    exponent_bits: int
    mantissa_bits: int
    largest: float
    overflow_from: float
    """The smallest magnitude that no longer rounds to `largest`."""
    near_overflow: float
    """From here on one doubling, or less, is left."""

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def normal_exponent(self) -> int:
        """Exponent of the smallest normal number."""
        return 1 - self.bias

    @property
    def smallest_normal(self) -> float:
        return 2.0**self.normal_exponent

    @property
    def smallest_subnormal(self) -> float:
        return 2.0 ** (self.normal_exponent - self.mantissa_bits)

    @property
    def flush_exponent(self) -> int:
        """Values up to 2 to this power round to zero: half the smallest subnormal, ties to even."""
        return self.normal_exponent - self.mantissa_bits - 1

    @property
    def flushes_at(self) -> float:
        return 2.0**self.flush_exponent

    @property
    def rounding_unit(self) -> float:
        """The largest relative error of rounding a normal number: half a unit in the last place."""
        return 2.0 ** -(self.mantissa_bits + 1)

    @property
    def overflows_at_tie(self) -> bool:
        """Does the tie above `largest` round away from it? Ties go to the even mantissa."""
        last_bit = self.largest / 2.0 ** (math.frexp(self.largest)[1] - 1 - self.mantissa_bits)
        return int(last_bit) % 2 == 1


@dataclass(frozen=True, slots=True)
class IntegerFormat:
    """A symmetric integer format: -largest … largest in steps of one."""

    name: str
    bits: int

    @property
    def largest(self) -> float:
        return float((1 << (self.bits - 1)) - 1)


FP32 = NumberFormat("fp32", 8, 23, 3.4028234663852886e38, 3.4028235677973366e38, 1.7e38)
BF16 = NumberFormat("bf16", 8, 7, 3.3895313892515355e38, 3.3961775292304957e38, 1.7e38)
FP16 = NumberFormat("fp16", 5, 10, 65504.0, 65520.0, 60000.0)
E5M2 = NumberFormat("e5m2", 5, 2, 57344.0, 61440.0, 53248.0)
E4M3 = NumberFormat("e4m3", 4, 3, 448.0, 464.0, 416.0)
FORMATS = {item.name: item for item in (FP32, BF16, FP16, E5M2, E4M3)}
"""The formats that torch casts to."""

TF32 = NumberFormat("tf32", 8, 10, 3.4011621342146535e38, 3.401992901712019e38, 1.7e38)
# Elements of the block formats: no infinity, no NaN, what lies beyond saturates.
E3M2 = NumberFormat("e3m2", 3, 2, 28.0, 30.0, 26.0)
E2M3 = NumberFormat("e2m3", 2, 3, 7.5, 7.75, 7.25)
E2M1 = NumberFormat("e2m1", 2, 1, 6.0, 7.0, 5.0)
INT8 = IntegerFormat("int8", 8)
INT4 = IntegerFormat("int4", 4)

_BY_DTYPE = {
    torch.float64: FP32,  # read as fp32: nothing here distinguishes what lies beyond
    torch.float32: FP32,
    torch.bfloat16: BF16,
    torch.float16: FP16,
    torch.float8_e5m2: E5M2,
    torch.float8_e4m3fn: E4M3,
    torch.complex64: FP32,
}
_DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "e5m2": torch.float8_e5m2,
    "e4m3": torch.float8_e4m3fn,
}


def format_of(dtype: torch.dtype | str | NumberFormat) -> NumberFormat:
    """The format of a dtype, or of its short name."""
    if isinstance(dtype, NumberFormat):
        return dtype
    known = FORMATS.get(dtype) if isinstance(dtype, str) else _BY_DTYPE.get(dtype)
    if known is None:
        raise UsageError(
            "number format",
            str(dtype),
            Text(f"one of {', '.join(FORMATS)}", f"{'、'.join(FORMATS)} 之一"),
            Text("pass a floating dtype or one of these names", "请传入浮点 dtype 或上述名称"),
        )
    return known


def dtype_of(number_format: NumberFormat) -> torch.dtype:
    """The dtype that torch casts to for this format."""
    return _DTYPES[number_format.name]
