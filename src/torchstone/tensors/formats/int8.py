"""int8: symmetric integers, -127 … 127."""

from torchstone.core.text import Text
from torchstone.runtime.number_formats import INT8
from torchstone.tensors.formats._format import Format

FORMATS = (
    Format(
        "int8",
        Text("symmetric 8-bit integers", "对称 8 位整数"),
        INT8,
        bits=8,
        scales=("amax",),
        granularities=("tensor", "row", "column", "128x128", "1x128", "block32", "block16"),
    ),
)
