"""e4m3: the fp8 format of weights and activations, largest number 448."""

from torchstone.core.text import Text
from torchstone.runtime.number_formats import E4M3
from torchstone.tensors.formats._format import Format

FORMATS = (
    Format(
        "e4m3",
        Text("fp8 for weights and activations", "用于权重与激活的 fp8"),
        E4M3,
        bits=8,
        scales=("amax", "pow2", "none"),
        granularities=("tensor", "row", "column", "128x128", "1x128"),
    ),
)
