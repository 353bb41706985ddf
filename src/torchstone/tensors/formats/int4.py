"""int4: symmetric integers, -7 … 7."""

from torchstone.core.text import Text
from torchstone.runtime.number_formats import INT4
from torchstone.tensors.formats._format import Format

FORMATS = (
    Format(
        "int4",
        Text("symmetric 4-bit integers", "对称 4 位整数"),
        INT4,
        bits=4,
        scales=("amax",),
        granularities=("tensor", "row", "column", "128x128", "1x128", "block32", "block16"),
    ),
)
