"""nvfp4: four-bit values in blocks of 16 under an e4m3 scale and one fp32 scale of the tensor."""

from torchstone.core.text import Text
from torchstone.runtime.number_formats import E2M1
from torchstone.tensors.formats._format import Format

FORMATS = (
    Format(
        "nvfp4",
        Text("four bits in blocks of 16", "每 16 个值共享缩放的 4 位浮点"),
        E2M1,
        bits=4.5,
        scales=("two-level",),
        granularities=("block16",),
    ),
)
