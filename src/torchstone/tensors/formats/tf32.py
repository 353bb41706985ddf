"""tf32: what tensor cores read of fp32 operands, the range of fp32 with eleven bits of precision."""

from torchstone.core.text import Text
from torchstone.runtime.number_formats import TF32
from torchstone.tensors.formats._format import Format

FORMATS = (
    Format(
        "tf32",
        Text("fp32 operands of tensor cores", "张量核心读取的 fp32 操作数"),
        TF32,
        bits=19,
        scales=("none",),
        granularities=("tensor",),
    ),
)
