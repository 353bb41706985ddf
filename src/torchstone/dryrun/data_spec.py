"""What one sample of a dataset looks like, as the user writes it: `3x224x224:float32,:int64<1000`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torchstone.core.errors import UsageError
from torchstone.core.text import Text

DTYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")  # fmt: skip
_FIELD = re.compile(
    r"(?:(?P<name>[^\W\d]\w*)=)?(?P<shape>(?:\d+(?:x\d+)*)?)(?::(?P<dtype>\w+))?(?:<(?P<limit>\d+))?"
)
LARGEST = 1 << 28
"""Elements of one sample: a gibibyte of float32 is more than any dataset holds in one."""


@dataclass(frozen=True, slots=True)
class SampleField:
    """One tensor of a sample."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    limit: int = 2
    """Whole numbers are below it."""


def parse_sample(text: str) -> tuple[SampleField, ...]:
    """The fields of a sample: a tuple where they have no names, a dict where all have one."""
    fields = tuple(_field(part.strip(), text) for part in text.split(",")) if text.strip() else ()
    names = [field.name for field in fields if field.name]
    if names and (len(names) != len(fields) or len(set(names)) != len(names)):
        raise _wrong(text, Text("a name for every field, or for none", "每个字段都有不同的名称，或都没有"))  # fmt: skip
    return fields


def _field(part: str, text: str) -> SampleField:
    found = _FIELD.fullmatch(part)
    if found is None or not part:
        raise _wrong(part or text, Text("NAME=3x224x224:float32 or :int64<1000", "NAME=3x224x224:float32 或 :int64<1000"))  # fmt: skip
    shape = tuple(int(size) for size in found["shape"].split("x")) if found["shape"] else ()
    dtype = found["dtype"] or "float32"
    if dtype not in DTYPES:
        raise _wrong(part, Text("a dtype of " + ", ".join(DTYPES), "以下数值格式之一：" + "、".join(DTYPES)))  # fmt: skip
    size = 1
    for axis in shape:
        size *= axis
    if size > LARGEST:
        raise _wrong(part, Text("at most 2^28 elements", "至多 2^28 个元素"))
    limit = int(found["limit"]) if found["limit"] else 2
    if limit < 1:
        raise _wrong(part, Text("a limit of 1 or more", "上限为 1 或更大"))
    return SampleField(found["name"] or "", shape, dtype, limit)


def _wrong(given: str, expected: Text) -> UsageError:
    return UsageError(
        "--data", repr(given), expected,
        Text('for example: --data "3x224x224,:int64<1000"', '例如：--data "3x224x224,:int64<1000"'),
    )  # fmt: skip
