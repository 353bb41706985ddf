"""bf16: the range of fp32 with eight bits of precision."""

from torchstone.core.text import Text
from torchstone.runtime.number_formats import BF16
from torchstone.tensors.formats._format import Format

FORMATS = (
    Format(
        "bf16",
        Text("the upper half of fp32", "fp32 的高 16 位"),
        BF16,
        bits=16,
        scales=("none",),
        granularities=("tensor",),
    ),
)
