"""mxfp4: four-bit values in blocks of 32 under a power-of-two scale (OCP MX)."""

from torchstone.core.text import Text
from torchstone.runtime.number_formats import E2M1
from torchstone.tensors.formats._format import Format

FORMATS = (
    Format(
        "mxfp4",
        Text("four bits in blocks of 32 (OCP MX)", "每 32 个值共享缩放的 4 位浮点（OCP MX）"),
        E2M1,
        bits=4.25,
        scales=("floor", "rceil"),
        granularities=("block32",),
    ),
)
