"""e5m2: the fp8 format of gradients, the range of fp16 with three bits of precision."""

from torchstone.core.text import Text
from torchstone.runtime.number_formats import E5M2
from torchstone.tensors.formats._format import Format

FORMATS = (
    Format(
        "e5m2",
        Text("fp8 for gradients", "用于梯度的 fp8"),
        E5M2,
        bits=8,
        scales=("amax", "pow2", "none"),
        granularities=("tensor", "row", "column", "128x128", "1x128"),
    ),
)
