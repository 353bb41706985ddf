"""mxfp6: six-bit values in blocks of 32 under a power-of-two scale (OCP MX)."""

from torchstone.core.text import Text
from torchstone.runtime.number_formats import E2M3, E3M2
from torchstone.tensors.formats._format import Format

_ABOUT = Text("six bits in blocks of 32 (OCP MX)", "每 32 个值共享缩放的 6 位浮点（OCP MX）")
FORMATS = tuple(
    Format(
        name,
        _ABOUT,
        element,
        bits=6.25,
        scales=("floor", "rceil"),
        granularities=("block32",),
    )
    for name, element in (("mxfp6", E2M3), ("mxfp6-e3m2", E3M2))
)
