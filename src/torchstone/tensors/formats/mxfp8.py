"""mxfp8: fp8 values in blocks of 32 under a power-of-two scale (OCP MX)."""

from torchstone.core.text import Text
from torchstone.runtime.number_formats import E4M3, E5M2
from torchstone.tensors.formats._format import Format

_ABOUT = Text("fp8 in blocks of 32 (OCP MX)", "每 32 个值共享缩放的 fp8（OCP MX）")
FORMATS = tuple(
    Format(
        name,
        _ABOUT,
        element,
        bits=8.25,
        scales=("floor", "rceil"),
        granularities=("block32",),
    )
    for name, element in (("mxfp8", E4M3), ("mxfp8-e5m2", E5M2))
)
