"""fp16: five exponent bits and ten mantissa bits; small gradients vanish, large values overflow."""

from torchstone.core.text import Text
from torchstone.runtime.number_formats import FP16
from torchstone.tensors.formats._format import Format

FORMATS = (
    Format(
        "fp16",
        Text("IEEE half precision", "IEEE 半精度"),
        FP16,
        bits=16,
        scales=("none", "pow2"),
        granularities=("tensor",),
    ),
)
